"""Prices, wrong priors and redrawn effects, against independent computations."""

import re
from dataclasses import replace

import numpy as np
import pytest
from counted_progress import CountedProgress
from hypothesis import given, settings
from hypothesis import strategies as st
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from envs import ResponseModel
from envs.records import Lookup
from policysim.decision.comparison import compare_problem
from policysim.decision.demands import least_epsilons
from policysim.decision.prices import WHOLE_RECORD, price_list
from policysim.decision.redraws import N_RECORDS, Redraws, _Sample, redrawn, tables_at
from policysim.decision.report import report
from policysim.decision.scenario_outcomes import wrong_prior
from policysim.numbers import next_below
from policysim.study.gain import LEAST_SHARE, gain_of
from policysim.study.study_problem import FACTORS, expected_utilities
from policysim.words import unused


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


def test_each_price_is_the_optimum_under_that_adjacency(study, problem):
    progress = CountedProgress()
    prices = price_list(problem, study.epsilon, progress).set_index("hides")
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


UNUSED = SCENARIO.replace("smoker = {}", "smoker = {}\npenicillin_allergy = {}").replace(
    "smoker = 0.2,", "smoker = 0.2, penicillin_allergy = 0.1,"
)


@pytest.mark.parametrize("adjacency", ['"sensitive"\nsensitive = ["penicillin_allergy"]', '"any-record"'])
def test_what_the_model_does_not_use_has_no_price(tmp_path, adjacency):
    """A feature that can change nothing is not said to be free to hide."""
    text = STUDY.replace('"any-record"', adjacency).replace('"exponential", "ran', '"optimal", "exponential", "ran')
    text = text.replace("[0.5, 1.0, 4.0]", "[1.0]")
    study = ps.load_study(write_small_study(tmp_path, text, UNUSED))
    problem = ps.build_problem(study)
    prices = price_list(problem, study.epsilon).set_index("hides")
    assert not prices.loc["penicillin_allergy", "used"]
    assert prices.loc["penicillin_allergy", ["value", "loss", "benefit_kept", "extra_death"]].isna().all()
    # Independently: which features change a difference between two treatments' utilities.
    shape = study.scenario.space.shape
    differences = (problem.utilities - problem.utilities[:, :1]).reshape(*shape, -1)
    moves = {name: np.ptp(differences, axis=axis).max() for axis, name in enumerate(study.scenario.space.names)}
    assert {name for name in moves if not prices.loc[name, "used"]} == {n for n, move in moves.items() if move < 1e-12}
    made = report(study, price_list=True)
    (grid,) = (grid for grid in made.screen.behind if grid.name == "price-list")
    (row,) = (row for row in grid.rows if "penicillin allergy" in row[0])
    assert set(row[1:]) == {"–"}
    # If nothing else is hidden, that is said before all numbers.
    assert (unused() in made.findings.warnings) == ("sensitive" in adjacency)


def test_an_epsilon_beats_one_for_all_only_where_it_is_worth_more(study, problem):
    """The optimum is worth one treatment for all, exactly, up to an epsilon: that does not beat it."""
    asked = replace(study, policies=("optimal", "randomized-response"), by=(), adjacency="one-feature")
    other = problem.with_adjacency(ps.OneFeature(study.scenario.space.shape))
    for which, adjacent in ((replace(asked, adjacency="any-record"), problem), (asked, other)):
        policies = [which.policy(name) for name in which.policies]
        compared = compare_problem(adjacent, policies=policies, epsilons=which.epsilons)
        found = least_epsilons(adjacent, policies, compared).set_index("policy")["better_from"]
        assert set(found.index) >= set(asked.policies)
        for name in asked.policies:
            least = found[name]
            assert least > 0.01
            below, above, beyond = (
                ps.compare(adjacent, policies=[name], epsilons=[epsilon])["benefit_kept"][0]
                for epsilon in (next_below(least), least, 1.01 * least)
            )
            assert below <= 1e-9 < above < beyond
            assert beyond > 1e-4


