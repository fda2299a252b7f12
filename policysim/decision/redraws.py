"""What options are worth where the model's uncertain numbers are others: they are redrawn many times.

Each is drawn from the interval that it states, or around it by a default spread. A number moves along a scale on which
its uncertainty is symmetric: a probability by its log-odds, a ratio, a cost or a weight by its logarithm, what a rule
adds as it is. A 95 % interval need not have the number in its middle: below the number a normal variable is stretched
so that its 2.5 % quantile is the lower end, above it so that its 97.5 % quantile is the upper end (a two-piece normal
distribution; the median stays the number).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from envs.scenario import COST, DEATH, DEATHS, EFFECTS, HAZARD_RATIO, SYMPTOMS, Scenario, Treatment
from envs.treatment_response import ResponseModel, own_number
from envs.utility import Utility
from policies.adjacency import Adjacency, AnyRecord, Listed
from policies.arrays import FloatArray, IntArray
from policies.distinct import distinct_rows
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.question.protocol import SILENT, Progress
from policysim.study.basis import numbers_by_part
from policysim.study.declared import CohortStudy, ModelledStudy, ScenarioStudy, require_scenario
from policysim.study.stated_bounds import symptoms_of
from policysim.study.sweep import applies, evaluated_on

# Of numbers of treatments without an interval: the standard deviation of the logarithm by which odds, ratios and costs
# are multiplied.
SPREAD = 0.3
# Between the number and an end of its interval are so many standard deviations.
Z_OF_END = float(norm.ppf(0.975))
# So often a number is drawn again that rules would take out of [0, 1].
ATTEMPTS = 1000
REDRAWS = 200
# Records that redraws are evaluated on: all, or about so many that are drawn.
N_RECORDS = 10_000
# What one treatment for all is called among the options.
FOR_ALL = "for all: {}"


@dataclass(frozen=True)
class Scale:
    """A scale on which numbers move, and the way back."""

    of: Callable[[float], float]
    back: Callable[[float], float]


ODDS = Scale(lambda p: float(logit(p)), lambda at: float(expit(at)))
LOGARITHM = Scale(lambda x: math.log(x) if x > 0 else -math.inf, lambda at: math.exp(min(at, 700.0)))
PLAIN = Scale(float, float)
Interval = tuple[float, float]


def moved(value: float, z: float, scale: Scale, interval: Interval | None) -> float:
    """The number that a standard normal z makes of `value`.

    Without an interval it moves by SPREAD z on its scale; what has no place there (a probability of 0 or 1, a ratio or
    a cost of 0) stays. An end of the interval that has no place there counts as far as the other end.

    Examples
    --------
    >>> [round(moved(0.5, z, ODDS, (0.4, 0.7)), 3) for z in (-Z_OF_END, 0.0, Z_OF_END)]
    [0.4, 0.5, 0.7]
    """
    at = scale.of(value)
    if not math.isfinite(at):
        return value
    if interval is None:
        return scale.back(at + SPREAD * z)
    below, above = at - scale.of(interval[0]), scale.of(interval[1]) - at
    far = [below if math.isfinite(below) else above, above if math.isfinite(above) else below]
    width = far[z > 0] / Z_OF_END
    return scale.back(at + width * z) if math.isfinite(width) else value


class Redraws:
    """Draws of all that is uncertain in a study's scenario: numbers of treatments, and others that state an interval.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility. Costs and weights that the study states itself have no interval; its costs move by the
        default spread, and its weights stay.

    Attributes
    ----------
    rescales : bool
        Whether a draw may change how many of the untreated die, or of what (`ResponseModel.severity`).
    n_default, n_stated : int
        How many numbers of treatments are drawn by the default spread, and how many numbers from intervals that the
        scenario states.
    n_left : int
        How many of the scenario's medical numbers stay as stated: those of its patients and their disease.
    """

    def __init__(self, study: ScenarioStudy) -> None:
        self.scenario, self.utility = study.scenario, study.utility
        self._intervals = study.scenario.intervals
        elsewhere = [key.split(".") for key in self._intervals if not key.startswith("treatments.")]
        self._others = [path for path in elsewhere if path[0] != "weights"]
        self._weights = [
            name
            for name, weight in self.scenario.weights.items()
            if f"weights.{name}" in self._intervals and self.utility.weights.get(name) == weight
        ]
        self.rescales = any(path[0] in (DEATH, "natural_clearing") for path in self._others)
        treated = list(treatment_numbers(self.scenario))
        self.n_default = sum(key not in self._intervals for key, value in treated if value)
        numbers_stated = sum(key in self._intervals for key, _ in treated) + len(self._others)
        self.n_stated = numbers_stated + len(self._weights)
        medical = sum(count for count, _ in numbers_by_part(self.scenario).values())
        self.n_left = max(0, medical - self.n_default - numbers_stated)

    def draw(self, rng: np.random.Generator) -> tuple[Scenario, Utility]:
        """One draw; what is no treatment's comes last, so that an interval there leaves the others as they were."""
        treatments = {name: self._treatment(name, rng) for name in self.scenario.treatments}
        costs = {}
        for name, cost in self.utility.costs.items():
            of_scenario = cost == self.scenario.treatments[name].cost
            interval = self._intervals.get(f"treatments.{name}.{COST}") if of_scenario else None
            costs[name] = _amount(cost, rng.normal(), interval)
        scenario = replace(self.scenario, treatments=treatments)
        for path in self._others:
            scenario = _with_number(scenario, path, rng.normal(), self._intervals[".".join(path)])
        weights = dict(self.utility.weights)
        for name in self._weights:
            weights[name] = moved(weights[name], rng.normal(), LOGARITHM, self._intervals[f"weights.{name}"])
        return scenario, Utility(weights, costs)

    def _treatment(self, name: str, rng: np.random.Generator) -> Treatment:
        treatment = self.scenario.treatments[name]
        parts: dict[str, Any] = {part: dict(getattr(treatment, part)) for part in (*EFFECTS, HAZARD_RATIO)}
        stated = {f"{part}.{key}": (part, key) for part, numbers in parts.items() for key in numbers}
        ruled = [target for rule in treatment.rules for target in rule.changes]
        steps: dict[str, Sequence[Any]] = {}
        for target in dict.fromkeys([*stated, *ruled]):
            part, key = stated.get(target, ("", ""))
            number, steps[target] = self._target(name, target, parts[part][key] if part else None, rng)
            if part:
                parts[part][key] = number
        rules = [
            replace(rule, changes={target: steps[target][place] for target in rule.changes})
            for place, rule in enumerate(treatment.rules)
        ]
        return replace(treatment, **parts, rules=tuple(rules))

    def _target(
        self, name: str, target: str, stated: float | None, rng: np.random.Generator
    ) -> tuple[float, list[tuple[str, float] | None]]:
        """A number and what each rule does to it, drawn together until no record gets an impossible one.

        After 1,000 draws they stay as stated, which is possible.
        """
        treatment, key = self.scenario.treatments[name], f"treatments.{name}"
        before = [rule.changes.get(target) for rule in treatment.rules]
        scale = ODDS if target.partition(".")[0] in EFFECTS else LOGARITHM
        for _ in range(ATTEMPTS):
            number = 0.0
            if stated is not None:
                number = moved(stated, rng.normal(), scale, self._intervals.get(f"{key}.{target}"))
            steps: list[tuple[str, float] | None] = []
            for place, change in enumerate(before):
                if change is None:
                    steps.append(None)
                    continue
                operation, value = change
                interval = self._intervals.get(f"{key}.rules.{place}.{operation}.{target}")
                steps.append(
                    (operation, _step(operation, None if target == COST else scale, value, rng.normal(), interval))
                )
            if not any(steps) or self._possible(name, target, None if stated is None else number, steps):
                return number, steps
        return stated or 0.0, before

    def _possible(
        self, name: str, target: str, stated: float | None, steps: Sequence[tuple[str, float] | None]
    ) -> bool:
        """Whether rules that do this keep a probability in [0, 1], or a ratio above 0."""
        treatment = self.scenario.treatments[name]
        rules = tuple(
            replace(rule, changes={} if step is None else {target: step})
            for rule, step in zip(treatment.rules, steps, strict=True)
        )
        changed = replace(self.scenario, treatments={name: replace(treatment, rules=rules)})
        made = own_number(changed, name, target, stated)
        if target.startswith(HAZARD_RATIO):
            return bool(made.min() > 0)
        return target == COST or bool(made.min() >= 0 and made.max() <= 1)


