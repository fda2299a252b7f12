"""Prices, wrong priors and redrawn effects, against independent computations."""

from dataclasses import replace

import numpy as np
import pytest
from counted_progress import CountedProgress
from small_studies import write_small_study

import policysim as ps
from envs import ResponseModel
from policysim.prices import WHOLE_RECORD, price_list
from policysim.robustness import REDRAWS, ranked, redraw, robustness
from policysim.wrong_prior import FACTORS, wrong_prior


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


def test_each_price_is_the_optimum_under_that_adjacency(study, problem):
    progress = CountedProgress()
    prices = price_list(study, problem, progress).set_index("hides")
    assert progress.done == progress.expected == 6
    assert set(prices.index) == {*study.scenario.space.names, WHOLE_RECORD}
    best = float(problem.prior @ problem.utilities.max(axis=1))
    for axis, name in enumerate(study.scenario.space.names):
        hidden = ps.Sensitive(study.scenario.space.shape, (axis,))
        part = ps.DecisionProblem(problem.utilities, problem.prior, hidden)
        value = part.value(ps.make_policy("optimal", epsilon=study.epsilon).probabilities(part))
        assert prices.loc[name, "loss"] == pytest.approx(best - value, abs=1e-12)
        assert prices.loc[name, "epsilon_spent"] <= study.epsilon * (1 + 1e-9)
    # Hiding everything hides each feature.
    assert prices.loc[WHOLE_RECORD, "loss"] >= prices["loss"].max() - 1e-12


def test_the_wrong_prior_is_the_right_one_at_factor_one(study, problem):
    table = wrong_prior(study, problem, ["optimal", "randomized-response"])
    assert list(table["factor"].unique()) == list(FACTORS.values())
    compared = ps.compare(problem, policies=["optimal", "randomized-response"], epsilons=[study.epsilon])
    right = table[table["factor"] == 1].set_index("policy")["benefit_kept"]
    for name, kept in zip(compared["policy"], compared["benefit_kept"], strict=True):
        assert right[name] == pytest.approx(kept, rel=1e-9)


def test_the_wrong_prior_changes_the_prevalence_and_nothing_else(study, problem):
    frame = study.scenario.space.decode(np.arange(problem.n_records))
    ill = frame["infected"].to_numpy() == 1
    policy = ps.make_policy("optimal", epsilon=study.epsilon).probabilities(problem)
    rows = wrong_prior(study, problem, ["optimal"]).set_index("factor")
    for factor in FACTORS.values():
        prevalence = 0.3 * factor
        prior = np.where(ill, prevalence * problem.prior / 0.3, (1 - prevalence) * problem.prior / 0.7)
        assert rows.loc[factor, "prevalence"] == pytest.approx(prevalence)
        assert rows.loc[factor, "value"] == pytest.approx(float((prior[:, None] * policy * problem.utilities).sum()))


def test_redrawn_effects_stay_probabilities_and_combinations_follow_their_parts(covid):
    rng = np.random.default_rng(4)
    for _ in range(50):
        drawn = redraw(covid.scenario.treatments, rng)
        for treatment in drawn.values():
            for effects in (treatment.clears, treatment.side_effects):
                assert all(0 <= probability < 1 for probability in effects.values())
        for flag in ("fever", "pneumonia", "stomach"):
            one, two, both = (drawn[name].clears.get(flag, 0.0) for name in ("a1", "a2", "a3"))
            assert both == pytest.approx(1 - (1 - one) * (1 - two))
        assert drawn["a0"].clears == {}


def test_the_spread_of_redrawn_odds_is_the_stated_one(covid):
    rng = np.random.default_rng(5)
    clears = [redraw(covid.scenario.treatments, rng)["a2"].clears["fever"] for _ in range(4000)]
    logits = np.log(clears) - np.log1p(-np.array(clears))
    # Standard errors: 0.3/sqrt(4000) of the mean, 0.3/sqrt(8000) of the standard deviation; five of each.
    assert logits.mean() == pytest.approx(np.log(0.7 / 0.3), abs=5 * 0.3 / 4000**0.5)
    assert logits.std() == pytest.approx(0.3, abs=5 * 0.3 / 8000**0.5)


def test_the_ranking_on_sampled_patients_is_the_exact_one(covid, covid_problem):
    names = ("best-fixed", "exponential", "randomized-response", "optimal")
    found = robustness(covid, covid_problem, names)
    table = ps.compare(covid_problem, policies=list(names), epsilons=[covid.epsilon])
    assert found.ranking == tuple(table.sort_values("value", ascending=False)["policy"])
    assert 0 < found.holds < found.redraws == REDRAWS
    assert found.first_holds == REDRAWS  # nothing beats the optimum, whatever the effects
    assert robustness(covid, covid_problem, names) == found


def test_what_only_rounding_tells_apart_is_a_tie_that_the_optimum_wins():
    names = ["best-fixed", "uniform", "optimal", "exponential"]
    rng = np.random.default_rng(11)
    values = {"best-fixed": -7.3, "uniform": -9.0, "optimal": -7.3, "exponential": -9.0}
    for _ in range(200):
        # A few units of the last of 53 bits, either way.
        noisy = {name: value * (1 + 2**-52 * rng.integers(-4, 5)) for name, value in values.items()}
        for order in (names, names[::-1]):
            found = ranked({name: noisy[name] for name in order})
            given = [name for name in order if name != "optimal"]
            expected = ["optimal", "best-fixed", *(name for name in given if name in ("uniform", "exponential"))]
            assert found == tuple(expected)
    # All worth the same: the rounding errors are then the whole range.
    assert ranked({"best-fixed": -7.3, "optimal": -7.3 - 2**-50}) == ("optimal", "best-fixed")


def test_a_true_difference_is_no_tie_and_the_optimum_wins_no_other_way():
    assert ranked({"best-fixed": -1.0, "optimal": -1.0 - 1e-6, "uniform": -2.0}) == ("best-fixed", "optimal", "uniform")
    assert ranked({"uniform": 0.0, "greedy": 0.0, "a": 1e-6}) == ("a", "uniform", "greedy")
    assert ranked({}) == ()


def test_where_the_optimum_is_one_treatment_for_all_it_is_first_in_every_redraw(study, problem):
    small = replace(study, epsilon=1e-3)
    names = ("best-fixed", "randomized-response", "optimal")
    found = robustness(small, problem, names)
    assert found.ranking[0] == "optimal"
    assert found.first_holds == REDRAWS


def test_robustness_is_for_any_record_only(study, problem):
    other = problem.with_adjacency(ps.OneFeature(study.scenario.space.shape))
    assert robustness(replace(study, adjacency="one-feature"), other, ("best-fixed",)) is None


def test_a_problem_with_another_adjacency_or_prior_shares_its_tables(problem):
    other = problem.with_adjacency(ps.OneFeature((2,) * 5))
    assert other.utilities is problem.utilities
    assert other.sensitivity != problem.sensitivity
    with pytest.raises(ValueError, match="the adjacency is over 4 records"):
        problem.with_adjacency(ps.OneFeature((2, 2)))
    with pytest.raises(ValueError, match="prior must sum to 1"):
        problem.with_prior(problem.prior * 2)


def test_effects_of_a_response_are_those_of_its_treatments(study):
    response = ResponseModel(study.scenario)
    nothing = {name: replace(t, clears={}, side_effects={}) for name, t in study.scenario.treatments.items()}
    other = response.with_treatments(nothing)
    np.testing.assert_allclose(other.death, np.broadcast_to(response.death[:, :1], other.death.shape), rtol=1e-12)
