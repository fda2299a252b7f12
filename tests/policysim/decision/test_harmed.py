"""Who is harmed: groups and groups within groups by looping over records."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policysim as ps
from policies.reference import BestFixed, SameForAlike
from policysim.decision.harmed import harmed_groups
from policysim.words import ALL

FEATURES = {"ill": ["no", "yes"], "age": ["young", "middle", "old"], "sex": ["f", "m"]}


@st.composite
def grouped_problems(draw):
    """Twelve records with three features, whose rows repeat; levels and pairs of levels without patients."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    index = pd.MultiIndex.from_product(FEATURES.values(), names=list(FEATURES))
    kinds = rng.integers(0, 4, 12)
    utilities, deaths = rng.normal(size=(4, 3))[kinds], rng.integers(0, 3, (4, 3))[kinds] / 10
    prior = rng.random(12) * (rng.random(12) < 0.6)
    prior[0] += 0.1
    lead = draw(st.sampled_from(["death", None]))
    outcomes = {"death": pd.DataFrame(deaths, index, columns=list("abc"))}
    table = pd.DataFrame(utilities, index, columns=list("abc"))
    return ps.DecisionProblem(table, prior / prior.sum(), ps.AnyRecord(), outcomes=outcomes, lead=lead)


@settings(max_examples=100, deadline=None)
@given(problem=grouped_problems(), epsilon=st.sampled_from([0.5, 2.0]))
def test_groups_within_groups_are_means_over_their_records(problem, epsilon):
    option, than = ps.make_policy("exponential", epsilon=epsilon), SameForAlike()
    found = harmed_groups(problem, option, than, list(FEATURES))
    given_by, instead = option.probabilities(problem), than.probabilities(problem)
    leads = problem.lead is not None and problem.outcomes["death"].any()
    table = problem.outcomes["death"] if leads else -problem.utilities
    more = ((given_by - instead) * table).sum(axis=1)
    records = list(itertools.product(*FEATURES.values()))
    names = list(FEATURES)
    expected = {}
    for place, feature in enumerate(names):
        for level in FEATURES[feature]:
            expected[feature, level, ALL, ALL] = [r for r, record in enumerate(records) if record[place] == level]
    for (place, feature), (other, within) in itertools.combinations(enumerate(names), 2):
        for level, inner in itertools.product(FEATURES[feature], FEATURES[within]):
            rows = [r for r, record in enumerate(records) if record[place] == level and record[other] == inner]
            expected[feature, level, within, inner] = rows
    expected = {name: rows for name, rows in expected.items() if problem.prior[rows].sum() > 0}
    assert list(found.columns) == ["group", "level", "within", "within_level", "share", "value"]
    rows = {tuple(row[:4]): row[4:] for row in found.itertuples(index=False, name=None)}
    assert rows.keys() == expected.keys()
    for name, members in expected.items():
        share = problem.prior[members].sum()
        assert rows[name] == pytest.approx((share, problem.prior[members] @ more[members] / share), abs=1e-12)


def paradox():
    """Treatment b saves lives of young and old, of women and men, and costs those of old men."""
    index = pd.MultiIndex.from_product([["young", "old"], ["f", "m"]], names=["age", "sex"])
    deaths = pd.DataFrame({"a": [0.1, 0.1, 0.2, 0.1], "b": [0.05, 0.0, 0.05, 0.15]}, index)
    return ps.DecisionProblem(-deaths, [0.25] * 4, ps.AnyRecord(), outcomes={"death": deaths}, lead="death")


def test_a_subgroup_that_gains_does_not_hide_another():
    found = harmed_groups(paradox(), BestFixed(action=1), BestFixed(action=0), ["age", "sex"])
    assert (found[found["within"] == ALL]["value"] < 0).all()
    (row,) = found[found["value"] > 0].itertuples(index=False, name=None)
    assert row == ("age", "old", "sex", "m", 0.25, pytest.approx(0.05))
