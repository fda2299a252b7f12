"""The answer of a log: planted logs of each verdict, cells that are those of its tables, a screen of every kind."""

import html
import json
import math
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from drawings import draw_only
from hypothesis import given, settings
from hypothesis import strategies as st
from page_policy import breaks
from scipy.stats import binomtest, norm
from small_trials import ARMS, SPACE, make_trial

import policysim as ps
from policies.catalogue import mechanism_words
from policysim.numbers import plain, six_digits
from policysim.output.report import Report
from policysim.output.screen import TEMPLATES, screen, slots
from policysim.progress import SILENT
from policysim.study.cells import COLUMNS, faults_of, words_of
from policysim.study.certainty import recommended, restated_trial, trial_verdict, verdict_of_interval
from policysim.study.study_problem import problem_of_log
from policysim.trials import trial_columns
from policysim.trials.diagnostics import LogCaveats, log_caveats
from policysim.trials.trial_answer import difference_of_means, trial_tables
from policysim.trials.trial_columns import compare_log
from policysim.trials.trial_question import TrialQuestion, tables_behind

SIX = ["Safest", "Gain", "Cost", "Who pays", "Observer", "Certain?"]
PRIVATE, EACH = "private choice", "each's best"


pytestmark = pytest.mark.usefixtures("one_split")


def planted(truth, n_rows=1500, *, policies=("exponential", "optimal"), epsilons=(0.5, 1.0, 4.0), epsilon=4.0, seed=6):
    """A trial with these probabilities of success, (12, 3), by record and arm."""
    trial = make_trial(
        n_rows, 0.0, 5, policies=policies, epsilons=epsilons, epsilon=epsilon, by=("old",), title="A planted trial"
    )
    rng = np.random.default_rng(seed)
    rewards = (rng.random(n_rows) < truth[trial.log.records, trial.log.data.actions]).astype(float)
    data = replace(trial.log.data, rewards=rewards)
    return trial.study, replace(trial.log, data=data, outcomes={"success": rewards})


def answer(study, log, doubts=None):
    names = ("greedy", "best-fixed", "uniform", "exponential", *study.policies)
    comparison = compare_log(replace(study, policies=tuple(dict.fromkeys(names))), log)
    doubts = doubts or log_caveats(log, study.log)
    tables = tables_behind(study, log, comparison, doubts)
    problem = problem_of_log(study, log)
    told = not doubts.errors
    return (
        trial_tables(study, log, problem, tables, comparison, warnings=[*doubts.errors, *doubts.others], told=told),
        comparison,
        tables,
    )


def at(certainty, epsilon):
    """The rows of policies at an ε, by option."""
    return certainty[certainty["epsilon"] == epsilon].set_index("option")


OLD = SPACE.codes(np.arange(SPACE.size))[:, 0]
# One drug helps the young, the other the old; one arm helps all, a little more than the second; all are alike.
CROSSED = np.column_stack([np.full(12, 0.2), 0.2 + 0.7 * (1 - OLD), 0.2 + 0.7 * OLD])
ONE_BEST = np.tile([0.1, 0.9, 0.2], (12, 1))
ALIKE = np.full((12, 3), 0.5)


@pytest.mark.parametrize(
    ("truth", "epsilon", "each", "private", "safest"),
    [
        (CROSSED, 4.0, "better", "better", None),
        (ONE_BEST, 0.5, None, "not better", True),
        (ALIKE, 4.0, None, "cannot be told", False),
    ],
    ids=["better", "not better", "cannot be told"],
)
def test_planted_logs_have_their_verdicts_and_words(truth, epsilon, each, private, safest):
    # Only what draws at random loses where one arm is best for all.
    policies = ("randomized-response",) if private == "not better" else ("exponential", "optimal")
    study, log = planted(truth, policies=policies, epsilon=epsilon)
    tables, *_ = answer(study, log)
    said = at(tables["certainty"], epsilon)["verdict"]
    holds = trial_verdict(tables)
    text = screen(tables, "trial")
    assert said[PRIVATE] == private
    assert each in {None, said[EACH]}
    assert safest in {None, holds["safest"]}
    assert recommended(holds) == (PRIVATE if private == "better" else "one for all")
    assert ("None that can be told" in text) == (private != "better")
    assert ("Yes: by its 95 % interval a private choice is".replace(" %", "\u00a0%") in text) == holds["told"]
    assert [line.split("  ")[0] for line in text.splitlines() if line.split("  ")[0] in SIX] == SIX
    assert len(text.splitlines()) <= 26
    assert max(map(len, text.splitlines())) <= 100


