"""A privacy budget over days: exact joint privacy, feasibility from the tables, and the library's conversions."""

import math
from dataclasses import replace
from itertools import combinations, product

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.privacy_loss_distribution import from_two_probability_mass_functions, identity
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from random_problems import LOOK_FURTHER
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammaln

from policies import CATALOGUE, AnyRecord, DecisionProblem, make_policy
from policies.accounting import bounded_range_rho, bounded_use
from policies.privacy_loss import privacy_loss_of_logs
from policies.privacy_profile import profile
from policysim.course import budget as daily
from policysim.course.budget import PrivacyBudget, spend
from policysim.course.composition import composed, composed_in_classes, converted_epsilon, distribution_epsilon
from policysim.course.planning import optimal_course
from policysim.course.tabular import TabularMDP

BINARY = DecisionProblem([[1.0, 0.0], [0.0, 1.0]], [0.5, 0.5], AnyRecord())
PRIVATE = [name for name, policy in CATALOGUE.items() if policy.uses_epsilon and name not in LOOK_FURTHER]
# eta rises with epsilon without jumps: the others decide by a linear programme or from a map of reports.
SMOOTH = [name for name in PRIVATE if name not in ("optimal", "exponential-fitted", "randomized-features")]


def random_problem(seed, n_records=4, k=3):
    rng = np.random.default_rng(seed)
    return DecisionProblem(rng.normal(size=(n_records, k)), rng.dirichlet(np.ones(n_records)), AnyRecord())


def hockey_stick(p, q, epsilon):
    """The exact delta at epsilon of P against Q, from logs along the last axis: sum of max(P - e^epsilon Q, 0)."""
    return np.maximum(np.exp(p) - np.exp(epsilon + q), 0).sum(axis=-1)


def exact_delta_of_binary_uses(log_ratio, uses, epsilon):
    """The same for `uses` draws of (e^r, 1) / (e^r + 1) against the mirrored ones: j hits of `uses` are binomial."""
    hits = np.arange(uses + 1)
    ways = gammaln(uses + 1) - gammaln(hits + 1) - gammaln(uses - hits + 1)
    high, low = -np.log1p(np.exp(-log_ratio)), -np.log1p(np.exp(log_ratio))
    return hockey_stick(*(ways + hits * a + (uses - hits) * b for a, b in ((high, low), (low, high))), epsilon)