def treatment_numbers(scenario: Scenario) -> Iterator[tuple[str, float]]:
    """Every number that a treatment states, by its dotted key."""
    for name, treatment in scenario.treatments.items():
        yield f"treatments.{name}.{COST}", treatment.cost
        for part in (*EFFECTS, HAZARD_RATIO):
            for target, value in getattr(treatment, part).items():
                yield f"treatments.{name}.{part}.{target}", value
        for place, rule in enumerate(treatment.rules):
            for target, (operation, value) in rule.changes.items():
                yield f"treatments.{name}.rules.{place}.{operation}.{target}", value


def _step(operation: str, scale: Scale | None, value: float, z: float, interval: Interval | None) -> float:
    """What a rule states, drawn anew; of a cost, there is no scale but its own."""
    if operation == "multiply":
        return moved(value, z, LOGARITHM, interval)
    if operation == "add" or scale is None:
        return _amount(value, z, interval)
    return moved(value, z, scale, interval)


def _amount(value: float, z: float, interval: Interval | None) -> float:
    """A cost, or what is added: it keeps its sign, unless its interval holds numbers of both signs."""
    if interval is not None and interval[0] < 0 < interval[1]:
        return moved(value, z, PLAIN, interval)
    if value >= 0:
        return moved(value, z, LOGARITHM, interval)
    turned = None if interval is None else (-interval[1], -interval[0])
    return -moved(-value, -z, LOGARITHM, turned)


