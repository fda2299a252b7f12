"""How far results depend on the model's uncertain numbers, which are redrawn many times: ranking, benefit and harms.

What the optimum costs when the prior that it trusts is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from envs.scenario import DEATH, DEATHS, SYMPTOMS
from envs.treatment_response import ResponseModel
from envs.utility import Utility
from policies.adjacency import AnyRecord
from policies.arrays import FloatArray, IntArray
from policies.distinct import distinct_rows, reweighted
from policies.listed import Listed
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.decision.redraws import SPREAD, Redraws
from policysim.question.formats import several
from policysim.question.protocol import SILENT, Progress
from policysim.study.declared import ScenarioStudy
from policysim.study.gain import Gain
from policysim.study.stated_bounds import symptoms_of
from policysim.study.study_problem import FACTORS, at_prevalence, prevalent
from policysim.study.sweep import applies, evaluated_on

REDRAWS = 200
# What ranges are found of beside harms: a share, where there is always something to keep, and what it is a share of.
KEPT, BENEFIT = "benefit_kept", "benefit"
# The share of redraws between the ends of a range.
WITHIN = 0.9
# Records that redraws are evaluated on: all, or about so many that are drawn.
N_RECORDS = 10_000
# Differences between values that only rounding makes: of their range, and of the largest of them.
TIE, ROUNDING = 1e-9, 1e-12
# What one treatment for all is called among the options.
FOR_ALL = "for all: {}"


@dataclass(frozen=True, eq=False)
class Redrawn:
    """What options are worth, made for the numbers as stated, where these are others.

    Attributes
    ----------
    options : DataFrame
        draw, option, value and `expected_OUTCOME`, of each outcome that is counted: a row for each draw and option,
        which is the name of a policy, or "for all: ACTION". Its table of probabilities is the same in every draw.
    references : DataFrame
        draw, best, fixed, by_lot, rounding (as in `Gain`) and `expected_OUTCOME`: a row for each draw, of the best
        treatment for each, the best one for all and choosing by lot, which know the redrawn numbers; outcomes are those
        of the best for each.
    stated : mapping of str to float
        The value of each option with the numbers as stated, on the same records.
    n_records : int
        Records that each draw was evaluated on: all that are possible, or those that were drawn.
    n_stated, n_default : int
        How many numbers were drawn from intervals that the scenario states, and how many by the default spread.
    """

    options: pd.DataFrame
    references: pd.DataFrame
    stated: Mapping[str, float]
    n_records: int
    n_stated: int
    n_default: int


def redrawn(
    study: ScenarioStudy, problem: DecisionProblem, policies: Sequence[Policy], progress: Progress = SILENT
) -> Redrawn:
    """Evaluate policies, and each treatment for all, that were made for the numbers as stated where these are others.

    The uncertain numbers of the model are redrawn (`policysim.decision.redraws`): the effects and costs of all
    treatments, and whatever else states an interval. Each redraw is evaluated on the same records: all that are
    possible, or, where these are more than 10,000, as many that are drawn.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario, utility and seed.
    problem : DecisionProblem
        Built from it.
    policies : sequence of Policy
        At their epsilons; those that cannot be used on the problem are left out.
    progress : Progress, optional
        Told of each redraw.
    """
    progress.expect(REDRAWS)
    patients, numbers = np.random.default_rng(study.seed).spawn(2)
    sample = _Sample.of(problem, patients)
    tables = {policy.name: sample.rows(policy, problem) for policy in policies if applies(policy, problem)}
    for place, action in enumerate(problem.actions):
        tables[FOR_ALL.format(action)] = sample.rows(BestFixed(action=place), problem)
    response, draws = ResponseModel(study.scenario), Redraws(study)
    stated = sample.problem(response, study.utility)
    options: list[dict[str, object]] = []
    references: list[dict[str, float]] = []
    for draw in range(REDRAWS):
        scenario, utility = draws.draw(numbers)
        model = ResponseModel(scenario) if draws.rescales else response.with_scenario(scenario)
        there = sample.problem(model, utility)
        gain, best = Gain.of(there), there.best_actions[:, None]
        least = {name: np.take_along_axis(harm, best, axis=1)[:, 0] for name, harm in there.outcomes.items()}
        references.append(
            {"draw": draw, "best": gain.best, "fixed": gain.fixed, "by_lot": gain.by_lot, "rounding": gain.rounding}
            | {f"expected_{name}": float(there.prior @ harm) for name, harm in least.items()}
        )
        for option, table in tables.items():
            means = {name: float(there.prior @ (table * harm).sum(axis=1)) for name, harm in there.outcomes.items()}
            options.append(
                {"draw": draw, "option": option, "value": there.value(table)}
                | {f"expected_{name}": mean for name, mean in means.items()}
            )
        progress.advance()
    return Redrawn(
        pd.DataFrame(options),
        pd.DataFrame(references),
        {name: stated.value(table) for name, table in tables.items()},
        len(sample.records),
        draws.n_stated,
        draws.n_default,
    )


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


def robustness(found: Redrawn, policies: Sequence[str]) -> Robustness | None:
    """How often the ranking of some policies held, and where their benefit and harms lay.

    The best treatment for each and the best one for all, against which benefit is measured, know the redrawn numbers;
    the policies do not.

    Parameters
    ----------
    found : Redrawn
        From `redrawn`.
    policies : sequence of str
        Those of its options that are ranked; None without any.
    """
    names = [name for name in policies if name in found.stated]
    if not names:
        return None
    stated = ranked({name: found.stated[name] for name in names})
    rows = {name: found.options[found.options["option"] == name] for name in names}
    values = {name: of["value"].tolist() for name, of in rows.items()}
    rankings = [ranked(dict(zip(names, drawn, strict=True))) for drawn in zip(*values.values(), strict=True)]
    gains = [Gain(*row) for row in found.references[["best", "fixed", "by_lot", "rounding"]].to_numpy().tolist()]
    columns = map(str, found.references)
    counted = [column.removeprefix("expected_") for column in columns if column.startswith("expected_")]
    # Symptoms are no harm of their own.
    harms = [*(name for name in counted if name not in (SYMPTOMS, DEATHS)), DEATHS]
    ranges = []
    for name, of in rows.items():
        # What rounding leaves of 0 would differ from one processor to another.
        gained = [
            value - gain.fixed if abs(value - gain.fixed) > gain.rounding else 0.0
            for value, gain in zip(values[name], gains, strict=True)
        ]
        quantities = {BENEFIT: gained}
        if all(gain.has_shares for gain in gains):
            kept = zip(values[name], gained, gains, strict=True)
            quantities[KEPT] = [gain.kept(value) if more else 0.0 for value, more, gain in kept]
        for harm in harms:
            extra = of[f"expected_{harm}"].to_numpy() - found.references[f"expected_{harm}"].to_numpy()
            quantities[f"extra_{harm}"] = extra.tolist()
        for outcome, drawn in quantities.items():
            low, high = np.quantile(drawn, ((1 - WITHIN) / 2, (1 + WITHIN) / 2)).tolist()
            ranges.append(Range(name, outcome, low, high))
    return Robustness(
        stated,
        holds=sum(each == stated for each in rankings),
        redraws=len(rankings),
        first_holds=sum(each[0] == stated[0] for each in rankings),
        n_records=found.n_records,
        spread=SPREAD,
        n_stated=found.n_stated,
        n_default=found.n_default,
        ranges=tuple(ranges),
    )


def how_drawn(found: Robustness) -> str:
    """Which numbers were redrawn, and how."""
    spread = f"(odds, ratios and costs times e^({found.spread:g} z), z normal)"
    stated = f"{several(found.n_stated, 'number')} from the intervals that the scenario states"
    if not found.n_default:
        return stated
    default = f"{several(found.n_default, 'other number' if found.n_stated else 'number')} of the treatments {spread}"
    return f"{stated}, and {default}" if found.n_stated else default


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

    def problem(self, response: ResponseModel, utility: Utility) -> DecisionProblem:
        """The decision problem of these records, with what is counted of them, (m, k)."""
        scenario = response.scenario
        probabilities = response.outcome_probabilities(self.records)
        at = scenario.space.lookup(self.records)
        costs = np.column_stack([at.of(cost) for cost in response.costs(utility.costs)])
        counted = {DEATHS: [DEATH], SYMPTOMS: symptoms_of(scenario), **{name: [name] for name in scenario.events}}
        outcomes = {
            name: probabilities[:, :, [scenario.outcomes.index(part) for part in parts]].sum(axis=2)
            for name, parts in counted.items()
            if parts
        }
        return DecisionProblem(
            -(probabilities @ utility.weight_vector(scenario.outcomes)) - costs,
            self.shares,
            self.adjacency,
            scenario.actions,
            outcomes=outcomes,
            admissible=self.admissible,
        )

    @cached_property
    def adjacency(self) -> AnyRecord | Listed:
        """The largest under which the mask is public; values do not depend on it."""
        if self.admissible is None:
            return AnyRecord()
        classes = np.unique(self.admissible, axis=0, return_inverse=True)[1].ravel()
        return Listed.sensitive(np.column_stack([classes, np.arange(len(classes))]), [1])


def _stakes(problem: DecisionProblem, records: IntArray) -> FloatArray:
    """1 plus what lies between treatments in utility and each outcome, relative to its mean, (m,) of each record."""
    stakes = np.ones(len(records))
    for table in (problem.utilities, *problem.outcomes.values()):
        between = np.ptp(table[records], axis=1)
        mean = problem.prior[records] @ between
        stakes += between / mean if mean > 0 else 0.0
    return stakes


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


def wrong_prior(study: ScenarioStudy, problem: DecisionProblem, policies: Sequence[Policy]) -> pd.DataFrame:
    """Evaluate policies that were made for the assumed prevalence at others.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario says what is prevalent: the condition that makes outcomes dangerous.
    problem : DecisionProblem
        Built from it, with the assumed prior.
    policies : sequence of Policy
        At their epsilons; those that do not use the prior stay private and unchanged whatever it is.

    Returns
    -------
    DataFrame
        policy, epsilon, factor, prevalence, value, loss, benefit_kept: greedy and the best single treatment, against
        which the last two are measured, know the true prevalence; benefit_kept is NaN where shares of the gain at that
        prevalence say little (`policysim.study.gain.Gain`). Empty if the scenario names no condition.
    """
    ill = prevalent(study)
    # Who is ill is asked of the records and not of a sum, which rounding may leave just below 1.
    possible = ill[problem.prior > 0]
    if possible.all() or not possible.any():
        return pd.DataFrame(columns=["policy", "epsilon", "factor", "prevalence", "value", "loss", "benefit_kept"])
    problems = [evaluated_on(policy, problem) for policy in policies]
    tables = [policy.probabilities(on) for policy, on in zip(policies, problems, strict=True)]
    everybody = evaluated_on(Greedy(), problem)
    rows = []
    for factor in FACTORS.values():
        prior, prevalence = at_prevalence(problem.prior, ill, factor)
        gain = Gain.of(reweighted(everybody, problem, prior))
        for policy, on, table in zip(policies, problems, tables, strict=True):
            value = reweighted(on, problem, prior).value(table)
            rows.append(
                {
                    "policy": policy.name,
                    "epsilon": policy.epsilon,
                    "factor": factor,
                    "prevalence": prevalence,
                    "value": value,
                    "loss": gain.best - value,
                    "benefit_kept": gain.kept(value) if gain.has_shares else np.nan,
                }
            )
    return pd.DataFrame(rows)