def days_rho_and_loss(policy, problems, epsilon):
    """From the tables, by a loop over pairs of actions and records."""
    rho = loss = 0.0
    for problem in problems:
        logs = make_policy(policy, epsilon=epsilon).log_probabilities(problem)
        ratios = [(first - second) for first, second in combinations(logs.T, 2)]
        rho += max(np.ptp(ratio) for ratio in ratios) ** 2 / 8
        loss += max(np.ptp(column) for column in logs.T)
    return rho, loss


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        *(
            (lambda bad=bad: PrivacyBudget(bad), "epsilon must be >= 0, got epsilon=")
            for bad in (-1.0, math.nan, "1", True)
        ),
        *((lambda bad=bad: PrivacyBudget(bad, 1e-6), "epsilon must be 0, inf or a number") for bad in (1e308, 5e-324)),
        (lambda: PrivacyBudget(1.0, -0.1), "delta must be >= 0"),
        (lambda: PrivacyBudget(1.0, 1.0), "delta must be < 1, got delta=1.0"),
        *(
            (lambda bad=bad: PrivacyBudget(1.0).daily_epsilon(bad), "days must be a whole number >= 1")
            for bad in (0, -1, 2.5, True)
        ),
        (
            lambda: PrivacyBudget(1.0).daily(make_policy("exponential"), []),
            "days must be a whole number >= 1, got days=0",
        ),
        (lambda: PrivacyBudget(1.0).daily("exponential", [BINARY]), "policy must be one such as make_policy"),
        (
            lambda: PrivacyBudget(1.0).daily(make_policy("exponential"), [1, 2]),
            "each day must be a DecisionProblem, got 1",
        ),
        (lambda: PrivacyBudget(1.0).daily_epsilon(3, eta_per_epsilon=0), "eta_per_epsilon must be > 0 and finite"),
        (lambda: PrivacyBudget(1.0, 1e-6).total([1.0, 1.0], [0.5]), "a rho for each of 2 epsilons, got 1"),
        (lambda: PrivacyBudget(1.0, 1e-6).total([1.0], [-1]), "rho must be >= 0, got rho=-1"),
    ],
)
def test_what_is_out_of_range_is_refused(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


# The conversion.


def test_the_figures_of_the_field_for_a_thousand_uses():
    budget = PrivacyBudget(10.0, 1e-6)
    epsilons, rhos = [0.1] * 1000, [0.1**2 / 8] * 1000
    # Any policy: dp-accounting's distribution of the loss of randomised response with two answers.
    looped = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    looped.compose(dp_accounting.RandomizedResponseDpEvent(2 / (math.exp(1.0) + 1), 2))
    assert budget.total([1.0]) == pytest.approx(looped.get_epsilon(1e-6), abs=1e-3)
    assert exact_delta_of_binary_uses(0.1, 1000, budget.total(epsilons)) == pytest.approx(1e-6, rel=1e-5)
    assert budget.total(epsilons, rhos) == pytest.approx(8.847, abs=2e-3)
    assert PrivacyBudget(10.0).total(epsilons, rhos) == pytest.approx(100)
    # Few uses: losses add up to less. An impossible action on one day leaves no other way.
    assert budget.total([0.1] * 2, [0.1**2 / 2] * 2) == pytest.approx(0.2, rel=1e-4)
    assert budget.total([0.1, math.inf], [0.01, math.inf]) == math.inf
    # Nor is a sum that no float holds anything else.
    assert budget.total([1e308] * 2) == PrivacyBudget(1.0).total([1e308] * 2) == math.inf
    assert budget.total([1.0] * 2, [1e308] * 2) == budget.total([1.0] * 2)


@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("rho", [1e-8, 1e-4, 0.1, 3.0, 100.0])
def test_the_conversion_is_the_published_bound_at_its_best_order(rho, delta):
    def bound(log):
        order = 1 + math.exp(log)
        # Canonne, Kamath & Steinke (2020), proposition 12.
        return rho * order + math.log1p(-1 / order) - math.log(delta * order) / (order - 1)

    best = max(0.0, minimize_scalar(bound, bounds=(-4.0, 14.0), method="bounded", options={"xatol": 1e-9}).fun)
    found = converted_epsilon(rho, delta)
    # The grid of orders has steps of 5 %: at most 2.5 % off in a minimum of a rho + L / a, so (0.025)^2 / 2 in value.
    assert best * (1 - 1e-9) <= found <= best * (1 + 5e-4) + 1e-9
    assert found <= RdpAccountant().compose(dp_accounting.ZCDpEvent(rho)).get_epsilon(delta) * (1 + 5e-4)


@settings(max_examples=40)
@given(log_epsilon=st.floats(-5, 4), log_delta=st.floats(-15, -0.5))
def test_rho_is_the_largest_that_converts_to_epsilon(log_epsilon, log_delta):
    epsilon, delta = 10**log_epsilon, 10**log_delta
    rho = PrivacyBudget(epsilon, delta).rho
    assert rho > 0
    assert converted_epsilon(rho, delta) <= epsilon < converted_epsilon(rho * (1 + 1e-7), delta)


def test_rho_at_the_ends_of_the_budget():
    assert PrivacyBudget(5.0).rho == PrivacyBudget(math.inf).rho == 0.0
    assert PrivacyBudget(math.inf, 1e-6).rho == math.inf
    # A total variation below delta needs no epsilon: 1 - e^-rho <= delta^2.
    assert 0 < PrivacyBudget(0.0, 0.1).rho <= -math.log1p(-0.01)
    # So small a delta that no order helps.
    assert PrivacyBudget(1e-9, 1e-200).rho == 0.0


# The distributions of the loss.


def hockey_sticks(p, q, factors):
    """Sum of max(p - c q, 0) for each factor c."""
    return np.maximum(p - factors[:, None] * q, 0).sum(axis=1)


FACTORS = np.exp(np.linspace(-4, 4, 161))


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 5), scale=st.sampled_from([0.1, 1.0, 3.0]))
def test_two_numbers_of_a_use_dominate_every_pair_of_rows(seed, k, scale):
    logs = np.random.default_rng(seed).normal(size=(3, k)) * scale
    table = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    ratios = [np.log(p / q) for p in table for q in table]
    loss, eta = max(ratio.max() for ratio in ratios), max(np.ptp(ratio) for ratio in ratios)
    for use in (bounded_use(loss), bounded_use(loss, eta)):
        most = hockey_sticks(*use.profile.pair, FACTORS)
        assert all((hockey_sticks(p, q, FACTORS) <= most + 1e-12).all() for p in table for q in table)