def _with_number(scenario: Scenario, path: list[str], z: float, interval: Interval) -> Scenario:
    """The scenario with another number at a path such as death.hazard.fever or events.stroke.relative_risk.age.1."""
    if path[0] == "natural_clearing":
        value = moved(scenario.natural_clearing[path[1]], z, ODDS, interval)
        return replace(scenario, natural_clearing={**scenario.natural_clearing, path[1]: value})
    if path[0] == DEATH:
        return replace(scenario, death=_with_hazard(scenario.death, path[1:], z, interval))
    event = _with_hazard(scenario.events[path[1]], path[2:], z, interval)
    return replace(scenario, events={**scenario.events, path[1]: event})


def _with_hazard(model: Any, path: list[str], z: float, interval: Interval) -> Any:
    if len(path) == 1:
        return replace(model, **{path[0]: moved(getattr(model, path[0]), z, LOGARITHM, interval)})
    numbers = dict(getattr(model, path[0]))
    if len(path) == 2:
        numbers[path[1]] = moved(numbers[path[1]], z, LOGARITHM, interval)
    else:
        factors = list(numbers[path[1]])
        factors[int(path[2])] = moved(factors[int(path[2])], z, LOGARITHM, interval)
        numbers[path[1]] = tuple(factors)
    return replace(model, **{path[0]: numbers})


@dataclass(frozen=True, eq=False)
class Redrawn:
    """What options are worth, made for the numbers as stated, where these are others.

    Attributes
    ----------
    options : DataFrame
        draw, option, value and `expected_OUTCOME`, of each outcome that is counted: a row for each draw and option,
        which is the name of a policy, or "for all: ACTION". Its table of probabilities is the same in every draw.
    n_records : int
        Records that each draw was evaluated on: all that are possible, or those that were drawn.
    drawn : mapping of str to int
        How many numbers: those of a cohort's redraws ("together"), those from intervals that a scenario states
        ("stated"), and those by the default spread ("default").
    """

    options: pd.DataFrame
    n_records: int
    drawn: Mapping[str, int]


