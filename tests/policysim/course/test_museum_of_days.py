"""A museum of real defects over days and public classes: each is planted here, and a check catches it."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from policies import AnyRecord, DecisionProblem, Policy, Sensitive, make_policy
from policies.randomized_response import RandomizedResponse
from policysim.course import budget, once, plan_tree
from policysim.course.once import OncePlan
from policysim.course.plan_tree import TreePlan
from policysim.decision.beliefs import hidden_beliefs


class Classes:
    """Names of four states in two public classes."""

    names = ("class",)

    def describe(self, record):
        return f"state {record}"

    def groups(self, feature):
        return np.arange(4) // 2, ("first", "second")


def unchanging(rewards):
    """Four states that never change, two of either class, over two days."""
    moves = np.repeat(np.eye(4)[:, None], 2, axis=1)
    process = ps.TabularMDP(moves, rewards, np.full(4, 0.25), horizon=2, records=Classes(), axes="SAS")
    return process.with_public(["class"])


def the_tree_says_what_its_worst_class_spends():
    """The same treatment is best for the first class, so that it spends nothing; the states of the second differ."""
    plan = plan_tree.plan_tree(unchanging(np.array([[1, 0], [1, 0], [1, 0], [0, 1.0]])), epsilon=1.0)
    spent = [0.0]
    for states, own, tree in zip(plan.family.states, plan.family.families, plan.trees, strict=True):
        for chance in tree.chances(own).values():
            here = np.broadcast_to(chance, (len(states),))
            spent.append(float(np.log(here.max() / here.min())))
    return plan.epsilon_spent == pytest.approx(max(spent), abs=1e-9) and max(spent) > 0.9


def of_the_first_class(**parts):
    plan = TreePlan(**parts)
    vars(plan)["epsilon_spent"] = plan.trees[0].epsilon_spent
    return plan


def the_actions_of_a_choice_are_worth_its_value():
    """The classes have opposite best treatments."""
    process = unchanging(np.array([[1, 0], [1, 0.2], [0, 1], [0.2, 1.0]]))
    plan = once.plan_once(process, epsilon=1.0)
    worth = 0.0
    for first in range(4):
        for chosen, chance in enumerate(plan.probabilities[first]):
            for day in range(plan.horizon):
                action = plan.actions(np.array([first]), np.array([chosen]), day)[0]
                worth += process.initial[first] * chance * process.rewards[first, action]
    return plan.value == pytest.approx(worth)


def schedules_of_the_first_class(plan, first, chosen, day):
    return plan.schedules[..., day][np.zeros_like(plan.classes)[first], chosen]


@dataclass(frozen=True)
class Stated(Policy):
    """Takes no epsilon, and says what it reveals."""

    name, uses_epsilon, guarantee = "stated", False, 0.3

    def _log_probabilities(self, problem):
        return RandomizedResponse(0.3).log_probabilities(problem)


def a_policy_without_an_epsilon_counts_on_each_of_three_days():
    problem = DecisionProblem(np.eye(2), [0.5, 0.5], AnyRecord())
    return ps.PrivacyBudget(1.0).daily(Stated(), [problem] * 3).total_epsilon == pytest.approx(0.9)


def the_belief_is_of_the_commonest_class():
    """Both classes learn the same from a treatment; 7 of 10 patients are of the second."""
    index = pd.MultiIndex.from_product([["a", "b"], ["no", "yes"]], names=["site", "ill"])
    utilities = pd.DataFrame([[1.0, 0.0], [0.0, 1.0]] * 2, index, columns=["wait", "treat"])
    problem = DecisionProblem(utilities, [0.15, 0.15, 0.35, 0.35], Sensitive((2, 2), (1,)))
    found = hidden_beliefs(problem, make_policy("randomized-response", epsilon=1.0), ["ill"])
    return len(found) > 0 and np.allclose(found["share"], 0.7)


def shares_turned_round(shares, digits):
    return 1 - shares.round(digits)


BUGS = {
    "the loss of a tree is that of its first class": (
        the_tree_says_what_its_worst_class_spends,
        (plan_tree, "TreePlan", of_the_first_class),
    ),
    "all classes follow the schedules of the first": (
        the_actions_of_a_choice_are_worth_its_value,
        (OncePlan, "actions", schedules_of_the_first_class),
    ),
    "a policy without an epsilon counted for one day": (
        a_policy_without_an_epsilon_counts_on_each_of_three_days,
        (budget, "compose", max),
    ),
    "the belief told is of the rarest class": (
        the_belief_is_of_the_commonest_class,
        (np, "round", shares_turned_round),
    ),
}


@pytest.mark.parametrize(("check", "bug"), BUGS.values(), ids=BUGS)
def test_a_check_catches_the_defect_and_passes_the_right_version(check, bug, monkeypatch):
    assert check()
    monkeypatch.setattr(*bug)
    assert not check()
