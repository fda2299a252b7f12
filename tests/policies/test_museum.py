"""A museum of real defects: each is planted here, and caught by the audit or by another check.

`AUDITED` and `CHECKED` list them all: what is wrong, what must catch it, and the right version, which passes.
"""

import inspect
import math
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
from exact_optimum import least_loss
from full_programme import full_value
from random_problems import neighbour_pairs

import policies.optimal.certificate
import policies.optimal.whole_programme
import policies.proof
import policysim as ps
from policies import AnyRecord, DecisionProblem, OneFeature, Policy, Sensitive, make_policy
from policies.accounting import bounded_range_rho, compose, largest_use, log_ratio_range, policy_use
from policies.adjacency import Listed
from policies.boxes import log_rows, regrets_of, response_boxes
from policies.exponential import Exponential, ExponentialFitted
from policies.mask import mask_classes
from policies.masked import masked_problem
from policies.optimal.certificate import optimal_certificate
from policies.policy import LOG_SMALLEST, ClaimError, NotApplicableError
from policies.privacy_loss import guess_rate, privacy_loss_of_logs
from policies.proof import LOST, Certificate, float_below, floor_of, grouped
from policies.randomized_response import RandomizedResponse
from policies.selection_release import K, WholeWeights, places_on_grid, release_weights
from policysim.course.composition import distribution_epsilon
from policysim.decision import demands
from policysim.decision.audit import audit, exceeds
from policysim.files.bad_rows import DataError
from policysim.release import noisy_table
from policysim.release.privatize_source import open_source

EPSILONS = (0.1, 0.5, 1.0, 2.0)

# One action gains while 19 others lose, so Gamma = 2 Delta: what the factor 2 is there for.
OPPOSED = np.zeros((2, 20))
OPPOSED[0, 0] = OPPOSED[1, 1:] = 1.0


def problem_of(utilities, adjacency=None):
    utilities = np.asarray(utilities)
    return DecisionProblem(utilities, np.full(len(utilities), 1 / len(utilities)), adjacency or AnyRecord())


# Calibration.


class FactorTwoDropped(Exponential):
    """s = Delta / epsilon for any scores."""

    def scale(self, problem):
        return problem.sensitivity.value / self.epsilon


class TimesSensitivity(Exponential):
    """exp(epsilon u / 2 * Delta): without its brackets, the formula multiplies by Delta."""

    def scale(self, problem):
        return 2 / (self.epsilon * problem.sensitivity.value)


class SmallestSensitivity(Exponential):
    """Delta as the minimum over actions of what one of them can move, where it must be the maximum."""

    def scale(self, problem):
        return 2 * float(np.ptp(problem.utilities, axis=0).min()) / self.epsilon


# Arithmetic.


class PlainSoftmax(Exponential):
    """The exponential mechanism in probabilities instead of logarithms."""

    def _tables(self, problem):
        scores = problem.utilities / self.scale(problem)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        with np.errstate(divide="ignore"):
            logs = np.log(weights / weights.sum(axis=1, keepdims=True))
        return logs, np.exp(logs)


class ShiftedByTheMinimum(Exponential):
    """The score's minimum subtracted, where the maximum must be: the largest exponential overflows."""

    def _tables(self, problem):
        scores = problem.utilities / self.scale(problem)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            weights = np.exp(scores - scores.min(axis=1, keepdims=True))
            logs = np.log(weights / weights.sum(axis=1, keepdims=True))
        return logs, np.exp(logs)


class WorstPreferred(Exponential):
    """exp(-u / s): costs taken for utilities. Just as private, and useless."""

    def _tables(self, problem):
        return super()._tables(problem.with_utilities(-problem.utilities))


def improves_to_the_best(policy):
    """Whether more epsilon gives more value, up to the best for each record, as of every policy."""
    problem = problem_of([[3.0, 1.0], [1.0, 0.0]])
    values = [problem.value(policy(epsilon).probabilities(problem)) for epsilon in (0, 1, math.inf)]
    return values[0] < values[1] < values[2] == problem.prior @ problem.utilities.max(axis=1)


class NotNormalised(Exponential):
    """The same weights for everyone would reveal nothing; but they are no probabilities."""

    def _tables(self, problem):
        return np.zeros(problem.utilities.shape), np.ones(problem.utilities.shape)


