"""All that is computed of one decision before a word of it is said: tables by name, of a study or a problem alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd

from policies.exponential import Exponential
from policies.optimal.classes import hiding_partitions
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed
from policysim.decision.beliefs import hidden_beliefs
from policysim.decision.comparison import compare_problem
from policysim.decision.demands import least_epsilons
from policysim.decision.frontier import frontier
from policysim.decision.prices import price_list
from policysim.decision.publishing import publishing_table
from policysim.decision.redraws import Redrawn, redrawn
from policysim.decision.scenario_outcomes import loss_by_outcome, wrong_prior
from policysim.numbers import digits_of, enough
from policysim.progress import SILENT, Progress
from policysim.study.declared import ModelledStudy, nearest_epsilon
from policysim.study.example_patients import ExampleRows, example_patients, example_probabilities, loss_quantiles
from policysim.study.gain import break_even, gain_of
from policysim.study.labels import Labels
from policysim.study.options_table import FOR_ALL, private_choices, trace
from policysim.study.sweep import N_THREADS, REFERENCES, applies, at, evaluated_on, happening_lead
from policysim.words import ALL

# The frontier is drawn at the epsilon that is asked about times these, or what is nearest to them, and to so much of
# the benefit.
FRONTIER_AT = (1, 2, 4, 8)
FRONTIER_TOLERANCE = 1e-2
# Digits of an epsilon that is printed.
MOST_DIGITS = 6
# The policy that trusts the prior, and one that does not.
ON_PREVALENCE = (Optimal.name, RandomizedResponse.name)


@dataclass(frozen=True)
class Asked:
    """What is asked of one problem.

    Attributes
    ----------
    policies : tuple of Policy
        Templates: their epsilon is replaced. They can be used on the problem.
    epsilon : float
        The one that is looked at, of `epsilons`.
    epsilons : tuple of float
        Those of the curve, rising.
    by : tuple of str
        Features whose levels are looked at one by one.
    at_most, capacity : mapping
        What is bounded (`policies.optimal.bounds`); empty for nothing.
    lead_weight : float
        What one of the outcome that leads weighs in the utility.
    prices : bool
        Whether to find out what hiding each single feature costs at best.
    seen : str
        What an observer sees (`policysim.study.declared.SEEN`).
    published_patients : int
        How many patients a publication is about.
    """

    policies: tuple[Policy, ...]
    epsilon: float
    epsilons: tuple[float, ...]
    by: tuple[str, ...] = ()
    at_most: Mapping[str, float | str] = field(default_factory=dict)
    capacity: Mapping[str, float] = field(default_factory=dict)
    lead_weight: float = 0.0
    prices: bool = False
    seen: str = "treatment"
    published_patients: int = 10_000

    @classmethod
    def of(cls, study: ModelledStudy, *, prices: bool = False) -> Self:
        """What a study asks, of its policies."""
        return cls(
            tuple(study.policy(name) for name in study.policies),
            study.epsilon,
            study.epsilons,
            study.by,
            study.at_most,
            study.capacity,
            study.lead_weight,
            prices,
            study.seen,
            study.published_patients,
        )


def printable(asked: Asked) -> Asked:
    """The same at epsilons that are printed whole: rounded up where they have too many digits."""
    shown = {
        epsilon: enough(epsilon, MOST_DIGITS)
        if 0 < epsilon < math.inf and digits_of(epsilon) > MOST_DIGITS
        else epsilon
        for epsilon in (asked.epsilon, *asked.epsilons)
    }
    return replace(asked, epsilon=shown[asked.epsilon], epsilons=tuple(sorted(set(shown.values()))))


@dataclass(frozen=True, eq=False)
class Results:
    """What was computed of a problem.

    Attributes
    ----------
    problem, labels, asked
        What was asked of what.
    tables : mapping of str to DataFrame
        "comparison" (`compare_problem`, with what stands among the options anyway), "one-for-all" (the same of each
        treatment for everyone), "search" (`least_epsilons`),
        "break-even", "beliefs" (`hidden_beliefs`; where the records have features), "examples"
        (`example_probabilities`), "patient-losses", "frontier" (where an outcome leads, shares of the benefit say
        something, and the optimum can be computed), "publishing" (`publishing_table`, at a few epsilons) and
        "price-list" (where it was asked for), and "floors" (`floors_table`, where it is not empty). Of a model also
        "prevalence" (`wrong_prior`) and "losses-by-outcome".
    redraws : Redrawn or None
        Of a scenario, or of a cohort that has some.
    """

    problem: DecisionProblem
    labels: Labels
    asked: Asked
    tables: Mapping[str, pd.DataFrame]
    redraws: Redrawn | None = None

    @property
    def at_epsilon(self) -> pd.DataFrame:
        """The rows of the comparison at the epsilon that is looked at."""
        table = self.tables["comparison"]
        return table[table["epsilon"] == self.asked.epsilon]


def results(
    problem: DecisionProblem,
    labels: Labels,
    asked: Asked,
    *,
    study: ModelledStudy | None = None,
    progress: Progress = SILENT,
) -> Results:
    """Evaluate, search, redraw.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    labels : Labels
        What its parts are called: here, which features are hidden, and which make a patient ill.
    asked : Asked
        What is looked at.
    study : ModelledStudy, optional
        From which the problem was made: what only its model tells is computed, too.
    progress : Progress, optional
        Told of each step.
    """
    always = (Exponential(asked.epsilon), RandomizedResponse(asked.epsilon))
    compared = list({policy.name: policy for policy in (*always, *REFERENCES, *asked.policies)}.values())
    patients = example_patients(problem, labels.illness)
    rows = ExampleRows(np.array([patient.record for patient in patients]))
    each_for_all = [BestFixed(action=action) for action in range(problem.n_actions)]
    comparison = compare_problem(
        problem,
        policies=[*compared, *each_for_all],
        epsilons=asked.epsilons,
        by=asked.by,
        advance=progress,
        examples=rows,
    )
    for_all = comparison["policy"].str.startswith(FOR_ALL)
    one_for_all = comparison[for_all & (comparison["group"] == ALL)]
    comparison = comparison[~for_all].reset_index(drop=True)
    at_epsilon = comparison[comparison["epsilon"] == asked.epsilon]
    overall = at_epsilon[at_epsilon["group"] == ALL]
    private = [policy for policy in asked.policies if policy.uses_epsilon and applies(policy, problem)]
    usable = sorted((each for each in compared if applies(each, problem)), key=lambda each: not each.uses_epsilon)
    told_apart = [at(policy, asked.epsilon) for policy in (*private, BestFixed())]
    tables = {"comparison": comparison, "one-for-all": one_for_all.reset_index(drop=True)}
    made = [at(policy, asked.epsilon) for policy in compared]
    with ThreadPoolExecutor(N_THREADS) as pool:
        # The redraws are many small steps: they run while the searches, a few large ones, leave the interpreter alone.
        redraws = None if study is None else pool.submit(redrawn, study, problem, made, progress)
        tables["search"] = least_epsilons(problem, private, comparison, progress)
        tables["patient-losses"] = loss_quantiles(problem, told_apart, asked.epsilon)
        if study is not None:
            applicable = [policy for policy in told_apart if applies(policy, problem)]
            on_prevalence = [policy for name in ON_PREVALENCE for policy in applicable if policy.name == name]
            tables["prevalence"] = wrong_prior(study, problem, on_prevalence)
            tables["losses-by-outcome"] = loss_by_outcome(overall, study.weights, [each.name for each in applicable])
        tables["examples"] = example_probabilities(problem, patients, usable, asked.epsilons, progress, kept=rows)
        choices = private_choices(comparison, [policy.name for policy in asked.policies])
        best = choices[asked.epsilon]
        tables["break-even"] = break_even(overall, [best], gain_of(problem), labels.lead, asked.lead_weight)
        if labels.hidden_features:
            chosen = next(policy for policy in made if policy.name == best)
            tables["beliefs"] = hidden_beliefs(problem, chosen, labels.hidden_features)
        curve = _frontier(problem, asked, progress)
        if curve is not None:
            tables["frontier"] = curve
        values = trace(asked.epsilons, asked.epsilon)
        tables["publishing"] = publishing_table(problem, values, asked.published_patients, comparison, choices)
        if asked.prices:
            tables["price-list"] = price_list(problem, asked.epsilon, progress)
    floors = floors_table(problem, made, labels.hidden_features)
    if not floors.empty:
        tables["floors"] = floors
    return Results(problem, labels, asked, tables, None if redraws is None else redraws.result())


def floors_table(problem: DecisionProblem, policies: Sequence[Policy], hidden: Sequence[str]) -> pd.DataFrame:
    """The public parameters of exponential-fitted: a row for each public class and action; empty where it has no box.

    Returns
    -------
    DataFrame
        class (from 0), a column for each feature that is not hidden, action, floor, ceiling (at most 1) and
        sharpness (per unit of utility).
    """
    fitted = [policy for policy in policies if isinstance(policy, Exponential) and policy.calibration == "fitted"]
    overlapping = len(hiding_partitions(problem.adjacency, problem.n_records)) > 1
    if not fitted or overlapping or problem.admissible is not None or math.isinf(fitted[0].epsilon):
        return pd.DataFrame()
    levels = {name: problem.records.groups(name) for name in problem.records.names if name not in hidden}
    rows: list[dict[str, object]] = []
    for records, _, boxes in fitted[0].boxes(problem):
        floors, ceilings = np.exp(boxes.log_floors.T), np.exp(np.minimum(boxes.log_floors.T + boxes.epsilon, 0.0))
        for index, first in enumerate(records[:, 0]):
            number = len(rows) // problem.n_actions
            public = {"class": number} | {name: titles[codes[first]] for name, (codes, titles) in levels.items()}
            for action, floor, ceiling in zip(problem.actions, floors[index], ceilings[index], strict=True):
                row = {"action": action, "floor": floor, "ceiling": ceiling, "sharpness": boxes.sharpness[index]}
                rows.append(public | row)
    return pd.DataFrame(rows)


def _frontier(problem: DecisionProblem, asked: Asked, progress: Progress) -> pd.DataFrame | None:
    """The frontier at some of the epsilons, on the problem of the distinct rows where there is one."""
    optimum = Optimal(asked.epsilon)
    finite = tuple(epsilon for epsilon in asked.epsilons if 0 < epsilon < math.inf)
    if not (happening_lead(problem) and finite and gain_of(problem).has_shares and applies(optimum, problem)):
        return None
    wanted = sorted({nearest_epsilon(asked.epsilon * factor, finite) for factor in FRONTIER_AT})
    return frontier(evaluated_on(optimum, problem), epsilons=wanted, tolerance=FRONTIER_TOLERANCE, progress=progress)
