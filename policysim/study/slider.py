"""The slider: what follows epsilon and policy, as text for the page and as numbers for its script.

The one rule by which page and answer name the best policy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from markupsafe import Markup
from numpy.typing import NDArray

from policies.arrays import ROUNDING
from policies.catalogue import CATALOGUE
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.question import formats, words
from policysim.question.formats import script_value, script_values, written
from policysim.question.protocol import SILENT, Progress
from policysim.question.words import ALL
from policysim.study.declared import Study
from policysim.study.example_patients import example_patients, example_probabilities

# The columns of a comparison that follow the slider.
COLUMNS = ("loss", "benefit_kept", "extra_deaths", "guess_rate")
# Those of a comparison on a log in their place: estimates, said with their 95 % intervals.
ESTIMATES = ("value", "difference")
# What else is told of a policy on a log.
ESTIMATED_RISK = ("guess_rate",)
# What a policy has beside one list of numbers for each name.
NESTED = ("p", "groups", "texts", "guesses", "odds")


@dataclass(frozen=True)
class Patient:
    """An example patient on the page.

    Name, description, p(a) of each action, the actions that are not allowed, and those that none is better than.
    """

    label: str
    description: str
    probabilities: Mapping[str, float]
    not_allowed: frozenset[str] = frozenset()
    best: frozenset[str] = frozenset()


@dataclass(frozen=True)
class GroupNow:
    """A group of patients on the page: its name and share, and what it loses per patient, also with one for all.

    `part` is its loss beside the largest of its policy.
    """

    name: str
    share: float
    loss: float
    for_all: float
    part: float


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
        Of `COLUMNS` what the comparison has, or else `ESTIMATES`, at this position.
    for_all : mapping of str to float
        The same of one treatment for all; empty where that was not compared.
    texts : mapping of str to str
        The estimates with their intervals, at this position.
    odds : str
        What the policy's guarantee means to somebody who guesses.
    right_guesses : float
        How often the better guess is right.
    patients : tuple of Patient
        What example patients get.
    groups : tuple of GroupNow
        Who bears the loss; empty without groups, and for estimates.
    count : int
        Among how many patients extra deaths are counted.
    deaths : mapping of str to float
        Deaths per patient that the policy's stand beside, by choice; the first is what extra deaths are beyond. Empty
        where they are not told.
    places : int
        The decimals with which they are.
    numbers : Markup
        All of it at every epsilon, as JSON that can stand in a script element.
    """

    epsilons: tuple[float, ...]
    position: int
    policy: str
    policies: tuple[str, ...]
    now: Mapping[str, float]
    for_all: Mapping[str, float]
    texts: Mapping[str, str]
    odds: str
    right_guesses: float
    patients: tuple[Patient, ...]
    groups: tuple[GroupNow, ...]
    count: int
    deaths: Mapping[str, float]
    places: int
    numbers: Markup

    @property
    def epsilon(self) -> float:
        """At this position."""
        return self.epsilons[self.position]

    @property
    def own_deaths(self) -> float:
        """Deaths per patient under the policy, at this position; NaN where they are not told."""
        return next(iter(self.deaths.values()), math.nan) + self.now.get("extra_deaths", math.nan)