class DroppedByOneFeature(Exponential):
    """What is out of reach is dropped clique by clique of the first feature, where cliques of others overlap them."""

    def _tables(self, problem):
        logs = super()._tables(problem)[0]
        partition = problem.adjacency.partitions(problem.n_records)[0]
        for column in logs.T:
            grid = column.reshape(partition.shape)
            np.copyto(grid, -np.inf, where=grid.max(axis=partition.axes, keepdims=True) < LOG_SMALLEST)
        return logs, np.exp(logs)


# The second feature moves the second action from e^-760, which is 0 in float64, to e^-740, which is not: Gamma = 20.
OUT_OF_REACH = [[0.0, -760.0], [0.0, -740.0], [0.0, -760.0], [0.0, -740.0]]


# Claims.


def kullback_leibler(logs):
    """The largest divergence between neighbours: the limit of D_alpha / alpha at alpha = 1; no true rho is smaller."""
    return max(
        float(np.exp(logs[x]) @ (logs[x] - logs[y])) for x, y in neighbour_pairs(AnyRecord(), len(logs)) if x != y
    )


def rho_is_an_eighth_of_its_square(policy):
    """Whether a policy's rho is at most epsilon^2 / 8: by the divergence, and by the range of the log-ratio alike."""
    epsilon, logs = policy.epsilon, policy.log_probabilities(problem_of([[1.0, 0.0], [0.0, 1.0]]))
    rho, divergence = bounded_range_rho(log_ratio_range(logs, AnyRecord())), kullback_leibler(logs)
    # The loss is within epsilon, so that nothing else shows what is wrong.
    assert privacy_loss_of_logs(logs, AnyRecord()).epsilon <= epsilon * (1 + 1e-12)
    assert divergence < rho
    assert (rho <= epsilon**2 / 8 * (1 + 1e-12)) == (divergence < epsilon**2 / 8) == (rho <= 1.5 * epsilon**2 / 8)
    return divergence < epsilon**2 / 8


class Twice(Policy):
    """Two uses on the same record, both published: the actions are pairs."""

    name = "twice"

    def _log_probabilities(self, problem):
        k = math.isqrt(problem.n_actions)
        # The utility of a pair is the sum over both uses; a use's own part is what it is when the other is a0.
        once = RandomizedResponse(self.epsilon).log_probabilities(problem_of(problem.utilities[:, :k]))
        return (once[:, :, None] + once[:, None, :]).reshape(problem.n_records, -1)

    @property
    def guarantee(self):
        return compose([self.epsilon] * 2)


class CountIgnored(Twice):
    """An accountant that charges two uses as one (as dp-accounting does with a randomised response)."""

    @property
    def guarantee(self):
        return compose([self.epsilon])


# Two records allow two treatments, four allow all four, which is public; within each, all prefer another one.
ALLOWED = np.array([[1, 1, 0, 0]] * 2 + [[1, 1, 1, 1]] * 4, dtype=bool)
PREFERRED = np.eye(4)[[0, 1, 0, 1, 2, 3]]
DAYS, DELTA = 30, 1e-6


def of_a_decision(policy):
    """What the table on a problem with a mask reveals."""
    same_mask = Listed.sensitive(np.column_stack([mask_classes(ALLOWED)] * 2), [1])
    return policy_use(policy, DecisionProblem(PREFERRED, np.full(6, 1 / 6), same_mask, admissible=ALLOWED))


def of_a_day(policy):
    """What the table on a day of a process with a public mask reveals."""
    day = masked_problem(PREFERRED, np.full(6, 1 / 6), ALLOWED, classes=mask_classes(ALLOWED))
    return largest_use(day.uses(policy, day.tables(policy)[0]))


def of_the_largest_mask(policy):
    """The profile of a response among the most treatments that anybody may get, where it must be the fewest."""
    return of_a_day(policy)._replace(profile=policy_use(policy, problem_of(np.eye(ALLOWED.shape[1]))).profile)


def delta_of_days(one, other, epsilon):
    """The exact divergence of 30 draws of each, sum of max(P - e^epsilon Q, 0): every sum of log-ratios is followed."""
    sums = {0.0: 1.0}
    for _ in range(DAYS):
        later = defaultdict(float)
        for total, chance in sums.items():
            for p, q in zip(one, other, strict=True):
                later[round(total + math.log(p / q), 9)] += chance * p
        sums = later
    return sum(chance * max(0.0, 1 - math.exp(epsilon - total)) for total, chance in sums.items())