def test_cells_are_those_of_the_comparison_and_of_the_arms():
    study, log = planted(CROSSED)
    tables, comparison, found = answer(study, log)
    options, columns = tables["options"], tables["columns"]
    assert list(options.columns) == list(COLUMNS)
    assert not options.duplicated(["row", "option", "epsilon"]).any()
    everyone = comparison[comparison["group"] == "all"].set_index(["policy", "epsilon"])
    cells = options.set_index(["row", "option", "epsilon"])
    for option, epsilon, policy in columns[columns["section"] == "policy"].iloc[:, :3].to_numpy():
        row = everyone.loc[(policy, epsilon)]
        for name in ("value", "difference"):
            written = cells.loc[(name, option, epsilon), ["value", "low", "high"]].tolist()
            assert written == [row[name], row[f"{name}_low"], row[f"{name}_high"]]
        assert cells.loc[("right guesses", option, epsilon), "value"] == row["guess_rate"]
    best = everyone.loc[["exponential", "optimal"]]["fitted_value"].unstack("epsilon").idxmax()
    assert columns.query("option == @PRIVATE").set_index("epsilon")["policy"].to_dict() == best.to_dict()
    for arm in found["arms"].to_dict("records"):
        mine = options[(options["option"] == arm["arm"]) & options["epsilon"].isna()].set_index("row")
        assert mine.loc["value", ["value", "low", "high"]].tolist() == [arm["mean"], arm["low"], arm["high"]]
        assert mine.loc["patients", "value"] == arm["rows"]
    judged = tables["certainty"].query("section == 'policy'")
    assert len(judged) == len(columns[columns["section"] == "policy"])
    for each in judged.to_dict("records"):
        low, high = cells.loc[("difference", each["option"], each["epsilon"]), ["low", "high"]]
        assert (each["low"], each["high"], each["verdict"]) == (low, high, verdict_of_interval(low, high))
    given = tables["examples"].groupby(["row", "epsilon"])["value"].sum()
    assert given.to_numpy() == pytest.approx(1)


def test_the_private_choice_is_not_made_by_the_estimates_that_judge_it():
    """Where all arms are alike, chance decides which policy is estimated best: that is nobody's merit."""
    names = ["exponential", "optimal", "randomized-response"]
    study, log = planted(ALIKE, policies=names, seed=0)
    tables, comparison, _ = answer(study, log)
    mine = comparison[(comparison["group"] == "all") & comparison["policy"].isin(names)]
    by_policy = mine.set_index(["epsilon", "policy"])
    chosen = tables["columns"].query("option == @PRIVATE").set_index("epsilon")["policy"]
    assert chosen.to_dict() == by_policy["fitted_value"].unstack().idxmax(axis=1).to_dict()
    assert chosen.to_dict() != by_policy["difference"].unstack().idxmax(axis=1).to_dict()


def test_nothing_is_told_of_a_log_with_errors_that_no_interval_covers():
    study, log = planted(CROSSED)
    tables, *_ = answer(study, log, LogCaveats(["Nobody of the old got the pill."]))
    assert set(tables["certainty"]["verdict"]) == {"cannot be told"}
    holds = trial_verdict(tables)
    assert not holds["safest"] and not holds["gain"] and not holds["who"]
    assert recommended(holds) == "one for all"
    assert screen(tables, "trial").startswith("Beware: Nobody of the old got the pill.\n")


