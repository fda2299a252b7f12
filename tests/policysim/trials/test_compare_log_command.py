"""`policysim compare` of a log: what comes first on the screen, on the page and in JSON."""

import html
import re

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from small_trials import OF_SUCCESS, make_trial

from policysim.logs.log_frame import LoggedData
from policysim.trials.arms import arm_means, arms_of
from policysim.trials.trial_columns import compare_log

pytestmark = pytest.mark.usefixtures("one_split")


@pytest.fixture
def folder(tmp_path):
    """A trial of two arms that are alike."""
    rng = np.random.default_rng(0)
    columns = {"arm": np.arange(240) % 2, "sex": rng.integers(0, 2, 240), "success": rng.integers(0, 2, 240)}
    pd.DataFrame(columns).to_csv(tmp_path / "trial.csv", index=False)
    return tmp_path


def asked(folder, *options, epsilon=1):
    """The words of a comparison whose files go into the folder."""
    files = ("--out", folder / "out", "--format", "svg")
    return "compare", folder / "trial.toml", "--epsilon", epsilon, *files, *options


def page_of(folder):
    return " ".join((folder / "out" / "report.html").read_text(encoding="utf-8").split())


@pytest.mark.usefixtures("blank_drawings", "few_trees")
def test_unread_guesses_are_the_first_warning_on_screen_and_page_and_in_json(folder, screen, document):
    (folder / "trial.csv").chmod(0o600)
    assert "Read the 1 line marked CHECK" in screen("init", folder / "trial.csv", *OF_SUCCESS)
    study = folder / "trial.toml"
    text = study.read_text(encoding="utf-8")
    assert sum("# CHECK" in line for line in text.splitlines()) == 1
    warning = "1 guess marked # CHECK is unread"
    assert screen(*asked(folder, "--policy", "randomized-response")).startswith(f"Warning: {warning}")
    assert warning in page_of(folder).partition("<dl")[0]
    # The log is its owner's alone, and so is what is made of it.
    written = [study, *(path for path in (folder / "out").rglob("*") if path.is_file())]
    assert len(written) > 9 and {path.stat().st_mode & 0o777 for path in written} == {0o600}
    study.write_text(text.replace("# CHECK", "#"), encoding="utf-8")
    made = document(*asked(folder, "--policy", "randomized-response"))
    assert warning not in " ".join(made["warnings"])
    assert {"options", "differences", "comparison", "policies", "power", "heterogeneity", "patients"} <= set(made)


@pytest.mark.usefixtures("blank_drawings", "few_trees")
def test_a_censored_outcome_is_named_and_its_censoring_counted(folder, screen):
    data = pd.read_csv(folder / "trial.csv")
    rng = np.random.default_rng(2)
    times = {"days": rng.integers(1, 900, 240), "ill": data.pop("success")}
    data.assign(**times).to_csv(folder / "trial.csv", index=False)
    (folder / "trial.toml").write_text(
        '[data]\nfile = "trial.csv"\ntreatment = "arm"\npropensity = "equal"\ntime = "days"\nevent = "ill"\n'
        'horizon = 365\noutcome_title = "well after a year"\n[data.features]\nsex = { levels = [0, 1] }\n',
        encoding="utf-8",
    )
    said = screen(*asked(folder, "--policy", "randomized-response"))
    short = (times["days"] < 365) & (times["ill"] == 0)
    assert f"Success: well after a year. {short.sum()} followed for less: weighted." in said
    censoring = pd.read_csv(folder / "out" / "censoring.csv").set_index("arm")
    assert censoring["censored"].to_dict() == {arm: (short & (data["arm"] == arm)).sum() for arm in (0, 1)}
    assert censoring["patients"].tolist() == [120, 120]
    assert "free of ill at days = 365" in page_of(folder)
    (folder / "policy.csv").write_text("sex,p_0,p_1\n0,1,0\n1,0,1\n")
    evaluated = screen("evaluate", folder / "trial.toml", "--table", folder / "policy.csv")
    assert "The outcome: well after a year (free of ill at days = 365)." in evaluated
    assert "Censored, that is followed for less than days = 365 without the event" in evaluated


