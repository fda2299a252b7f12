"""All that is computed of one decision before a word of it is said: of a study, or of a problem alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from envs.scenario import SYMPTOMS
from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.classes import hiding_partitions
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Greedy, SameForAlike
from policysim.decision.beliefs import hidden_beliefs
from policysim.decision.comparison import compared
from policysim.decision.demands import least_epsilons
from policysim.decision.frontier import frontier
from policysim.decision.harmed import harmed_groups
from policysim.decision.prices import price_list
from policysim.decision.publishing import publishing_table
from policysim.decision.record_risk import risk_of_policies
from policysim.decision.redraws import Redrawn, redrawn
from policysim.decision.scenario_outcomes import loss_by_outcome, without_effect, wrong_prior
from policysim.decision.textbook import Textbook, textbook
from policysim.progress import SILENT, Progress
from policysim.study.declared import ModelledStudy, ScenarioStudy, nearest_epsilon
from policysim.study.example_patients import ExampleRows, example_patients, example_probabilities, loss_quantiles
from policysim.study.gain import gain_of, private_choices, trace
from policysim.study.labels import Labels
from policysim.study.sweep import N_THREADS, REFERENCES, applies, at, evaluated_on, happening_lead
from policysim.utility import COSTS
from policysim.words import ALL, FOR_ALL

# The frontier is drawn at the epsilon that is asked about times these, or what is nearest to them, and to so much of
# the benefit.
FRONTIER_AT = (1, 2, 4, 8)
FRONTIER_TOLERANCE = 1e-2
# The versions of the model are made with so many times the default spread, too.
WIDER = (2, 3)
# The policy that trusts the prior, and one that does not.
ON_PREVALENCE = (Optimal.name, RandomizedResponse.name)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What was computed of a problem.

    Attributes
    ----------
    problem : DecisionProblem
        What is decided.
    labels : Labels
        What people call its parts.
    study : ModelledStudy or None
        From which the problem was made.
    policies : tuple of Policy
        All that were compared, as templates: their epsilon is replaced.
    named : tuple of str
        The policies that were asked for by name.
    epsilon, epsilons : float, tuple of float
        The one that is looked at, and those of the curve, rising.
    best_private : str
        The policy of the best private draw: the exponential mechanism, fitted, where it has floors and ceilings; else
        the optimum; where that cannot be computed, the best of those that were compared.
    tables : mapping of str to DataFrame
        "comparison" (`compare_problem`, with a row "for all: ACTION" for each treatment that everyone gets), "search"
        (`least_epsilons`), "examples" (`example_probabilities`), "patient-losses", "publishing", "record-risk"
        (`risk_of_policies`), and as far as they apply "beliefs" (`hidden_beliefs`), "frontier", "price-list", "floors",
        "prevalence" (`wrong_prior`) and "losses-by-outcome".
    harmed : DataFrame
        Who does worse by the best private draw than by the same treatment for everyone (`harmed_groups`).
    textbook : Textbook or None
        Why the exponential mechanism of the textbook loses more.
    idle : tuple of str
        Sentences on what the study states without effect.
    versions : Redrawn or None
        What the options are worth in other versions of the model; None where it has none.
    broken : tuple of str
        What is wrong with policies that were left out: they are not what they say of themselves.
    """

    problem: DecisionProblem
    labels: Labels
    study: ModelledStudy | None
    policies: tuple[Policy, ...]
    named: tuple[str, ...]
    epsilon: float
    epsilons: tuple[float, ...]
    best_private: str
    tables: Mapping[str, pd.DataFrame]
    harmed: pd.DataFrame
    textbook: Textbook | None = None
    idle: tuple[str, ...] = ()
    versions: Redrawn | None = None
    broken: tuple[str, ...] = ()

    @property
    def everyone(self) -> pd.DataFrame:
        """The rows of all patients of the comparison."""
        table = self.tables["comparison"]
        return table[table["group"] == ALL]

    @cached_property
    def rows(self) -> dict[tuple[str, float], dict[str, Any]]:
        """What all patients get and lose under each policy at each epsilon."""
        records: list[dict[str, Any]] = self.everyone.to_dict("records")  # type: ignore[assignment]
        return {(row["policy"], row["epsilon"]): row for row in records}

    @property
    def lead(self) -> str | None:
        """The outcome that leads."""
        return self.labels.lead

    @cached_property
    def weights(self) -> dict[str, float]:
        """What one of each outcome weighs in the utility; empty for a problem alone."""
        return {} if self.study is None else {COSTS: 1.0, **self.study.weights}

    @cached_property
    def outcomes(self) -> list[str]:
        """The outcomes with differences: those with a weight, and the one that leads; no sums of others.

        Of a problem alone, whose weights nobody knows, all outcomes.
        """
        problem, study, weights = self.problem, self.study, self.weights
        if study is None:
            return list(problem.outcomes)
        single = [name for name in problem.outcomes.repeated if name != COSTS and weights.get(name)]
        summed = isinstance(study, ScenarioStudy) and any(problem.outcomes[name].any() for name in single)
        return [
            name
            for name in problem.outcomes
            if name == self.lead or (weights.get(name) and not (summed and name == SYMPTOMS))
        ]

    def policy(self, name: str, epsilon: float) -> Policy:
        """A policy that was compared, at an epsilon."""
        if name.startswith(FOR_ALL):
            return BestFixed(action=self.problem.actions.index(name.removeprefix(FOR_ALL)))
        return next(at(policy, epsilon) for policy in self.policies if policy.name == name)


