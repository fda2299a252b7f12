"""The frontier of benefit and harm, against the whole linear programme with a bound on the harm."""

import numpy as np
import pytest
from full_programme import full_value

import policysim as ps
from policies import AnyRecord, Sensitive


def made(seed):
    """Six records, three actions; every second problem has public classes, every third ties."""
    rng = np.random.default_rng(seed)
    utilities, harm = rng.normal(size=(6, 3)), rng.random((6, 3))
    if seed % 3 == 0:
        utilities, harm = np.round(utilities), np.round(harm, 1)
    adjacency = Sensitive((3, 2), (0,)) if seed % 2 else AnyRecord()
    return ps.DecisionProblem(utilities, rng.dirichlet(np.ones(6)), adjacency, outcomes={"harm": harm})


@pytest.mark.parametrize("seed", range(8))
def test_the_lines_between_corners_are_what_the_whole_programme_finds(seed):
    problem = made(seed)
    table = ps.frontier(problem, epsilons=[0.3, 2.0], outcome="harm", tolerance=1e-6)
    gain = (problem.prior @ problem.utilities.max(axis=1)) - problem.fixed_values.max()
    for epsilon, rows in table.groupby("epsilon"):
        assert (np.diff(rows["expected_harm"]) < 0).all() and (np.diff(rows["value"]) < 1e-12).all()
        for share in (0.0, 0.13, 0.5, 0.77, 1.0):
            low, high = rows["expected_harm"].min(), rows["expected_harm"].max()
            allowed = low + share * (high - low)
            expected = full_value(problem, epsilon, [(problem.outcomes["harm"], allowed + 1e-12)])
            ordered = rows.sort_values("expected_harm")
            on_line = np.interp(allowed, ordered["expected_harm"], ordered["value"])
            assert on_line == pytest.approx(expected, abs=2e-6 * max(1, gain) + 1e-7)
        assert full_value(problem, epsilon, [(problem.outcomes["harm"], low - 1e-6)]) is None


def test_without_harm_there_is_the_optimum_alone():
    problem = ps.DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord(), outcomes={"harm": np.ones((2, 2))})
    table = ps.frontier(problem, epsilons=[1.0], outcome="harm")
    assert table["penalty"].tolist() == [0.0] and table["extra_harm"].tolist() == [0.0]
    assert table["benefit_kept"].iloc[0] == pytest.approx(np.tanh(0.5))


def test_ends_of_epsilon():
    table = ps.frontier(made(2), epsilons=[0.0, np.inf], outcome="harm").set_index("epsilon")
    none, all_of_it = table.loc[[0.0]], table.loc[[np.inf]]
    assert none["benefit_kept"].iloc[0] == 0 and all_of_it["benefit_kept"].iloc[0] == pytest.approx(1)
    problem = made(2)
    least = problem.prior @ problem.outcomes["harm"]
    assert none["expected_harm"].iloc[-1] == pytest.approx(least.min())
    assert all_of_it["expected_harm"].iloc[-1] == pytest.approx(problem.prior @ problem.outcomes["harm"].min(axis=1))


def test_what_cannot_be_asked_is_said_in_one_line():
    with pytest.raises(ValueError, match=r"unknown outcome 'harms'; did you mean 'harm'\? known: harm"):
        ps.frontier(made(2), epsilons=[1.0], outcome="harms")
    with pytest.raises(ValueError, match="epsilon must be a number >= 0, got -1"):
        ps.frontier(made(2), epsilons=[-1], outcome="harm")


def test_covid_as_reviewers_found_it(covid_problem):
    """Benefit and deaths per 100,000 of the optimum with penalties on deaths: facts of an independent review.

    The deaths are those beyond the best treatment for each.
    """
    table = ps.frontier(covid_problem, epsilons=[3.0, 4.0, 7.0], tolerance=1e-3)
    deaths = covid_problem.outcomes["death"]
    best = np.take_along_axis(deaths, covid_problem.best_actions[:, None], axis=1)[:, 0]
    least = covid_problem.prior @ best
    fixed = covid_problem.prior @ deaths[:, covid_problem.best_fixed_action]
    seen = {3.0: [(0.811, 11.1), (0.749, 5.5)], 4.0: [(0.912, 4.3), (0.8085, 2.17)], 7.0: [(0.9754, 0.27)]}
    for epsilon, points in seen.items():
        rows = table[table["epsilon"] == epsilon].sort_values("expected_death")
        for kept, beyond in points:
            found = np.interp(beyond / 1e5 + least - fixed, rows["extra_death"], rows["benefit_kept"])
            assert found == pytest.approx(kept, abs=0.005)