@pytest.fixture
def made(tmp_path):
    """Makes a trial in which a helps men and b women, by much; `give` is the probability of b, by age and sex."""

    def make(propensity, give):
        rng = np.random.default_rng(8)
        age, sex = rng.integers(30, 80, 900), rng.integers(0, 2, 900)
        arm = (rng.random(900) < give(age, sex)).astype(int)
        success = (rng.random(900) < np.where(arm == sex, 0.9, 0.1)).astype(int)
        columns = {"age": age, "sex": sex, "arm": np.where(arm == 1, "b", "a"), "success": success}
        pd.DataFrame(columns).to_csv(tmp_path / "trial.csv", index=False)
        (tmp_path / "trial.toml").write_text(
            f'[data]\nfile = "trial.csv"\ntreatment = "arm"\npropensity = {propensity}\noutcome.success = 1.0\n'
            "[data.treatments]\na = 'a'\nb = 'b'\n"
            "[data.features]\nage = { cuts = [45, 60] }\nsex = { levels = [0, 1] }\n"
            "[compare]\npolicies = ['randomized-response', 'best-fixed']\n"
            "[privacy]\nhidden_from = 'x'\nadjacency = 'any-record'\nepsilon = 5.0\nepsilons = [5]\n",
            encoding="utf-8",
        )
        return tmp_path

    return make


@pytest.fixture
def verdicts(document):
    """The JSON document, and the verdict on each option against A at ε = 5."""

    def verdicts(folder):
        made = document(*asked(folder, epsilon=5))
        against_a = [row for row in made["differences"] if row["section"] == "option" and row["than"] == "A"]
        return made, {row["option"]: row["verdict"] for row in against_a}

    return verdicts


@pytest.mark.usefixtures("blank_drawings", "few_trees")
@pytest.mark.parametrize(
    ("data", "warned"),
    [
        (('"estimate"', lambda age, _: np.where(age >= 60, 0, 0.5)), "no overlap, age ≥ 60: nobody got b"),
        (('"equal"', lambda _, sex: 0.3 + 0.4 * sex), "depends on sex"),
    ],
)
def test_nothing_is_concluded_beside_a_warning_that_no_interval_covers(made, verdicts, data, warned):
    folder = made(*data)
    document, told = verdicts(folder)
    row = next(each for each in document["differences"] if each["option"] == "C")
    # By its interval it would be a gain.
    assert row["low"] > 0
    assert set(told.values()) == {"not shown"}
    assert [each["surely_from"] for each in document["policies"]] == [None, None]
    assert any(warned in warning for warning in document["warnings"])
    assert warned in html.unescape(page_of(folder)).partition("<dl")[0]


@pytest.mark.usefixtures("blank_drawings", "few_trees")
@pytest.mark.parametrize("propensity", ["equal", "estimate"])
def test_a_gain_is_shown_where_nothing_is_wrong(made, verdicts, propensity):
    document, told = verdicts(made(f'"{propensity}"', lambda age, _: np.full(len(age), 0.5)))
    assert told["B"] == told["C"] == "better"
    assert document["policies"][0]["surely_from"] == 5
    # What no data can show is warned of where propensities are estimated, and only there.
    assert bool(document["warnings"]) == ("e-value" in document) == (propensity == "estimate")


@pytest.mark.usefixtures("blank_drawings", "few_trees")
@pytest.mark.parametrize(
    ("propensity", "said"),
    [("{ b = 2, a = 1 }", "randomised 1:2"), ('"arm shares"', "randomised with the shares of the arms")],
)
def test_an_unequal_allocation_is_named_and_a_gain_shown_beside_it(made, verdicts, propensity, said):
    folder = made(propensity, lambda age, _: np.full(len(age), 2 / 3))
    document, told = verdicts(folder)
    assert told["B"] == told["C"] == "better"
    assert not document["warnings"] and "e-value" not in document
    line = f"900 patients, {said}. Success: "
    assert line in re.sub("<[^>]*>", "", page_of(folder))


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
