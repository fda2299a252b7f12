"""Overlap: holes named from raw counts, seldom seen where everybody could get each arm; and an estimate's warnings."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from policysim.logs.log_frame import LoggedData
from policysim.trials.estimators import MODEL_BIAS
from policysim.trials.evaluate_log import evaluate_log
from policysim.trials.overlap import ALARM, find_holes

N = 2000


def patients(rng, n=N):
    """Covariates of all kinds."""
    return pd.DataFrame(
        {
            "age": rng.normal(60, 10, n).round(1),
            "lab": rng.gamma(2, size=n),
            "sex": rng.integers(2, size=n),
            "site": [f"s{number}" for number in rng.integers(5, size=n).tolist()],
        }
    )


def scores(shape, frame):
    """How the choice among three arms depends on patients, (n, 3): logits."""
    age, lab = (frame["age"] - 60).to_numpy() / 10, frame["lab"].to_numpy() - 2
    nothing = np.zeros(len(frame))
    return {
        "by lot": np.column_stack([nothing, nothing, nothing]),
        "by age": np.column_stack([nothing, age, -0.5 * age]),
        "by two": np.column_stack([nothing, 0.7 * age, 0.5 * lab - 0.3 * age]),
        "by site": np.column_stack([nothing, np.where(frame["site"] == "s1", 1.2, 0), nothing - 0.3]),
        "to the middle": np.column_stack([nothing, np.abs(age) - 1, 0.5 - np.abs(age)]),
    }[shape]


HOLES = {
    "age ≥ 10 %": lambda f: f["age"] > 72.8,
    "age ≥ 21 %": lambda f: f["age"] > 68,
    "site": lambda f: f["site"] == "s3",
    "sex and site": lambda f: (f["site"] == "s3") & (f["sex"] == 1),
    "sex and age": lambda f: (f["age"] > 62) & (f["sex"] == 0),
    "two ends": lambda f: (f["age"] > 61) & (f["lab"] > np.median(f["lab"])),
}


def draw(shape, seed, hole=None):
    """A log of three arms; in a hole c is never given. The hole's rows, too."""
    rng = np.random.default_rng(seed)
    frame = patients(rng)
    chances = np.exp(scores(shape, frame))
    rows = np.zeros(N, dtype=bool) if hole is None else HOLES[hole](frame).to_numpy()
    chances[rows, 2] = 0
    chances /= chances.sum(axis=1, keepdims=True)
    actions = (rng.random(N)[:, None] >= np.cumsum(chances, axis=1)).sum(axis=1).clip(0, 2)
    return LoggedData(actions, rng.normal(size=N), chances[np.arange(N), actions], ("a", "b", "c")), frame, rows


@pytest.mark.parametrize("shape", ["by lot", "by age", "by two", "by site", "to the middle"])
def test_holes_are_named_with_the_patients_whom_they_hold(shape):
    for seed, hole in enumerate(HOLES):
        log, frame, rows = draw(shape, seed, hole)
        found = [each for each in find_holes(log, frame) if each.action == 2]
        assert found, hole
        first = found[0]
        # Most of those it is said of are in the hole, and most of the hole is told of.
        assert (first.rows & rows).sum() >= 0.9 * first.rows.sum()
        assert (first.rows & rows).sum() >= 0.7 * rows.sum()
        assert first.patients == first.rows.sum()
        assert first.given == (log.actions[first.rows] == 2).sum() <= 2


@pytest.mark.parametrize("shape", ["by lot", "by age", "by two", "by site", "to the middle"])
def test_overlap_without_a_hole_is_seldom_doubted(shape):
    doubted = sum(bool(find_holes(*draw(shape, seed)[:2])) for seed in range(8))
    # At most 1 % each: more than 1 of 8 have probability 3e-3. benchmarks/offpolicy.py --holes draws hundreds.
    assert binom.sf(1, 8, ALARM) < 3e-3
    assert doubted <= 1


def test_the_levels_test_is_the_binomial_of_raw_counts():
    """A site of m patients who never get c: told from the size on at which that has probability ALARM / 2 / groups."""
    rng = np.random.default_rng(0)
    fewest = np.log(ALARM / 2 / (2 * 2)) / np.log(1 - 0.05)
    for m, told in ((int(np.floor(fewest)), False), (int(np.ceil(fewest)), True)):
        actions = np.concatenate([np.zeros(m, dtype=int), rng.integers(2, size=2000)])
        frame = pd.DataFrame({"site": ["here"] * m + ["there"] * 2000})
        log = LoggedData(actions, np.zeros(m + 2000), np.full(m + 2000, 0.5), ("a", "b"))
        found = [hole.in_words("b") for hole in find_holes(log, frame)]
        assert found == ([f"site = here: nobody got b (0 of {m} patients)"] if told else [])


def test_an_end_of_numbers_is_doubted_as_often_as_promised():
    """Everyone gets b with the least probability that is no hole, alone with one covariate: the worst case."""
    rng, doubted, n = np.random.default_rng(1), 0, 600
    for _ in range(150):
        actions = (rng.random(n) < 0.05).astype(int)
        log = LoggedData(actions, np.zeros(n), np.full(n, 0.5), ("a", "b"))
        doubted += bool(find_holes(log, pd.DataFrame({"x": rng.normal(size=n)})))
    # A seldom action is held to a part of its share: far fewer than 1.5 of 150 are to be expected, 7 has 1e-3.
    assert doubted <= 6