def random_profiles(seed, most_days):
    """Profiles of days that are the same or differ, of many and of few losses, small and large."""
    rng = np.random.default_rng(seed)
    tables = []
    for _ in range(rng.integers(1, most_days + 1)):
        logs = rng.normal(size=rng.integers(2, 5, size=2)) * rng.choice([0.03, 0.3, 1.0, 3.0])
        tables.append(logs - np.logaddexp.reduce(logs, axis=1)[:, None])
    profiles = [profile(logs, AnyRecord()) for logs in tables]
    return [profiles[day] for day in rng.integers(0, len(profiles), most_days)]


def exact_epsilon(profiles, delta):
    """By every sequence of losses, of which none is rounded."""
    joint_p = joint_q = np.ones(1)
    for each in profiles:
        p, q = each.pair
        joint_p, joint_q = np.outer(joint_p, p[p > 0]).ravel(), np.outer(joint_q, q[p > 0]).ravel()
    losses = np.log(joint_p / joint_q)
    excess = lambda epsilon: joint_p @ np.maximum(0, -np.expm1(np.minimum(epsilon - losses, 0))) - delta  # noqa: E731
    return brentq(excess, 0, losses.max(), xtol=1e-13) if excess(0) > 0 else 0.0


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), delta=st.sampled_from([1e-9, 1e-6, 1e-3, 0.1]))
def test_the_distribution_of_the_loss_is_never_below_that_of_all_sequences(seed, delta):
    profiles = random_profiles(seed, 4)
    exact = exact_epsilon(profiles, delta)
    assert exact * (1 - 1e-9) <= distribution_epsilon(profiles, delta) <= exact * 1.003 + 1e-6


@pytest.mark.parametrize("seed", range(30))
def test_the_distribution_of_many_days_is_that_of_fine_steps(seed):
    profiles, delta = random_profiles(seed, 30), [1e-8, 1e-6, 1e-3][seed % 3]
    found, total = distribution_epsilon(profiles, delta), identity(1e-4)
    # One day at a time, each loss rounded up to a ten-thousandth: half of one too much on average.
    for each in profiles:
        p, q = ({name: math.log(chance) for name, chance in enumerate(side) if chance > 0} for side in each.pair)
        total = total.compose(from_two_probability_mass_functions(q, p, value_discretization_interval=1e-4))
    slack = 1e-4 * len(profiles)
    fine = total.get_epsilon_for_delta(delta)
    assert fine - slack <= found <= fine * 1.003 + 1e-6


def test_what_a_distribution_cannot_prove_is_left_to_other_ways():
    uses = [bounded_use(0.001)] * 1000
    assert distribution_epsilon([use.profile for use in uses], 1e-13) == math.inf
    assert composed(uses, 1e-13) == ("zero-concentrated", converted_epsilon(1000 * uses[0].rho, 1e-13))
    # An action that rules a record out has a delta of its own: three days of .01 have 1 - .99^3, at every epsilon.
    with np.errstate(divide="ignore"):
        rare = profile(np.log([[0.99, 0.01], [1.0, 0.0]]), AnyRecord())
    assert distribution_epsilon([rare] * 3, 0.0297) == math.inf
    assert distribution_epsilon([rare] * 3, 0.0298) == 0
    assert distribution_epsilon([rare, bounded_use(math.inf).profile], 0.03) == math.inf


def renyi(p, q, order):
    with np.errstate(divide="ignore"):
        return np.logaddexp.reduce(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1)


ORDERS_OF_TESTS = 1 + np.geomspace(1e-3, 1e3, 400)


@pytest.mark.parametrize("eta", [0.005, 0.02, 1.0, 4.0, 12.0])
def test_rho_of_a_bounded_range_is_the_largest_divergence_of_two_answers(eta):
    largest = 0.0
    for share in np.linspace(0.01, 0.99, 99):
        high, low = math.exp(eta * share), math.exp(-eta * (1 - share))
        q = np.array([1 - low, high - 1]) / (high - low)
        largest = max([largest, *(renyi(q * [high, low], q, order) / order for order in ORDERS_OF_TESTS)])
    assert largest * (1 - 1e-9) <= bounded_range_rho(eta) <= min(largest * 1.002, eta**2 / 8)


# The exact joint privacy.


@pytest.mark.parametrize("name", PRIVATE)
@settings(max_examples=6)
@given(seed=st.integers(0, 10**6), days=st.integers(2, 3), data=st.data())
def test_the_exact_delta_of_all_days_is_at_most_that_of_the_budget(name, seed, days, data):
    budget = PrivacyBudget(data.draw(st.sampled_from([0.1, 1.0, 4.0])), data.draw(st.sampled_from([0.0, 1e-3, 0.2])))
    problems = [random_problem(seed + day, n_records=3) for day in range(days)]
    found = budget.daily(make_policy(name), problems)
    tables = [found.policy.log_probabilities(problem) for problem in problems]
    # The record may be another one each day: any sequence of records against any other.
    joint = tables[0]
    for logs in tables[1:]:
        joint = (joint[:, None, :, None] + logs[None, :, None, :]).reshape(len(joint) * len(logs), -1)
    worst = hockey_stick(joint[:, None, :], joint[None, :, :], found.total_epsilon).max()
    assert worst <= budget.delta + 1e-12
    assert found.total_epsilon <= budget.epsilon * (1 + 1e-12)


