"""`policysim compare` of a log: what its first lines say, on the screen, on the page and in JSON."""

import json
import math
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from small_trials import make_trial

import policysim as ps
from policies.proof import Certificate
from policysim.cli.main import main
from policysim.logs.log_frame import LoggedData
from policysim.study.basis import OUTSIDE, OUTSIDE_LINE
from policysim.trials import splits
from policysim.trials.arms import arm_means, arms_of
from policysim.trials.diagnostics import BIASED, CONDITION, EXTRAPOLATED, LogCaveats
from policysim.trials.trial_columns import compare_log
from policysim.trials.trial_findings import LoggedRow, _from_which, _without_privacy, excluded


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A trial of two arms that are alike; splits are few, to be quick."""
    monkeypatch.setattr(splits, "REPEATS", 1)
    rng = np.random.default_rng(0)
    columns = {"arm": np.arange(240) % 2, "sex": rng.integers(0, 2, 240), "success": rng.integers(0, 2, 240)}
    pd.DataFrame(columns).to_csv(tmp_path / "trial.csv", index=False)
    return tmp_path


def compare(folder, capsys, *options):
    code = main(
        [
            "compare",
            str(folder / "trial.toml"),
            "--epsilon",
            "1",
            "--out",
            str(folder / "out"),
            "--format",
            "svg",
            *options,
        ]
    )
    return code, capsys.readouterr()


def test_an_arm_that_no_patient_got_is_refused_in_one_line_and_nothing_is_written(folder, capsys):
    text = """\
[data]
file = "trial.csv"
treatment = "arm"
propensity = "equal"
outcome = { success = 1.0 }
range = [0, 1]

[data.treatments]
0 = "none"
1 = "pill"
2 = "drip"

