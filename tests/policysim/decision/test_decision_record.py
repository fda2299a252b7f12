"""The decision record: its numbers are those of the run, its words fit the study, and it is one sheet of safe HTML."""

import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from small_studies import STUDY, write_small_study

import policysim as ps
from envs.records import record_space
from policies.catalogue import CATALOGUE
from policysim.cli.main import main
from policysim.decision.adoption import Adoption, why
from policysim.decision.choice_question import RECORD, answer_of_choices
from policysim.decision.choice_screen import answer, choices_screen, worse
from policysim.decision.choose import Verdict, Wish, choose
from policysim.decision.methods import methods, price_of, shown
from policysim.output.deliver import folder_files
from policysim.question.formats import events, of_100, percent, rounded, rounded_down, rounded_up
from policysim.study.basis import OUTSIDE
from policysim.study.declared import LoggedStudy

POLICIES = ["optimal", "randomized-response", "exponential"]


class Page(HTMLParser):
    """Text by element, and what is open; a tag that closes nothing is a mistake."""

    VOID = frozenset({"meta", "col", "br"})

    def __init__(self, text):
        super().__init__()
        self.open, self.rows, self.starts, self.text = [], [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.starts.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self.rows[-1].append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        data = data.replace("\u00a0=\u00a0", " = ")  # tied, so that no line ends there
        if "style" not in self.open:
            self.text.append(data)
        if self.open and self.open[-1] in ("th", "td"):
            self.rows[-1][-1] += data

    def row(self, name):
        """The cells beside a name in the first column."""
        return next(row[1:] for row in self.rows if row[:1] == [name])

    @property
    def words(self):
        return " ".join(" ".join(self.text).split())

    @property
    def decision(self):
        """The title, and what is said below it, in the box at the top."""
        return self.words.partition(" Decision record ")[2].partition(" A model with")[0]


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


def record(study, problem, wish, policies=POLICIES, **adopted):
    """What is found, and the record of it: whatever it costs in deaths is accepted."""
    choices = choose(problem, wish, policies)
    adoption = Adoption(**{"accepted_deaths": 1e5, **adopted})
    files = folder_files(answer_of_choices(study, problem, choices, record=adoption), "")
    return choices, files[RECORD].decode()


def test_the_price_is_what_the_chosen_table_of_probabilities_costs(study, problem):
    choices, page = record(study, problem, Wish(keep=0.8))
    least = choices.least
    table = ps.make_policy(least.policy, epsilon=least.epsilon).probabilities(problem)
    best = np.eye(problem.n_actions)[problem.utilities.argmax(axis=1)]
    weighted = problem.prior[:, None] * problem.utilities
    fixed = weighted.sum(axis=0).max()
    loss = ((best - table) * weighted).sum()
    kept = ((table * weighted).sum() - fixed) / ((best * weighted).sum() - fixed)
    extra = ((table - best) * problem.prior[:, None] * problem.outcomes["deaths"]).sum()
    worse = (table * problem.prior[:, None] * (problem.utilities < problem.utilities[:, :1])).sum()
    price = Page(page).row("Price")[0]
    assert f"Benefit kept: {percent(kept)}" in price
    assert f"Utility lost per patient: {rounded(loss)}" in price
    assert f"{events(extra, 100_000, sign=True)} beyond the best treatment for each" in price
    assert f"Of 1,000 patients, {rounded(1000 * worse)} get" in price
    spent = ps.privacy_loss(table, problem.adjacency).epsilon
    assert f"Exact privacy loss: {shown(spent)}" in Page(page).row("Mechanism")[0]


def test_the_worst_off_group_is_the_one_that_loses_most_per_patient(study, problem):
    choices, page = record(study, problem, Wish(keep=0.8))
    table = ps.make_policy(choices.least.policy, epsilon=choices.least.epsilon).probabilities(problem)
    losses = problem.prior * (problem.utilities.max(axis=1) - (table * problem.utilities).sum(axis=1))
    groups = {}
    for feature in study.by:
        codes, levels = problem.records.groups(feature)
        for code, level in enumerate(levels):
            mass = problem.prior[codes == code].sum()
            groups[feature, level] = (losses[codes == code].sum() / mass, mass)
    (feature, level), (loss, mass) = max(groups.items(), key=lambda item: item[1][0])
    shown_worst = Page(page).row("Worst off")[0]
    assert f"({percent(mass)} of patients): {rounded(loss)} in utility each" in shown_worst
    assert (feature if level == "1" else level) in shown_worst.lower()


def test_epsilon_is_said_in_guesses_and_in_odds(study, problem):
    choices, page = record(study, problem, Wish(keep=0.8))
    epsilon = choices.least.epsilon
    privacy = Page(page).row("Privacy")[0]
    assert f"At ε = {epsilon}, " in privacy
    assert f"right at most {math.ceil(1000 / (1 + math.exp(-epsilon))) / 10} of 100 times" in privacy
    assert f"more than exp(ε) = {rounded_up(math.exp(epsilon), 3)}." in privacy


def test_every_policy_has_a_row_with_its_least_epsilon_and_the_chosen_one_is_named(study, problem):
    choices, text = record(study, problem, Wish(keep=0.8))
    page = Page(text)
    for row in choices.rows:
        cells = page.row(row.policy)
        assert (float(cells[0]), cells[1]) == (row.epsilon, percent(row.benefit_kept))
        assert (cells[-1] == "chosen") == (row is choices.least)
    limit, *_, remark = page.row("any private choice")
    assert (limit, remark) == (page.row(choices.rows[0].policy)[0], "none needs less, to 2 digits")
    fixed = problem.actions[problem.best_fixed_action]
    assert page.row(f"one for all ({fixed})")[-1] == "not enough"
    assert page.row("best for each")[0] == "∞"
    assert f"Treatments are chosen by the mechanism “{choices.least.policy}”" in page.words


@pytest.mark.parametrize("wish", [Wish(keep=0.0), Wish(keep=0.0, max_guess=0.5), Wish(keep=-0.1)], ids=str)
def test_where_one_treatment_for_all_is_enough_it_is_what_is_decided(study, problem, wish):
    choices, text = record(study, problem, wish, ["randomized-response"])
    page = Page(text)
    fixed = problem.actions[problem.best_fixed_action]
    assert page.decision == f"Everybody gets {fixed} That meets what was asked for, and costs no privacy."
    assert page.row(f"one for all ({fixed})")[-1] == "chosen"
    assert page.row("randomized-response")[-1] != "chosen"
    assert "Exact privacy loss: 0." in page.row("Mechanism")[0]
    assert f"Benefit kept: {percent(0)} " in page.row("Price")[0]
    found = methods(study, problem, choices, price_of(study, problem, choices))
    assert f"the highest expected utility ({fixed}): that meets what was asked for" in found.paragraph
    assert "below ε" not in found.paragraph
    assert len(found.references) == 1  # what ε means


def test_where_no_mechanism_can_there_is_no_decision_and_the_reason(study, problem):
    choices, text = record(study, problem, Wish(keep=0.9, max_guess=0.55))
    page = Page(text)
    assert page.decision.startswith(
        "No decision was made No mechanism that gives what it publishes can: that takes more than ε = "
    )
    assert page.row("randomized-response")[-1] == "more than allowed"
    assert "certificate.json" in page.words
    assert "chosen" not in {row[-1] for row in page.rows if row}
    found = methods(study, problem, choices, None).paragraph
    assert "no mechanism that gives what it publishes can" in found
    assert f"No mechanism that gives what it publishes does this at ε = {rounded_down(choices.limit)} or less" in found


def test_a_policy_that_might_is_told_from_none_that_can(study, problem):
    limit = choose(problem, Wish(keep=0.8), ["optimal"]).limit
    allowed = Wish(keep=0.8, max_guess=1 / (1 + math.exp(-limit * 1.01)))
    choices, text = record(study, problem, allowed, ["exponential"])
    assert (choices.verdict, choices.possible) == (Verdict.MAY, None)
    assert choices.least is None
    assert Page(text).decision.startswith("No decision was made None of these policies can within what is allowed")
    found = methods(study, problem, choices, None).paragraph
    assert "none of the mechanisms compared (exponential) can" in found


def test_what_not_even_no_privacy_reaches_is_said(study, problem):
    choices, text = record(study, problem, Wish(max_extra_deaths=-1.0))
    assert choices.limit == math.inf
    page = Page(text)
    assert "no choice of treatments does that, even without any privacy" in page.words
    assert page.row("any private choice")[0] == "none"
    assert page.row("best for each")[-1] == "no privacy, and not enough"
    assert page.row("optimal")[-1] == "none found"


def test_each_policy_with_an_epsilon_has_words_and_works_and_the_paragraph_cites_its_own(study, problem):
    for name, policy in CATALOGUE.built_in.items():
        assert policy.works or not policy.uses_epsilon, name
    for name in ("exponential", "randomized-response", "permute-and-flip"):
        choices = choose(problem, Wish(keep=0.1), [name])
        found = methods(study, problem, choices, price_of(study, problem, choices))
        assert CATALOGUE[name].words in found.paragraph
        for work in CATALOGUE[name].works:
            assert work.short in found.paragraph
            assert work.full in found.references
        assert list(found.references) == sorted(set(found.references))
        # Whatever is cited is listed, and nothing else.
        assert len(found.references) == len(set(re.findall(r"[A-Z][\w&. ]+? (?:19|20)\d\d", found.paragraph)))


def test_an_epsilon_that_is_said_to_be_enough_is_enough():
    for epsilon in (2.933012, 0.1, 1.0000049, 4583.21, 1e-6, 12.3456789):
        assert epsilon <= float(shown(epsilon)) <= epsilon * (1 + 1.01e-4)
    # What rounding leaves is not rounded up.
    assert [shown(loss) for loss in (0.0, 3.2, 3.3000000000000003)] == ["0", "3.2", "3.3"]


def test_the_same_run_writes_the_same_bytes_without_a_date(study, problem):
    (_, one), (_, other) = (record(study, problem, Wish(keep=0.8)) for _ in range(2))
    assert one == other
    assert not re.search(r"20\d\d-\d\d-\d\d|\d\d:\d\d", one)
    scenario = Path(study.scenario_source).read_bytes()
    assert f"SHA-256: study small {study.digest}; scenario scenario {hashlib.sha256(scenario).hexdigest()}." in one


def test_the_page_is_one_file_with_a_language_headers_and_headings(study, problem):
    _, text = record(study, problem, Wish(keep=0.8))
    page = Page(text)
    assert ("html", {"lang": "en"}) in page.starts
    assert not re.search(r"(?:src|href|action)\s*=|url\(|@import|https?:", text)
    assert "script" not in {tag for tag, _ in page.starts}
    headers = [attributes for tag, attributes in page.starts if tag == "th"]
    assert all(attributes.get("scope") in ("col", "row") for attributes in headers)
    headings = [tag for tag, _ in page.starts if re.fullmatch(r"h\d", tag)]
    assert headings[0] == "h1"
    assert set(headings[1:]) == {"h2"}
    assert page.rows[-3:] == [[""] * 4] * 3  # lines to sign on


def test_what_people_write_is_escaped(tmp_path):
    hostile = "<script>alert(1)</script>"
    text = STUDY.replace('"A small study"', f"'{hostile} & co'").replace(
        "[privacy]", f"[privacy]\nhidden_from = '{hostile}'"
    )
    study = ps.load_study(write_small_study(tmp_path, text))
    _, page = record(study, ps.build_problem(study), Wish(keep=0.5), ["randomized-response"], institution=hostile)
    assert "<script" not in page
    assert page.count("&lt;script&gt;") == 3  # the question, the institution, and from whom


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
        adjacency="sensitive",
        sensitive=("drug_use",),
        public=(),
        epsilon=1.0,
        epsilons=(1.0,),
        policies=("randomized-response",),
        by=(),
        robust=None,
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
    choices, text = record(*logged, Wish(keep=0.5), ["randomized-response"])
    page = Page(text)
    assert "Prices are under scores fitted to a log" in page.words
    assert "illustrative" not in page.words
    assert "death" not in page.words.lower()
    assert f"data trial.csv {hashlib.sha256(b'arm,success' + bytes([10])).hexdigest()}" in page.words
    assert all(said in page.words for said in OUTSIDE)
    assert "(a logistic outcome model)" in methods(*logged, choices, price_of(*logged, choices)).paragraph


def beyond_the_safest(problem, least):
    """Deaths per patient of a choice beyond those of the safest treatment for all, and which that is; independently."""
    table = ps.make_policy(least.policy, epsilon=least.epsilon).probabilities(problem)
    deaths = problem.prior[:, None] * problem.outcomes["deaths"]
    return (table * deaths).sum() - deaths.sum(axis=0).min(), problem.actions[deaths.sum(axis=0).argmin()]


def test_a_mechanism_worse_in_deaths_and_privacy_than_one_for_all_says_so_below_the_title(study, problem):
    choices, text = record(study, problem, Wish(keep=0.2), accepted_deaths=30)
    more, safest = beyond_the_safest(problem, choices.least)
    assert more > 0
    page = Page(text)
    costs = f"it costs {events(more, 100_000)} more deaths per 100,000 patients"
    assert f" This is worse in deaths and in privacy than giving everybody {safest}: {costs}." in page.decision
    assert f"I{costs[1:]} than giving everybody {safest}" in page.words
    assert "Up to 30 more per 100,000 patients were accepted." in page.words


def test_why_not_one_for_all_has_the_numbers_of_both(study, problem):
    choices, text = record(study, problem, Wish(keep=0.8), ["randomized-response"], accepted_deaths=None)
    page, least = Page(text), choices.least
    fixed = problem.actions[problem.best_fixed_action]
    weighted = problem.prior[:, None] * problem.outcomes["deaths"]
    best = weighted[np.arange(problem.n_records), problem.utilities.argmax(axis=1)].sum()
    beyond = weighted[:, problem.best_fixed_action].sum() - best
    assert (
        f"No single treatment for all meets what was asked for. The best of them, {fixed}, keeps 0 % of the benefit "
        f"and costs {events(beyond, 100_000)} more deaths per 100,000 patients"
    ) in page.words
    right = of_100(1 / (1 + math.exp(-least.epsilon)))
    assert f"at ε = {least.epsilon}, where such a guess is right at most {right} of 100 times." in page.words
    more, safest = beyond_the_safest(problem, least)
    assert more < 0  # fewer than under any treatment for all: nothing is to be accepted
    saved = f"It costs {events(-more, 100_000)} fewer deaths per 100,000 patients than giving everybody {safest}"
    assert saved in page.words
    assert "accepted" not in page.words


def test_what_costs_deaths_and_privacy_is_not_decided_unless_that_is_accepted(study, problem):
    choices = choose(problem, Wish(keep=0.2), ["optimal"])
    more = beyond_the_safest(problem, choices.least)[0] * 100_000
    for accepted in (None, 0.0, more * 0.999):
        refused = Adoption(accepted_deaths=accepted).refused(choices)
        assert refused.startswith("No decision record was written: optimal costs ")
        answered = answer_of_choices(study, problem, choices, record=Adoption(accepted_deaths=accepted))
        assert (answered.exit_code, answered.pages, answered.document["record"]) == (4, {}, None)
        # What it says is enough is enough, and no more than its digits ask for.
        needed = float(re.search(r"--accept deaths=([\d.]+)", refused).group(1))
        assert more <= needed <= more * 1.01
        assert Adoption(accepted_deaths=needed).refused(choices) == ""
    assert ", and 0 are accepted" in Adoption(accepted_deaths=0.0).refused(choices)


@pytest.mark.parametrize(("rarer", "base"), [(1, 100_000), (1e-4, 10_000_000)])
def test_all_deaths_are_counted_among_the_same_number_of_patients(study, problem, rarer, base):
    problem = replace(problem, outcomes={**problem.outcomes, "deaths": rarer * problem.outcomes["deaths"]})
    choices, text = record(study, problem, Wish(keep=0.2))
    said = Page(text).words.replace("Up to 100,000 more per 100,000 patients were accepted.", "")
    printed = "\n".join(choices_screen(study, choices, None))
    for words in (said, printed):
        assert set(re.findall(r"per (\d[\d,]*)", words)) == {f"{base:,}"}


def test_what_costs_no_more_deaths_or_no_privacy_is_decided_without_a_word(problem):
    for keep in (0.8, 0.0, -0.5):  # fewer deaths; one treatment for all
        choices = choose(problem, Wish(keep=keep), ["optimal"])
        assert Adoption().refused(choices) == ""
    assert choices.one_for_all.action != choices.safest.action
    assert choices.more_deaths > 0
    said = " ".join(why(problem, choices, Adoption()))
    assert "it has the highest expected utility" in said
    assert f"more deaths per 100,000 patients than giving everybody {choices.safest.action}" in said


def test_by_whom_and_until_when_it_is_decided_or_lines_to_write_that_on(study, problem):
    given = {"institution": "The ward", "date": "2026-03-01", "valid_until": "2027-02-28"}
    choices, text = record(study, problem, Wish(keep=0.8), **given)
    page = Page(text)
    assert [page.row(name) for name in ("Institution", "Date", "Valid until")] == [[text] for text in given.values()]
    assert page.row("Question") == ["A small study"]
    assert page.row("Asked for") == ["Keep 80\u00a0% of the benefit."]
    empty = Page(record(study, problem, Wish(keep=0.8))[1])
    assert [empty.row(name) for name in ("Institution", "Date", "Valid until")] == [[""]] * 3
    answered = answer_of_choices(study, problem, choices, record=Adoption(**given))
    parts = answered.document["record"]
    assert {name: parts[name] for name in given} == given
    assert parts["title"] in page.decision
    assert all(" ".join(reason.split()) in page.words for reason in parts["why"][:1])
    assert parts["accepted_per_100000"] == {}


@pytest.mark.parametrize("kills", [0, 1])
def test_the_choice_screen_says_it_too_and_only_where_it_is_so(kills):
    # Each record needs its own action; "none" is the better for all, 1/2 against 0.45. One of the two actions kills.
    deaths = np.zeros((2, 2))
    deaths[:, kills] = 0.02, 0.04
    utilities = [[1.0, 0.0], [0.0, 0.9]]
    problem = ps.DecisionProblem(utilities, [0.5, 0.5], ps.AnyRecord(), ("none", "drug"), outcomes={"deaths": deaths})
    found = choose(problem, Wish(keep=0.8), ["optimal"])
    right = 1 / (1 + math.exp(-found.least.epsilon))
    # The other action for all kills nobody.
    more = 0.5 * (0.02 * (1 - right) + 0.04 * right) if kills else 0.5 * (0.02 * right + 0.04 * (1 - right))
    assert f"giving everybody {('drug', 'none')[kills]}:" in worse(found)
    assert worse(found).endswith(f"it costs {events(more, 100_000)} more deaths per 100,000 patients")
    assert f"ε = {rounded(found.least.epsilon)}, but is worse in deaths and in privacy" in answer(found)
    # One treatment for all is not compared with another.
    assert worse(choose(problem, Wish(keep=0.0), ["optimal"])) == ""


def test_what_is_hidden_but_not_used_is_said_to_have_no_price(logged):
    study, _ = logged
    same = ps.DecisionProblem([[0.0, 1.0], [2.0, 0.0], [0.0, 1.0]] * 2, np.full(6, 1 / 6), ps.Sensitive((2, 3), (0,)))
    choices, text = record(study, same, Wish(keep=0.8), ["optimal"])
    assert not choices.used
    assert "The model does not use what is hidden to tell treatments apart, so nothing can be said" in text
    assert "does not use what is hidden" in " ".join(choices_screen(study, choices, None))


def test_no_share_of_a_tiny_gain_is_in_record_screen_or_paragraph(logged):
    study, _ = logged
    utilities = [[1.0, 0.0], [1.0, 0.0], [0.0, 0.01]] * 2
    tiny = ps.DecisionProblem(utilities, np.full(6, 1 / 6), ps.Sensitive((2, 3), (1,)))
    choices, text = record(study, tiny, Wish(keep=0.5), ["randomized-response"])
    page = Page(text)
    paragraph = methods(study, tiny, choices, price_of(study, tiny, choices)).paragraph
    assert choices.least.benefit_kept >= 0.5  # what was asked for holds all the same
    assert not choices.has_shares
    assert page.row("randomized-response")[1] == page.row("best for each")[1] == "–"
    assert "shares of the difference say little" in page.row("Price")[0]
    assert "is kept of" not in paragraph
    assert "shares of the difference say little" in " ".join(choices_screen(study, choices, None))


def test_groups_that_lose_nothing_are_not_called_worst_off(logged):
    study, _ = logged
    same = ps.DecisionProblem([[0.0, 1.0]] * 6, np.full(6, 1 / 6), ps.Sensitive((2, 3), (0,)))
    choices, text = record(study, same, Wish(max_loss=0.5), ["optimal"])
    assert choices.least.epsilon == 0
    page = Page(text)
    assert "Benefit kept: –" in page.row("Price")[0]
    assert not [row for row in page.rows if row[:1] == ["Worst off"]]
    assert page.row("best for each")[1] == "–"


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
    document = json.loads(text)
    assert document["decision_record"] == (out / "decision-record.html").as_posix()
    assert " ".join(document["methods"]["paragraph"].split()) in Page(page).words
    assert all(reference in Page(page).words for reference in document["methods"]["references"])


def test_without_the_option_nothing_is_written_and_json_still_has_the_paragraph(capsys, tmp_path):
    path = str(write_small_study(tmp_path / "study"))
    code, text = command(capsys, path, "--keep", "80%", "--out", str(tmp_path / "out"), "--json")
    assert code == 0
    assert not (tmp_path / "out").exists()
    document = json.loads(text)
    assert document["decision_record"] is None
    assert "McSherry & Talwar 2007" not in document["methods"]["paragraph"]  # what was chosen is another mechanism
    assert "randomised response" in document["methods"]["paragraph"]


def test_the_command_says_what_would_have_to_be_accepted_and_writes_nothing(capsys, tmp_path):
    path = str(write_small_study(tmp_path / "study"))
    out = tmp_path / "out"
    options = ("--keep", "20%", "--policy", "optimal", "--decision-record", "--out", str(out))
    code, text = command(capsys, path, *options)
    assert code == 4
    assert not out.exists()
    assert "optimal needs least: ε = 1.5" in text  # answered all the same
    said = re.search(r"No decision record was written: .*--accept\s+(deaths=\S+),", text, re.DOTALL)
    code, text = command(capsys, path, *options, "--json")
    document = json.loads(text)
    assert (code, document["decision_record"], document["record"]) == (4, None, None)
    assert " ".join(said.group().split()) in " ".join(document["refused"].split())
    code, text = command(capsys, path, *options, "--accept", said.group(1), "--json")
    document = json.loads(text)
    assert (code, document["refused"]) == (0, None)
    assert document["record"]["accepted_per_100000"] == {"deaths": float(said.group(1).partition("=")[2])}
    assert (out / "decision-record.html").exists()


def test_a_record_of_no_decision_is_written_with_exit_four(capsys, tmp_path):
    path = str(write_small_study(tmp_path / "study"))
    out = tmp_path / "out"
    options = ("--keep", "0.9", "--max-guess", "55%", "--decision-record", "--out", str(out))
    code, text = command(capsys, path, *options)
    assert code == 4
    assert sorted(file.name for file in out.iterdir()) == ["certificate.json", "decision-record.html"]
    assert "No mechanism that gives what it publishes can" in text
    assert "<h1>No decision was made</h1>" in (out / "decision-record.html").read_text(encoding="utf-8")
