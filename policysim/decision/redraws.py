"""Versions of the model: the value of options if its uncertain numbers vary.

A scenario may have versions beside it, of all its numbers together. Else each number is drawn from its stated interval,
or around it by a default spread. A number moves along a scale on which its uncertainty is symmetric: a probability by
its log-odds, a ratio, a cost or a weight by its logarithm, what a rule adds as it is. A 95 % interval need not have the
number in its middle: below the number a normal variable is stretched so that its 2.5 % quantile is the lower end, above
it so that its 97.5 % quantile is the upper end (a two-piece normal distribution; the median stays the number).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from envs.records import Lookup
from envs.scenario import COST, EFFECTS, HAZARD_RATIO, SYMPTOMS, UNTREATED, Scenario, numbers_of, with_numbers
from envs.treatment_response import ResponseModel, own_number, treatment_costs
from policies.arrays import FloatArray, IntArray
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.decision.exchange import differences
from policysim.progress import SILENT, Progress
from policysim.study.checks import Z
from policysim.study.declared import CohortStudy, ModelledStudy, ScenarioStudy, require_scenario
from policysim.study.stated_bounds import symptoms_of
from policysim.study.sweep import applies, evaluated_on, rows_on
from policysim.utility import COSTS, Utility
from policysim.words import FOR_ALL

# Of numbers of treatments without an interval: the standard deviation of the logarithm by which odds, ratios and costs
# are multiplied.
SPREAD = 0.3
# So often a number is drawn again that rules would take out of [0, 1].
ATTEMPTS = 1000
REDRAWS = 200
WIDER_COLUMNS = ["times", "draw", "option", "value"]
# Records that redraws are evaluated on: all, or about so many that are drawn.
N_RECORDS = 10_000


@dataclass(frozen=True)
class Scale:
    """A scale on which numbers move, and the way back."""

    of: Callable[[float], float]
    back: Callable[[float], float]


ODDS = Scale(lambda p: float(logit(p)), lambda at: float(expit(at)))
LOGARITHM = Scale(lambda x: math.log(x) if x > 0 else -math.inf, lambda at: math.exp(min(at, 700.0)))
PLAIN = Scale(float, float)
Interval = tuple[float, float]


def redrawn_number(value: float, z: float, scale: Scale, interval: Interval | None, spread: float = SPREAD) -> float:
    """The number that a standard normal z makes of `value`.

    Without an interval it moves by `spread` z on its scale; what has no place there (a probability of 0 or 1, a ratio
    or a cost of 0) stays. An end of the interval that has no place there counts as far as the other end.

    Examples
    --------
    >>> [round(redrawn_number(0.5, z, ODDS, (0.4, 0.7)), 3) for z in (-Z, 0.0, Z)]
    [0.4, 0.5, 0.7]
    """
    at = scale.of(value)
    if not math.isfinite(at):
        return value
    if interval is None:
        return scale.back(at + spread * z)
    below, above = at - scale.of(interval[0]), scale.of(interval[1]) - at
    far = [below if math.isfinite(below) else above, above if math.isfinite(above) else below]
    width = far[z > 0] / Z
    return scale.back(at + width * z) if math.isfinite(width) else value


class Redraws:
    """Draws of all that is uncertain in a study's scenario.

    They are those that the scenario has beside it (`StatedRedraws`), and nothing else is drawn then; or numbers of
    treatments, and others that state an interval, are drawn one by one.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility. Costs and weights that the study states itself have no interval; its costs move by the
        default spread, and its weights stay.
    times : float, optional
        How many times the default spread is taken; what states an interval keeps it. The same draws of the random
        numbers make the versions, so that those with another spread are the same versions, farther from the stated one.

    Attributes
    ----------
    rescales : bool
        Whether a draw may change how many of the untreated die, or of what (`ResponseModel.severity`).
    drawn : mapping of str to int
        How many numbers the scenario's own redraws have ("together"), and how many are drawn one by one: from intervals
        that it states ("stated"), and numbers of treatments by the default spread ("default").
    """

    def __init__(self, study: ScenarioStudy, times: float = 1.0) -> None:
        self._spread = SPREAD * times
        self.scenario, self.utility, self._together = study.scenario, study.utility, study.scenario.redraws
        self._numbers, self._intervals = numbers_of(self.scenario), self.scenario.intervals
        self._others = [key for key in self._intervals if not key.startswith(("treatments.", "weights."))]
        own = (
            f"weights.{name}" for name, weight in self.scenario.weights.items() if self.utility.weights[name] == weight
        )
        self._weights = [key for key in own if self._together is not None or key in self._intervals]
        redrawn = self._others if self._together is None else list(self._together.numbers)
        self.rescales = any(key.startswith(UNTREATED) for key in redrawn)
        treated = [key for key in self._numbers if key.startswith("treatments.")]
        stated = [key for key in [*treated, *self._others, *self._weights] if key in self._intervals]
        one_by_one = {
            "stated": len(stated),
            "default": sum(key not in self._intervals and self._numbers[key] != 0 for key in treated),
        }
        self.drawn = one_by_one if self._together is None else {"together": len(redrawn)}

    def draws(self, rng: np.random.Generator) -> list[tuple[Scenario, Utility]]:
        """All draws: those that the scenario has beside it, or as many as are usual, one by one."""
        if self._together is None:
            return [self.draw(rng) for _ in range(REDRAWS)]
        rows = zip(*self._together.numbers.values(), strict=True)
        return [self._with(dict(zip(self._together.numbers, row, strict=True)), self.utility.costs) for row in rows]

    def draw(self, rng: np.random.Generator) -> tuple[Scenario, Utility]:
        """One draw; what is no treatment's comes last, so that an interval there leaves the others as they were."""
        numbers: dict[str, float] = {}
        for name, treatment in self.scenario.treatments.items():
            stated = [f"{part}.{key}" for part in (*EFFECTS, HAZARD_RATIO) for key in getattr(treatment, part)]
            ruled = [target for rule in treatment.rules for target in rule.changes]
            for target in dict.fromkeys([*stated, *ruled]):
                numbers |= self._target(name, target, rng)
        costs = {}
        for name, cost in self.utility.costs.items():
            of_scenario = cost == self.scenario.treatments[name].cost
            interval = self._intervals.get(f"treatments.{name}.{COST}") if of_scenario else None
            costs[name] = _amount(cost, rng.normal(), interval, self._spread)
        for key in [*self._others, *self._weights]:
            scale = ODDS if key.startswith("natural_clearing.") else LOGARITHM
            numbers[key] = redrawn_number(self._numbers[key], rng.normal(), scale, self._intervals[key])
        return self._with(numbers, costs)

    def _with(self, numbers: Mapping[str, float], costs: Mapping[str, float]) -> tuple[Scenario, Utility]:
        """The scenario with these numbers, and the utility with its weights where they are the study's, too."""
        scenario = with_numbers(self.scenario, numbers)
        own = (key.partition(".")[2] for key in self._weights)
        return scenario, Utility(
            {**self.utility.weights, **{name: scenario.weights[name] for name in own}}, dict(costs)
        )

    def _target(self, name: str, target: str, rng: np.random.Generator) -> dict[str, float]:
        """A number of a treatment and what each rule does to it, drawn together until no record gets an impossible one.

        After 1,000 draws they stay as stated, which is possible.
        """
        own = f"treatments.{name}.{target}"
        keys = {own: ""} if own in self._numbers and target != COST else {}
        for place, rule in enumerate(self.scenario.treatments[name].rules):
            if target in rule.changes:
                operation = rule.changes[target][0]
                keys[f"treatments.{name}.rules.{place}.{operation}.{target}"] = operation
        normals = [rng.normal() for _ in keys]
        # Further attempts draw from a source of their own that the first ones make: whatever the spread, all versions
        # have the same random numbers.
        further = np.random.default_rng(np.array(normals).view(np.uint32))
        for _ in range(ATTEMPTS):
            drawn = {}
            for (key, operation), z in zip(keys.items(), normals, strict=True):
                value, interval = self._numbers[key], self._intervals.get(key)
                if operation == "add" or (operation == "set" and target == COST):
                    drawn[key] = _amount(value, z, interval, self._spread)
                else:
                    odds = operation != "multiply" and target.partition(".")[0] in EFFECTS
                    drawn[key] = redrawn_number(value, z, ODDS if odds else LOGARITHM, interval, self._spread)
            if not any(keys.values()) or self._possible(name, target, drawn):
                return drawn
            normals = [further.normal() for _ in keys]
        return {key: self._numbers[key] for key in keys}

    def _possible(self, name: str, target: str, drawn: Mapping[str, float]) -> bool:
        """Whether rules that do this keep a probability in [0, 1], or a ratio above 0."""
        made = own_number(with_numbers(self.scenario, drawn), name, target)
        if target.startswith(HAZARD_RATIO):
            return bool(made.min() > 0)
        return target == COST or bool(made.min() >= 0 and made.max() <= 1)