[data.features]
sex = { levels = [0, 1] }
"""
    (folder / "trial.toml").write_text(text, encoding="utf-8")
    code, printed = compare(folder, capsys)
    assert code == 3
    assert printed.err == (
        "policysim: each treatment needs at least 10 patients with an outcome, drip has 0: leave it out of "
        "[data.treatments] and of the log.\n"
    )
    assert printed.out == ""
    assert not (folder / "out").exists()


@pytest.mark.usefixtures("blank_drawings")
def test_unread_guesses_are_said_first_on_screen_and_page_and_in_json(folder, capsys):
    assert main(["init", str(folder / "trial.csv")]) == 0
    study = folder / "trial.toml"
    text = study.read_text(encoding="utf-8")
    count = sum("# CHECK" in line for line in text.splitlines())
    assert f"{count} guesses are marked CHECK" in capsys.readouterr().out
    said = f"{count} guesses marked # CHECK are unread in trial.toml"
    code, printed = compare(folder, capsys, "--policy", "randomized-response")
    assert code == 0
    assert printed.out.splitlines()[1].startswith(said)
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert said in page[page.index("<h1>") : page.index('id="evidence"')]
    assert "estimated better" not in page and "better from" in page
    study.write_text(text.replace("# CHECK", "#"), encoding="utf-8")
    _, printed = compare(folder, capsys, "--policy", "randomized-response", "--json")
    document = json.loads(printed.out)
    assert document["unread_checks"] == 0 and document["findings"]["unread"] == ""
    assert not any("better_from" in row for row in document["findings"]["rows"])


@pytest.mark.usefixtures("blank_drawings")
def test_a_censored_outcome_is_defined_and_its_censoring_told_on_screen_page_and_in_json(folder, capsys):
    data = pd.read_csv(folder / "trial.csv")
    rng = np.random.default_rng(2)
    times = {"days": rng.integers(1, 900, 240), "ill": data.pop("success")}
    data.assign(**times).to_csv(folder / "trial.csv", index=False)
    (folder / "trial.toml").write_text(
        '[data]\nfile = "trial.csv"\ntreatment = "arm"\npropensity = "equal"\ntime = "days"\nevent = "ill"\n'
        'horizon = 365\noutcome_title = "well after a year"\n[data.features]\nsex = { levels = [0, 1] }\n',
        encoding="utf-8",
    )
    code, printed = compare(folder, capsys, "--policy", "randomized-response")
    assert code == 0
    said = " ".join(printed.out.split())
    assert "240 patients in the log, all with a time of follow-up" in said
    assert "The outcome: well after a year (free of ill at days = 365)." in said
    lost = [((data["arm"] == arm) & (times["days"] < 365) & (times["ill"] == 0)).sum() for arm in (0, 1)]
    assert f"Censored, that is followed for less than days = 365 without the event: 0 {lost[0]} of 120 (" in said
    assert f"1 {lost[1]} of 120 (" in said
    page = " ".join((folder / "out" / "report.html").read_text(encoding="utf-8").split())  # whatever kind of space
    assert "The outcome: well after a year (free of ill at days = 365)." in page
    assert OUTSIDE_LINE in said and all(outside in page for outside in OUTSIDE)
    assert "Censored, that is followed for less than days = 365 without the event" in page
    (folder / "policy.csv").write_text("sex,p_0,p_1\n0,1,0\n1,0,1\n")
    assert main(["evaluate", str(folder / "trial.toml"), "--table", str(folder / "policy.csv")]) == 0
    evaluated = " ".join(capsys.readouterr().out.split())
    assert "The outcome: well after a year (free of ill at days = 365)." in evaluated
    assert "Censored, that is followed for less than days = 365 without the event" in evaluated
    code, printed = compare(folder, capsys, "--policy", "randomized-response", "--json")
    findings = json.loads(printed.out)["findings"]
    assert code == 0
    assert findings["outcome"].startswith("The outcome: well")
    assert findings["censoring"].startswith("Censored, ")


@pytest.mark.parametrize("command", [["compare", "covid"], ["evaluate", "log.csv", "--policy", "uniform"]])
def test_nothing_but_select_chooses_from_a_log_privately(command, capsys):
    assert main([*command, "--learn-epsilon", "1"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "unknown option '--learn-epsilon'" in line


def test_an_outcome_that_is_none_is_asked_for_and_refused_with_its_line(folder, capsys):
    rng = np.random.default_rng(1)
    data = pd.read_csv(folder / "trial.csv").drop(columns="success")
    data = data.assign(time=rng.integers(1, 900, 240), status=rng.integers(1, 3, 240), age=rng.integers(40, 80, 240))
    data.to_csv(folder / "trial.csv", index=False)
    assert main(["init", str(folder / "trial.csv")]) == 2
    assert "--time time --event status" in capsys.readouterr().err
    assert main(["init", str(folder / "trial.csv"), "--outcome", "status"]) == 0
    capsys.readouterr()
    text = (folder / "trial.toml").read_text(encoding="utf-8")
    line, row = next((i, row) for i, row in enumerate(text.splitlines(), 1) if row.startswith("outcome = "))
    text = "".join(f"{kept}\n" for kept in text.splitlines() if not kept.startswith("range = "))
    text = text.replace(row, "outcome = {}")
    (folder / "trial.toml").write_text(text, encoding="utf-8")
    code, printed = compare(folder, capsys)
    assert code == 2
    assert printed.err.startswith(
        f"policysim: {(folder / 'trial.toml').as_posix()}:{line}: data.outcome: needs a column"
    )
    for column, why in (("time", "time of follow-up"), ("age", "age")):
        filled = text.replace("outcome = {}", f"outcome = {{ {column} = 1.0 }}\nrange = [0, 1000]")
        (folder / "trial.toml").write_text(filled, encoding="utf-8")
        code, printed = compare(folder, capsys)
        assert code == 2 and why in printed.err and printed.err.count("\n") == 1
        assert f"trial.toml:{line}" in printed.err or "data.features" in printed.err
    assert not (folder / "out").exists()


def row(policy, surely):
    nothing = (0.0, 0.0, 0.0)
    return LoggedRow(policy, nothing, nothing, nothing, nothing, 1.0, surely, 0.1)


def test_only_a_sure_gain_is_told_with_its_epsilon():
    none = _from_which([row("exponential", math.inf), row("best-fixed", math.nan)])
    assert "at no ε that was computed" in none and "does not prove that it gains nothing" in none
    some = _from_which([row("exponential", 5.0), row("randomized-response", 2.0)])
    assert some.endswith("first at ε = 2.0 (randomized-response).")


@pytest.mark.parametrize(
    ("gain", "said", "not_said"),
    [
        (
            (-0.037, -0.083, 0.0216),
            "A gain cannot be told from none: gains above 0.022 are excluded, smaller ones are not",
            "This",
        ),
        ((0.05, 0.01, 0.09), "These data show this gain; gains above 0.090 are excluded.", "smaller ones"),
        ((-0.05, -0.09, -0.01), "Any gain by this choice is excluded", "above"),
        ((0.0, 0.0, 0.0), "exactly as good", "excluded"),
    ],
)
def test_what_is_excluded_is_said_and_no_more(gain, said, not_said):
    sentence = _without_privacy("pill", gain)
    assert said in sentence and not_said not in sentence


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Makes a trial in which a helps men and b women, by much; `give` is the probability of b, by age and sex."""
    monkeypatch.setattr(splits, "REPEATS", 1)

    def make(propensity, give):
        rng = np.random.default_rng(8)
        age, sex = rng.integers(30, 80, 900), rng.integers(0, 2, 900)
        arm = (rng.random(900) < give(age, sex)).astype(int)
        success = (rng.random(900) < np.where(arm == sex, 0.9, 0.1)).astype(int)
        columns = {"age": age, "sex": sex, "arm": np.where(arm == 1, "b", "a"), "success": success}
        pd.DataFrame(columns).to_csv(tmp_path / "trial.csv", index=False)
        (tmp_path / "trial.toml").write_text(
            f'[data]\nfile = "trial.csv"\ntreatment = "arm"\npropensity = "{propensity}"\noutcome.success = 1.0\n'
            "[data.treatments]\na = 'a'\nb = 'b'\n"
            "[data.features]\nage = { cuts = [45, 60] }\nsex = { levels = [0, 1] }\n"
            "[compare]\npolicies = ['randomized-response', 'best-fixed']\n"
            "[privacy]\nhidden_from = 'x'\nadjacency = 'any-record'\nepsilon = 5.0\nepsilons = [5]\n",
            encoding="utf-8",
        )
        return tmp_path

    return make


