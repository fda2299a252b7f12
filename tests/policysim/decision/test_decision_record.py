"""The decision record: its numbers are cells of the run, and it is one sheet of safe HTML that is refused where due."""

import hashlib
import json
import math
import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from small_studies import STUDY, write_small_study

import policysim as ps
from envs.records import record_space
from policies.catalogue import CATALOGUE, REFERENCES, describe
from policysim.cli.main import main
from policysim.decision.choice_question import RECORD, answer_of_choices
from policysim.decision.choice_record import Adoption
from policysim.decision.choose import Wish, choose, rows_of
from policysim.output.answer_page import SIGNATURES
from policysim.output.deliver import folder_files
from policysim.study.declared import LoggedStudy
from policysim.study.labels import OUTSIDE

POLICIES = ["optimal", "randomized-response", "exponential"]


class Page(HTMLParser):
    """Cells by their keys, rows of tables, and words; a tag that closes nothing is a mistake."""

    VOID = frozenset({"meta", "col", "br"})

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.starts, self.text, self.cells = [], [], [], [], {}
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.starts.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag == "data":
            self.cells[dict(attrs)["data-cell"].removesuffix("/value")] = float(dict(attrs)["value"] or "nan")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text.append(data)
        if {"th", "td"} & set(self.open):
            self.rows[-1][-1] += data

    def row(self, name):
        """The cells beside a name in the first column."""
        return next(row[1:] for row in self.rows if row[:1] == [name])

    @property
    def words(self):
        return " ".join("".join(self.text).split())

    @property
    def decision(self):
        """The title."""
        return re.search(r"Decision record (.*?) (?:A small study|A trial)", self.words).group(1)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