def compared_policies(problem: DecisionProblem, policies: Sequence[Policy]) -> tuple[Policy, ...]:
    """The policies of a study, and what every report compares, as far as they can be used on the problem.

    Those are the same treatment for everyone who is alike in what is public, the exponential mechanism, fitted and of
    the textbook, the optimum, and randomised response, by which a list can be published.
    """
    always = (SameForAlike(by_lead=happening_lead(problem) is not None), Exponential(1.0), ExponentialFitted(1.0))
    beside = [policy for policy in (*always, RandomizedResponse(1.0), Optimal(1.0)) if applies(policy, problem)]
    return tuple({policy.name: policy for policy in (*REFERENCES, *beside, *policies)}.values())


def has_floors(problem: DecisionProblem, epsilon: float) -> bool:
    """Whether the exponential mechanism, fitted, has public floors and ceilings: every record has one public class."""
    overlapping = len(hiding_partitions(problem.adjacency, problem.n_records)) > 1
    return not overlapping and problem.admissible is None and epsilon < math.inf


def best_private_of(
    problem: DecisionProblem, policies: Sequence[Policy], comparison: pd.DataFrame, epsilon: float
) -> str:
    """The policy of the best private draw, as `Evidence` has it."""
    usable = [policy.name for policy in policies]
    if ExponentialFitted.name in usable and has_floors(problem, epsilon):
        return ExponentialFitted.name
    return Optimal.name if Optimal.name in usable else private_choices(comparison, usable)[epsilon]


