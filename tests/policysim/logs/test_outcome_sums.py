"""Outcomes of very many values are summed exactly: the same bits whatever the parts, the estimates of the rows."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from parts_work import bits, log_rows, write_parts

from policysim.files.bad_rows import DataError
from policysim.logs import kinds
from policysim.logs.counted_log import count_log
from policysim.logs.kinds import N_SUMS, Counted, Kinds, limb_sums, stand_ins, without_last
from policysim.logs.load_log import load_log
from policysim.logs.log_source import TABLE
from policysim.study.study_reader import load_study
from policysim.trials.arms import arm_means
from policysim.trials.estimate_value import cross_fit, estimate_value

# Beside the odd ones many of about the same size, so that their sums are not those of the largest alone.
ODD = (0.0, -0.0, 5e-324, -5e-324, 1e-310, 2.2250738585072014e-308, 1e300, -1e300, 8e307, 1, 3, -7, 2**53, 0.1, 1e-5)


RANGE = "\nrange = [-1e6, 1e6]"


def of_patients(values, n_parts=1):
    """Patients with these outcomes, who are of a few kinds otherwise, counted in so many parts."""
    rows = np.empty((len(values), 6), dtype=np.int64)
    rows[:, :5] = np.arange(len(values))[:, None] % 3
    rows[:, 3] = rows[:, 5] = (np.asarray(values, dtype=float) + 0.0).view(np.int64)
    total = Kinds(["days"])
    for part in np.array_split(rows, n_parts):
        own = Kinds(["days"])
        own.add(Counted.of(part, np.ones(len(part), dtype=np.int64)))
        total.add(own.counted())
    return total


@pytest.fixture
def few(monkeypatch):
    def at_most(most, summed=None):
        monkeypatch.setattr(kinds, "MOST_KINDS", most)
        monkeypatch.setattr(kinds, "WHOLE_KINDS", most)
        monkeypatch.setattr(kinds, "FEW_KINDS", most if summed is None else summed)
        monkeypatch.setattr(Kinds, "FEW", 10)

    return at_most


def whole(limbs):
    """The whole number of which these are limbs."""
    return sum(int(limb) << 26 * place for place, limb in enumerate(reversed(limbs)))


def exact_sum(counts, values, power):
    """The sum of powers of values, each counted so often."""
    return sum(int(n) * Fraction(value) ** power for n, value in zip(counts, values.tolist(), strict=True))


@pytest.mark.parametrize("power", [-1074, -1063, -1022, -300, -1, 0, 52, 900])
def test_sums_are_exact(power):
    rng = np.random.default_rng(power + 2000)
    # Two numbers of a block of sixteen powers, and those between them.
    block = (power + 1023) // 16 * 16 - 1023
    values = np.ldexp(1 + rng.random(300), np.clip(block + rng.integers(16, size=300), -1074, 1023)) * -1.0
    counts = rng.integers(1, 10**9, size=300)
    limbs = limb_sums(values.view(np.int64), counts).sum(axis=1)
    unit = Fraction(2) ** ((int(values.view(np.int64)[0]) >> 56 & 0x7F) * 16 - 1075)
    assert whole(limbs[:3]) * unit == exact_sum(counts, -values, 1)
    assert whole(limbs[3:]) * unit**2 == exact_sum(counts, values, 2)


@pytest.mark.parametrize("dropped", [0, 40, 52, 56])
def test_stand_ins_have_the_number_the_sum_and_the_sum_of_squares_of_those_they_stand_for(dropped):
    rng = np.random.default_rng(dropped)
    some, many = rng.normal(size=500) ** 3, -np.exp(rng.normal(size=500) * 9)
    values = np.concatenate([some, many, np.zeros(9), [1e300, 1e-290]])
    bits = (values + 0.0).view(np.int64)
    heads = without_last(bits, dropped)
    for head in np.unique(heads):
        own = np.flatnonzero(heads == head)
        counts = rng.integers(1, 30, size=len(own)) ** 2
        sums = limb_sums(bits[own], counts).sum(axis=1)[:, None]
        rows, made, each = stand_ins(np.array([[head]]), counts.sum()[None], sums)
        assert each.sum() == counts.sum()
        assert len(rows) == len(np.unique(values[own])[:2])
        assert (np.sign(made[:, 0]) == np.sign(values[own[0]])).all()
        for power in (1, 2):
            exact, mine = exact_sum(counts, values[own], power), exact_sum(each, made[:, 0], power)
            assert abs(mine - exact) <= abs(exact) * Fraction(1, 10**13)


# Of 250 parts some are empty, and the others hold a patient each.
@pytest.mark.parametrize("most", [5, 60])
@pytest.mark.parametrize("n_parts", [3, 250])
def test_kinds_of_odd_outcomes_are_the_same_in_any_parts(few, most, n_parts):
    few(120, most)
    rng = np.random.default_rng(0)
    values = np.concatenate([np.repeat(ODD, 3), rng.normal(size=60) * 10.0, -rng.random(60), rng.integers(9, size=39)])
    whole = of_patients(values)
    assert whole.counted().dropped > 0
    mixed = rng.permutation(len(values) // 3)
    # Whole triples, since every third patient is of the same kind but for outcomes.
    other = of_patients(values.reshape(-1, 3)[mixed].ravel(), n_parts)
    assert other.counted().dropped == whole.counted().dropped
    for mine, theirs in zip(whole.arrays(), other.arrays(), strict=True):
        assert mine.tobytes() == theirs.tobytes()


def test_outcomes_of_few_values_stay_whole_beside_one_of_many(few):
    few(60)
    values = np.concatenate([np.arange(30.0), np.random.default_rng(0).random(300), [np.nan] * 30])
    kinds, counts, sums = of_patients(values).arrays()
    _, made, counts = stand_ins(kinds[:, [5]], counts, sums[N_SUMS:])
    assert counts[np.isnan(made[:, 0])].sum() == 30
    for whole in (0.0, 1.0):
        assert counts[made[:, 0] == whole].sum() == 1


def test_more_kinds_than_can_be_held_are_refused_also_where_outcomes_are_summed(few):
    few(20)
    with pytest.raises(DataError, match=r"different values so far \(of outcomes, magnitudes\): record 3, "):
        of_patients(np.ldexp(1.0, np.arange(-900, 900, 30))).arrays()


def log_of_costs(n_rows, missing):
    """A trial with outcomes that nobody shares: costs of either sign and many sizes, and days that may be missing."""
    rng = np.random.default_rng(3)
    frame = log_rows(n_rows)
    frame["cost"] = np.exp(rng.normal(3, 2, n_rows)) * np.where(rng.random(n_rows) < 0.2, -1, 1)
    frame["cured"] = np.round(rng.gamma(2.0, 20 + 5 * frame["old"] + 9 * (frame["arm"] == "pill")), 3)
    if missing:
        frame.loc[(frame.index % 12 == 0) & (frame["arm"] == "pill"), "cured"] = np.nan
    return frame


def counted(folder, n_parts, executor=None, ending="parquet", *, n_rows=3000, missing=False):
    study = write_parts(folder, log_of_costs(n_rows, missing), n_parts, ending)
    study.write_text(study.read_text().replace("{ cured = 1.0 }", f"{{ cured = 1.0, cost = -0.25 }}{RANGE}"))
    source = load_study(study).log
    return source, count_log(source, executor)


def test_estimates_from_sums_are_those_from_rows(tmp_path, few):
    few(500)
    source, log = counted(tmp_path, 1)
    rows = load_log(replace(source, files={TABLE: source.parts[0]}))
    assert len(log.data.rewards) < len(rows.data.rewards) / 2
    assert log.data.n_patients == rows.data.n_patients
    assert log.missing == rows.missing
    mine, theirs = arm_means(log.data), arm_means(rows.data)
    assert mine["rows"].tolist() == theirs["rows"].tolist()
    assert mine["mean"].to_numpy() == pytest.approx(theirs["mean"].to_numpy(), rel=1e-12)
    policy = np.random.default_rng(0).dirichlet([1, 1, 1], size=rows.space.size)
    for name in ("ips", "snips"):
        of_kinds = estimate_value(log.data, policy[log.records], estimator=name)
        of_rows = estimate_value(rows.data, policy[rows.records], estimator=name)
        assert of_kinds.value == pytest.approx(of_rows.value, rel=1e-12)
        assert of_kinds.standard_error == pytest.approx(of_rows.standard_error, rel=1e-12)
        assert of_kinds.ess == pytest.approx(of_rows.ess, rel=1e-12)


def test_over_draws_of_folds_sums_are_as_good_as_the_patients(tmp_path, few):
    # Two ways to deal the same patients into folds: their estimates differ by chance alone, in mean and in spread.
    _, kept = counted(tmp_path / "kept", 1)
    few(500)
    _, summed = counted(tmp_path / "summed", 1)
    assert len(kept.data.rewards) > 2 * len(summed.data.rewards)
    policy = np.random.default_rng(0).dirichlet([1, 1, 1], size=kept.space.size)
    found = []
    for log in (kept, summed):
        values = []
        for seed in range(30):
            dealt, folds = log.dealt(5, np.random.default_rng(seed))
            frame = pd.get_dummies(dealt.covariates.astype(str)).to_numpy(dtype=float)
            fitted = cross_fit(dealt.data, frame, folds=5, dealt=folds)
            own = estimate_value(dealt.data, policy[dealt.records], fitted=fitted)
            values.append((own.value, own.standard_error))
        found.append(np.array(values))
    one, other = found
    error = np.sqrt((one.var(axis=0) + other.var(axis=0)) / 30)
    assert (np.abs(one.mean(axis=0) - other.mean(axis=0)) < 4 * error).all()
    # A variance of 30 normal numbers is off by 26 %, the ratio of two by 37 %.
    assert np.abs(np.log(one.var(axis=0) / other.var(axis=0))).max() < 4 * 0.37


@pytest.mark.usefixtures("few_trees")
def test_a_log_whose_outcomes_are_summed_is_the_same_in_any_files(tmp_path, few):
    few(500)
    gaps = {"n_rows": 1500, "missing": True}
    _, whole = counted(tmp_path / "whole", 1, **gaps)
    with ThreadPoolExecutor(2) as threads:
        for n_parts, ending, executor in (3, "csv", None), (7, "parquet", threads):
            assert bits(counted(tmp_path / ending, n_parts, executor, ending=ending, **gaps)[1]) == bits(whole)
