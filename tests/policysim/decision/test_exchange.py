"""Whether one option is better than another, against the weight of the lead: brute force over versions and weights."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policysim as ps
from policysim.decision.comparison import compare_problem
from policysim.decision.exchange import as_one_version, exchange, perfect_information
from policysim.report.findings import verdict_of_versions

# Differences of a few values: many versions change at the same weight, some at none.
DIFFERENCES = st.integers(-3, 3).map(float)


@st.composite
def versions_of_two(draw):
    """Versions of a model with options A and B and a third: rest and lead of each, and the version's own weight."""
    n = draw(st.sampled_from([1, 2, 10, 20]))
    rest, lead = (np.array(draw(st.lists(DIFFERENCES, min_size=n, max_size=n))) for _ in range(2))
    weights = np.array(draw(st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=n, max_size=n)))
    of_a, more = np.linspace(-1, 1, n), np.linspace(0, 2, n)
    tables = [
        pd.DataFrame({"draw": range(n), "option": name, "value": without - weights * dead, "expected_death": dead})
        for name, without, dead in (("A", of_a, more), ("B", of_a + rest, more + lead), ("other", of_a - 9, more + 9))
    ]
    return pd.concat(tables).assign(lead_weight=np.tile(weights, 3)), rest, lead


@settings(max_examples=200, deadline=None)
@given(case=versions_of_two(), weight=st.sampled_from([0.0, 0.5, 1.0, 100.0]))
def test_zones_and_shares_are_those_of_counting_at_each_weight(case, weight):
    table, rest, lead = case
    found = exchange(table, "B", "A", lead="death", weight=weight)

    def counted(at):
        beyond = rest - at * lead
        return np.mean(beyond > 1e-6), np.mean(np.abs(beyond) <= 1e-6)

    assert (found.versions, found.better / found.versions) == (len(rest), counted(weight)[0])
    # All thresholds are quotients of numbers up to 3: between them, and beyond the last.
    for at in (0.07, 0.2, 0.4, 0.6, 0.8, 1.2, 1.7, 2.2, 2.7, 3.5, 1e3):
        better, equal = counted(at)
        assert found.better_share(at) == better
        (verdict,) = found.zones.query("low < @at < high")["verdict"]
        assert verdict == verdict_of_versions(better, equal)
    zones = found.zones
    assert zones["low"].tolist() == [0.0, *zones["high"].tolist()[:-1]]
    assert zones["high"].iloc[-1] == math.inf
    assert (zones["verdict"].to_numpy()[1:] != zones["verdict"].to_numpy()[:-1]).all()


@settings(max_examples=50, deadline=None)
@given(case=versions_of_two())
def test_the_curve_has_the_shares_at_its_weights_and_shows_the_stated_one_and_all_zones(case):
    found = exchange(case[0], "B", "A", lead="death", weight=1.25)
    curve = found.acceptability
    assert curve["weight"].is_monotonic_increasing
    assert {1.25, *found.zones["low"]} <= set(curve["weight"])
    assert curve["weight"].iloc[-1] > max(found.zones["low"])
    assert curve["better"].tolist() == [found.better_share(weight) for weight in curve["weight"]]
    assert ((curve["better"] + curve["worse"]) <= 1 + 1e-12).all()


@settings(max_examples=50, deadline=None)
@given(case=versions_of_two())
def test_the_other_way_round_better_is_worse(case):
    there, back = (exchange(case[0], *pair, lead="death", weight=1.0) for pair in (("B", "A"), ("A", "B")))
    swapped = {"better": "worse", "worse": "better"}
    assert there.zones.equals(back.zones.replace({"verdict": swapped}))


def one_version(rest, lead, weight=1.0, n=1, **columns):
    """B against A, with the same differences in each of n versions."""
    draws = np.arange(n)
    a = pd.DataFrame({"draw": draws, "option": "A", "value": -5.0 - 0.3 * weight, "expected_death": 0.3})
    b = pd.DataFrame({"draw": draws, "option": "B", "value": rest - 5.0 - (0.3 + lead) * weight})
    return pd.concat([a, b.assign(expected_death=0.3 + lead)]).assign(**columns)