def test_gaps_and_odd_columns_are_no_findings():
    log, frame, _ = draw("by lot", 5)
    frame["age"] = frame["age"].where(np.arange(N) % 3 > 0)
    odd = frame.assign(name=[f"p{i}" for i in range(N)], notes=[[] for _ in range(N)], one=1, none=np.nan)
    assert find_holes(log, odd) == []
    assert find_holes(log, odd[["notes", "one"]]) == []
    alone = LoggedData(np.zeros(N, dtype=int), log.rewards, np.ones(N), ("a", "b"))
    assert find_holes(alone, odd) == []


# The warnings of an estimate: each where it is due, and none where all is well.


def trial(n=N, seed=0, *, share=(1 / 3, 1 / 3, 1 / 3), avoid=False, stated=None):
    """A trial of three arms whose reward is normal; `avoid`: arm c is never given to those with x > 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    share = np.tile(share, (n, 1))
    if avoid:
        share[x > 0] = [0.5, 0.5, 0]
    actions = (rng.random(n)[:, None] >= np.cumsum(share, axis=1)).sum(axis=1)
    propensity = share[np.arange(n), actions] if stated is None else np.array(stated)[actions]
    columns = {"action": np.array(list("abc"))[actions], "reward": rng.normal(size=n), "propensity": propensity, "x": x}
    return pd.DataFrame(columns)


POLICY = np.tile([0.2, 0.2, 0.6], (N, 1))


@pytest.mark.parametrize("estimator", ["ips", "snips", "dm", "dr"])
def test_nothing_is_said_of_a_good_trial(estimator):
    # Of the direct method always what its interval leaves out.
    assert evaluate_log(trial(), POLICY, estimator=estimator).warnings == (() if estimator != "dm" else (MODEL_BIAS,))


@pytest.mark.parametrize("estimator", ["ips", "snips", "dm", "dr"])
def test_an_action_that_the_log_never_takes_is_named_with_its_share(estimator):
    log = trial(share=(0.5, 0.5, 0))
    said = evaluate_log(log, POLICY, estimator=estimator, actions=["a", "b", "c"]).warnings
    assert said[0].startswith("no overlap: the log never takes c, on which the evaluated policy puts 60.0% of its")


def test_an_action_that_some_patients_never_get_is_named_with_about_the_share_that_is_missing():
    # Half of the patients (x > 0) never get c, to which the policy gives 0.6: 30 % are missing.
    log = trial(avoid=True)
    where, said = evaluate_log(log, POLICY, estimator="dr").warnings
    cut = float(where.split("x ≥ ")[1].split(":")[0])
    assert where.startswith("no overlap, x ≥ ") and ": nobody got c (0 of " in where and abs(cut) < 0.05
    assert said.startswith("overlap fails for c: about ")
    missing = float(said.split("about ")[1].split("%")[0]) / 100
    # The mean of w 1{c} has variance at most 0.6 * 1.8 / 2000, a standard deviation of 0.023; four of them.
    assert missing == pytest.approx(0.3, abs=4 * 0.023)
    # Of a policy that never gives c nothing is said.
    assert not any("overlap" in each for each in evaluate_log(log, np.tile([0.5, 0.5, 0], (N, 1))).warnings)


def test_propensities_that_are_too_small_are_noticed():
    said = evaluate_log(trial(stated=[1 / 3, 1 / 3, 0.15]), POLICY, estimator="ips").warnings
    assert said[0].startswith("propensities of c seem too small: its weights sum to 2.")


def test_full_overlap_is_seldom_doubted_however_rare_an_action():
    # At most 0.05 % each for three actions, were sums of few large weights normal. But c has Poisson(4) rows of weight
    # 60, and 11 of them (0.3 %) are beyond 3.5 standard deviations: of 60 logs 0.2, and 4 with probability 3e-5.
    rng = np.random.default_rng(1)
    share, doubted = np.array([0.6, 0.39, 0.01]), 0
    for _ in range(60):
        actions = rng.choice(3, 400, p=share)
        log = pd.DataFrame({"action": actions, "reward": rng.normal(size=400), "propensity": share[actions]})
        said = evaluate_log(log, POLICY[:400], estimator="ips", actions=[0, 1, 2]).warnings
        doubted += any(word.startswith(("overlap", "propensities")) for word in said)
    assert doubted <= 3


def test_few_effective_rows_are_said():
    said = evaluate_log(trial(100), POLICY[:100], estimator="ips").warnings
    assert any(word.startswith("effective sample size ") and "of 100 rows: below 200" in word for word in said)


def test_rare_and_large_losses_are_said():
    log = trial()
    log["reward"] = 0.0
    log.loc[[5, 900], "reward"] = -100.0
    for estimator in ("ips", "snips", "dr"):
        said = evaluate_log(log, POLICY, estimator=estimator).warnings
        assert any(word.startswith("a few rows decide") for word in said)


@pytest.mark.parametrize("estimator", ["snips", "dm", "dr"])
def test_rewards_that_do_not_vary_are_no_certainty(estimator):
    log = trial().assign(reward=1.0)
    found = evaluate_log(log, POLICY, estimator=estimator)
    assert found.standard_error == 0
    said = "nothing varies from row to row: the standard error of 0 is no sign of certainty."
    assert found.warnings == ((said, MODEL_BIAS) if estimator == "dm" else (said,))


def test_an_action_of_too_few_rows_to_model_is_named():
    log = trial(400, share=(0.49, 0.49, 0.02))
    assert 0 < (log["action"] == "c").sum() < 10
    said = evaluate_log(log, POLICY[:400], estimator="dm").warnings
    assert said[-1] == "too few rows to model the outcome of c: a mean stands in for it."