def test_a_group_that_loses_is_named_only_beyond_the_interval_of_all_groups_together():
    study, log = planted(CROSSED, epsilon=0.5, policies=("randomized-response",))
    tables, comparison, _ = answer(study, log)
    mine = comparison.query("policy == 'randomized-response' and epsilon == 0.5 and group == 'old'")
    stretch = norm.ppf(1 - 0.025 / 2) / norm.ppf(0.975)
    high = mine["difference"] + stretch * (mine["difference_high"] - mine["difference"])
    loser = mine.loc[high.idxmin()]
    assert high.min() < 0
    cell = tables["who"].query("epsilon == 0.5").set_index("row").loc["group"]
    assert cell["value"] == loser["difference"]
    assert cell["high"] == pytest.approx(high.min())
    assert f"Most surely “old {loser['level']}”" in screen(tables, "trial")


def test_the_difference_of_means_is_newcombes():
    # His table II, case (a): 56 of 70 and 48 of 80, by Wilson's intervals.
    found = [binomtest(*each).proportion_ci(method="wilson") for each in ((56, 70), (48, 80))]
    one, other = ((mean, *map(float, ends)) for mean, ends in zip((0.8, 0.6), found, strict=True))
    assert difference_of_means(one, other) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=3), st.booleans())
def test_no_option_is_recommended_against_its_verdict(ends, guessed):
    options = [PRIVATE, EACH, "pill"]
    rows = [
        (
            option,
            *(("arm", math.nan) if option == "pill" else ("policy", 1.0)),
            "drip",
            value,
            value - below,
            value + above,
        )
        for option, (value, below, above) in zip(options, ends, strict=True)
    ]
    certainty = pd.DataFrame(rows, columns=["option", "section", "epsilon", "than", "value", "low", "high"])
    certainty["verdict"] = list(map(verdict_of_interval, certainty["low"], certainty["high"]))
    columns = pd.DataFrame(
        [(PRIVATE, 1.0, True), (EACH, 1.0, True), ("pill", math.nan, True)], columns=["option", "epsilon", "stated"]
    )
    guess = pd.DataFrame([("right guesses", PRIVATE, 1.0, 0.7 if guessed else 0.5)], columns=COLUMNS[:4])
    holds = trial_verdict({"certainty": certainty, "columns": columns, "options": guess})
    low = certainty.set_index("option")["low"]
    assert (recommended(holds) == PRIVATE) == (low[PRIVATE] > 0)
    assert holds["gain"] == (max(low[PRIVATE], low[EACH]) > 0)
    assert holds["safest"] == (low["pill"] > 0)
    assert holds["observer"] == guessed
    findings = words_of("trial").findings
    assert [each.line for each in findings if holds[each.when]] == SIX


def written(folder, names, *, outcome="", model="linear", policies='"exponential", "optimal"', n_rows=1000, parts=1):
    """A study file with so many arms of these names, and its log."""
    rng = np.random.default_rng(2)
    arm = rng.integers(0, len(names), n_rows)
    table = pd.DataFrame(
        {
            "arm": arm,
            "old": rng.integers(0, 2, n_rows),
            "success": (rng.random(n_rows) < 0.4 + 0.3 * arm / (len(names) - 1)).astype(int),
            "pounds": rng.normal(7000 + 10 * arm, 4000, n_rows).clip(0, 50_000).round(),
            "a_rather_long_name_of_an_outcome": rng.integers(0, 2, n_rows),
            "days": rng.integers(1, 900, n_rows),
            "event": rng.integers(0, 2, n_rows),
        }
    )
    for part, rows in enumerate(np.array_split(np.arange(n_rows), parts)):
        table.iloc[rows].to_csv(folder / f"log{part}.csv", index=False)
    outcome = outcome or "outcome = { success = 1.0, a_rather_long_name_of_an_outcome = 0.0 }\nrange = [0, 1]"
    arms = "\n".join(f'{place} = "{name}"' for place, name in enumerate(names))
    file = '"log*.csv"' if parts > 1 else '"log0.csv"'
    (folder / "study.toml").write_text(
        f'title = "{"What does it cost? " * 12}"\n[data]\nfile = {file}\ntreatment = "arm"\npropensity = "equal"\n'
        f'model = "{model}"\n{outcome}\n[data.treatments]\n{arms}\n[data.features]\nold = {{ levels = [0, 1] }}\n'
        '[privacy]\nhidden_from = "all"\nadjacency = "any-record"\nepsilon = 1.0\nepsilons = [0.5, 1.0]\n'
        f'[compare]\npolicies = [{policies}]\nby = ["old"]\n',
        encoding="utf-8",
    )
    return ps.load_study(str(folder / "study.toml"))