@pytest.mark.parametrize(
    ("rest", "lead", "zones"),
    [
        (2.0, 0.01, {"better": 200.0, "worse": math.inf}),  # costs lead, gains else
        (-2.0, -0.01, {"worse": 200.0, "better": math.inf}),  # saves lead, costs else
        (2.0, -0.01, {"better": math.inf}),  # better in both
        (-2.0, 0.01, {"worse": math.inf}),  # worse in both
        (2.0, 0.0, {"better": math.inf}),  # the lead does not decide
        (2.0, 1e-14, {"better": math.inf}),  # nor does its rounding
        (0.0, 0.0, {"equal": math.inf}),
        (0.0, 0.01, {"worse": math.inf}),  # nothing but lead
    ],
)
@pytest.mark.parametrize("n", [1, 7])
def test_a_single_threshold_as_stated(rest, lead, zones, n):
    found = exchange(one_version(rest, lead, 3.0, n), "B", "A", lead="death", weight=3.0)
    assert found.zones["verdict"].tolist() == list(zones)
    assert found.zones["high"].tolist() == pytest.approx(list(zones.values()))
    assert found.verdict_at(3.0) == ("equal" if rest - 3 * lead == 0 else "better" if rest > 3 * lead else "worse")


def test_versions_of_both_signs_may_have_no_weight_at_which_one_is_better():
    # Half of the versions save the lead, half cost it: nothing can be shown at any weight.
    table = pd.concat([one_version(1.0, 0.1), one_version(-1.0, -0.1).assign(draw=1)])
    found = exchange(table, "B", "A", lead="death", weight=1.0)
    assert found.zones["verdict"].tolist() == ["not shown"]


def test_without_a_lead_the_weight_does_not_matter():
    found = exchange(one_version(1.0, 0.1), "B", "A", lead=None, weight=7.0)
    assert (found.better, found.better_share(0), found.better_share(1e9)) == (1, 1, 1)
    assert np.isnan(found.stated)
    assert found.acceptability["better"].eq(1).all()


def test_the_share_turns_where_the_21st_of_200_versions_does():
    rng = np.random.default_rng(3)
    turns = np.sort(rng.uniform(50, 300, 200))
    tables = [one_version(0.01 * turn, 0.01, 100.0).assign(draw=draw) for draw, turn in enumerate(turns)]
    found = exchange(pd.concat(tables), "B", "A", lead="death", weight=100.0)
    assert found.zones["verdict"].tolist() == ["better", "not shown", "worse"]
    assert found.zones["high"].tolist() == pytest.approx([turns[20], turns[179], math.inf])
    assert found.better == np.sum(turns > 100)


def test_as_stated_is_the_comparison_at_one_epsilon():
    deaths = [[0.0, 0.1], [0.1, 0.0]]
    problem = ps.DecisionProblem(
        -np.array(deaths) * 10, [0.7, 0.3], ps.AnyRecord(), outcomes={"death": deaths}, lead="death"
    )
    comparison = compare_problem(problem, policies=["best-fixed", "greedy"], epsilons=[1.0, 2.0])
    found = exchange(as_one_version(comparison, 1.0), "greedy", "best-fixed", lead="death", weight=10.0)
    assert found.lead == pytest.approx([-0.03])
    assert found.rest == pytest.approx([0.0], abs=1e-15)
    assert (found.versions, found.verdict_at(10.0)) == (1, "better")


@settings(deadline=None)
@given(st.lists(st.tuples(DIFFERENCES, DIFFERENCES, DIFFERENCES), min_size=1, max_size=20))
def test_perfect_information_is_worth_the_mean_of_the_best_less_the_best_mean(rows):
    values = np.array(rows)
    wide = pd.DataFrame(values, columns=["A", "B", "C"]).rename_axis("draw").reset_index()
    table = wide.melt("draw", var_name="option", value_name="value")
    expected = values.max(axis=1).mean() - values.mean(axis=0).max()
    assert perfect_information(table, ["A", "B", "C"], 4.0) == pytest.approx((expected, expected / 4))
    assert perfect_information(table, ["B"])[0] == 0
    assert np.isnan(perfect_information(table, ["A"], 0.0)[1])