def redrawn(
    study: ModelledStudy, problem: DecisionProblem, policies: Sequence[Policy], progress: Progress = SILENT
) -> Redrawn | None:
    """Evaluate policies, and each treatment for all, that were made for the numbers as stated where these are others.

    The uncertain numbers of the model are redrawn (`Redraws`): the effects and costs of all
    treatments, and whatever else states an interval. Each redraw is evaluated on the same records: all that are
    possible, or, where these are more than 10,000, as many that are drawn. A cohort has its redraws with it, of all of
    its records; None if it has none.

    Parameters
    ----------
    study : ModelledStudy
        Its model, utility and seed.
    problem : DecisionProblem
        Built from it.
    policies : sequence of Policy
        At their epsilons; those that cannot be used on the problem are left out.
    progress : Progress, optional
        Told of each redraw.
    """
    if isinstance(study, CohortStudy):
        if study.cohort.redraws is None:
            return None
        everybody = _Sample(np.arange(problem.n_records), problem.prior, problem.admissible, problem.adjacency)
        redraws = (each.problem(study.utility, problem.adjacency) for each in study.cohort.redrawn())
        options = _evaluated(everybody, problem, policies, redraws, progress)
        return Redrawn(options, problem.n_records, {"together": study.cohort.n_numbers})
    scenario_study = require_scenario(study)
    patients, numbers = np.random.default_rng(study.seed).spawn(2)
    sample, draws = _Sample.of(problem, patients), Redraws(scenario_study)
    options = _evaluated(sample, problem, policies, _drawn(scenario_study, sample, draws, numbers), progress)
    return Redrawn(options, len(sample.records), {"stated": draws.n_stated, "default": draws.n_default})


def _drawn(
    study: ScenarioStudy, sample: _Sample, draws: Redraws, numbers: np.random.Generator
) -> Iterator[DecisionProblem]:
    """The records of a sample under numbers of the scenario that are drawn."""
    response = study.model
    for _ in range(REDRAWS):
        scenario, utility = draws.draw(numbers)
        model = ResponseModel(scenario) if draws.rescales else response.with_scenario(scenario)
        yield sample.problem(model, utility)


def _evaluated(
    sample: _Sample,
    problem: DecisionProblem,
    policies: Sequence[Policy],
    redraws: Iterator[DecisionProblem],
    progress: Progress,
) -> pd.DataFrame:
    """What each option is worth in each redraw of a sample, as `Redrawn` has it."""
    progress.expect(REDRAWS)
    tables = {policy.name: sample.rows(policy, problem) for policy in policies if applies(policy, problem)}
    for place, action in enumerate(problem.actions):
        tables[FOR_ALL.format(action)] = sample.rows(BestFixed(action=place), problem)
    # Each option's table in one row: what all give is then one product a draw.
    given = np.stack([table.ravel() for table in tables.values()])
    rows = []
    for draw, there in enumerate(redraws):
        counted = {"value": there.utilities, **{f"expected_{name}": harm for name, harm in there.outcomes.items()}}
        weighed = np.stack([(there.prior[:, None] * each).ravel() for each in counted.values()], axis=1)
        means = pd.DataFrame(given @ weighed, columns=list(counted))
        rows.append(means.assign(draw=draw, option=list(tables))[["draw", "option", *counted]])
        progress.advance()
    return pd.concat(rows, ignore_index=True)


@dataclass(frozen=True)
class _Sample:
    """The records that redraws are evaluated on, (m,), what they allow, and the patients that each stands for, (m,)."""

    records: IntArray
    shares: FloatArray
    admissible: NDArray[np.bool_] | None
    adjacency: Adjacency

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
        if problem.admissible is None:
            return cls(possible, shares, None, AnyRecord())
        allowed = problem.admissible[possible]
        classes = np.unique(allowed, axis=0, return_inverse=True)[1].ravel()
        # The largest adjacency under which the mask is public; values do not depend on it.
        public = Listed.sensitive(np.column_stack([classes, np.arange(len(classes))]), [1])
        return cls(possible, shares, allowed, public)

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


def _stakes(problem: DecisionProblem, records: IntArray) -> FloatArray:
    """1 plus what lies between treatments in utility and each outcome, relative to its mean, (m,) of each record."""
    stakes = np.ones(len(records))
    for table in (problem.utilities, *problem.outcomes.values()):
        between = np.ptp(table[records], axis=1)
        mean = problem.prior[records] @ between
        stakes += between / mean if mean > 0 else 0.0
    return stakes