LONG = [f"{word} of a treatment whose name is far too long for a column" for word in "abcdefg"]
CENSORED = 'time = "days"\nevent = "event"\nhorizon = 365\noutcome_title = "well after a year"'
POUNDS = "outcome = { pounds = 1.0, success = 0.0 }\nrange = [0, 50000]"
CASES = {
    "two arms": {"names": ["wait", "pill"]},
    "long names": {"names": LONG[:5]},
    "many arms": {"names": LONG},
    "arms called as options are": {"names": [PRIVATE, EACH]},
    "one arm for each": {"names": ["wait", "pill"], "model": "constant"},
    "no private policy": {"names": ["wait", "pill"], "policies": '"best-fixed"'},
    "fitted and textbook": {"names": ["wait", "pill"], "policies": '"exponential", "exponential-fitted", "optimal"'},
    "only the exponential mechanism": {"names": ["wait", "pill"], "policies": '"exponential"'},
    "censored": {"names": list(ARMS), "outcome": CENSORED},
    "pounds": {"names": list(ARMS), "outcome": POUNDS},
    "counted": {"names": list(ARMS), "parts": 3},
}


@pytest.mark.parametrize("case", CASES)
def test_a_screen_of_every_kind_of_log(case, tmp_path):
    study = written(tmp_path, **CASES[case])
    result = TrialQuestion(study, counted=case == "counted").answer(SILENT)
    report = Report(result)
    lines = str(report).splitlines()
    lines = lines[next(place for place, line in enumerate(lines) if line.startswith("What does it cost?")) :]
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 26 + max(0, len(CASES[case]["names"]) - 5)
    assert [line.split("  ")[0] for line in lines if line.split("  ")[0] in SIX] == SIX
    assert "nan" not in str(report)
    assert set(report.tables["options"].query("epsilon.isna()")["option"]) == set(CASES[case]["names"])
    assert report.tables["certainty"]["verdict"].notna().all()
    assert ("  exponential, textbook*" in str(report)) == (case == "fitted and textbook")
    if case == "pounds":
        assert "mean outcome" in str(report)
        assert " of 100" not in "".join(line for line in lines if line.startswith("Cost"))
    if case == "one arm for each":
        assert set(report.tables["certainty"].query("option == @EACH")["verdict"]) == {"equal"}
    if case == "censored":
        assert re.search(r"well after a year. \d+ followed for less: weighted.", " ".join(lines))


def test_what_is_added_as_an_option_is_no_policy_that_was_asked_for(tmp_path):
    report = ps.report(written(tmp_path, ["wait", "pill"], policies='"optimal"'))
    assert "exponential mechanism" in str(report)
    assert set(report.tables["comparison"]["policy"]) == {"greedy", "best-fixed", "uniform", "optimal"}
    assert report.tables["policies"]["policy"].tolist() == ["optimal"]


@settings(max_examples=6)
@given(st.integers(0, 10_000), st.floats(-0.4, 0.4), st.sampled_from([120, 400]))
def test_no_title_names_a_private_choice_against_the_interval_of_random_logs(seed, effect, n_rows):
    trial = make_trial(n_rows, effect, seed, policies=("exponential",), epsilons=(1.0, 5.0), epsilon=5.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_columns, "REPEATS", 1)
        tables, comparison, _ = answer(trial.study, trial.log)
    doubted = bool(log_caveats(trial.log, trial.study.log).errors)
    for epsilon in (1.0, 5.0):
        found = restated_trial(tables, epsilon)
        row = comparison.query("policy == 'exponential' and epsilon == @epsilon and group == 'all'").iloc[0]
        better = row["difference_low"] > 0 and not doubted
        assert recommended(trial_verdict(found)) == (PRIVATE if better else "one for all")
        said = slots(found, "trial")
        assert ("a treatment chosen privately is better" in said["finding"]) == better
        assert str(said["verdict"]) == at(tables["certainty"], epsilon).loc[PRIVATE, "verdict"]