def covers_all_days(account, policy):
    """Whether an account of each day covers 30 of them, under either mask, and nothing less would do."""
    total = distribution_epsilon([account(policy).profile] * DAYS, DELTA)
    # At two treatments the pair is randomised response itself.
    logs = [policy.log_probabilities(problem_of(PREFERRED[ALLOWED.sum(axis=1) == k][:, :k])) for k in (2, 4)]
    exact = [delta_of_days(*np.exp(table[:2]), total) for table in logs]
    return max(exact) <= DELTA < delta_of_days(*np.exp(logs[0]), 0.999 * total)


def test_thirty_days_with_a_public_mask_cost_what_an_independent_review_says():
    accounts = [account(RandomizedResponse(0.4)).profile for account in (of_a_day, of_the_largest_mask)]
    assert [round(distribution_epsilon([profile] * DAYS, DELTA), 2) for profile in accounts] == [10.97, 8.10]


def guess_rate_is_exact():
    """In one public class four treatments tell a bit each of the record; in the other one three tell less together."""
    likely, rare = math.e / (1 + math.e) / 4, 1 / (1 + math.e) / 4
    rows = [[likely, rare] * 4, [rare, likely] * 4, [0.21] * 3 + [0.074] * 5, [0.1] * 3 + [0.14] * 5]
    rate = guess_rate(np.repeat(rows, 20, axis=0), Sensitive((2, 40), (1,))).rate
    return rate == pytest.approx(math.e / (1 + math.e), rel=1e-12)


def tanh_of_less(half, tanh=math.tanh):
    return tanh(half * 2 / 3)


# A solver that fails, and a table that is made for another epsilon.