@pytest.mark.parametrize("name", ["exponential-fitted", "randomized-response", "permute-and-flip"])
@pytest.mark.parametrize("delta", [0.0, 0.05, 0.3])
def test_days_may_depend_on_what_earlier_days_published(name, delta):
    budget, days = PrivacyBudget(1.0, delta), 3
    policy = make_policy(name, epsilon=budget.daily_epsilon(days))
    # A tree: after each history another problem. Sequences of actions against each other, for every record.
    joint, histories = np.zeros((4, 1)), [()]
    for _ in range(days):
        seeds = [sum((action + 1) * 10**place for place, action in enumerate(history)) for history in histories]
        steps = [policy.log_probabilities(random_problem(seed)) for seed in seeds]
        joint = np.concatenate([joint[:, [i]] + step for i, step in enumerate(steps)], axis=1)
        histories = [(*history, action) for history in histories for action in range(3)]
    np.testing.assert_allclose(np.exp(joint).sum(axis=1), 1)
    assert hockey_stick(joint[:, None, :], joint[None, :, :], budget.epsilon).max() <= delta + 1e-12


THOUSAND = [BINARY] * 1000


@pytest.mark.parametrize("name", ["exponential-fitted", "randomized-response", "exponential"])
def test_a_thousand_days_are_exactly_as_private_as_the_budget_says(name):
    budget = PrivacyBudget(10.0, 1e-6)
    found = budget.daily(make_policy(name), THOUSAND)
    log_ratio = privacy_loss_of_logs(found.policy.log_probabilities(BINARY), AnyRecord()).epsilon
    exact = exact_delta_of_binary_uses(log_ratio, 1000, found.total_epsilon)
    # And it is no idle bound: two actions are the worst case of the distributions, and nearly so of rho.
    assert found.composition == "loss-distributions"
    assert exact <= budget.delta < exact_delta_of_binary_uses(log_ratio, 1000, found.total_epsilon * (1 - 1e-5))


BUGS = {
    "epsilon instead of eta": lambda policy, _: policy.epsilon,
    "the loss instead of the range": lambda policy, problem: (
        privacy_loss_of_logs(policy.log_probabilities(problem), problem.adjacency).epsilon
    ),
    "the root of the number of days forgotten": lambda policy, _: 2 * policy.epsilon / math.sqrt(1000),
}


@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_in_eta_breaks_the_exact_delta(bug, monkeypatch):
    monkeypatch.setattr(daily, "policy_uses", lambda *day: (bounded_use(day[0].epsilon, BUGS[bug](*day)),))
    budget = PrivacyBudget(10.0, 1e-6)
    found = budget.daily(make_policy("exponential-fitted"), THOUSAND)
    log_ratio = privacy_loss_of_logs(found.policy.log_probabilities(BINARY), AnyRecord()).epsilon
    assert exact_delta_of_binary_uses(log_ratio, 1000, found.total_epsilon) > 100 * budget.delta


# The daily epsilon.


def test_the_daily_epsilon_of_any_policy_is_exact_for_two_answers_and_that_of_bounded_range_spends_all_of_rho():
    budget = PrivacyBudget(3.0, 1e-6)
    epsilon = budget.daily_epsilon(1000)
    assert exact_delta_of_binary_uses(epsilon, 1000, 3.0) == pytest.approx(1e-6, rel=1e-5)
    assert budget.daily(make_policy("randomized-response"), THOUSAND).epsilon >= epsilon
    ranged = budget.daily_epsilon(1000, eta_per_epsilon=1.0)
    assert 1000 * bounded_range_rho(ranged) == pytest.approx(budget.rho, rel=1e-5)
    assert budget.daily_epsilon(2) == pytest.approx(1.5, rel=1e-5) == budget.daily_epsilon(2, eta_per_epsilon=1.0)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("seed", [1, 3])
