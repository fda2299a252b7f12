"""The figures of a study of a log; their captions are in `study/findings/trial.toml`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd

from policies.reference import Greedy, Uniform
from policysim import figures
from policysim import numbers as formats
from policysim.figures.curves import MOST_CURVES, choices_seen, lines_seen
from policysim.figures.patients import draw_propensities
from policysim.question.answer import Drawing
from policysim.study.declared import LoggedStudy
from policysim.words import ALL


def drawings_of_trial(study: LoggedStudy, tables: Mapping[str, pd.DataFrame], examples: pd.DataFrame) -> list[Drawing]:
    """The figures that there are, from the tables of a comparison and the cells of example patients."""
    table = tables["comparison"]
    policies = table[~table["policy"].isin([Greedy.name, Uniform.name])]
    made = [gain(table, study.epsilon), groups(policies[policies["epsilon"] == study.epsilon])]
    return [drawing for drawing in (*made, propensities(tables["propensities"]), example_choices(examples)) if drawing]


def gain(table: pd.DataFrame, epsilon: float) -> Drawing | None:
    """What each policy gains over one arm for all at each epsilon; those drawn are chosen at the study's."""
    drawn = figures.over_epsilon(table)
    if drawn.empty:
        return None
    # Percentages are refused on many logs, and differences never: the same figure for all of them.
    plain = drawn.assign(benefit_kept=float("nan"))
    # The line of the arm for all is one of the panel's.
    names = figures.telling(drawn, epsilon=epsilon, most=MOST_CURVES - 1)
    seen = lines_seen(drawn, "difference", partial(formats.rounded, sign=True), epsilon=epsilon, names=names)
    return Drawing(
        "frontier",
        lambda size: figures.frontier(plain, epsilon=epsilon, size=size),
        epsilons=tuple(map(float, sorted(table["epsilon"].unique()))),
        seen=f"{seen}.",
    )


def groups(rows: pd.DataFrame) -> Drawing | None:
    """Against one arm for all, group by group; None without groups."""
    rows = rows[rows["difference"].notna()]
    if rows.empty or (rows["group"] == ALL).all():
        return None
    shown = rows[rows["policy"].isin(figures.telling(rows))]
    ends = ["policy", "difference", "difference_low", "difference_high"]
    told = [
        f"{policy} {formats.supported_digits(*each, sign=True)} ({formats.interval(*each[1:], sign=True)})"
        for policy, *each in shown.loc[shown["group"] == ALL, ends].itertuples(index=False)
    ]
    clear = (shown["difference_low"] > 0) | (shown["difference_high"] < 0)
    return Drawing(
        "forest",
        lambda size: figures.forest(rows, size=size),
        seen=f"Of everyone: {'; '.join(told)}. Of {len(shown)} intervals {int(clear.sum())} exclude 0.",
    )


def propensities(table: pd.DataFrame) -> Drawing | None:
    """How probable the treatments were that patients got; None where that does not vary within the arms."""
    if table.empty:
        return None
    return Drawing("propensities", lambda size: draw_propensities(table, size=size))


def example_choices(examples: pd.DataFrame) -> Drawing:
    """What example patients get by the private choice; `examples` are its cells (`trial_answer`)."""
    names = {"row": "patient", "option": "action", "value": "probability"}
    mine = examples.rename(columns=names).assign(policy="private choice")
    return Drawing(
        "action-probabilities",
        lambda size: figures.action_probabilities(mine, size=size),
        epsilons=tuple(map(float, sorted(mine["epsilon"].unique()))),
        seen=choices_seen(mine, 1.0),
    )
