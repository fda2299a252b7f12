"""The slider: what follows epsilon and policy, as text for the page and as numbers for its script.

The one rule by which page and answer name the best policy.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from policies.catalogue import CATALOGUE
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policies.reference import BestFixed
from policysim.question import words
from policysim.question.answer import written
from policysim.question.protocol import SILENT, Progress
from policysim.question.shown import six_digits
from policysim.question.words import ALL
from policysim.study.declared import Study
from policysim.study.example_patients import ExampleRows, example_patients, example_probabilities

# What a policy has beside one list of numbers for each name.
NESTED = ("p", "groups", "texts", "guesses", "odds")
# The columns of a comparison that follow the slider; extra deaths as so many of the page's patients, guess rates as so
# many of 100.
COLUMNS = (
    "loss",
    "benefit_kept",
    "extra_deaths",
    "worse_than_untreated",
    "better_than_untreated",
    "guess_rate",
)
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
        The entries of `COLUMNS` that the comparison has, or `ESTIMATES`, at this position.
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
    count: int = 100_000,
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
    count : int, optional
        Among how many patients extra deaths are counted.
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
    series = {
        name: {
            **_series(overall[overall["policy"] == name], told, count),
            "p": _curves(probabilities[probabilities["policy"] == name]),
            **({} if grouped.empty else {"groups": _group_losses(grouped[grouped["policy"] == name])}),
        }
        for name in policies
    }
    at_start, for_all = series[policy], series.get(BestFixed.name, {})
    # What most policies say is there once.
    usual = [_of_100(words.guesses(value)) for value in epsilons]
    own = {
        name: {key: said for key, said in found.items() if said and (key, said) != ("guesses", usual)}
        for name, found in series.items()
    }
    numbers = {
        "epsilons": [_short(value) for value in epsilons],
        "labels": [words.plain(value) for value in epsilons],
        "guesses": usual,
        "odds": words.ODDS,
        "count": f"{count:,}",
        "actions": actions,
        "policies": {name: _compact(found) for name, found in own.items()},
    }
    guessed = at_start["guesses"][position]
    return Slider(
        epsilons=epsilons,
        position=position,
        policy=policy,
        policies=policies,
        now=_numbers_at(at_start, position),
        for_all=_numbers_at(for_all, position),
        texts={name: said[position] for name, said in at_start["texts"].items()},
        odds=at_start["odds"][0] if at_start["odds"] else words.odds(epsilon, guessed / 100),
        right_guesses=guessed / 100,
        patients=tuple(
            Patient(
                label,
                words_for,
                {action: found[position] / 100 for action, found in zip(actions, at_start["p"][place], strict=True)},
                (not_allowed or {}).get(label, frozenset()),
            )
            for place, (label, words_for) in enumerate(descriptions.items())
        ),
        groups=_groups_now(grouped, at_start.get("groups", ()), for_all.get("groups", ()), position),
        count=count,
        numbers=_script_json(numbers),
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
    kept: ExampleRows | None = None,
    *,
    count: int = 100_000,
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
    count : int, optional
        Among how many patients extra deaths are counted.
    """
    examples = example_patients(problem, study.space, study.illness)
    policies = [study.policy(name) for name in choosable(table)]
    probabilities = written(example_probabilities(problem, examples, policies, study.epsilons, progress, kept=kept))
    described = {example.label: problem.records.describe(example.record) for example in examples}
    policy = first_policy(table, study.epsilon)
    not_allowed = {} if problem.admissible is None else {e.label: _not_allowed(problem, e.record) for e in examples}
    slider = make_slider(
        table,
        probabilities,
        described,
        epsilon=study.epsilon,
        policy=policy,
        not_allowed=not_allowed,
        count=count,
    )
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


def _series(rows: pd.DataFrame, shown: frozenset[str], count: int) -> dict[str, Any]:
    """The numbers of one policy over epsilon."""
    ordered = rows.sort_values("epsilon")
    found: dict[str, Any]
    if {f"{name}_low" for name in ESTIMATES} <= set(ordered.columns):
        found = {name: ordered[name].tolist() for name in ESTIMATES}
        found["texts"] = {name: _with_intervals(ordered, name) for name in ESTIMATES}
    else:
        found = {name: ordered[name].tolist() for name in COLUMNS if name in shown and not ordered[name].isna().all()}
        if "extra_deaths" in found:
            found["extra_deaths"] = [rate * count for rate in found["extra_deaths"]]
        if "guess_rate" in found:
            found["guess_rate"] = [_of_100(rate, words.guess_rate) for rate in found["guess_rate"]]
        found["texts"] = {}
    found["guesses"] = [_of_100(words.guesses(loss)) for loss in ordered["guarantee"]]
    name, epsilon, loss = (ordered[column].iloc[0] for column in ("policy", "epsilon", "guarantee"))
    # What a mechanism says of its epsilon is said once, for all of them.
    own = not CATALOGUE[name].uses_epsilon
    found["odds"] = [words.policy_odds(name, epsilon, loss, uses_epsilon=False)] if own else []
    return found


def _of_100(share: float, written: Callable[[float], str] = words.of_100) -> float:
    """So many of 100, as the page has it."""
    return math.nan if math.isnan(share) else float(written(share))


def _curves(probabilities: pd.DataFrame) -> list[list[list[int]]]:
    """What each example patient gets of each action over epsilon, in whole per cent as the page has it."""
    grid = probabilities.pivot_table(index=["patient", "action"], columns="epsilon", values="probability", sort=False)
    shares = (100 * grid.sort_index(axis=1)).map(words.steady).round().astype(int)
    curves, n_actions = shares.to_numpy().tolist(), probabilities["action"].nunique()
    return [curves[start : start + n_actions] for start in range(0, len(curves), n_actions)]


def _group_losses(rows: pd.DataFrame) -> list[list[float]]:
    """The loss of each group over epsilon, in two digits as the page has it."""
    grid = rows.pivot_table(index=["group", "level"], columns="epsilon", values="loss", sort=False)
    losses = grid.sort_index(axis=1).map(lambda loss: float(f"{words.steady(loss):.{words.DIGITS}g}"))
    return [[0.0 if abs(loss) < words.NEGLIGIBLE else loss for loss in row] for row in losses.to_numpy().tolist()]


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