@pytest.fixture(scope="module", autouse=True)
def fewer_redraws():
    """What a record says of redraws is looked at elsewhere, and they are most of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        yield


@pytest.fixture(scope="module")
def usual(study, problem):
    """What is found where a mechanism does it, and the record of it."""
    return record(study, problem, Wish(keep=0.8))


def record(study, problem, wish, policies=POLICIES, **adopted):
    """What is found, and the record of it: whatever it costs in deaths is accepted."""
    choices = choose(problem, wish, policies)
    adoption = Adoption(**{"accepted_deaths": 1e5, **adopted})
    answered = answer_of_choices(study, problem, choices, record=adoption)
    return choices, folder_files(answered, "")[RECORD].decode()


def test_the_terms_are_what_the_chosen_table_of_probabilities_gives(problem, usual):
    choices, text = usual
    page, least = Page(text), choices.least
    table = ps.make_policy(least["policy"], epsilon=least["epsilon"]).probabilities(problem)
    best = np.eye(problem.n_actions)[problem.utilities.argmax(axis=1)]
    lost = ((best - table) * problem.prior[:, None] * problem.utilities).sum()
    spent = ps.privacy_loss(table, problem.adjacency).epsilon
    right = 1 / (1 + math.exp(-least["epsilon"]))
    expected = {"lost": lost, "right at most": right, "odds": math.exp(least["epsilon"]), "epsilon": least["epsilon"]}
    for name, value in expected.items():
        assert page.cells[f"facts/{name}//"] == pytest.approx(value, rel=1e-5)
    assert spent <= page.cells["facts/spent//"] <= spent * (1 + 1e-4)
    assert page.decision == f"“{least['policy']}” at ε = {least['epsilon']}"


def test_who_pays_is_the_group_that_a_mechanism_costs_most_deaths(study, problem):
    # As if each treatment had the deaths of another.
    deaths = problem.outcomes["deaths"][:, [0, 2, 1]]
    problem = replace(problem, outcomes={**problem.outcomes, "deaths": deaths})
    choices, text = record(study, problem, Wish(keep=0.8))
    table = choices.mechanisms[choices.least["policy"]].probabilities(problem)
    fixed = np.eye(problem.n_actions)[np.full(problem.n_records, problem.best_fixed_action)]
    more = problem.prior * ((table - fixed) * problem.outcomes["deaths"]).sum(axis=1)
    groups = {}
    for feature in study.by:
        codes, levels = problem.records.groups(feature)
        for code, level in enumerate(levels):
            mass = problem.prior[codes == code].sum()
            groups[feature, level] = (more[codes == code].sum() / mass, mass)
    (feature, level), (most, mass) = max(groups.items(), key=lambda item: item[1][0])
    page = Page(text)
    assert page.cells["facts/who pays//"] == pytest.approx(most, rel=1e-5)
    assert page.cells["facts/who share//"] == pytest.approx(mass, rel=1e-5)
    (said,) = page.row("Who pays")
    assert (feature if level == "1" else level) in said.lower()


def test_every_option_has_a_row_and_the_chosen_one_is_marked(study, problem, usual):
    choices, text = usual
    page = Page(text)
    for row in rows_of(choices.needs):
        cells = page.row(row["policy"])
        assert float(cells[0]) == row["epsilon"]
        assert (cells[-1] == "chosen") == (row["policy"] == choices.least["policy"])
    assert page.row("any private choice")[0] == page.row(choices.least["policy"])[0]
    fixed = study.scenario.treatments[problem.actions[problem.best_fixed_action]].title
    assert page.row(f"{fixed} for all")[-1] == "not enough"
    assert page.row("each's best")[0] == "∞"
    assert [attributes for tag, attributes in page.starts if attributes.get("class") == "chosen"] == [
        {"class": "chosen"}
    ]


@pytest.mark.parametrize("wish", [Wish(keep=0.0, max_guess=0.5), Wish(keep=-0.1)], ids=str)
def test_where_one_treatment_for_all_is_enough_it_is_what_is_decided(study, problem, wish):
    _, text = record(study, problem, wish, ["randomized-response"])
    page = Page(text)
    name = f"{study.scenario.treatments[problem.actions[problem.best_fixed_action]].title} for all"
    assert page.decision.lower() == name.lower()
    assert page.row(name)[-1] == "chosen"
    assert page.cells["facts/right at most//"] == 0.5
    assert len(re.findall(r"\([\w .&;]+ \d{4}\)", page.words.partition("Methods")[2])) == 1  # what ε means


def test_where_no_mechanism_can_there_is_no_decision_and_the_reason(study, problem):
    _, text = record(study, problem, Wish(keep=0.9, max_guess=0.55))
    page = Page(text)
    assert page.decision == "No decision was made"
    assert page.row("randomized-response")[-1] == "more than allowed"
    assert "No mechanism that gives what it publishes can do this: that takes more than ε = " in page.words
    assert page.cells["facts/takes more//"] > page.cells["facts/allowed//"]
    assert "chosen" not in {row[-1] for row in page.rows if row}


def test_each_policy_with_an_epsilon_has_words_and_works_and_the_record_cites_its_own(study, problem):
    for name, policy in CATALOGUE.built_in.items():
        assert describe(name).works or not policy.uses_epsilon, name
    for name in ("exponential", "randomized-response", "permute-and-flip"):
        _, text = record(study, problem, Wish(keep=0.6), [name])
        words = Page(text).words
        assert describe(name).words in words
        # Whatever is cited is listed, and nothing else.
        paragraph = words.partition("Methods, for a paper")[2].partition("digests and versions are below.")[0]
        listed = words.partition("digests and versions are below.")[2].partition("Signatures")[0]
        assert all(work in paragraph and REFERENCES[work] in listed for work in describe(name).works)
        assert len(re.findall(r"\(\d{4}\)", listed)) == len(set(re.findall(r"[A-Z][\w&. ]+? (?:19|20)\d\d", paragraph)))


def test_the_same_run_writes_the_same_bytes_without_a_date(study, problem, usual):
    (_, one), (_, other) = usual, record(study, problem, Wish(keep=0.8))
    assert one == other
    assert not re.search(r"20\d\d-\d\d-\d\d|\d\d:\d\d", one)
    scenario = Path(study.scenario_source).read_bytes()
    assert f"SHA-256: study small {study.digest}; scenario scenario {hashlib.sha256(scenario).hexdigest()};" in one


def test_the_page_is_one_file_with_a_language_headers_and_headings(usual):
    _, text = usual
    page = Page(text)
    assert ("html", {"lang": "en"}) in page.starts
    assert not re.search(r"(?:src|href|action)\s*=|url\(|@import|https?:", text)
    assert "script" not in {tag for tag, _ in page.starts}
    headers = [attributes for tag, attributes in page.starts if tag == "th"]
    assert all(attributes.get("scope") in ("col", "row") for attributes in headers)
    assert [tag for tag, _ in page.starts if re.fullmatch(r"h\d", tag)] == ["h1", *["h2"] * 5]
    assert page.rows[-3:] == [["", role, "", ""] for role in SIGNATURES]  # lines to sign on
    # Letters on paper are no smaller than 8 pt.
    assert min(map(float, re.findall(r"font-size: ([\d.]+)pt", text))) >= 8


def test_what_people_write_is_escaped(tmp_path):
    hostile = "<script>alert(1)</script>"
    text = STUDY.replace('"A small study"', f"'{hostile} & co'").replace(
        "[privacy]", f"[privacy]\nhidden_from = '{hostile}'"
    )
    study = ps.load_study(write_small_study(tmp_path, text))
    _, page = record(study, ps.build_problem(study), Wish(keep=0.5), ["randomized-response"], institution=hostile)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 4  # the question, twice, the institution, and from whom


@pytest.fixture
def logged(tmp_path):
    data = tmp_path / "trial.csv"
    data.write_bytes(b"arm,success\n")
    study = LoggedStudy(
        name="trial",
        text="a trial",
        files={},
        title="A trial",
        hidden_from="the insurer",
        seen="treatment",
        published_patients=10_000,
        adjacency="sensitive",
        sensitive=("drug_use",),
        public=(),
        epsilon=1.0,
        epsilons=(1.0,),
        policies=("randomized-response",),
        by=(),
        robust=None,
        related={},
        seed=1,
        log=SimpleNamespace(
            outcome_model="logistic",
            files={"table": data},
            parts=(data,),
            space=record_space({"arm": [0, 1], "age": [0, 1, 2]}),
        ),
    )
    utilities = np.random.default_rng(1).random((6, 3))
    return study, ps.DecisionProblem(utilities, np.full(6, 1 / 6), ps.Sensitive((2, 3), (0,)), ("old", "new", "both"))


def test_of_a_log_it_says_that_scores_are_fitted_and_counts_no_deaths(logged):
    _, text = record(*logged, Wish(keep=0.5), ["randomized-response"], accepted_deaths=None)
    page = Page(text)
    assert "Prices are under scores fitted to a log" in page.words
    assert "(a logistic outcome model)" in page.words
    # Nobody judged it on patients held out, so no mechanism is chosen.
    assert "Cannot be told." in page.words
    assert "illustrative" not in page.words
    assert "death" not in page.words.lower()
    assert f"data trial.csv {hashlib.sha256(b'arm,success' + bytes([10])).hexdigest()}" in page.words
    assert all(said in page.words for said in OUTSIDE)


def test_by_whom_and_until_when_it_is_decided_or_lines_to_write_that_on(study, problem, usual):
    given = {"institution": "The ward", "date": "2026-03-01", "valid_until": "2027-02-28"}
    page = Page(record(study, problem, Wish(keep=0.8), **given)[1])
    assert page.row("Institution") == ["The ward", "Date", "2026-03-01", "Valid until", "2027-02-28"]
    empty = Page(usual[1])
    assert empty.row("Institution") == ["", "Date", "", "Valid until", ""]


def test_what_costs_deaths_and_privacy_is_not_decided_unless_that_is_accepted(study, problem):
    choices = choose(problem, Wish(keep=0.35), ["optimal"])
    table = ps.make_policy("optimal", epsilon=choices.least["epsilon"]).probabilities(problem)
    deaths = problem.prior[:, None] * problem.outcomes["deaths"]
    more = 1e5 * ((table * deaths).sum() - deaths.sum(axis=0).min())
    assert more > 0
    answer = partial(answer_of_choices, study, problem, choices)
    for accepted in (None, 0.0, more * 0.999):
        answered = answer(record=Adoption(accepted_deaths=accepted))
        assert (answered.exit_code, answered.pages, answered.document["record"]) == (4, {}, None)
        assert answered.document["refused"]
        facts = answered.options["facts"].set_index("row")["value"]
        # A difference is that of the numbers beside it, as they are printed.
        cells = answered.options["options"].query("row == 'deaths'").set_index("option")
        places = int(cells.loc["optimal", "format"].split()[-1])
        printed = (cells["value"] * 1e5).round(places)
        of_all = printed[[name for name in printed.index if "for all" in name]]
        assert facts["more deaths"] * 1e5 == pytest.approx(printed["optimal"] - of_all.min())
        assert facts["more deaths"] * 1e5 == pytest.approx(more, abs=10**-places)
        # What it says is enough is enough, and no more than its digits ask for.
        assert more <= facts["to accept"] <= more * 1.01
        assert answer(record=Adoption(accepted_deaths=facts["to accept"])).exit_code == 0
    _, text = record(study, problem, Wish(keep=0.35), ["optimal"], accepted_deaths=30)
    assert Page(text).cells["facts/accepted//"] == 30


def test_what_costs_no_more_deaths_or_no_privacy_is_decided_without_a_word(study, problem):
    for keep in (0.8, 0.0, -0.5):  # fewer deaths; one treatment for all
        answered = answer_of_choices(study, problem, choose(problem, Wish(keep=keep), ["optimal"]), record=Adoption())
        assert (answered.exit_code, list(answered.pages)) == (0, [RECORD])


def command(capsys, *arguments):
    code = main(["choose", *arguments])
    return code, capsys.readouterr().out


def test_the_command_writes_the_record_and_says_where(capsys, tmp_path, study, problem):
    path = str(write_small_study(tmp_path / "study"))
    out = tmp_path / "out"
    options = ("--keep", "80%", "--policy", "randomized-response", "--decision-record", "--out", str(out))
    code, text = command(capsys, path, *options)
    assert code == 0
    assert text.splitlines()[-1] == f"Decision record: {(out / 'decision-record.html').as_posix()}"
    page = (out / "decision-record.html").read_text(encoding="utf-8")
    assert page == record(study, problem, Wish(keep=0.8), ["randomized-response"], accepted_deaths=None)[1]
    code, text = command(capsys, path, *options, "--json")
    assert json.loads(text)["decision_record"] == (out / "decision-record.html").as_posix()


def test_the_command_says_what_would_have_to_be_accepted_and_writes_nothing(capsys, tmp_path):
    path = str(write_small_study(tmp_path / "study"))
    out = tmp_path / "out"
    options = ("--keep", "35%", "--policy", "optimal", "--decision-record", "--out", str(out))
    code, text = command(capsys, path, *options)
    assert code == 4
    assert not out.exists()
    assert "“optimal” at ε = " in text  # answered all the same
    said = re.search(r"No record\s+More deaths than are accepted: --accept\s+(deaths=\S+) \(per 100,000\)", text)
    code, text = command(capsys, path, *options, "--accept", said.group(1), "--json")
    document = json.loads(text)
    assert (code, document["refused"]) == (0, False)
    assert document["record"]["accepted_deaths"] == float(said.group(1).partition("=")[2])
    assert (out / "decision-record.html").exists()


def test_a_record_of_no_decision_is_written_with_exit_four(capsys, tmp_path):
    path = str(write_small_study(tmp_path / "study"))
    out = tmp_path / "out"
    options = ("--keep", "0.9", "--max-guess", "55%", "--decision-record", "--out", str(out))
    code, _ = command(capsys, path, *options)
    assert code == 4
    assert sorted(file.name for file in out.iterdir()) == ["certificate.json", "decision-record.html"]
    assert "<h1>No decision was made</h1>" in (out / "decision-record.html").read_text(encoding="utf-8")