def said_of(folder, capsys):
    """The screen and the page, in one line each, and the findings."""
    _, printed = compare(folder, capsys, "--epsilon", "5")
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    _, as_json = compare(folder, capsys, "--epsilon", "5", "--json")
    return " ".join(printed.out.split()), " ".join(page.split()), json.loads(as_json.out)["findings"]


@pytest.mark.usefixtures("blank_drawings")
@pytest.mark.parametrize(
    ("data", "warned", "why"),
    [
        (("estimate", lambda age, _: np.where(age >= 60, 0, 0.5)), "no overlap, age ≥ 60: nobody got b", EXTRAPOLATED),
        (("equal", lambda _, sex: 0.3 + 0.4 * sex), "depends on sex", BIASED),
    ],
)
def test_nothing_is_shown_or_excluded_beside_a_warning_that_no_interval_covers(made, capsys, data, warned, why):
    screen, page, findings = said_of(made(*data), capsys)
    assert warned in screen and warned in page
    # By its interval it would be a gain.
    assert findings["gain"][1] > 0
    for text in (screen, page):
        assert not re.search("[Tt]hese data show|are excluded|is excluded|first at ε|0 % = the best", text)
        assert why in text.partition("not said to show a gain or to exclude one: ")[2].partition(".")[0]
        assert "This log cannot say" in text and why in text.partition("said of no policy (–): ")[2].partition(".")[0]
    assert [row["surely_from"] for row in findings["rows"]] == [None, None]


@pytest.mark.usefixtures("blank_drawings")
@pytest.mark.parametrize("propensity", ["equal", "estimate"])
def test_a_gain_is_shown_where_nothing_is_wrong_and_depends_on_what_is_not_known(made, capsys, propensity):
    screen, page, findings = said_of(made(propensity, lambda age, _: np.full(len(age), 0.5)), capsys)
    assert findings["not_covered"] == "" and findings["rows"][0]["surely_from"] == 5
    for text in (screen, page):
        assert "These data show this gain; gains above" in text and "first at ε = 5.0 (randomized-response)" in text
        # In the first sentence, the third, and what "surely better" means.
        assert (text.count(CONDITION) >= 3) == (CONDITION in text) == (propensity == "estimate")


