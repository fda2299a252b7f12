"""What a scenario states and what yet changes nothing in the decision: said, so that nobody counts on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from envs.cohort import admission_probability, matches
from envs.scenario import DEATH, Rule, Scenario, TreatmentRule
from envs.treatment_response import ResponseModel
from policies.arrays import FloatArray
from policies.problem import DecisionProblem
from policysim.decision.prices import unused_features
from policysim.question.words import in_a_row, unused
from policysim.study.declared import ScenarioStudy


def without_effect(study: ScenarioStudy, problem: DecisionProblem) -> tuple[str, ...]:
    """A sentence for each kind of thing that the study's scenario or utility states without effect.

    Features that tell no treatments apart; outcomes without weight, and outcomes that every treatment leaves as they
    are; relative risks of death that cancel; rules that match no patient, and those that multiply nothing.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario and utility.
    problem : DecisionProblem
        Built from it.
    """
    scenario, response = study.scenario, ResponseModel(study.scenario)
    idle = unused_features(study, problem, study.space.names)
    weightless = [
        name
        for name in scenario.outcomes
        if not study.utility.weights.get(name) and any(chance.any() for chance in _chances(response, problem, name))
    ]
    untouched = [name for name in (*scenario.events, DEATH) if _untouched(list(_chances(response, problem, name)))]
    return (
        *([unused(idle)] if idle else []),
        *_said(weightless, scenario, "weighs", "weigh", "nothing in the utility: no choice is made better or worse by"),
        *_said(untouched, scenario, "is", "are", "as likely under every treatment: no choice changes"),
        *_cancelled(scenario),
        *_rules_for_nobody(scenario, problem),
        *_rules_on_nothing(scenario),
    )


def _said(names: Sequence[str], scenario: Scenario, one: str, several: str, end: str) -> list[str]:
    if not names:
        return []
    titles = in_a_row([scenario.outcome_title(name) for name in names], "and")
    return [f"{titles[0].upper()}{titles[1:]} {one if len(names) == 1 else several} {end} {_it(names)}."]


def _it(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _chances(response: ResponseModel, problem: DecisionProblem, outcome: str) -> Iterator[FloatArray]:
    """P(outcome | x, a) for each action, as they are at hand; the problem has the deaths already."""
    if outcome == DEATH:
        yield from problem.outcomes["deaths"].T
        return
    for action in range(problem.n_actions):
        yield response.chance(outcome, action)


def _untouched(chances: Sequence[FloatArray]) -> bool:
    """Whether an outcome that some patient may have is as probable under every action."""
    return bool(chances[0].any()) and all(bool((chances[0] == chance).all()) for chance in chances[1:])


def _cancelled(scenario: Scenario) -> Iterator[str]:
    """Relative risks of death by a feature that the rules for death tell apart.

    In each group that these rules tell apart, the hazard is scaled so that the untreated die as the rules say
    (`ResponseModel.severity`): a factor that is the same for all of a group is divided out again.
    """
    told_apart = admission_probability(scenario, DEATH).shape
    names = [
        name
        for name, factors in scenario.death.relative_risk.items()
        if told_apart[scenario.space.axis(name)] > 1 and len(set(factors)) > 1
    ]
    if names:
        yield (
            f"The relative risk of death by {in_a_row([name.replace('_', ' ') for name in names], 'and')} cancels: "
            f"the rules for death differ by {_it(names)} already, and the hazard is scaled to what they say."
        )


def _rules_for_nobody(scenario: Scenario, problem: DecisionProblem) -> Iterator[str]:
    grid = problem.prior.reshape(scenario.space.shape)
    for name, rule in _all_rules(scenario):
        matched = np.broadcast_to(matches(scenario.space, rule.when), grid.shape)
        if not grid[matched].any():
            yield f"{name} matches no patient."


def _rules_on_nothing(scenario: Scenario) -> Iterator[str]:
    """Rules of treatments that multiply what the treatment does not have, and what no rule before gives it."""
    for action, treatment in scenario.treatments.items():
        there = {
            *(f"clears.{name}" for name, chance in treatment.clears.items() if chance),
            *(f"side_effects.{name}" for name, chance in treatment.side_effects.items() if chance),
            *(["cost"] if treatment.cost else []),
        }
        for number, rule in enumerate(treatment.rules, start=1):
            for target, (operation, factor) in rule.changes.items():
                if operation == "multiply" and target not in there and not target.startswith("hazard_ratio."):
                    yield f"Rule {number} of {action} multiplies {target}, which is 0, by {factor:g}."
            there |= {target for target, (operation, _) in rule.changes.items() if operation != "multiply"}


def _all_rules(scenario: Scenario) -> Iterator[tuple[str, Rule | TreatmentRule]]:
    """Every rule with its name in words."""
    for number, rule in enumerate(scenario.rules, start=1):
        yield f"Rule {number} of the patients{_source(rule.source)}", rule
    for action, treatment in scenario.treatments.items():
        for number, of_treatment in enumerate(treatment.rules, start=1):
            yield f"Rule {number} of {action}{_source(of_treatment.source)}", of_treatment


def _source(source: str) -> str:
    return f" (“{source}”)" if source else ""