def _amount(value: float, z: float, interval: Interval | None, spread: float) -> float:
    """A cost, or what is added: it keeps its sign, unless its interval holds numbers of both signs."""
    if interval is not None and interval[0] < 0 < interval[1]:
        return redrawn_number(value, z, PLAIN, interval, spread)
    if value >= 0:
        return redrawn_number(value, z, LOGARITHM, interval, spread)
    turned = None if interval is None else (-interval[1], -interval[0])
    return -redrawn_number(-value, -z, LOGARITHM, turned, spread)


@dataclass(frozen=True, eq=False)
class Redrawn:
    """What options are worth, made for the numbers as stated, where these are others.

    Attributes
    ----------
    options : DataFrame
        draw, option, value, `expected_OUTCOME`, of each outcome that is counted, and `lead_weight`, what one of the
        outcome that leads weighs there: a row for each draw and option, which is the name of a policy, or
        "for all: ACTION". Its table of probabilities is the same in every draw.
    drawn : mapping of str to int
        How many numbers (`Redraws`); those of a cohort's redraws are drawn "together".
    wider : DataFrame
        times, draw, option and value: the same versions with the default spread so many times; no row where no number
        moves by it.
    """

    options: pd.DataFrame
    drawn: Mapping[str, int]
    wider: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=WIDER_COLUMNS))

    def differences(self, option: str, than: str, column: str) -> FloatArray | None:
        """The differences of two options in each version of the model, (n_versions,); None where there are none.

        What is no more than the rounding of its version is 0.
        """
        if column not in self.options or not {option, than} <= set(self.options["option"]):
            return None
        return differences(self.options, option, than, column)[0]