def table_is_one_without_a_solver():
    """Whether the optimum is a table of probabilities where the solver finds nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policies.optimal.whole_programme, "minimise", Mock(return_value=None))
        table = make_policy("optimal", epsilon=0.5).probabilities(problem_of(np.eye(4), OneFeature((2, 2))))
    return (np.abs(table.sum(axis=1) - 1) < 1e-12).all()


def twice_the_solution(*programme, solve=policies.optimal.whole_programme._solve):
    return 2 * solve(*programme)[0], 0.0


def is_compared(name):
    """Whether a policy keeps its claim where it is compared."""
    problem = problem_of([[1.0, 0.0], [0.0, 1.0], [0.4, 0.5]])
    try:
        table = ps.compare(problem, policies=[make_policy(name, epsilon=1.0)], epsilons=1.0)
    except ClaimError as error:
        assert "claims a privacy loss of at most 1, and its exact loss is" in str(error)
        return False
    return table["epsilon_spent"].max() <= 1 + 1e-9


def for_four_times_epsilon(policy_class):
    """The tables of a policy at four times its epsilon."""
    tables = policy_class._tables

    def too_large(policy, problem):
        return tables(replace(policy, epsilon=4 * policy.epsilon), problem)

    return too_large


# What is left unprotected.


@dataclass(frozen=True)
class RandomizedRecord(Policy):
    """Each feature of three answered through binary randomised response at epsilon; the answers are the action."""

    protected: tuple[bool, ...] = (True, True, True)
    name = "randomized-record"

    def _log_probabilities(self, problem):
        logs = np.zeros((8, 8))
        records = np.array(list(np.ndindex(2, 2, 2)))
        for feature, is_protected in enumerate(self.protected):
            same = records[:, None, feature] == records[None, :, feature]
            truth, lie = -np.logaddexp(0, -self.epsilon), -np.logaddexp(0, self.epsilon)
            logs += np.where(same, truth if is_protected else 0.0, lie if is_protected else -np.inf)
        return logs


class OwnCandidates(Exponential):
    """The exponential mechanism among the two best actions of each record: the candidates are private themselves."""

    def _tables(self, problem):
        logs = super()._tables(problem)[0].copy()
        third = np.sort(problem.utilities, axis=1)[:, -3, None]
        logs[problem.utilities <= third] = -np.inf
        logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        return logs, np.exp(logs)


# Floors and ceilings that are not the same for all who are hidden among each other.


def only_box(policy, problem):
    """The box of all records of a problem in which any two are neighbours."""
    ((_, _, box),) = policy.boxes(problem)
    return box


def rows_in(boxes, utilities):
    """log p(a|x), (n, k), of each record in its own box."""
    regrets = regrets_of(np.asarray(utilities).T)
    return np.stack([log_rows(regrets[:, None, [x]], box)[:, 0, 0] for x, box in enumerate(boxes)])


class OwnFloors(ExponentialFitted):
    """The floors are fitted to a prior that has learnt whom they are for."""

    def _tables(self, problem):
        priors = (problem.prior + np.eye(problem.n_records)) / 2
        logs = rows_in([only_box(self, problem.with_prior(prior)) for prior in priors], problem.utilities)
        return logs, np.exp(logs)


class OtherClassFloors(ExponentialFitted):
    """The floors are looked up by the hidden feature, where the public one must be the class."""

    def _tables(self, problem):
        classes = [only_box(self, problem_of(utilities)) for utilities in problem.utilities.reshape(2, 2, -1)]
        logs = rows_in([classes[hidden] for _ in classes for hidden in (0, 1)], problem.utilities)
        return logs, np.exp(logs)


class RepairedOutside(ExponentialFitted):
    """The best actions get their ceilings and the others their floors; then each row is divided by its own sum."""

    def _tables(self, problem):
        box = response_boxes(problem.n_actions, np.inf, self.epsilon)
        best = problem.utilities == problem.utilities.max(axis=1, keepdims=True)
        logs = box.log_floors.T + np.where(best, self.epsilon, 0.0)
        logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        return logs, np.exp(logs)


class FloorOfSome(ExponentialFitted):
    """An action that a record regrets by more than 1 has no floor in its row."""

    def _tables(self, problem):
        box = response_boxes(problem.n_actions, np.inf, self.epsilon)
        logs = rows_in([box] * problem.n_records, problem.utilities)
        logs[regrets_of(problem.utilities.T).T > 1] = -np.inf
        logs -= np.logaddexp.reduce(logs, axis=1)[:, None]
        return logs, np.exp(logs)


# The release in whole numbers.


def lowered_by_rounding(monotone):
    """Two neighbouring vectors of scores of sensitivity 1: rounded to floats, they differ by more than their truth.

    Each true score lies a bit of a step of the grid below a place. One float that stands for it is rounded up to the
    place, and one beyond a power of 2, where floats are finer, down: a change by 1 moves it by K + 1 steps.
    """
    low, high = 2**17 + Fraction(1, 2) - Fraction(3, 256 * K), 2**19 - Fraction(1, 2) - Fraction(3, 64 * K)
    here, there = (low, high), (low if monotone else low - 1, high + 1)
    return [list(map(float, here)), list(map(float, there))]


def choice_is_private(weights, monotone):
    """Whether permute-and-flip with these weights tells the two vectors apart by at most 2^-17, exactly.

    The lower of two candidates is chosen with half the probability that its own coin shows heads.
    """
    first, second = (places_on_grid(scores, 1.0) for scores in lowered_by_rounding(monotone))
    assert (second[1] - second[0]) - (first[1] - first[0]) == (K + 1 if monotone else 2 * K + 2)
    exact = Context(prec=60)
    chances = [Decimal(weights(max(places) - min(places))) for places in (first, second)]
    return exact.divide(*chances) <= exact.exp(Decimal(2.0**-17))


# Proofs.


def ends_of_a_grid(d):
    """Records of d binary features, of which the two that differ in all come, and are best treated differently."""
    n = 2**d
    utilities = np.zeros((n, 2))
    utilities[0], utilities[-1] = (1.0, 0.0), (0.0, 1.0)
    return DecisionProblem(utilities, np.r_[0.5, np.zeros(n - 2), 0.5], OneFeature((2,) * d))


def proves_too_much(problem, epsilon):
    """Whether a proof is made, and accepted, of more than every private policy loses by the whole programme."""
    proof = optimal_certificate(problem, epsilon)
    least = float(problem.prior @ problem.utilities.max(axis=1)) - full_value(problem, epsilon)
    return proof.holds(problem) and proof.bound > least + 1e-7


def proof_of_a_grid_is_true(d):
    """Whether no more is proved than holds between records that differ in d features."""
    return not proves_too_much(ends_of_a_grid(d), 0.1)


def proof_is_made(problem_of_proof, epsilon):
    """Whether rounding leaves enough for a proof."""
    try:
        optimal_certificate(problem_of_proof(), epsilon)
    except NotApplicableError as error:
        assert "rounding" in str(error)
        return False
    return True


def planted_in_proofs(d):
    """Three epsilon for d epsilon, in what makes proofs."""
    shares = policies.optimal.certificate._shares

    def fewer_shares(groups, epsilon):
        return shares(groups, epsilon * 3 / d)

    return [(policies.optimal.certificate, "_shares", fewer_shares), *planted_floor(policies.optimal.certificate, d)]


def planted_floor(module, d):
    """Three epsilon for d epsilon in the floor of q of a module."""

    def higher_floor(epsilon):
        return floor_of(epsilon * 3 / d)

    return [(module, "floor_of", higher_floor)]


# A large term, and many that are a little more than half its last digit: each is rounded up to a whole one.
MANY = 150_000


def rounded_up_each_time():
    utilities = np.zeros((MANY, 2))
    utilities[:, 1] = -(2.0**-52) * (0.5 + 2e-4 * np.random.default_rng(0).random(MANY))
    utilities[0, 1] = -1.0
    return DecisionProblem(utilities * MANY, np.full(MANY, 1 / MANY), AnyRecord())


def costs_are_true():
    """Whether the costs that a proof counts on are at most what they are, in rational numbers."""
    problem = rounded_up_each_time()
    (row,) = grouped(problem, (0,), ((LOST, 1.0),)).costs
    true = sum(map(Fraction, (-problem.utilities[:, 1]).tolist())) * Fraction(problem.prior[0])
    return Fraction(row[1]) <= true


def costs_by_a_share(prior, floats, _, codes):
    """Sums of floats, rounded outward by a fixed share of 1e-11."""
    sums = np.stack([np.bincount(codes, prior * column) for column in floats.T], axis=1)
    return (1 - 1e-11) * sums


@dataclass(frozen=True, eq=False)
class Tolerant(Certificate):
    """A checker that accepts what is 1e-11 too much."""

    def holds(self, problem):
        least = self.proven(problem)
        return least is not None and Fraction(self.bound) <= least * (1 + Fraction(1, 10**11))


def refuses_a_little_more(checker):
    """Whether a checker accepts a proof, and none of a trillionth more than the least loss, a rational number."""
    problem = problem_of([[1.0, 0.0], [0.0, 1.0]])
    truth = least_loss(problem.utilities.tolist(), problem.prior.tolist(), Fraction(3, 2))
    proof = vars(optimal_certificate(problem, math.nextafter(math.log(1.5), 0)))
    assert truth * (1 - Fraction(1, 10**14)) < Fraction(proof["bound"]) <= truth
    more = float(truth * (1 + Fraction(1, 2 * 10**12)))
    assert Fraction(more) > truth
    return checker(**proof).holds(problem) and not checker(**proof | {"bound": more}).holds(problem)


CAPACITY = float_below(floor_of(1.0) / 4)


def capacity_holds(used):
    """Whether a proof is accepted for two opposite records whose multipliers of an action take `used` of q / 4."""
    problem = problem_of([[1.0, 0.0], [0.0, 1.0]])
    (first, second), _ = grouped(problem, (0,), ((LOST, 1.0),)).orders.tolist()
    alpha, beta = np.zeros((2, 2)), np.zeros((2, 2))
    alpha[0, first] = alpha[1, second] = used
    beta[0, second] = beta[1, first] = 0.25
    return Certificate(problem.digest, 1.0, {LOST: 1.0}, (0,), alpha, beta, 0.0).holds(problem)


def filled_by_an_ulp_more(alpha, beta, classes, q, feasible=policies.optimal.certificate._feasible):
    """Multipliers that fill a capacity which is an ulp too large."""
    lowered = feasible(alpha, beta, classes, q)
    room = np.array([[math.nextafter(q * float(total), 2) for total in beta.sum(axis=0)]])
    return lowered * np.divide(room, lowered.sum(axis=0), out=np.ones_like(room), where=room > 0)


# Commands.


def with_line(module, old, new):
    """A module of which one piece of the source is another one; what it imports is the same."""
    source = inspect.getsource(module)
    assert source.count(old) == 1
    changed = ModuleType(module.__name__)
    exec(compile(source.replace(old, new), module.__file__, "exec"), changed.__dict__)
    return changed


def stricter_demand_holds():
    """Whether the stricter of two bounds of an outcome counts, whichever it is: ln 4, at which every fifth is wrong."""
    wrong = np.array([[0.0, 1.0], [1.0, 0.0]])
    problem = DecisionProblem(-wrong, [0.5, 0.5], AnyRecord(), outcomes={"wrong": wrong}, lead="wrong")
    # One treatment for all is wrong for every second.
    demands = [{"at_most": {"wrong": 0.2}, "max_extra_lead": -0.1}, {"at_most": {"wrong": 0.4}, "max_extra_lead": -0.3}]
    found = [ps.smallest_epsilon(problem, "randomized-response", **demand) for demand in demands]
    return found == pytest.approx([math.log(4)] * 2, rel=1e-3)


def table_is_of_one_file(module):
    """Whether a file that changes while its rows are counted is refused, and nothing is written."""
    with tempfile.TemporaryDirectory() as folder:
        data, out = Path(folder) / "data.csv", Path(folder) / "table.simulated.csv"
        data.write_text("sex\n0\n1\n")
        source = open_source(data)
        data.write_text("sex\n0\n1\n1\n")
        try:
            module.release_table(source, out, module.TablePlan({"sex": ("0", "1")}, 1.0), seed=1)
        except DataError as error:
            return str(error).endswith("was changed while it was read") and not out.exists()
        return False


# The collection.


@dataclass(frozen=True)
class Audited:
    """A policy that breaks its claim, on which problem, and at which epsilons.

    Its exact loss is clearly above the claim (the audit's room for rounding is 1e-9), or so many `times` as large; or
    its table has a `fault`. Policies that are `right` pass there, and so does the defect itself where it is harmless.
    """

    policy: Policy
    problem: DecisionProblem
    epsilons: Sequence[float] = EPSILONS
    times: float | None = None
    fault: str = ""
    right: Sequence[str | Policy] = ("exponential",)
    harmless: Sequence[tuple[DecisionProblem, Sequence[float]]] = ()


# At s = 2 / 2000 the first record's gap of 1 is 1000 s, and exp(-1000) is 0 in float64.
ONE_GAP = problem_of([[1.0, 0.0], [0.0, 0.0]])
OPPOSITE = problem_of([[1.0, 0.0], [0.0, 1.0]])
EIGHT = np.eye(8)
LEAKY = RandomizedRecord(protected=(True, True, False))
ONCE = np.eye(3)
PREFERENCES = [[1.0, 0.2, 0.0], [0.1, 1.0, 0.3], [0.0, 0.4, 1.0], [0.2, 0.1, 2.0]]
HIDDEN_PAIRS = Sensitive((2, 2), (1,))
AUDITED = {
    "the factor 2 dropped": Audited(FactorTwoDropped(), problem_of(OPPOSED)),
    # With Delta = 1 the two formulas agree.
    "the scale multiplied by the sensitivity": Audited(
        TimesSensitivity(), problem_of([[5.0, 0.0], [0.0, 5.0]]), harmless=[(OPPOSITE, EPSILONS)]
    ),
    # One action moves by 10, the other by 1.
    "max and min swapped in the sensitivity": Audited(
        SmallestSensitivity(), problem_of([[10.0, 1.0], [0.0, 0.0], [4.0, 0.5]])
    ),
    # Four actions rise as far as the fifth falls. Where all move together, the same scale is right.
    "a monotone calibration on scores that are not monotone": Audited(
        FactorTwoDropped(),
        problem_of([[0.0, 0.1, 0.2, 0.3, 1.0], [1.0, 1.1, 1.2, 1.3, 0.0]]),
        harmless=[(problem_of(np.sort(np.random.default_rng(2).normal(size=(8, 5)), axis=0)), EPSILONS)],
    ),
    "an action that underflows to probability 0 for one neighbour only": Audited(
        PlainSoftmax(), ONE_GAP, [2000.0], times=math.inf, harmless=[(ONE_GAP, [1000.0])]
    ),
    "max and min swapped in what is subtracted from the scores": Audited(
        ShiftedByTheMinimum(),
        ONE_GAP,
        [2000.0],
        fault="its probabilities sum to nan for [record 0]",
        harmless=[(ONE_GAP, [1.0])],
    ),
    "weights that are no probabilities, though they are the same for everyone": Audited(
        NotNormalised(), OPPOSITE, fault="its probabilities sum to 2 for [record 0]", right=["uniform"]
    ),
    # Where the second feature is public, the cliques of the first do not overlap.
    "an action dropped for one of two neighbours who differ in another feature": Audited(
        DroppedByOneFeature(calibration="range"),
        problem_of(OUT_OF_REACH, OneFeature((2, 2))),
        [20.0],
        times=math.inf,
        right=[Exponential(calibration="range"), "permute-and-flip", "report-noisy-max"],
        harmless=[(problem_of(OUT_OF_REACH, Sensitive((2, 2), (0,))), [20.0])],
    ),
    # The utility of a pair of uses is the sum of both; what two uses claim together is attained.
    "an accountant that ignores its count": Audited(
        CountIgnored(), problem_of((ONCE[:, :, None] + ONCE[:, None, :]).reshape(3, -1)), times=2.0, right=[Twice()]
    ),
    "a randomised response that leaves one feature unprotected": Audited(
        LEAKY,
        problem_of(EIGHT, OneFeature((2, 2, 2))),
        times=math.inf,
        right=[RandomizedRecord()],
        harmless=[(problem_of(EIGHT, Sensitive((2, 2, 2), (feature,))), EPSILONS) for feature in (0, 1)],
    ),
    "a randomised response that leaves the only private feature unprotected": Audited(
        LEAKY, problem_of(EIGHT, Sensitive((2, 2, 2), (2,))), [100.0], times=math.inf, right=[RandomizedRecord()]
    ),
    # Where all records have the same candidates, these reveal nothing.
    "candidates taken from the private rows": Audited(
        OwnCandidates(),
        problem_of([[3.0, 2.0, 1.0, 0.0], [0.0, 1.0, 2.0, 3.0]]),
        times=math.inf,
        harmless=[(problem_of([[3.0, 2.0, 1.0, 0.0], [2.0, 3.0, 0.0, 1.0]]), EPSILONS)],
    ),
    # Where all records prefer the actions alike, all have the same floors.
    "floors made from the patient's own record": Audited(
        OwnFloors(),
        problem_of(PREFERENCES),
        right=["exponential-fitted"],
        harmless=[(problem_of([[1.0, 0.5, 0.0], [3.0, 2.0, 0.0]]), EPSILONS)],
    ),
    # The two public classes need different floors; where they do not, they may be mixed up.
    "the floors of another class": Audited(
        OtherClassFloors(),
        problem_of(PREFERENCES, HIDDEN_PAIRS),
        right=["exponential-fitted"],
        harmless=[(problem_of([*PREFERENCES[:2], *PREFERENCES[:2]], HIDDEN_PAIRS), EPSILONS)],
    ),
    # One best action, or two of them: where all records have as many, their sums are the same.
    "a sum repaired outside of the box": Audited(
        RepairedOutside(),
        problem_of([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]),
        right=["exponential-fitted"],
        harmless=[(problem_of(np.eye(3)), EPSILONS)],
    ),
    # What nobody gets is no secret.
    "a floor of 0 for some records only": Audited(
        FloorOfSome(),
        problem_of([[1.0, 0.0, -3.0], [0.0, 1.0, -3.0], [0.5, 0.0, 1.0]]),
        times=math.inf,
        right=["exponential-fitted"],
        harmless=[(problem_of([[1.0, 0.0, -3.0], [0.0, 1.0, -3.0]]), EPSILONS)],
    ),
}


@pytest.mark.parametrize("defect", AUDITED.values(), ids=AUDITED)
def test_the_audit_catches_a_policy_that_breaks_its_claim(defect):
    findings = audit(defect.problem, [defect.policy], defect.epsilons)
    assert exceeds(findings)
    for finding in findings:
        assert not finding.holds
        assert finding.fault == defect.fault
        if defect.times is not None:
            assert finding.exact == pytest.approx(defect.times * finding.claimed, rel=1e-12)
        elif not defect.fault:
            assert finding.exact > 1.05 * finding.claimed
    passing = [(policy, defect.problem, defect.epsilons) for policy in defect.right]
    for policy, problem, epsilons in [*passing, *((defect.policy, *where) for where in defect.harmless)]:
        findings = audit(problem, [policy], epsilons)
        assert not exceeds(findings)
        assert not any(finding.refusal for finding in findings)


@dataclass(frozen=True)
class Checked:
    """Right versions, which a check says are right, and one with a defect, of which it says the contrary."""

    check: Callable[[Any], bool]
    right: Sequence[Any]
    wrong: Any


def planted(check, *replaced):
    """A check that holds with nothing replaced, and no more with these (object, attribute, replacement)."""

    def holds(replacements):
        with pytest.MonkeyPatch.context() as patch:
            for target, name, value in replacements:
                patch.setattr(target, name, value)
            return check()

    return Checked(holds, [()], replaced)


CHECKED = {
    # It is just as private, so that no audit can see it.
    "max and min swapped in the utilities": Checked(improves_to_the_best, [Exponential], WorstPreferred),
    "splits of the actions that are left out too soon": planted(guess_rate_is_exact, (math, "tanh", tanh_of_less)),
    "a table that is no distribution where the solver finds nothing": planted(
        table_is_one_without_a_solver, (policies.optimal.whole_programme, "_solve", twice_the_solution)
    ),
    "the most that an outcome may be in place of a stricter bound of it": planted(
        stricter_demand_holds,
        (
            demands,
            "make_demand",
            with_line(
                demands, "min(for_all + max_extra_lead, most.get(lead, math.inf))", "for_all + max_extra_lead"
            ).make_demand,
        ),
    ),
    "a file that changes while a noisy table is counted": Checked(
        table_is_of_one_file,
        [noisy_table],
        with_line(noisy_table, "source.check_read(bad, people)", "bad.raise_if_any()"),
    ),
    "sums of floats rounded outward by a fixed share of 1e-11": planted(
        costs_are_true, (policies.proof, "_costs", costs_by_a_share)
    ),
    "a bound that is too large by less than 1e-11": Checked(refuses_a_little_more, [Certificate], Tolerant),
    "a capacity rounded up by an ulp, in a proof": Checked(capacity_holds, [CAPACITY], math.nextafter(CAPACITY, 1)),
    "a capacity rounded up by an ulp, in what makes proofs": planted(
        partial(proof_is_made, partial(problem_of, [[1.0, 0.0], [0.0, 1.0]]), 1.0),
        (policies.optimal.certificate, "_feasible", filled_by_an_ulp_more),
    ),
}
for name in ("optimal", "exponential", "randomized-response"):
    of_its_class = type(make_policy(name))
    CHECKED[f"a table of {name} made for four times its epsilon"] = planted(
        partial(is_compared, name), (of_its_class, "_tables", for_four_times_epsilon(of_its_class))
    )
# Neither policy is of bounded range, as the exponential mechanism calibrated by range is.
for epsilon in (0.25, 0.5, 1.0, 2.0):
    ranged = Exponential(epsilon, calibration="range")
    for name in ("permute-and-flip", "exponential-fitted"):
        CHECKED[f"{name} charged as epsilon squared over eight at {epsilon}"] = Checked(
            rho_is_an_eighth_of_its_square, [ranged], make_policy(name, epsilon=epsilon)
        )
for epsilon in (0.1, 0.4, 1.0):
    CHECKED[f"masks accounted for by the largest of them, at {epsilon}"] = Checked(
        partial(covers_all_days, policy=RandomizedResponse(epsilon)), [of_a_decision, of_a_day], of_the_largest_mask
    )
# What the grid rounds is a step for each of the K that a score moves by, and one or two more.
for monotone, steps in ((True, K), (False, 2 * K), (False, 2 * K + 1)):
    CHECKED[f"the slack of the grid of a choice left out: {steps} steps, monotone {monotone}"] = Checked(
        partial(choice_is_private, monotone=monotone),
        [release_weights(2.0**-17, monotone)],
        WholeWeights(Fraction(2.0**-17) / steps),
    )
for d in (4, 5, 6):
    CHECKED[f"3 epsilon between records that differ in {d} features, in proofs and their checker"] = planted(
        partial(proof_of_a_grid_is_true, d), *planted_in_proofs(d), *planted_floor(policies.proof, d)
    )
    CHECKED[f"3 epsilon between records that differ in {d} features, in proofs"] = planted(
        partial(proof_is_made, partial(ends_of_a_grid, d), 0.1), *planted_in_proofs(d)
    )


@pytest.mark.parametrize("defect", CHECKED.values(), ids=CHECKED)
def test_a_check_catches_the_defect_and_passes_the_right_version(defect):
    assert all(defect.check(right) for right in defect.right)
    assert not defect.check(defect.wrong)