# What names the rows of tables with named columns.
KEYS = {
    "policies": ["policy"],
    "arms": ["outcome", "arm"],
    "balance": ["feature", "level"],
    **{name: ["what"] for name in ("patients", "heterogeneity", "power")},
}


def numbers_of(folder):
    """Each number of the written tables, by the key of its cell."""
    found = {}
    for path in folder.glob("*.csv"):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        if "format" in table:
            for each in table.to_dict("records"):
                epsilon = plain(float(each["epsilon"])) if each["epsilon"] else ""
                for end in ("value", "low", "high"):
                    found["/".join((path.stem, each["row"], each["option"], epsilon, end))] = each[end]
        for each in table.to_dict("records") if path.stem in KEYS else ():
            row = ": ".join(filter(None, (each[key] for key in KEYS[path.stem])))
            found |= {f"{path.stem}/{row}/{column}//value": value for column, value in each.items()}
    return found


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The folder of a log's report; its drawings but the first are blank."""
    folder = tmp_path_factory.mktemp("saved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_columns, "REPEATS", 1)
        draw_only(patch, "frontier")
        ps.report(written(folder, list(ARMS)), epsilons=[0.0, 0.5, 1.0, 4.0]).save(folder / "report")
    return folder / "report"


CELL = re.compile(r'<data data-cell="([^"]+)" value="([^"]*)">([^<]*)</data>')


def test_every_number_of_a_page_is_one_of_its_tables_at_every_epsilon(saved):
    page, numbers = (saved / "report.html").read_text(encoding="utf-8"), numbers_of(saved)
    moving = json.loads(re.search(r'id="moving">(.*?)</script>', page, re.DOTALL)[1])
    assert moving["labels"] == ["0", "0.5", "1", "4"]
    cells = CELL.findall(page)
    assert {key.split("/")[0] for key, *_ in cells} >= {"options", "facts", "examples", "method", *KEYS} - {"power"}
    for place, texts in moving["slots"]:
        for label, text in zip(moving["labels"], texts, strict=True):
            own = CELL.findall(text)
            assert {key.split("/")[3] for key, *_ in own} <= {label, ""}, place
            cells += own
    assert {"options/difference/private choice/4/low", "options/right guesses/each's best/0/value"} <= {
        html.unescape(key) for key, *_ in cells
    }
    for key, value, _ in cells:
        assert value == six_digits(float(numbers[html.unescape(key)] or "nan")), key


def test_no_digit_stands_on_a_page_but_in_cells_and_names(saved):
    page = (saved / "report.html").read_text(encoding="utf-8")
    assert breaks(page) == []
    title = re.search(r"<title>(.*?)</title>", page)[1]
    assert title.endswith("One arm for all: at ε = 1, no treatment chosen privately can be told to be better")
    seen = re.sub(r"<(title|style|script|svg|data)\b.*?</\1>|<[^>]*>", "\0", page, flags=re.DOTALL)
    names = ("old: 1", r"old [01]", r"Study \w+, seed \d+, data log0.csv", r"python [\d.]+(, [a-z-]+ [\w.+]+)+")
    for name in (*names, *map(mechanism_words, ("exponential", "optimal"))):
        seen = re.sub(name if name in names else re.escape(html.escape(name)), "", seen)
    assert [text for text in html.unescape(seen).split("\0") if re.search(r"\d", text)] == []


@pytest.mark.parametrize("name", [path.name for path in sorted(TEMPLATES.glob("trial-*"))])
def test_templates_of_a_log_decide_nothing(name):
    assert faults_of((TEMPLATES / name).read_text(encoding="utf-8"), ("lines", "grid")) == []