def redrawn(
    study: ModelledStudy,
    problem: DecisionProblem,
    policies: Sequence[Policy],
    progress: Progress = SILENT,
    *,
    times: Sequence[float] = (),
) -> Redrawn | None:
    """Evaluate policies, and each treatment for all, that were made for the numbers as stated where these are others.

    The uncertain numbers of the model are redrawn (`Redraws`): as the scenario has them together, or the effects and
    costs of all treatments, and whatever else states an interval. Each version is evaluated on the same records: all
    that are possible, or, where these are more than 10,000, as many that are drawn.
    A cohort has its versions with it, of all of its records; None if it has none.

    Parameters
    ----------
    study : ModelledStudy
        Its model, utility and seed.
    problem : DecisionProblem
        Built from it.
    policies : sequence of Policy
        At their epsilons; those that cannot be used on the problem are left out.
    progress : Progress, optional
        Reports each version.
    times : sequence of float, optional
        Evaluate utility, too, with the default spread so many times (`Redrawn.wider`).
    """
    if isinstance(study, CohortStudy):
        if study.cohort.redraws is None:
            return None
        progress.expect(len(study.cohort.redraws.shares))
        given = _given(policies, problem, np.arange(problem.n_records))
        return Redrawn(
            _evaluated(given, _cohort_versions(study, problem), progress), {"together": study.cohort.n_numbers}
        )
    scenario_study = require_scenario(study)
    patients, _ = np.random.default_rng(study.seed).spawn(2)
    sample, model, drawn = _Sample.of(problem, patients), scenario_study.model, Redraws(scenario_study).drawn
    given = _given(policies, problem, sample.records)
    versions = _versions(scenario_study, model, sample, scenario_study.counted)
    options = _evaluated(given, versions, progress)
    wider = [
        _evaluated(given, _versions(scenario_study, model, sample, (), each), progress).assign(times=each)
        for each in (times if drawn.get("default") else ())
    ]
    return (
        Redrawn(options, drawn, pd.concat(wider, ignore_index=True)[WIDER_COLUMNS])
        if wider
        else Redrawn(options, drawn)
    )


@dataclass(frozen=True, eq=False)
class _Version:
    """A version of the model: what is expected of some records, and what one of the outcome that leads weighs.

    Attributes
    ----------
    shares : array, (m,)
        The patients that each record stands for.
    utilities : array, (m, k)
        Expected utility.
    outcomes : mapping of str to array, (m, k)
        What is counted.
    lead_weight : float
        As in `Redrawn.options`.
    """

    shares: FloatArray
    utilities: FloatArray
    outcomes: Mapping[str, FloatArray]
    lead_weight: float


def _versions(
    study: ScenarioStudy, model: ResponseModel, sample: _Sample, counted: Sequence[str], times: float = 1.0
) -> Iterator[_Version]:
    """The versions of a scenario, of a sample of its records, with some outcomes; the same random numbers each time."""
    redraws, records = Redraws(study, times), Lookup(study.space.codes(sample.records))
    for scenario, utility in redraws.draws(np.random.default_rng(study.seed).spawn(2)[1]):
        response = ResponseModel(scenario) if redraws.rescales else model.with_scenario(scenario)
        weight = 0.0 if study.lead is None else utility.weight_of(study.lead)
        yield _Version(sample.shares, *tables_at(records, response, utility, counted), weight)


