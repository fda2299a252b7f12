"""How far results depend on the model's uncertain numbers, which are redrawn many times: ranking, benefit and harms.

What the optimum costs when the prior that it trusts is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from envs.scenario import DEATH
from envs.treatment_response import ResponseModel
from envs.utility import Utility
from policies.adjacency import AnyRecord, Listed
from policies.arrays import FloatArray, IntArray
from policies.distinct import distinct_rows, reweighted
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.decision.redraws import SPREAD, Redraws
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import several
from policysim.study.declared import ScenarioStudy
from policysim.study.other_priors import FACTORS, at_prevalence, prevalent
from policysim.study.sweep import Gain, applies, evaluated_on

REDRAWS = 200
# What ranges are found of beside harms: a share, where there is always something to keep, and what it is a share of.
KEPT, BENEFIT = "benefit_kept", "benefit"
# The share of redraws between the ends of a range.
WITHIN = 0.9
# Records that redraws are evaluated on: all, or about so many that are drawn.
N_RECORDS = 10_000
# Differences between values that only rounding makes: of their range, and of the largest of them.
TIE, ROUNDING = 1e-9, 1e-12


@dataclass(frozen=True)
class Range:
    """Where the middle 90 % of redraws put one quantity of a policy.

    Attributes
    ----------
    policy : str
    outcome : str
        "benefit", the utility per patient beyond that of the best treatment for all; "benefit_kept", as a share of
        what the best for each has (where that says something in each redraw); "extra_deaths" or "extra_EVENT" per
        patient, beyond those of the best treatment for each.
    low, high : float
        The ends.
    """

    policy: str
    outcome: str
    low: float
    high: float


@dataclass(frozen=True)
class Robustness:
    """In how many of the redraws the policies came in the same order, and where their benefit and harms lay.

    Attributes
    ----------
    ranking : tuple of str
        By value at the study's epsilon, best first, with the numbers as stated; ties as in `ranked`.
    holds, redraws : int
        It held in `holds` of `redraws`.
    first_holds : int
        The first of the ranking was the first in so many.
    n_records : int
        Records on which each redraw was evaluated: all that are possible, or those that were drawn.
    spread : float
        Of the numbers without an interval, as a standard deviation on the log scale.
    n_stated, n_default : int
        How many numbers were drawn from intervals that the scenario states, and how many by the spread.
    ranges : tuple of Range
        For each policy of the ranking.
    """

    ranking: tuple[str, ...]
    holds: int
    redraws: int
    first_holds: int
    n_records: int
    spread: float
    n_stated: int
    n_default: int
    ranges: tuple[Range, ...]


def robustness(
    study: ScenarioStudy,
    problem: DecisionProblem,
    policies: tuple[str, ...],
    progress: Progress = SILENT,
) -> Robustness | None:
    """Evaluate policies that were made for the numbers as stated where these are others.

    The uncertain numbers of the model are redrawn (`policysim.decision.redraws`): the effects and costs of all
    treatments, and whatever else states an interval. The best treatment for each and the best one for all, against
    which benefit is measured, know the redrawn numbers; the policies, made on all records, do not. Each redraw is
    evaluated on the same records: all that are possible, or, where these are more than 10,000, as many that are drawn.

    Parameters
    ----------
    study : ScenarioStudy
        Its seed and epsilon are used.
    problem : DecisionProblem
        Built from it.
    policies : tuple of str
        Names from the catalogue; those that cannot be used on the problem are left out.
    progress : Progress, optional
        Told of each redraw.
    """
    made = {name: study.policy(name, study.epsilon) for name in policies}
    made = {name: policy for name, policy in made.items() if applies(policy, problem)}
    if not made:
        return None
    progress.expect(REDRAWS)
    patients, numbers = np.random.default_rng(study.seed).spawn(2)
    sample = _Sample.of(problem, patients)
    tables = {name: sample.rows(policy, problem) for name, policy in made.items()}
    response, draws = ResponseModel(study.scenario), Redraws(study)
    stated = ranked(_evaluated(sample, response, study.utility, tables)[0])
    same = first = 0
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for _ in range(REDRAWS):
        scenario, utility = draws.draw(numbers)
        redrawn = ResponseModel(scenario) if draws.rescales else response.with_scenario(scenario)
        values, quantities = _evaluated(sample, redrawn, utility, tables)
        ranking = ranked(values)
        same += ranking == stated
        first += ranking[0] == stated[0]
        for key, quantity in quantities.items():
            found[key].append(quantity)
        progress.advance()
    return Robustness(
        stated, same, REDRAWS, first, len(sample.records), SPREAD, draws.n_stated, draws.n_default, _ranges(found)
    )


def how_drawn(found: Robustness) -> str:
    """Which numbers were redrawn, and how."""
    spread = f"(odds, ratios and costs times e^({found.spread:g} z), z normal)"
    stated = f"{several(found.n_stated, 'number')} from the intervals that the scenario states"
    if not found.n_default:
        return stated
    default = f"{several(found.n_default, 'other number' if found.n_stated else 'number')} of the treatments {spread}"
    return f"{stated}, and {default}" if found.n_stated else default


def _ranges(found: Mapping[tuple[str, str], Sequence[float]]) -> tuple[Range, ...]:
    """Of what was found in every redraw, by policy and outcome."""
    ends = ((1 - WITHIN) / 2, (1 + WITHIN) / 2)
    whole = {key: np.quantile(drawn, ends).tolist() for key, drawn in found.items() if len(drawn) == REDRAWS}
    return tuple(Range(*key, *between) for key, between in whole.items())


@dataclass(frozen=True)
class _Sample:
    """The records that redraws are evaluated on, (m,), what they allow, and the patients that each stands for, (m,)."""

    records: IntArray
    shares: FloatArray
    admissible: NDArray[np.bool_] | None

    @classmethod
    def of(cls, problem: DecisionProblem, rng: np.random.Generator) -> _Sample:
        """All records, or a sample in which those are likelier with whom more is at stake.

        Most of what is lost is lost by few: of patients drawn from the prior, too few would be among them. So a record
        comes with a chance in proportion to the prior times what is at stake, relative to its mean, in utility and in
        each outcome, plus 1, and stands for the fewer patients the likelier it is (importance sampling; Kahn & Marshall
        1953). Records are drawn at equal steps of the sum of the chances, from one random start (systematic sampling).
        """
        possible = np.flatnonzero(problem.prior)
        shares = problem.prior[possible]
        if len(possible) > N_RECORDS:
            chances = shares * _stakes(problem, possible)
            ends = np.cumsum(chances)
            steps = (np.arange(N_RECORDS) + rng.random()) / N_RECORDS * ends[-1]
            # The last step may round up to the whole sum.
            drawn = np.minimum(np.searchsorted(ends, steps, side="right"), len(ends) - 1)
            places, counts = np.unique(drawn, return_counts=True)
            possible, shares = possible[places], counts * shares[places] / chances[places]
            shares /= shares.sum()
        allowed = None if problem.admissible is None else problem.admissible[possible]
        return cls(possible, shares, allowed)

    def rows(self, policy: Policy, problem: DecisionProblem) -> FloatArray:
        """What a policy that is made on all records gives to these, (m, k)."""
        on = evaluated_on(policy, problem)
        merged = None if on is problem else distinct_rows(problem)
        return policy.probabilities(on)[self.records if merged is None else merged.row[self.records]]

    def problem(self, response: ResponseModel, utility: Utility) -> tuple[DecisionProblem, dict[str, FloatArray]]:
        """The decision problem of these records, and the probabilities of death and of each event, (m, k)."""
        scenario = response.scenario
        probabilities = response.outcome_probabilities(self.records)
        at = scenario.space.lookup(self.records)
        costs = np.column_stack([at.of(cost) for cost in response.costs(utility.costs)])
        utilities = -(probabilities @ utility.weight_vector(scenario.outcomes)) - costs
        places = {name: scenario.outcomes.index(name) for name in (*scenario.events, DEATH)}
        harms = {name: probabilities[:, :, place] for name, place in places.items()}
        hidden = AnyRecord() if self.admissible is None else _who_allow_the_same(self.admissible)
        return DecisionProblem(utilities, self.shares, hidden, scenario.actions, admissible=self.admissible), harms


def _stakes(problem: DecisionProblem, records: IntArray) -> FloatArray:
    """1 plus what lies between treatments in utility and each outcome, relative to its mean, (m,) of each record."""
    stakes = np.ones(len(records))
    for table in (problem.utilities, *problem.outcomes.values()):
        between = np.ptp(table[records], axis=1)
        mean = problem.prior[records] @ between
        stakes += between / mean if mean > 0 else 0.0
    return stakes


def _who_allow_the_same(admissible: NDArray[np.bool_]) -> Listed:
    """The largest adjacency under which a mask is public; values do not depend on it."""
    classes = np.unique(admissible, axis=0, return_inverse=True)[1].ravel()
    return Listed.sensitive(np.column_stack([classes, np.arange(len(classes))]), [1])


def _evaluated(
    sample: _Sample, response: ResponseModel, utility: Utility, tables: Mapping[str, FloatArray]
) -> tuple[dict[str, float], dict[tuple[str, str], float]]:
    """The value of each policy; and for each policy its benefit, and its harms beyond those of the best for each."""
    problem, harms = sample.problem(response, utility)
    gain, best = Gain.of(problem), problem.best_actions[:, None]
    least = {name: problem.prior @ np.take_along_axis(harm, best, axis=1)[:, 0] for name, harm in harms.items()}
    values = {name: problem.value(table) for name, table in tables.items()}
    quantities: dict[tuple[str, str], float] = {}
    for name, table in tables.items():
        gained = values[name] - gain.fixed
        # What rounding leaves of 0 would differ from one processor to another.
        quantities[name, BENEFIT] = gained if abs(gained) > gain.rounding else 0.0
        if gain.has_shares:
            quantities[name, KEPT] = gain.kept(values[name]) if quantities[name, BENEFIT] else 0.0
        for outcome, harm in harms.items():
            expected = problem.prior @ (table * harm).sum(axis=1)
            quantities[name, f"extra_{'deaths' if outcome == DEATH else outcome}"] = float(expected - least[outcome])
    return values, quantities


def ranked(values: Mapping[str, float]) -> tuple[str, ...]:
    """Names by value, best first; of equal ones the optimum, which no private policy can exceed, then as given.

    Values are equal that differ by less than what rounding makes of one number: `TIE` of what lies between the best and
    the worst, or `ROUNDING` of the largest.

    Examples
    --------
    >>> ranked({"best-fixed": -1.0, "exponential": -2.0, "optimal": -1.0000000000000002})
    ('optimal', 'best-fixed', 'exponential')
    """
    names = list(values)
    found: FloatArray = np.asarray([values[name] for name in names])
    if not names:
        return ()
    negligible = max(TIE * np.ptp(found), ROUNDING * np.abs(found).max())
    order = np.argsort(-found, kind="stable")
    # The rank grows only where the next value is less by more than rounding.
    ranks = np.zeros(len(names), dtype=int)
    ranks[order[1:]] = np.cumsum(-np.diff(found[order]) > negligible)
    return tuple(sorted(names, key=lambda name: (ranks[names.index(name)], name != Optimal.name, names.index(name))))


def wrong_prior(study: ScenarioStudy, problem: DecisionProblem, policies: Sequence[str]) -> pd.DataFrame:
    """Evaluate policies that were made for the assumed prevalence at others.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario says what is prevalent: the condition that makes outcomes dangerous. Its epsilon is used.
    problem : DecisionProblem
        Built from it, with the assumed prior.
    policies : sequence of str
        Names from the catalogue; those that do not use the prior stay private and unchanged whatever it is.

    Returns
    -------
    DataFrame
        policy, epsilon, factor, prevalence, value, loss, benefit_kept: greedy and the best single treatment, against
        which the last two are measured, know the true prevalence; benefit_kept is NaN where shares of the gain at that
        prevalence say little (`policysim.study.sweep.Gain`). Empty if the scenario names no condition.
    """
    ill = prevalent(study)
    # Who is ill is asked of the records and not of a sum, which rounding may leave just below 1.
    possible = ill[problem.prior > 0]
    if possible.all() or not possible.any():
        return pd.DataFrame(columns=["policy", "epsilon", "factor", "prevalence", "value", "loss", "benefit_kept"])
    made = [study.policy(name, study.epsilon) for name in policies]
    problems = [evaluated_on(policy, problem) for policy in made]
    tables = [policy.probabilities(on) for policy, on in zip(made, problems, strict=True)]
    everybody = evaluated_on(Greedy(), problem)
    rows = []
    for factor in FACTORS.values():
        prior, prevalence = at_prevalence(problem.prior, ill, factor)
        gain = Gain.of(reweighted(everybody, problem, prior))
        for policy, on, table in zip(made, problems, tables, strict=True):
            value = reweighted(on, problem, prior).value(table)
            rows.append(
                {
                    "policy": policy.name,
                    "epsilon": study.epsilon,
                    "factor": factor,
                    "prevalence": prevalence,
                    "value": value,
                    "loss": gain.best - value,
                    "benefit_kept": gain.kept(value) if gain.has_shares else np.nan,
                }
            )
    return pd.DataFrame(rows)