def make_slider(
    table: pd.DataFrame,
    probabilities: pd.DataFrame,
    descriptions: Mapping[str, str],
    *,
    epsilon: float,
    policy: str,
    not_allowed: Mapping[str, frozenset[str]] | None = None,
    best: Mapping[str, frozenset[str]] | None = None,
    count: int = 100_000,
    deaths: Mapping[str, float] | None = None,
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
    best : mapping of str to set of str, optional
        The actions that no other is better than for them, likewise.
    count : int, optional
        Among how many patients extra deaths are counted.
    deaths : mapping of str to float, optional
        Deaths per patient, by choice: first those that extra deaths are beyond.
    """
    overall = table[(table["group"] == ALL) & table["policy"].isin(choosable(table))]
    epsilons = tuple(float(value) for value in sorted(overall["epsilon"].unique()))
    policies = choosable(overall)
    position = epsilons.index(epsilon)
    actions = [str(name) for name in dict.fromkeys(probabilities["action"])]
    # Where no record can die, there are no deaths to tell.
    nobody_dies = "expected_deaths" not in overall or not (overall["expected_deaths"] > 0).any()
    told = frozenset(str(name) for name in overall if name != "extra_deaths" or not nobody_dies)
    grouped = _groups(table)
    found = {
        name: series(
            overall[overall["policy"] == name],
            probabilities[probabilities["policy"] == name],
            grouped[grouped["policy"] == name],
            told,
        )
        for name in policies
    }
    places = formats.apart((deaths or {}).values(), count)
    at_start, for_all = found[policy], found.get(BestFixed.name, {})
    return Slider(
        epsilons=epsilons,
        position=position,
        policy=policy,
        policies=policies,
        now=_numbers_at(at_start, position),
        for_all=_numbers_at(for_all, position),
        texts={name: said[position] for name, said in at_start["texts"].items()},
        odds=at_start["odds"][0] if at_start["odds"] else words.odds(epsilon, at_start["guesses"][position]),
        right_guesses=at_start["guesses"][position],
        patients=tuple(
            Patient(
                label,
                words_for,
                {action: curve[position] for action, curve in zip(actions, at_start["p"][place], strict=True)},
                (not_allowed or {}).get(label, frozenset()),
                (best or {}).get(label, frozenset()),
            )
            for place, (label, words_for) in enumerate(descriptions.items())
        ),
        groups=_groups_now(grouped, at_start["groups"], for_all.get("groups", ()), position),
        count=count,
        deaths=deaths or {},
        places=places,
        numbers=script_numbers(
            epsilons, actions, count, found, deaths=next(iter((deaths or {}).values()), None), places=places
        ),
    )


def _numbers_at(found: Mapping[str, Any], position: int) -> dict[str, float]:
    return {name: values[position] for name, values in found.items() if name not in NESTED}


def _groups_now(
    rows: pd.DataFrame, losses: Sequence[Sequence[float]], for_all: Sequence[Sequence[float]], position: int
) -> tuple[GroupNow, ...]:
    names = rows[["group", "level", "share"]].drop_duplicates(["group", "level"]).to_numpy().tolist() if losses else []
    most = max((each[position] for each in losses), default=0.0)
    return tuple(
        GroupNow(
            words.level_name(str(group), str(level)),
            float(share),
            loss[position],
            fixed[position],
            max(0.0, loss[position] / most) if most > 0 else 0.0,
        )
        for (group, level, share), loss, fixed in zip(names, losses, for_all or losses, strict=True)
    )


def _groups(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of groups whose losses are known: each group that there is, and no estimate."""
    if "loss" not in table or "value_low" in table:
        return table[:0]
    return table[(table["group"] != ALL) & table["loss"].notna() & table["policy"].isin(choosable(table))]


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
    probabilities: pd.DataFrame | None = None,
    *,
    count: int = 100_000,
    deaths: Mapping[str, float] | None = None,
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
    probabilities : DataFrame, optional
        What they give the example patients, if that is known.
    count, deaths : int, mapping of str to float, optional
        As in `make_slider`.
    """
    examples = example_patients(problem, study.illness)
    if probabilities is None:
        policies = [study.policy(name) for name in choosable(table)]
        probabilities = written(example_probabilities(problem, examples, policies, study.epsilons, progress))
    not_allowed, best = {}, {}
    for example in examples:
        row = problem.utilities[example.record]
        allows = np.ones(len(row)) if problem.admissible is None else problem.admissible[example.record]
        not_allowed[example.label] = _where(problem, allows == 0)
        # None has a higher utility, but for rounding.
        best[example.label] = _where(problem, row >= row.max() - ROUNDING * np.abs(row).max())
    slider = make_slider(
        table,
        probabilities,
        {example.label: problem.records.describe(example.record) for example in examples},
        epsilon=study.epsilon,
        policy=first_policy(table, study.epsilon),
        not_allowed=not_allowed,
        best=best,
        count=count,
        deaths=deaths,
    )
    return Shown(probabilities, slider)


def _where(problem: DecisionProblem, holds: NDArray[np.bool_]) -> frozenset[str]:
    """The actions of which something holds."""
    return frozenset(action for action, true in zip(problem.actions, holds, strict=True) if true)


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


def series(
    rows: pd.DataFrame, probabilities: pd.DataFrame, groups: pd.DataFrame, shown: frozenset[str]
) -> dict[str, Any]:
    """The numbers of one policy over epsilon.

    Parameters
    ----------
    rows : DataFrame
        Of a comparison, one for each epsilon.
    probabilities : DataFrame
        From `example_probabilities`: under "p", of each example patient and action.
    groups : DataFrame
        Of the same comparison, a row for each group and epsilon: under "groups", what each loses.
    shown : set of str
        The columns that are told.
    """
    ordered = rows.sort_values("epsilon")
    found: dict[str, Any]
    if {f"{name}_low" for name in ESTIMATES} <= set(ordered.columns):
        found = {name: ordered[name].tolist() for name in ESTIMATES}
        found |= {name: ordered[name].tolist() for name in ESTIMATED_RISK if name in ordered}
        found["texts"] = {name: _with_intervals(ordered, name) for name in ESTIMATES}
    else:
        found = {name: ordered[name].tolist() for name in COLUMNS if name in shown and not ordered[name].isna().all()}
        found["texts"] = {}
    found["guesses"] = [words.guesses(loss) for loss in ordered["guarantee"]]
    name, epsilon, loss = (ordered[column].iloc[0] for column in ("policy", "epsilon", "guarantee"))
    # What is said of an epsilon is the same for all that spend it.
    own = not CATALOGUE[name].uses_epsilon
    found["odds"] = [words.policy_odds(name, epsilon, loss, uses_epsilon=False)] if own else []
    curves = _curves(probabilities, ["patient", "action"], "probability")
    n_actions = probabilities["action"].nunique()
    found["p"] = [curves[start : start + n_actions] for start in range(0, len(curves), n_actions)]
    found["groups"] = _curves(groups, ["group", "level"], "loss") if len(groups) else []
    return found


def _curves(rows: pd.DataFrame, index: Sequence[str], values: str) -> list[list[float]]:
    grid = rows.pivot_table(index=list(index), columns="epsilon", values=values, sort=False)
    curves: list[list[float]] = grid.sort_index(axis=1).to_numpy().tolist()
    return curves


def _with_intervals(rows: pd.DataFrame, name: str) -> list[str]:
    ends = zip(rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return [formats.with_interval(*triple, sign=name == "difference") for triple in ends]


def script_numbers(
    epsilons: Sequence[float],
    actions: Sequence[str],
    count: int,
    policies: Mapping[str, Mapping[str, Any]],
    *,
    deaths: float | None = None,
    places: int = 0,
) -> Markup:
    """What a page's script knows, as JSON that can stand in a script element.

    Numbers have six digits, those of single patients and groups as many as the page shows. What is the same at every
    epsilon is there once, and so is what most policies promise.

    Parameters
    ----------
    epsilons, actions : sequence of float, sequence of str
        The positions; the actions of "p", in their order.
    count : int
        Among how many patients extra deaths are counted.
    policies : mapping of str to mapping
        From `series`.
    deaths : float, optional
        Those per patient that extra deaths are beyond; none where they are not told.
    places : int, optional
        The decimals of deaths among `count` patients.
    """
    usual = script_values("guesses", [words.guesses(value) for value in epsilons])
    found = {
        name: {key: script_values(key, values) for key, values in each.items() if values}
        for name, each in policies.items()
    }
    document = {
        "epsilons": [script_value("epsilons", value) for value in epsilons],
        "labels": [formats.plain(value) for value in epsilons],
        "guesses": usual,
        "odds": words.ODDS,
        "count": count,
        **({} if deaths is None else {"deaths": float(formats.in_digits(deaths)), "places": places}),
        "actions": list(actions),
        "policies": {
            name: {key: values for key, values in each.items() if (key, values) != ("guesses", usual)}
            for name, each in found.items()
        },
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Nothing in a script element may look like its end.
    return Markup(text.replace("<", "\\u003c"))