def _cohort_versions(study: CohortStudy, problem: DecisionProblem) -> Iterator[_Version]:
    """The versions that a cohort has beside it."""
    for cohort in study.cohort.redrawn():
        built = cohort.problem(study.utility, problem.adjacency)
        yield _Version(built.prior, built.utilities, built.outcomes, study.lead_weight)


def _given(policies: Sequence[Policy], problem: DecisionProblem, records: IntArray) -> dict[str, FloatArray]:
    """What each option gives some records, in one row: p(a|x), (m k,). Made on all records."""
    options = {policy.name: policy for policy in policies if applies(policy, problem)}
    options |= {f"{FOR_ALL}{action}": BestFixed(action=place) for place, action in enumerate(problem.actions)}
    given = {}
    for name, policy in options.items():
        on = evaluated_on(policy, problem)
        given[name] = policy.probabilities(on)[rows_on(on, problem)[records]].ravel()
    return given


def _evaluated(given: Mapping[str, FloatArray], versions: Iterable[_Version], progress: Progress) -> pd.DataFrame:
    """What each option is worth in each version, as `Redrawn` has it."""
    # All options of a version are then one product.
    tables, means, names = np.stack(list(given.values())), [], ["value"]
    for version in versions:
        counted = (version.utilities, *version.outcomes.values())
        weighed = np.stack([(version.shares[:, None] * each).ravel() for each in counted], axis=1)
        weights = np.full((len(tables), 1), version.lead_weight)
        means.append(np.column_stack([tables @ weighed, weights]))
        names = ["value", *(f"expected_{name}" for name in version.outcomes)]
        progress.advance()
    found = pd.DataFrame(np.concatenate(means), columns=[*names, "lead_weight"])
    found.insert(0, "draw", np.repeat(np.arange(len(means)), len(tables)))
    found.insert(1, "option", list(given) * len(means))
    return found


@dataclass(frozen=True)
class _Sample:
    """The records that redraws are evaluated on, (m,), and the patients that each stands for, (m,)."""

    records: IntArray
    shares: FloatArray

    @classmethod
    def of(cls, problem: DecisionProblem, rng: np.random.Generator) -> _Sample:
        """All records, or a sample in which those are likelier with whom more is at stake.

        Most of what is lost is lost by few: of patients drawn from the prior, too few would be among them. So a record
        comes with a chance in proportion to the prior times what is at stake, relative to its mean, in utility and in
        each outcome that is counted of groups, plus 1, and stands for the fewer patients the likelier it is (importance
        sampling; Kahn & Marshall 1953). Records are drawn at equal steps of the sum of the chances, from one random
        start (systematic sampling).
        """
        possible = np.flatnonzero(problem.prior)
        shares = problem.prior[possible]
        if len(possible) > N_RECORDS:
            # What lies between treatments in utility and in each outcome, relative to its mean.
            stakes = np.ones(len(possible))
            for table in (problem.utilities, *(problem.outcomes[name] for name in problem.outcomes.whole)):
                between = np.ptp(table[possible], axis=1)
                mean = shares @ between
                stakes += between / mean if mean > 0 else 0.0
            chances = shares * stakes
            ends = np.cumsum(chances)
            steps = (np.arange(N_RECORDS) + rng.random()) / N_RECORDS * ends[-1]
            # The last step may round up to the whole sum.
            drawn = np.minimum(np.searchsorted(ends, steps, side="right"), len(ends) - 1)
            places, counts = np.unique(drawn, return_counts=True)
            possible, shares = possible[places], counts * shares[places] / chances[places]
            shares /= shares.sum()
        return cls(possible, shares)


def tables_at(
    records: Lookup, response: ResponseModel, utility: Utility, counted: Sequence[str]
) -> tuple[FloatArray, dict[str, FloatArray]]:
    """The expected utilities of some records, (m, k), and some outcomes, (m, k) each."""
    scenario = response.scenario
    probabilities = response.outcome_probabilities(records)
    costs = np.column_stack([records.of(cost) for cost in treatment_costs(scenario, utility.costs)])
    summed = {SYMPTOMS: symptoms_of(scenario)}
    outcomes = {
        name: probabilities[:, :, [scenario.outcomes.index(part) for part in summed.get(name, (name,))]].sum(axis=2)
        for name in counted
        if name != COSTS
    }
    outcomes |= {COSTS: costs} if COSTS in counted else {}
    return -(probabilities @ utility.weight_vector(scenario.outcomes)) - costs, outcomes