def test_where_nothing_is_gained_nothing_beats_one_for_all():
    same = ps.DecisionProblem([[0.0, 1.0]] * 4, np.full(4, 0.25), ps.AnyRecord())
    gain = gain_of(same)
    assert not gain.exists
    assert not gain.has_shares
    assert gain.beaten_from == np.inf
    assert np.isnan(gain.kept(0.5))
    # Offsets that cancel leave rounding of their own size, not of their sum's.
    rng = np.random.default_rng(3)
    offsets = np.tile([1e9, -1e9], 500)
    prior = rng.dirichlet(np.ones(500)).repeat(2) / 2
    cancels = ps.DecisionProblem(np.add.outer(offsets, [0.1, 0.1 + 1e-8, 0.1]), prior, ps.AnyRecord())
    assert not gain_of(cancels).exists
    table = ps.compare(cancels, policies=["uniform", "exponential"], epsilons=[1.0])
    assert table["benefit_kept"].isna().all()


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_no_printed_share_is_below_that_of_choosing_by_lot_at_the_least_gain(seed):
    rng = np.random.default_rng(seed)
    utilities = rng.normal(size=(6, 3)) * 10.0 ** rng.integers(-4, 3, size=3) + rng.normal(size=3) * 10.0
    problem = ps.DecisionProblem(utilities, rng.dirichlet(np.ones(6)), ps.AnyRecord())
    gain = gain_of(problem)
    rows = ps.compare(problem, policies=["uniform", "exponential", "greedy"], epsilons=[0.1, 1.0])
    best, fixed = rows["value"].max(), (problem.prior @ problem.utilities).max()
    lot = (problem.prior @ problem.utilities).mean()
    assert gain.has_shares == (best - fixed > 0 and (best - fixed) / (best - lot) >= LEAST_SHARE)
    if gain.has_shares:
        assert rows["benefit_kept"].min() >= 1 - 1 / LEAST_SHARE - 1e-9
        np.testing.assert_allclose([gain.kept(v) for v in rows["value"]], rows["benefit_kept"], rtol=1e-9, atol=1e-12)


def test_no_share_of_a_tiny_gain_is_printed_anywhere(tmp_path):
    """The pill is worth hardly more to some than what is best for all: shares of that are thousands of per cent."""
    scenario = SCENARIO.replace("clears = { cough = 0.6 }", "clears = { cough = 0.6, infected = 0.49, fever = 0.49 }")
    scenario = re.sub(r"cost = .*|side_effects = .*", "", scenario)
    text = STUDY.replace('"exponential", "ran', '"optimal", "exponential", "ran').replace("any-record", "one-feature")
    text = text.replace("[0.5, 1.0, 4.0]", "[1.0]")
    study = ps.load_study(write_small_study(tmp_path, text, scenario))
    problem = ps.build_problem(study)
    gain = gain_of(problem)
    assert gain.exists
    assert not gain.has_shares
    raw = ps.compare(problem, policies=["uniform"], epsilons=[1.0])["benefit_kept"][0]
    assert raw < -9  # a number, in the data
    # Even where there are no versions, and the best for each is better as stated.
    of_problem = report(problem, epsilons=[0.5, 1.0], policies=["optimal", "exponential"])
    assert of_problem.tables["comparison"]["benefit_kept"].min() < -9
    for made in (report(study, price_list=True), of_problem):
        first = made.drawings[0]
        assert first.name == "frontier"
        assert "benefit" not in f"{made.screen.text(full=True)} {first.caption} {first.alternative}".casefold()


def test_the_wrong_prior_changes_the_prevalence_and_nothing_else(study, problem):
    frame = study.scenario.space.decode(np.arange(problem.n_records))
    ill = frame["infected"].to_numpy() == 1
    policy = ps.make_policy("optimal", epsilon=study.epsilon).probabilities(problem)
    rows = wrong_prior(study, problem, [ps.make_policy("optimal", epsilon=study.epsilon)]).set_index("factor")
    for factor in FACTORS.values():
        prevalence = 0.3 * factor
        prior = np.where(ill, prevalence * problem.prior / 0.3, (1 - prevalence) * problem.prior / 0.7)
        assert rows.loc[factor, "prevalence"] == pytest.approx(prevalence)
        assert rows.loc[factor, "value"] == pytest.approx(float((prior[:, None] * policy * problem.utilities).sum()))


def test_redrawn_effects_stay_probabilities_and_combinations_follow_their_parts(covid):
    rng = np.random.default_rng(4)
    for _ in range(50):
        drawn = Redraws(covid).draw(rng)[0].treatments
        for treatment in drawn.values():
            for effects in (treatment.clears, treatment.side_effects):
                assert all(0 <= probability < 1 for probability in effects.values())
        assert drawn["a0"].clears == drawn["a3"].clears == {}
    # The response model combines what was drawn for the parts.
    response = ResponseModel(covid.scenario).with_scenario(replace(covid.scenario, treatments=drawn))
    for flag in ("fever", "pneumonia", "stomach"):
        one, two, both = (response.probability(flag)[-1, a] / response.probability(flag)[-1, 0] for a in (1, 2, 3))
        assert both == pytest.approx(one * two)


