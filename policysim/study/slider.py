"""The slider: what follows epsilon and policy, as text for the page and as numbers for its script.

The one rule by which page and answer name the best policy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from policies.catalogue import CATALOGUE
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policysim.question import words
from policysim.question.answer import written
from policysim.question.protocol import SILENT, Progress
from policysim.question.shown import six_digits
from policysim.question.words import ALL
from policysim.study.declared import Study
from policysim.study.example_patients import ExampleRows, example_patients, example_probabilities

DEATHS_PER = 1000
# What a policy has beside one list of numbers for each name.
NESTED = ("p", "texts", "guesses", "odds")
# The columns of a comparison that follow the slider: by what name, times what.
COLUMNS = {
    "loss": ("loss", 1),
    "benefit_kept": ("benefit_kept", 1),
    "deaths": ("expected_deaths", DEATHS_PER),
    "worse_than_untreated": ("worse_than_untreated", 1),
}
# Those of a comparison on a log in their place: estimates, said with their 95 % intervals.
ESTIMATES = ("value", "difference")


@dataclass(frozen=True)
class Patient:
    """An example patient on the page: name, description, p(a) of each action, and the actions that are not allowed."""

    label: str
    description: str
    probabilities: Mapping[str, float]
    not_allowed: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Slider:
    """What the page says at the study's epsilon, and what its script says at the others.

    Attributes
    ----------
    epsilons : tuple of float
        The positions.
    position : int
        That of the study's epsilon.
    policy : str
        The one whose numbers are shown first.
    policies : tuple of str
        Those that can be chosen.
    now : mapping of str to float
        The entries of `COLUMNS` that the comparison has, or `ESTIMATES`, at this position.
    texts : mapping of str to str
        The estimates with their intervals, at this position.
    odds : str
        What the policy's guarantee means to somebody who guesses.
    right_guesses : float
        How often the better guess is right.
    patients : tuple of Patient
        What example patients get.
    numbers : Markup
        All of it at every epsilon, as JSON that can stand in a script element.
    """

    epsilons: tuple[float, ...]
    position: int
    policy: str
    policies: tuple[str, ...]
    now: Mapping[str, float]
    texts: Mapping[str, str]
    odds: str
    right_guesses: float
    patients: tuple[Patient, ...]
    numbers: Markup

    @property
    def epsilon(self) -> float:
        """At this position."""
        return self.epsilons[self.position]


def make_slider(
    table: pd.DataFrame,
    probabilities: pd.DataFrame,
    descriptions: Mapping[str, str],
    *,
    epsilon: float,
    policy: str,
    not_allowed: Mapping[str, frozenset[str]] | None = None,
) -> Slider:
    """Gather what the slider shows.

    Parameters
    ----------
    table : DataFrame
        A comparison: policy, epsilon, group, guarantee and, of `COLUMNS`, what it has.
    probabilities : DataFrame
        From `example_probabilities`.
    descriptions : mapping of str to str
        The records of the patients in words, by their labels, in the order of the page.
    epsilon, policy : float, str
        What is shown first.
    not_allowed : mapping of str to set of str, optional
        The actions that patients must not get, by their labels; none by default.
    """
    overall = table[(table["group"] == ALL) & table["policy"].isin(choosable(table))]
    epsilons = tuple(float(value) for value in sorted(overall["epsilon"].unique()))
    policies = choosable(overall)
    position = epsilons.index(epsilon)
    actions = [str(name) for name in dict.fromkeys(probabilities["action"])]
    # Where no record can die, there are no deaths to tell.
    told = frozenset(str(name) for name in overall if name != "expected_deaths" or (overall[name] > 0).any())
    series = {
        name: _series(overall[overall["policy"] == name], probabilities[probabilities["policy"] == name], told)
        for name in policies
    }
    at_start = series[policy]
    # What most policies say is there once.
    usual: dict[str, list[Any]] = {
        "guesses": [words.guesses(value) for value in epsilons],
        "odds": [words.odds(value, words.guesses(value)) for value in epsilons],
    }
    own = {name: {key: said for key, said in found.items() if said != usual.get(key)} for name, found in series.items()}
    numbers = {
        "epsilons": [_short(value) for value in epsilons],
        "labels": [words.plain(value) for value in epsilons],
        "guesses": [_short(value) for value in usual["guesses"]],
        "odds": usual["odds"],
        "actions": actions,
        "policies": {name: _compact(found) for name, found in own.items()},
    }
    return Slider(
        epsilons=epsilons,
        position=position,
        policy=policy,
        policies=policies,
        now={name: values[position] for name, values in at_start.items() if name not in NESTED},
        texts={name: said[position] for name, said in at_start["texts"].items()},
        odds=at_start["odds"][position],
        right_guesses=at_start["guesses"][position],
        patients=tuple(
            Patient(
                label,
                words_for,
                {action: found[position] for action, found in zip(actions, at_start["p"][place], strict=True)},
                (not_allowed or {}).get(label, frozenset()),
            )
            for place, (label, words_for) in enumerate(descriptions.items())
        ),
        numbers=_script_json(numbers),
    )


class Shown(NamedTuple):
    """What example patients get at each epsilon (see `example_probabilities`), and the slider over it."""

    probabilities: pd.DataFrame
    slider: Slider

    @property
    def first(self) -> pd.DataFrame:
        """The probabilities of the policy that is shown first."""
        return self.probabilities[self.probabilities["policy"] == self.slider.policy]


def show(
    study: Study,
    problem: DecisionProblem,
    table: pd.DataFrame,
    progress: Progress = SILENT,
    kept: ExampleRows | None = None,
) -> Shown:
    """What a page shows of single patients, and of one policy and epsilon at a time.

    Parameters
    ----------
    study, problem
        What was asked.
    table : DataFrame
        A comparison of its policies and epsilons.
    progress : Progress, optional
        Told of each policy and epsilon.
    kept : ExampleRows, optional
        Of the same example patients, from the comparison.
    """
    examples = example_patients(problem, study.space, study.illness)
    policies = [study.policy(name) for name in choosable(table)]
    probabilities = written(example_probabilities(problem, examples, policies, study.epsilons, progress, kept=kept))
    described = {example.label: problem.records.describe(example.record) for example in examples}
    policy = first_policy(table, study.epsilon)
    not_allowed = {} if problem.admissible is None else {e.label: _not_allowed(problem, e.record) for e in examples}
    slider = make_slider(table, probabilities, described, epsilon=study.epsilon, policy=policy, not_allowed=not_allowed)
    return Shown(probabilities, slider)


def _not_allowed(problem: DecisionProblem, record: int) -> frozenset[str]:
    assert problem.admissible is not None
    pairs = zip(problem.actions, problem.admissible[record], strict=True)
    return frozenset(action for action, allowed in pairs if not allowed)


def choosable(table: pd.DataFrame) -> tuple[str, ...]:
    """The policies of a comparison that can be used, those that spend epsilon first; not the bounds of the limit."""
    names = [str(name) for name in dict.fromkeys(table["policy"]) if name in CATALOGUE]
    return tuple(sorted(names, key=lambda name: not CATALOGUE[name].uses_epsilon))


def first_policy(table: pd.DataFrame, epsilon: float) -> str:
    """The best at an epsilon among those that spend it, or the first that can be used."""
    names = choosable(table)
    rows = table[(table["group"] == ALL) & (table["epsilon"] == epsilon) & table["policy"].isin(names)]
    values = dict(zip(rows["policy"], rows["value"], strict=True))
    private = [name for name in names if CATALOGUE[name].uses_epsilon]
    return best_first(private, values)[0] if private else names[0]


def _series(rows: pd.DataFrame, probabilities: pd.DataFrame, shown: frozenset[str]) -> dict[str, Any]:
    """The numbers of one policy over epsilon; under "p", of each example patient and action."""
    ordered = rows.sort_values("epsilon")
    found: dict[str, Any]
    if {f"{name}_low" for name in ESTIMATES} <= set(ordered.columns):
        found = {name: ordered[name].tolist() for name in ESTIMATES}
        found["texts"] = {name: _with_intervals(ordered, name) for name in ESTIMATES}
    else:
        found = {
            name: (ordered[column] * scale).tolist()
            for name, (column, scale) in COLUMNS.items()
            if column in shown and not ordered[column].isna().all()
        }
        found["texts"] = {}
    grid = probabilities.pivot_table(index=["patient", "action"], columns="epsilon", values="probability", sort=False)
    curves = grid.sort_index(axis=1).to_numpy().tolist()
    n_actions = probabilities["action"].nunique()
    found["guesses"] = [words.guesses(loss) for loss in ordered["guarantee"]]
    found["odds"] = [
        words.policy_odds(name, epsilon, loss, uses_epsilon=CATALOGUE[name].uses_epsilon)
        for name, epsilon, loss in zip(ordered["policy"], ordered["epsilon"], ordered["guarantee"], strict=True)
    ]
    found["p"] = [curves[start : start + n_actions] for start in range(0, len(curves), n_actions)]
    return found


def _with_intervals(rows: pd.DataFrame, name: str) -> list[str]:
    ends = zip(rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return [words.with_interval(*triple, sign=name == "difference") for triple in ends]


def _compact(found: Mapping[str, Any]) -> dict[str, Any]:
    """Six digits, and one number where it is the same at every epsilon."""

    def short(values: Any) -> Any:
        if isinstance(values, dict):
            return {name: short(listed) for name, listed in values.items()}
        if isinstance(values[0], list):
            return [short(value) for value in values]
        listed = [value if isinstance(value, str) else _short(value) for value in values]
        return listed[:1] if len(set(listed)) == 1 else listed

    return {name: short(values) for name, values in found.items()}


def _short(value: float) -> float | int | str | None:
    text = six_digits(value)
    if not text or math.isinf(value):
        # JSON has neither.
        return text or None
    number = float(text)
    return int(number) if number == int(number) else number


def _script_json(document: Mapping[str, Any]) -> Markup:
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Nothing in a script element may look like its end.
    return Markup(text.replace("<", "\\u003c"))


# Values that agree to so many decimals are equal.
EQUAL = 9


def best_first(names: Iterable[str], values: Mapping[str, float]) -> list[str]:
    """Policies by value, best first; the optimum before what is as good but for rounding, others as they come.

    Examples
    --------
    >>> best_first(["exponential", "optimal", "greedy"], {"exponential": 1 + 1e-15, "optimal": 1.0, "greedy": 2.0})
    ['greedy', 'optimal', 'exponential']
    """
    return sorted(names, key=lambda name: (-round(values[name], EQUAL), name != Optimal.name))
