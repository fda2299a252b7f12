"""Policies of somebody else over days: a broken claim is named wherever a total is promised, and ends no other run."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import policysim as ps
from policies import AnyRecord, DecisionProblem, Policy, Sensitive, make_policy
from policies.catalogue import CATALOGUE, Plugin
from policies.policy import ClaimError, NoTableError
from policies.randomized_response import RandomizedResponse
from policysim.course import days_report
from policysim.course.budget import spend
from policysim.course.composition import composed_in_classes
from policysim.course.simulation import planned

PROBLEM = DecisionProblem(np.eye(4), np.full(4, 0.25), AnyRecord())


@dataclass(frozen=True)
class Over(Policy):
    """Spends three times its epsilon."""

    name = "over"

    def _log_probabilities(self, problem):
        return RandomizedResponse(3 * self.epsilon).log_probabilities(problem)


@dataclass(frozen=True)
class Free(Over):
    """Claims that it reveals nothing."""

    name, uses_epsilon, guarantee = "free", False, 0.0

    def _log_probabilities(self, problem):
        return RandomizedResponse(5.7).log_probabilities(problem)


@dataclass(frozen=True)
class Steady(Free):
    """Claims what it spends."""

    name, guarantee = "steady", 5.7


@dataclass(frozen=True)
class TwoBest(RandomizedResponse):
    """The two best treatments share what k-ary response gives to one: the same loss, another table."""

    name = "two-best"

    def _tables(self, problem):
        weights = np.zeros(problem.utilities.shape)
        np.put_along_axis(weights, np.argsort(-problem.utilities, axis=1)[:, :2], self.epsilon, axis=1)
        logs = weights - np.logaddexp.reduce(weights, axis=1)[:, None]
        return logs, np.exp(logs)


@dataclass(frozen=True)
class Forged(Policy):
    """Hides everything by its logarithms, and draws what is best."""

    name = "forged"

    def _log_probabilities(self, problem):
        return np.full(problem.utilities.shape, -np.log(problem.n_actions))

    def _tables(self, problem):
        return self._log_probabilities(problem), make_policy("greedy").probabilities(problem)


@dataclass(frozen=True)
class Nowhere(Forged):
    """Gives no numbers."""

    name = "nowhere"

    def _tables(self, problem):
        return (np.full(problem.utilities.shape, np.nan),) * 2


@dataclass(frozen=True)
class Failing(Policy):
    """Does not work at most epsilons."""

    name = "failing"

    def _log_probabilities(self, problem):
        if self.epsilon > 0:
            raise RuntimeError("out\nof order")
        return make_policy("uniform").log_probabilities(problem)

    def _check(self, problem):
        raise KeyError("nor this")


HIDDEN = Sensitive((2, 2), (0,))


def one_class_matters(place):
    """Four records in two public classes, of which only those of one have something to hide."""
    utilities = np.zeros((2, 2, 2))
    utilities[:, place] = np.eye(2)
    return DecisionProblem(utilities.reshape(4, 2), np.full(4, 0.25), HIDDEN)


def process():
    rng = np.random.default_rng(0)
    moves, rewards = rng.dirichlet(np.ones(3), size=(3, 3)), rng.normal(size=(3, 3))
    return ps.TabularMDP(moves, rewards, np.full(3, 1 / 3), horizon=3, axes="SAS")


def exact_delta(logs, days, epsilon):
    """Of the worst pair of rows, by every count of days on which each ratio was seen."""
    p, q = np.exp(logs[0]), np.exp(logs[2])
    sums = {0.0: 1.0}
    for _ in range(days):
        later = {}
        for total, chance in sums.items():
            for one, other in zip(p, q, strict=True):
                key = round(total + np.log(one / other), 9)
                later[key] = later.get(key, 0.0) + chance * one
        sums = later
    return sum(chance * max(0.0, -np.expm1(epsilon - total)) for total, chance in sums.items())


def test_a_table_is_charged_for_what_it_reveals_whatever_its_class_is():
    # Rows 0 and 2 prefer other pairs of treatments.
    problem = DecisionProblem([[2, 1, 0, 0], [2, 1, 0, 0], [0, 0, 2, 1.0]], [0.3, 0.3, 0.4], AnyRecord())
    found = ps.PrivacyBudget(10.0, 1e-6).daily(TwoBest(), [problem] * 30)
    logs = found.policy.log_probabilities(problem)
    assert exact_delta(logs, 30, found.total_epsilon) <= 1e-6 < exact_delta(logs, 30, found.total_epsilon * 0.997)
    # k-ary response of the same loss has less total variation, and may have more.
    assert found.epsilon < 0.9 * ps.PrivacyBudget(10.0, 1e-6).daily(RandomizedResponse(), [problem] * 30).epsilon
    total = composed_in_classes(spend(TwoBest(), [problem] * 30, [0.4773] * 30), 1e-6)[1]
    assert exact_delta(TwoBest(0.4773).log_probabilities(problem), 30, total) <= 1e-6


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("policy", "claim"), [(Over(), "at most 1, and its exact loss is 3"), (Free(), "at most 0")])
def test_a_budget_is_not_given_to_a_policy_that_spends_more_than_it_claims(policy, claim, delta):
    with pytest.raises(
        ClaimError, match=rf"{policy.name}.* claims a privacy loss of {claim}" if delta == 0 else "claims"
    ):
        ps.PrivacyBudget(3.0, delta).daily(policy, [PROBLEM] * 3)


def test_a_policy_without_an_epsilon_counts_on_every_day():
    found = ps.PrivacyBudget(3.0).daily(Steady(), [PROBLEM] * 3)
    assert (found.epsilon, found.total_epsilon) == pytest.approx((5.7, 17.1))


@pytest.mark.parametrize("asked", [{"epsilons": [1.0, 2.0]}, {"total_epsilons": [1.0, 2.0]}])
def test_a_comparison_over_days_leaves_out_who_breaks_a_claim_and_names_it(asked):
    with pytest.warns(UserWarning, match=r"left out: (over at ε = .*|free) claims a privacy loss of at most"):
        table = ps.compare(process(), policies=["randomized-response", Over(), Free(), Steady()], **asked)
    assert set(table["policy"]) == {"randomized-response", "steady"}
    with pytest.raises(ClaimError, match="over at ε = "):
        ps.compare(process(), policies=[Over()], **asked)


@pytest.mark.parametrize("policy", [Forged(), Nowhere(), Failing()])
def test_nothing_is_promised_over_days_for_a_policy_that_gives_no_table(policy):
    study = ps.load_study("examples/ward/study.toml")
    for promise in (
        lambda: ps.PrivacyBudget(9.0).daily(policy, [PROBLEM] * 3),
        lambda: ps.PrivacyBudget(9.0).spend(policy, PROBLEM),
        lambda: ps.smallest_epsilon(process(), policy, keep=0.5),
        lambda: ps.plan_once(process(), 1.0, policy=policy),
        lambda: ps.compare(process(), policies=[policy], total_epsilons=[1.0]),
        lambda: planned(study, policy, horizon=2),
        lambda: planned(study, policy, horizon=1),
    ):
        why = "RuntimeError: out of order$" if policy == Failing() else "its prob"
        with pytest.raises(NoTableError, match=rf"{policy.name} at ε = .* gives no table of probabilities: {why}"):
            promise()
    with pytest.warns(UserWarning, match=rf"left out: {policy.name}"):
        kept = ps.compare(process(), policies=[policy, "exponential"], total_epsilons=[1.0])
    assert set(kept["policy"]) == {"exponential"}


def test_neither_a_choice_once_nor_a_simulation_promises_what_a_policy_breaks():
    with pytest.raises(ClaimError, match="over at ε = 1 claims"):
        ps.plan_once(process(), 1.0, policy=Over())
    for horizon in (1, 2):
        with pytest.raises(ClaimError, match="over at ε = 1 claims"):
            planned(ps.load_study("examples/ward/study.toml"), Over(1.0), horizon=horizon)


def test_a_report_over_days_leaves_out_what_breaks_a_claim_or_does_not_apply(monkeypatch):
    study = ps.load_study("examples/ward/study.toml")
    plugins = {kind.name: Plugin(kind, "somebody", "1") for kind in (Over, Failing)}
    monkeypatch.setattr(CATALOGUE, "_plugins", plugins)
    report = days_report.report(study, horizon=2, total_epsilons=[1.0], policies=["all"])
    told = [reason for reason in report.findings.warnings if "not compared" in reason]
    assert any("over at ε = " in reason and "claims a privacy loss of at most" in reason for reason in told)
    assert any("failing at ε = " in reason and "RuntimeError: out of order" in reason for reason in told)
    assert any("optimal-safe, which is for one decision" in reason for reason in told)
    assert any("randomized-features, as 33 records are not all combinations" in reason for reason in told)
    assert report.exit_code == 4
    compared = set(report.more_tables["comparison"]["policy"])
    assert {"permute-and-flip", "uniform"} <= compared and not compared & {"over", "failing", "randomized-features"}
    with pytest.raises(ClaimError, match="over at ε = "):
        days_report.report(study, horizon=2, total_epsilons=[1.0], policies=["over"])


# The odometer.


def test_a_stay_of_unknown_length_is_counted_by_exact_losses_whatever_is_chosen_on_the_way():
    budget, fitted = ps.PrivacyBudget(3.0), make_policy("exponential", epsilon=1.0).fit(PROBLEM)
    assert budget.left() == 3.0 == ps.PrivacyBudget(3.0).left()
    assert budget.spend(fitted) == fitted.epsilon_spent < 1
    assert budget.spend(make_policy("randomized-response", epsilon=2.0), PROBLEM) == pytest.approx(2.0)
    assert budget.left() == pytest.approx(1 - fitted.epsilon_spent)
    # One that does not fit is refused, and counts nothing; what is left can be spent to the last digit.
    with pytest.raises(ValueError, match=r"this decision reveals 2, and 0\.[0-9]+ of the total of 3 is left"):
        budget.spend(make_policy("randomized-response", epsilon=2.0), PROBLEM)
    assert (
        budget.spend(make_policy("randomized-response", epsilon=budget.left()), PROBLEM) > 0 == round(budget.left(), 9)
    )
    assert budget == ps.PrivacyBudget(3.0)


def test_an_odometer_takes_tables_and_checks_claims():
    budget = ps.PrivacyBudget(1.0, 1e-6)
    by_feature = [[0.6, 0.4], [0.6, 0.4], [0.2, 0.8], [0.2, 0.8]]
    assert budget.spend(by_feature, Sensitive((2, 2), (1,))) == 0.0
    assert budget.spend([[0.6, 0.4], [0.4, 0.6]]) == pytest.approx(np.log(1.5))
    with pytest.raises(ClaimError, match=r"over at ε = 0\.1"):
        budget.spend(Over(0.1), PROBLEM)
    with pytest.raises(ValueError, match="reveals inf, and"):
        budget.spend([[1.0, 0.0], [0.4, 0.6]])
    with pytest.raises(ValueError, match="spend needs the problem that uniform decides"):
        budget.spend(make_policy("uniform"))
    assert budget.left() == pytest.approx(1 - np.log(1.5))


def test_an_odometer_counts_what_a_public_class_sees_where_it_knows_the_class_and_else_the_most():
    policy, days = RandomizedResponse(0.5), [one_class_matters(place) for place in (0, 1)]
    budgets = {record: ps.PrivacyBudget(1.0) for record in (0, 1, 2, 3, None)}
    for record, budget in budgets.items():
        # A policy, a fitted one, and a table that shows nothing.
        spent = [
            budget.spend(policy, days[0], record=record),
            budget.spend(policy.fit(days[1]), record=record),
            budget.spend(np.full((4, 2), 0.5), HIDDEN, record=record),
        ]
        expected = [0.5, 0.5] if record is None else [0.5 * (record % 2 == place) for place in (0, 1)]
        assert spent == pytest.approx([*expected, 0.0], abs=1e-12)
        assert budget.left() == pytest.approx(1.0 - sum(expected), abs=1e-9)
    for bad in (-1, 4, 0.5, True):
        with pytest.raises(ValueError, match=f"record must be a whole number from 0 to 3, got record={bad}"):
            budgets[0].spend(policy, days[0], record=bad)
    assert budgets[0].left() == pytest.approx(0.5)


# One total, one answer.


@pytest.mark.parametrize("name", ["exponential", "optimal-daily"])
@pytest.mark.parametrize("seed", range(3))
def test_the_value_at_a_total_depends_on_no_other_and_never_falls(name, seed):
    rng = np.random.default_rng(seed)
    mdp = ps.TabularMDP(
        rng.dirichlet(np.ones(5), (5, 3)), rng.normal(size=(5, 3)), np.full(5, 0.2), horizon=3, axes="SAS"
    )
    totals = sorted([2.0, 3.0, *rng.uniform(0.1, 7, 3).round(2).tolist()])
    together = ps.compare(mdp, policies=[name], total_epsilons=totals)
    alone = [ps.compare(mdp, policies=[name], total_epsilons=[total])["value"][0] for total in totals]
    assert together["value"].tolist() == alone == sorted(alone)
    assert (together["total_spent"] <= together["total_epsilon"]).all()


def test_where_the_first_day_tells_nothing_choosing_once_keeps_nothing_and_a_tree_what_response_keeps():
    """Two starts lead to A or B alike, each helped by another treatment on the second and last day."""
    moves, rewards = np.zeros((4, 2, 4)), np.zeros((4, 2))
    moves[:2, :, 2:], moves[2:, :, 2:] = 0.5, np.eye(2)[:, None]
    rewards[2:] = np.eye(2)
    mdp = ps.TabularMDP(moves, rewards, [0.5, 0.5, 0, 0], horizon=2, axes="SAS")
    keeps = [2 * plan(mdp, 1.0).value - 1 for plan in (ps.plan_once, ps.plan_tree)]
    assert keeps == pytest.approx([0, np.tanh(0.5)], abs=1e-9)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("guaranteed", [2.0, math.inf])
def test_a_policy_that_guarantees_more_than_its_epsilon_stays_within_the_budget(delta, guaranteed):
    class Double(Policy):
        name = "double"

        @property
        def guarantee(self):
            return guaranteed * self.epsilon

        def _log_probabilities(self, problem):
            return RandomizedResponse(2 * self.epsilon).log_probabilities(problem)

    found = ps.PrivacyBudget(3.0, delta).daily(Double(), [PROBLEM] * 3)
    # Each day loses 2 epsilon; three days lose that three times with delta = 0.
    assert 6 * found.epsilon >= found.total_epsilon >= 2.9
    assert found.total_epsilon <= 3.0 + 1e-9
    assert delta > 0 or found.total_epsilon == pytest.approx(6 * found.epsilon)