def test_what_cannot_be_used_has_no_redraws_and_the_others_have(study, problem, monkeypatch):
    monkeypatch.setattr("policysim.decision.redraws.REDRAWS", 3)
    names = ("best-fixed", "optimal", "optimal-safe", "optimal-robust")
    assert drawn(study, problem, names).keys() == {*names, *(f"for all: {action}" for action in problem.actions)}
    # Bounds that nobody can keep leave their policy out, and nothing else.
    tight = replace(study, at_most={"death": 0.0})
    assert "optimal-safe" not in drawn(tight, problem, names).keys() >= set(names) - {"optimal-safe"}


def drawn(study, problem, names):
    """The value of each option in each redraw."""
    found = redrawn(study, problem, [study.policy(name, study.epsilon) for name in names])
    return {option: rows["value"].tolist() for option, rows in found.options.groupby("option")}


def test_redraws_do_not_depend_on_the_adjacency_but_by_the_policies(study, problem, monkeypatch):
    # Tables are those of all records: what a policy reveals to whom changes only the policy.
    monkeypatch.setattr("policysim.decision.redraws.REDRAWS", 10)
    other = problem.with_adjacency(ps.OneFeature(study.scenario.space.shape))
    one_feature = replace(study, adjacency="one-feature")
    names = ("best-fixed", "randomized-response")
    assert drawn(one_feature, other, names) == drawn(study, problem, names)


def test_each_option_has_a_row_in_every_redraw_with_what_is_counted(study, problem, monkeypatch):
    """By hand: the tables of all records, made for the numbers as stated, on the whole problem of each redraw."""
    monkeypatch.setattr("policysim.decision.redraws.REDRAWS", 3)
    policies = [study.policy(name, study.epsilon) for name in ("greedy", "optimal")]
    found = redrawn(study, problem, policies)
    single = {
        f"for all: {action}": np.eye(3)[np.full(problem.n_records, a)] for a, action in enumerate(problem.actions)
    }
    tables = {policy.name: policy.probabilities(problem) for policy in policies} | single
    counted = [f"expected_{name}" for name in study.counted]
    assert list(found.options.columns) == ["draw", "option", "value", *counted, "lead_weight"]
    assert (found.options["lead_weight"] == study.lead_weight).all()
    assert found.options["option"].tolist() == [*tables] * 3
    assert found.options["draw"].tolist() == np.repeat(range(3), len(tables)).tolist()
    _, numbers = np.random.default_rng(study.seed).spawn(2)
    draws = Redraws(study)
    symptoms = [name for name in study.scenario.transient if name not in study.scenario.death.acute]
    for draw in range(3):
        scenario, utility = draws.draw(numbers)
        response = ResponseModel(study.scenario).with_scenario(scenario)
        utilities = expected_utilities(response, utility)
        outcomes = {"death": response.probability("death"), "symptoms": sum(map(response.probability, symptoms))}
        rows = found.options[found.options["draw"] == draw].set_index("option")
        for option, table in tables.items():
            assert rows.loc[option, "value"] == pytest.approx(
                problem.prior @ (table * utilities).sum(axis=1), abs=1e-12
            )
            for name, outcome in outcomes.items():
                expected = problem.prior @ (table * outcome).sum(axis=1)
                assert rows.loc[option, f"expected_{name}"] == pytest.approx(expected, abs=1e-12)


def test_a_sample_of_the_records_gives_what_all_of_them_give(covid, covid_problem):
    """As stated, in a sample: within 2 % of the exact benefit and deaths, of which few patients have nearly all."""
    names = ("best-fixed", "exponential", "randomized-response")
    tables = {name: covid.policy(name, 1.0).probabilities(covid_problem) for name in names}
    died, best = covid_problem.outcomes["death"], covid_problem.best_actions[:, None]
    least = covid_problem.prior @ np.take_along_axis(died, best, axis=1)[:, 0]
    response, fixed = ResponseModel(covid.scenario), covid_problem.value(tables["best-fixed"])
    sample = _Sample.of(covid_problem, np.random.default_rng(0))
    assert len(sample.records) <= N_RECORDS
    records = Lookup(covid.space.codes(sample.records))
    utilities, outcomes = tables_at(records, response, covid.utility, covid.counted)
    there = ps.DecisionProblem(utilities, sample.shares, ps.AnyRecord(), outcomes=outcomes)
    harm, fixed_there = there.outcomes["death"], there.best_fixed_value
    least_there = there.prior @ np.take_along_axis(harm, there.best_actions[:, None], axis=1)[:, 0]
    for table in tables.values():
        extra = covid_problem.prior @ (table * died).sum(axis=1) - least
        mine = table[sample.records]
        died_there = there.prior @ (mine * harm).sum(axis=1) - least_there
        assert died_there == pytest.approx(extra, rel=0.02, abs=1e-6)
        gained = there.value(mine) - fixed_there
        assert gained == pytest.approx(covid_problem.value(table) - fixed, rel=0.02, abs=1e-4)
