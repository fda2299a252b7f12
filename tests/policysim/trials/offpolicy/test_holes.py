"""Holes in overlap: named from raw counts where nobody got an action, seldom seen where everybody could."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from policysim.logs.log_frame import LoggedData
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


def test_a_hole_is_said_first_of_a_policy_that_goes_there_and_of_no_other():
    log, frame, _ = draw("by age", 3, "age ≥ 21 %")
    table = frame.assign(action=np.array(log.names)[log.actions], reward=log.rewards, propensity=log.propensities)
    said = evaluate_log(table, np.tile([0, 0, 1.0], (N, 1))).warnings
    assert said[0].startswith("no overlap, age ≥ 68") and "nobody got c (0 of " in said[0]
    # Of a policy that never gives c nothing is said.
    assert not any("overlap" in each for each in evaluate_log(table, np.tile([0.5, 0.5, 0], (N, 1))).warnings)


def test_gaps_and_odd_columns_are_no_findings():
    log, frame, _ = draw("by lot", 5)
    frame["age"] = frame["age"].where(np.arange(N) % 3 > 0)
    odd = frame.assign(name=[f"p{i}" for i in range(N)], notes=[[] for _ in range(N)], one=1, none=np.nan)
    assert find_holes(log, odd) == []
    assert find_holes(log, odd[["notes", "one"]]) == []
    alone = LoggedData(np.zeros(N, dtype=int), log.rewards, np.ones(N), ("a", "b"))
    assert find_holes(alone, odd) == []
