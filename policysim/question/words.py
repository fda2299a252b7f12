"""Names that tables share, and words that many parts say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from policysim.question.formats import of_100, plain

# In tables: all patients; and in the place of a policy's name, the schedule for all, one private choice of a schedule,
# reactions within a tree of courses, and the bounds of the limit.
ALL, BEST_SCHEDULE, PLAN_ONCE, PLAN_TREE = "all", "best-schedule", "plan-once", "plan-tree"
ACHIEVABLE, UNBEATABLE = "optimal-achievable", "optimal-unbeatable"
# A policy that keeps less than what is proven to be the most by no more than this, as a share, keeps the most.
TIGHT = 1e-6
# The benefit kept that tables and headlines ask for.
KEEP = 0.8
ASSUMED_PUBLIC = "the domain, the prior, the utility model, the base measure and the choice of ε"
NO_ADVICE = "not medical advice"
# Of whom a limit holds: where a publication alone is seen, what is given may be another treatment.
NO_MECHANISM = "no mechanism that gives what it publishes"


def guesses(loss: float) -> float:
    """e^loss / (1 + e^loss): no mechanism of this loss lets a guess between two equally likely neighbours do better."""
    return 1 / (1 + math.exp(-loss))


def policy_odds(policy: str, epsilon: float, guarantee: float, *, uses_epsilon: bool) -> str:
    """What a policy's own guarantee means to somebody who guesses; one that takes no epsilon keeps none."""
    if uses_epsilon:
        return odds(epsilon, guesses(guarantee))
    if guarantee == math.inf:
        return f"{policy} hides nothing: the published treatment may tell two such patients apart every time."
    return (
        f"{policy} learns nothing about the patient: whoever sees the published treatment and must guess which of two "
        f"such patients it was given to is right {100 * guesses(guarantee):.0f} of 100 times, as when guessing blind."
    )


# What epsilon means to somebody who guesses; so many of 100 are right.
ODDS = (
    "At ε = {epsilon}, whoever sees the published treatment and must guess which of two such patients, equally likely "
    "before, it was given to is right at most {right} of 100 times; guessing blind, 50. This is the bound "
    "e^ε/(1 + e^ε), rounded up, of every mechanism with this ε; its own guess rate may be lower."
)


def odds(epsilon: float, right_guesses: float) -> str:
    """What epsilon means to somebody who guesses: a bound for every mechanism with this epsilon."""
    return ODDS.format(epsilon=plain(epsilon), right=of_100(right_guesses))


def in_a_row(names: Sequence[str], last: str) -> str:
    """Names after commas, and a word before the last.

    Examples
    --------
    >>> in_a_row(["age", "sex", "asthma"], "and")
    'age, sex and asthma'
    """
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def unused(features: Iterable[str]) -> str:
    """Of hidden features that tell no treatments apart: that nothing is said about their price."""
    names = [name.replace("_", " ") for name in features]
    it = "it" if len(names) == 1 else "them"
    return (
        f"The model does not use {in_a_row(names, 'or')} to tell treatments apart, so nothing can be said about what "
        f"hiding {it} costs."
    )


def level_name(group: str, level: str) -> str:
    """A group of patients in words; without a level, the group is one that the scenario has words for."""
    name = group.replace("_", " ")
    if not level:
        return group
    return {"0": f"not {name}", "1": name}.get(level, f"{name} {level}") if group != "sex" else f"sex {level}"


def group_name(group: str, level: str) -> str:
    """A group of patients in words, everyone too."""
    return "everyone" if group == "all" else level_name(group, level)


def attains(kept: float, most: float) -> bool:
    """Whether a policy keeps the most that any can; False where it is not proven (NaN) what that is."""
    return kept >= most - TIGHT