def test_no_epsilon_more_than_a_hundredth_larger_is_affordable(name, seed):
    budget = PrivacyBudget({1: 3.0, 3: 40.0}[seed], 1e-5)
    problems = [random_problem(10 * seed + day, n_records=8, k=4) for day in range(30)]
    found = budget.daily(make_policy(name), problems)
    assert found.total_epsilon <= budget.epsilon * (1 + 1e-12)
    assert found.epsilon >= budget.epsilon / 30
    rho, loss = days_rho_and_loss(name, problems, found.epsilon)
    assert found.total_epsilon <= loss * (1 + 1e-5)
    assert found.total_epsilon <= converted_epsilon(rho, budget.delta) * (1 + 1e-5)
    for larger in (1.0101, 1.03, 1.1, 1.3, 2.0):
        days = spend(make_policy(name), problems, [found.epsilon * larger] * 30)
        assert composed_in_classes(days, 1e-5)[1] > budget.epsilon


def test_a_budget_of_a_day_is_that_of_its_policy():
    found = PrivacyBudget(1.0).daily(make_policy("exponential"), [BINARY] * 2)
    assert found.epsilon == found.policy.epsilon == pytest.approx(1.0)
    for name, epsilon in (("exponential", 3.0), ("greedy", math.inf), ("uniform", 0.0)):
        assert replace(found, policy=make_policy(name, epsilon=3.0)).epsilon == epsilon


def test_a_day_on_which_nothing_is_revealed_leaves_its_part_to_the_others():
    same = DecisionProblem([[0.0, 1.0], [2.0, 3.0]], [0.5, 0.5], AnyRecord())
    found = PrivacyBudget(1.0).daily(make_policy("randomized-response"), [same, BINARY, same, BINARY])
    assert found.composition == "exact-losses"
    assert 0.495 <= found.epsilon <= 0.5
    assert found.total_epsilon == pytest.approx(2 * found.epsilon)


def test_a_process_and_decisions_with_masks_have_budgets_too():
    rng = np.random.default_rng(0)
    moves, rewards = rng.dirichlet(np.ones(3), size=(3, 3)), rng.normal(size=(3, 3))
    mask = np.array([[1, 1, 1], [1, 1, 1], [0, 1, 1]], dtype=bool)
    policy = make_policy("randomized-response")
    for options in ({}, {"admissible": mask, "mask_public": True}):
        mdp = TabularMDP(moves, rewards, np.full(3, 1 / 3), horizon=4, **options, axes="SAS")
        found = PrivacyBudget(2.0).daily(policy, mdp)
        course = optimal_course(mdp)
        losses = [day.epsilon_spent(day.tables(found.policy)[0]) for day in course.plain]
        of_list = PrivacyBudget(2.0).daily(policy, course.plain)
        assert (found.policy, found.total_epsilon) == (of_list.policy, of_list.total_epsilon)
        assert found.epsilon >= 0.5 and sum(losses) <= found.total_epsilon * (1 + 1e-12) <= 2.0 + 1e-9
    hidden = TabularMDP(moves, rewards, np.full(3, 1 / 3), horizon=4, admissible=mask, axes="SAS")
    for name in ("randomized-response", "uniform"):
        with pytest.raises(ValueError, match="no budget can be kept: the privacy loss is infinite at every epsilon"):
            PrivacyBudget(2.0).daily(make_policy(name), hidden)
    with pytest.raises(ValueError, match="or a process with a horizon such as TabularMDP"):
        PrivacyBudget(2.0).daily(policy, TabularMDP(moves, rewards, np.full(3, 1 / 3), 0.9, axes="SAS"))


def test_policies_that_take_no_epsilon_spend_their_guarantee():
    for name, each in (("uniform", 0.0), ("best-fixed", 0.0), ("greedy", math.inf)):
        found = PrivacyBudget(1.0, 1e-6).daily(make_policy(name), [BINARY] * 5)
        assert (found.epsilon, found.total_epsilon, found.composition) == (each, each, "basic")


def test_no_limit_and_no_budget_at_all():
    policy = make_policy("randomized-response")
    free = PrivacyBudget(math.inf, 1e-6).daily(policy, [BINARY] * 3)
    assert free.epsilon == free.total_epsilon == PrivacyBudget(math.inf).daily_epsilon(3) == math.inf
    none = PrivacyBudget(0.0).daily(policy, [BINARY] * 3)
    assert none.epsilon == none.total_epsilon == 0.0
    # With a delta, a little can be revealed at epsilon 0.
    some = PrivacyBudget(0.0, 0.01).daily(policy, [BINARY] * 3)
    table = some.policy.log_probabilities(BINARY)
    joint = np.array([[table[x, list(actions)].sum() for actions in product(range(2), repeat=3)] for x in range(2)])
    assert some.epsilon > 0 == some.total_epsilon
    assert 0 < hockey_stick(joint[0], joint[1], 0.0) <= 0.01