def gather(
    problem: DecisionProblem,
    labels: Labels,
    policies: Sequence[Policy],
    *,
    epsilon: float,
    epsilons: tuple[float, ...],
    named: Sequence[str] = (),
    study: ModelledStudy | None = None,
    prices: bool = False,
    progress: Progress = SILENT,
) -> Evidence:
    """Evaluate, search, and vary the model.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    labels : Labels
        What its parts are called: here, which features are hidden, and which make a patient ill.
    policies : sequence of Policy
        Templates: their epsilon is replaced. They can be used on the problem.
    epsilon, epsilons : float, tuple of float
        As `Evidence` has them.
    named : sequence of str, optional
        The policies that were asked for by name.
    study : ModelledStudy, optional
        From which the problem was made, for tables that need its model.
    prices : bool, optional
        Whether to find out what hiding each single feature costs at best.
    progress : Progress, optional
        Reports each step.

    Raises
    ------
    ClaimError, NoTableError, InadmissibleError
        If none of the policies is what it says of itself; one of several is left out.
    """
    asked = compared_policies(problem, policies)
    patients = example_patients(problem, labels.illness)
    rows = ExampleRows(np.array([patient.record for patient in patients]))
    for_all = [BestFixed(action=action) for action in range(problem.n_actions)]
    by = () if study is None else study.by
    comparison, broken = compared(problem, [*asked, *for_all], epsilons, by=by, advance=progress, examples=rows)
    if broken and broken.keys() >= set(policies):
        raise next(iter(broken.values()))
    tables = {"comparison": comparison}
    kept = tuple(policy for policy in asked if policy not in broken)
    usable = [policy for policy in kept if applies(policy, problem)]
    made = [at(policy, epsilon) for policy in usable]
    everyone = comparison[comparison["group"] == ALL]
    best_private = best_private_of(problem, usable, comparison, epsilon)
    by_name = {policy.name: policy for policy in made}
    with ThreadPoolExecutor(N_THREADS) as pool:
        # The versions are many small steps: they run while the searches, a few large ones, leave the interpreter alone.
        versions = None if study is None else pool.submit(redrawn, study, problem, made, progress, times=WIDER)
        private = [policy for policy in usable if policy.uses_epsilon]
        tables["search"] = least_epsilons(problem, private, comparison, progress)
        shown = sorted(usable, key=lambda policy: not policy.uses_epsilon)
        tables["examples"] = example_probabilities(problem, patients, shown, epsilons, progress, kept=rows)
        tables["patient-losses"] = loss_quantiles(problem, made, epsilon)
        if study is not None:
            stated = everyone[everyone["epsilon"] == epsilon]
            names = [policy.name for policy in usable]
            tables["losses-by-outcome"] = loss_by_outcome(stated, study.weights, names)
            on_prevalence = [policy for policy in made if policy.name in ON_PREVALENCE]
            tables["prevalence"] = wrong_prior(study, problem, on_prevalence)
        choices = private_choices(comparison, [policy.name for policy in private])
        if labels.hidden_features:
            tables["beliefs"] = hidden_beliefs(problem, by_name[best_private], labels.hidden_features)
        options = dict.fromkeys([SameForAlike.name, best_private, Greedy.name, BestFixed.name, *named])
        optional = [by_name[name] for name in options if name in by_name]
        tables["record-risk"] = risk_of_policies(problem, optional, epsilon)
        patients_published = 10_000 if study is None else study.published_patients
        tables["publishing"] = publishing_table(
            problem, trace(epsilons, epsilon), patients_published, comparison, choices
        )
        if (curve := _frontier(problem, epsilon, epsilons, progress)) is not None:
            tables["frontier"] = curve
        if prices:
            tables["price-list"] = price_list(problem, epsilon, progress)
        same = by_name[SameForAlike.name]
        harm = harmed_groups(problem, by_name[best_private], same, by)
        value = float(everyone.loc[everyone["policy"] == same.name, "value"].iloc[0])
        why = textbook(problem, value, comparison) if Exponential.name in by_name else None
    tables["floors"] = floors_table(problem, made, labels.hidden_features)
    return Evidence(
        problem,
        labels,
        study,
        kept,
        tuple(name for name in named if name in {policy.name for policy in kept}),
        epsilon,
        epsilons,
        best_private,
        {name: table for name, table in tables.items() if not table.empty},
        harm,
        why,
        () if study is None else without_effect(study, problem),
        None if versions is None else versions.result(),
        tuple(map(str, broken.values())),
    )


def floors_table(problem: DecisionProblem, policies: Sequence[Policy], hidden: Sequence[str]) -> pd.DataFrame:
    """The public parameters of exponential-fitted: a row for each public class and action; empty where it has no box.

    Returns
    -------
    DataFrame
        class (from 0), a column for each feature that is not hidden, action, floor, ceiling (at most 1) and
        sharpness (per unit of utility).
    """
    fitted = [policy for policy in policies if isinstance(policy, Exponential) and policy.calibration == "fitted"]
    if not fitted or not has_floors(problem, fitted[0].epsilon):
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


def _frontier(
    problem: DecisionProblem, epsilon: float, epsilons: Sequence[float], progress: Progress
) -> pd.DataFrame | None:
    """The frontier at some of the epsilons, on the problem of the distinct rows where there is one."""
    optimum = Optimal(epsilon)
    finite = tuple(value for value in epsilons if 0 < value < math.inf)
    if not (happening_lead(problem) and finite and gain_of(problem).has_shares and applies(optimum, problem)):
        return None
    wanted = sorted({nearest_epsilon(epsilon * factor, finite) for factor in FRONTIER_AT})
    return frontier(evaluated_on(optimum, problem), epsilons=wanted, tolerance=FRONTIER_TOLERANCE, progress=progress)
