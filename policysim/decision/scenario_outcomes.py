"""What only a model shows: losses by outcome, another prevalence, and what the study states without effect."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from envs.cohort import cancelled_risks, matches
from envs.scenario import Rule, Scenario, TreatmentRule
from policies.distinct import reweighted
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.decision.prices import unused_features
from policysim.study.declared import ModelledStudy, ScenarioStudy
from policysim.study.gain import gain_of
from policysim.study.study_problem import FACTORS, at_prevalence, prevalent
from policysim.study.sweep import evaluated_on
from policysim.utility import COSTS
from policysim.words import in_a_row, unused

COSTS_TITLE = "costs of treatments"


def loss_by_outcome(rows: pd.DataFrame, weights: Mapping[str, float], policies: Sequence[str]) -> pd.DataFrame:
    """The utility that each policy loses against the best treatment for each, by what it is lost in.

    As u(x, a) = -sum_o weight_o E[o | x, a] - cost_a, the loss of a policy p against the best treatment for each, g, is
    the sum of weight_o (E_p[o] - E_g[o]) over the outcomes, and of E_p[cost] - E_g[cost].

    Parameters
    ----------
    rows : DataFrame
        Of everyone in a comparison at one epsilon: policy and expected_OUTCOME.
    weights : mapping of str to float
        What one of each outcome costs, in the order of the table.
    policies : sequence of str
        Whose losses are wanted.

    Returns
    -------
    DataFrame
        policy, outcome, weight, more, lost: a row for each outcome that has a weight, and one for the costs of
        treatments, policy by policy. `more` is how much likelier the outcome is than under the best for each (for the
        costs, NaN), `lost` what that costs in utility per patient; negative where the policy does better in it. The sum
        of `lost` over the rows of a policy is its loss.
    """
    weighed = {name: weight for name, weight in weights.items() if weight}
    expected = rows.set_index("policy")[[f"expected_{name}" for name in (*weighed, COSTS)]]
    if COSTS in weights:
        # An outcome of a table has that name, and its treatments cost nothing (`Cohort.problem`).
        expected = expected.set_axis([*weighed, COSTS_TITLE], axis=1).assign(**{COSTS_TITLE: 0.0})
    more = (expected - expected.loc[Greedy.name]).loc[list(policies)].to_numpy()
    frames = [
        pd.DataFrame(
            {
                "policy": policy,
                "outcome": [*weighed, COSTS_TITLE],
                "weight": [*weighed.values(), math.nan],
                "more": [*of_policy[:-1], math.nan],
                "lost": np.array([*weighed.values(), 1.0]) * of_policy,
            }
        )
        for policy, of_policy in zip(policies, more, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)


def wrong_prior(study: ModelledStudy, problem: DecisionProblem, policies: Sequence[Policy]) -> pd.DataFrame:
    """Evaluate policies that were made for the assumed prevalence at others.

    Parameters
    ----------
    study : ModelledStudy
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
    columns = ["policy", "epsilon", "factor", "prevalence", "value", "loss", "benefit_kept"]
    ill = prevalent(study)
    # Who is ill is asked of the records and not of a sum, which rounding may leave just below 1.
    possible = ill[problem.prior > 0]
    if possible.all() or not possible.any():
        return pd.DataFrame(columns=columns)
    problems = [evaluated_on(policy, problem) for policy in policies]
    tables = [policy.probabilities(on) for policy, on in zip(policies, problems, strict=True)]
    everybody = evaluated_on(Greedy(), problem)
    rows = []
    for factor in FACTORS.values():
        prior, prevalence = at_prevalence(problem.prior, ill, factor)
        gain = gain_of(reweighted(everybody, problem, prior))
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
    return pd.DataFrame(rows, columns=columns)


def without_effect(study: ModelledStudy, problem: DecisionProblem) -> tuple[str, ...]:
    """A sentence for each kind of thing that the study's scenario or utility states without effect.

    Features without effect on the choice of a treatment; outcomes without weight, and outcomes that every treatment
    leaves as they are; relative risks of death that cancel; rules that match no patient, and those that multiply
    nothing.

    Parameters
    ----------
    study : ModelledStudy
        Its scenario and utility; of a cohort, only features without effect are looked for.
    problem : DecisionProblem
        Built from it.
    """
    idle = unused_features(problem, study.space.names)
    sentences = [unused(idle)] if idle else []
    if not isinstance(study, ScenarioStudy):
        return tuple(sentences)
    scenario = study.scenario
    weightless, untouched = [], []
    for name in scenario.outcomes:
        weighs = bool(study.utility.weights.get(name))
        event = name in scenario.hazards
        if weighs and not event:
            continue
        first, *others = problem.outcomes[name].T
        if not weighs and (first.any() or any(chance.any() for chance in others)):
            weightless.append(name)
        if event and first.any() and all((first == chance).all() for chance in others):
            untouched.append(name)
    for names, one, several, end in (
        (weightless, "weighs", "weigh", "nothing in the utility: no choice is made better or worse by"),
        (untouched, "is", "are", "as likely under every treatment: no choice changes"),
    ):
        if names:
            titles = in_a_row([scenario.outcome_title(name) for name in names], "and")
            verb, them = (one, "it") if len(names) == 1 else (several, "them")
            sentences.append(f"{titles[0].upper()}{titles[1:]} {verb} {end} {them}.")
    return (*sentences, *_cancelled(scenario), *_idle_rules(scenario, problem))


def _cancelled(scenario: Scenario) -> Iterator[str]:
    """Relative risks of death by a feature that the rules for death tell apart."""
    names = cancelled_risks(scenario)
    if names:
        it = "it" if len(names) == 1 else "them"
        yield (
            f"The relative risk of death by {in_a_row([name.replace('_', ' ') for name in names], 'and')} cancels: "
            f"the rules for death differ by {it} already, and the hazard is scaled to what they say."
        )


def _idle_rules(scenario: Scenario, problem: DecisionProblem) -> Iterator[str]:
    """Rules, of the patients or of a treatment, that match no patient; and those that multiply 0.

    The latter are rules of treatments on what the treatment does not have, and what no rule before gives it.
    """
    rules: list[tuple[str, Rule | TreatmentRule]] = [
        (f"Rule {number} of the patients", rule) for number, rule in enumerate(scenario.rules, start=1)
    ]
    multiplied = []
    for action, treatment in scenario.treatments.items():
        there = {
            *(f"clears.{name}" for name, chance in treatment.clears.items() if chance),
            *(f"side_effects.{name}" for name, chance in treatment.side_effects.items() if chance),
            *(["cost"] if treatment.cost else []),
        }
        for number, rule in enumerate(treatment.rules, start=1):
            rules.append((f"Rule {number} of {action}", rule))
            for target, (operation, factor) in rule.changes.items():
                if operation == "multiply" and target not in there and not target.startswith("hazard_ratio."):
                    multiplied.append(f"Rule {number} of {action} multiplies {target}, which is 0, by {factor:g}.")
            there |= {target for target, (operation, _) in rule.changes.items() if operation != "multiply"}
    grid = problem.prior.reshape(scenario.space.shape)
    for name, each in rules:
        matched = np.broadcast_to(matches(scenario.space, each.when), grid.shape)
        if not grid[matched].any():
            yield f"{name}{f' (“{each.source}”)' if each.source else ''} matches no patient."
    yield from multiplied