def test_a_loss_is_no_proof_beside_such_a_warning_but_the_same_choice_is_the_same():
    doubts = LogCaveats(overlap=("no overlap, ...",), allocation=("doubtful",))
    assert "excluded" not in _without_privacy("pill", (-0.05, -0.09, -0.01), doubts)
    assert _without_privacy("pill", (0.0, 0.0, 0.0), doubts).endswith("is exactly as good as pill for all.")
    # Too few patients are no such thing.
    assert LogCaveats(few=("few",)).not_covered == ""


@pytest.mark.parametrize("high", [0.0216, 0.02, 0.101, 3.14159, 271.8, 1e-6])
def test_a_bound_is_rounded_up(high):
    shown = float(excluded(high).split("above ")[1].split(" ")[0].replace("−", "-"))
    assert high * (1 - 1e-9) <= shown <= high * 1.1


def test_intervals_of_arms_are_wilsons_and_stay_within_0_and_1():
    """With equal propensities those of scipy, also where nobody or everybody has the outcome."""
    counts = ((40, 39), (40, 40), (40, 0), (30, 15))
    actions = np.repeat(np.arange(4), [n for n, _ in counts])
    rewards = np.concatenate([np.arange(n) < k for n, k in counts]).astype(float)
    found = arm_means(LoggedData(actions, rewards, np.full(len(actions), 0.25), tuple("abcd")))
    for (n, k), low, high in zip(counts, found["low"], found["high"], strict=True):
        assert (low, high) == pytest.approx(tuple(binomtest(k, n).proportion_ci(method="wilson")), abs=1e-12)
    rng = np.random.default_rng(0)
    unequal = arm_means(LoggedData(actions, rewards, rng.uniform(0.1, 0.4, len(actions)), tuple("abcd")))
    assert (unequal["low"] >= 0).all() and (unequal["high"] <= 1).all()


def test_intervals_of_other_outcomes_stay_within_the_declared_range():
    trial = make_trial(60, 0.0, seed=4)
    rewards = np.where(np.arange(60) % 20 == 0, 0.0, 0.999)
    log = type(trial.log)(
        LoggedData(trial.log.data.actions, rewards, trial.log.data.propensities, trial.log.data.names),
        trial.log.records, trial.log.space, trial.log.missing, 60, {"success": rewards},
    )  # fmt: skip
    arms = arms_of(log, trial.study.log)
    assert arms["high"].max() == 1.0
    table = compare_log(trial.study, log)
    assert (table["value_high"] <= np.maximum(1.0, table["value"])).all()


@pytest.mark.usefixtures("blank_drawings")
def test_what_is_proven_on_a_log_is_about_the_fitted_scores(folder, capsys, monkeypatch):
    assert main(["init", str(folder / "trial.csv")]) == 0

    def limit(*options):
        code, printed = compare(folder, capsys, *options)
        assert code == 0
        page = (folder / "out" / "report.html").read_text(encoding="utf-8")
        assert "limit for the fitted" not in printed.out + page
        return " ".join(page.partition('<h3 class="kicker">The limit</h3>')[2].partition("<hgroup")[0].split())

    said = limit("--policy", "optimal")
    assert (
        "for the scores fitted to the whole log: by them every mechanism that gives what it publishes loses at least "
        in said
    )
    problem = ps.build_problem(ps.load_study(folder / "trial.toml"))
    least = float(re.search(r"loses at least ([\d.]+) per patient", said)[1])
    optimal = problem.value(ps.make_policy("optimal", epsilon=1.0).probabilities(problem))
    assert 0 < least <= problem.prior @ problem.utilities.max(axis=1) - optimal + 1e-12
    assert "was not computed" in limit("--policy", "randomized-response")
    monkeypatch.setattr(Certificate, "holds", lambda *_: False)
    said = limit("--policy", "optimal")
    assert "That no mechanism that gives what it publishes does better by these scores is not proven here." in said
    assert "Proven" not in said and "at least" not in said
