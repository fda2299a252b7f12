"""What follows the slider, as numbers: of each policy over epsilon, and as JSON for the script of a page."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Any

import pandas as pd
from markupsafe import Markup

from policies.catalogue import CATALOGUE
from policysim.question import words
from policysim.question.shown import six_digits

# The columns of a comparison that follow the slider.
COLUMNS = ("loss", "benefit_kept", "extra_deaths", "worse_than_untreated", "better_than_untreated", "guess_rate")
# Those of a comparison on a log in their place: estimates, said with their 95 % intervals.
ESTIMATES = ("value", "difference")
# What else is told of a policy on a log.
ESTIMATED_RISK = ("guess_rate",)
# What a policy has beside one list of numbers for each name.
NESTED = ("p", "groups", "texts", "guesses", "odds")


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
    curves = _over_epsilon(probabilities, ["patient", "action"], "probability")
    n_actions = probabilities["action"].nunique()
    found["p"] = [curves[start : start + n_actions] for start in range(0, len(curves), n_actions)]
    found["groups"] = _over_epsilon(groups, ["group", "level"], "loss") if len(groups) else []
    return found


def _over_epsilon(rows: pd.DataFrame, index: Sequence[str], values: str) -> list[list[float]]:
    grid = rows.pivot_table(index=list(index), columns="epsilon", values=values, sort=False)
    curves: list[list[float]] = grid.sort_index(axis=1).to_numpy().tolist()
    return curves


def _with_intervals(rows: pd.DataFrame, name: str) -> list[str]:
    ends = zip(rows[name], rows[f"{name}_low"], rows[f"{name}_high"], strict=True)
    return [words.with_interval(*triple, sign=name == "difference") for triple in ends]


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
    usual = _compact("guesses", [words.guesses(value) for value in epsilons])
    found = {
        name: {key: _compact(key, values) for key, values in each.items() if values} for name, each in policies.items()
    }
    document = {
        "epsilons": [_short(value) for value in epsilons],
        "labels": [words.plain(value) for value in epsilons],
        "guesses": usual,
        "odds": words.ODDS,
        "count": count,
        **({} if deaths is None else {"deaths": float(words.in_digits(deaths)), "places": places}),
        "actions": list(actions),
        "policies": {
            name: {key: values for key, values in each.items() if (key, values) != ("guesses", usual)}
            for name, each in found.items()
        },
    }
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Nothing in a script element may look like its end.
    return Markup(text.replace("<", "\\u003c"))


def _compact(name: str, values: Any) -> Any:
    """One number where it is the same at every epsilon."""
    if isinstance(values, dict):
        return {key: _compact(key, listed) for key, listed in values.items()}
    if isinstance(values[0], list):
        return [_compact(name, each) for each in values]
    write = _WRITTEN.get(name, _short)
    listed = [value if isinstance(value, str) else write(value) for value in values]
    return listed[:1] if len(set(listed)) == 1 else listed


def _short(value: float) -> float | int | str | None:
    text = six_digits(value)
    # JSON has neither infinity nor NaN.
    return text or None if not text or math.isinf(value) else _number(text)


def _number(text: str) -> float | int:
    number = float(text)
    return int(number) if number == int(number) else number


def _rate(value: float) -> float | int | None:
    """Six decimals, never below it: the page rounds guess rates up."""
    if math.isnan(value):
        return None
    return _number(str(Decimal(repr(words.steady(value))).quantize(Decimal("1e-6"), rounding=ROUND_CEILING)))


# Of single patients in whole per cent, of groups in two digits, of guesses in tenths of 100: as the page has them.
_WRITTEN: dict[str, Callable[[float], float | int | str | None]] = {
    "p": lambda share: round(words.steady(100 * share)),
    "groups": lambda loss: 0 if abs(loss) < words.NEGLIGIBLE else _number(f"{words.steady(loss):.{words.DIGITS}g}"),
    "guesses": lambda share: _number(words.of_100(share)),
    "guess_rate": _rate,
}
