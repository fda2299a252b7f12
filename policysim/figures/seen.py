"""What is seen in a figure, in words, for readers who cannot see it: the numbers that its lines, dots and bars show."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd

from policysim.figures.curves import names_of
from policysim.figures.looks import is_level
from policysim.question.formats import percent, plain, rounded
from policysim.question.words import in_a_row

# A change by less, of the range of all that is drawn, is none to the eye.
FLAT = 0.002


def lines_seen(
    rows: pd.DataFrame,
    column: str,
    write: Callable[[float], str],
    *,
    epsilon: float,
    names: Sequence[str] | None = None,
    by: str = "policy",
    along: str = "epsilon",
    along_words: str = "ε",
) -> str:
    """Where each line of a panel begins, where it is at one epsilon, where it ends, and its top between if it has one.

    Parameters
    ----------
    rows : DataFrame
        What is drawn: `by`, `along`, `column`.
    column : str
        The numbers.
    write : callable
        How a number is written, with its unit.
    epsilon : float
        The place between the ends that is told, if it is between them: the nearest one of the rows.
    names : sequence of str, optional
        The lines that are drawn; all by default.
    by, along, along_words : str, optional
        The columns of the lines' names and of the horizontal axis, and what the latter is called.

    Returns
    -------
    str
        "optimal rises from 0 % at ε = 0.05 over 30 % at ε = 1 to 100 % at ε = 20; …".
    """
    some = rows[rows[column].notna()]
    room = FLAT * float(some[column].max() - some[column].min()) if len(some) else 0.0
    said = []
    for name in names_of(some, by) if names is None else names:
        line = some[some[by] == name].sort_values(along)
        points = [(float(x), float(y)) for x, y in zip(line[along], line[column], strict=True)]
        if by == "policy" and is_level(name):
            points = [(x, points[0][1]) for x, _ in points]
        if points:
            said.append(f"{name} {_of_line(points, lambda x: f'{along_words} = {plain(x)}', write, epsilon, room)}")
    return "; ".join(said)


def _of_line(
    points: Sequence[tuple[float, float]],
    at: Callable[[float], str],
    write: Callable[[float], str],
    epsilon: float,
    room: float,
) -> str:
    (x0, first), (x1, last) = points[0], points[-1]
    low, high = (which(points, key=lambda point: point[1]) for which in (min, max))
    if high[1] - low[1] <= room:
        return f"is at {write(first)} {'throughout' if len(points) > 1 else f'at {at(x0)}'}"
    between = [
        point for point in points[1:-1] if point[0] == min((x for x, _ in points), key=lambda x: abs(x - epsilon))
    ]
    through = "".join(f" over {write(y)} at {at(x)}" for x, y in between)
    verb = "rises" if last > first + room else "falls" if last < first - room else "goes"
    turn = ""
    if high[1] > max(first, last) + room:
        turn = f", with a top of {write(high[1])} at {at(high[0])}"
    elif low[1] < min(first, last) - room:
        turn = f", with a low of {write(low[1])} at {at(low[0])}"
    return f"{verb} from {write(first)} at {at(x0)}{through} to {write(last)} at {at(x1)}{turn}"


def spending_seen(spending: pd.DataFrame, epsilon: float) -> str:
    """What each policy spends of the epsilon that it is given.

    Parameters
    ----------
    spending : DataFrame
        From `policysim.figures.spenders`.
    epsilon : float
        Where it is told beside the ends.
    """
    some = spending[spending["epsilon_spent"].notna()]
    all_of_it = some.groupby("policy", sort=False)[["epsilon", "epsilon_spent"]].apply(
        lambda of: bool((of["epsilon_spent"] >= (1 - FLAT) * of["epsilon"]).all())
    )
    whole = [str(name) for name in all_of_it.index[all_of_it]]
    rest = some[~some["policy"].isin(whole)]
    said = [f"{in_a_row(whole, 'and')} spend{'s' * (len(whole) == 1)} all of it wherever any is spent"] if whole else []
    lines = lines_seen(rest, "epsilon_spent", rounded, epsilon=epsilon, names=names_of(rest, "policy"))
    return f"Of the ε claimed: {'; '.join([*said, *([lines] if lines else [])])}."


def choices_seen(choices: pd.DataFrame, epsilon: float) -> str:
    """What example patients most probably get at one epsilon, and how probably.

    Parameters
    ----------
    choices : DataFrame
        Of one policy: patient, epsilon, action, probability.
    epsilon : float
        The nearest one of the table is told.
    """
    finite = choices[(choices["epsilon"] > 0) & (choices["epsilon"] < float("inf"))]
    told = []
    for patient, rows in finite.groupby("patient", sort=False):
        distance = (rows["epsilon"] - epsilon).abs()
        near = rows[distance == distance.min()]
        most = near.iloc[int(near["probability"].to_numpy().argmax())]
        told.append(f"“{patient}” gets {most['action']} in {percent(float(most['probability']))} of cases")
    at = "" if finite.empty else f"At ε = {plain(float(near['epsilon'].iloc[0]))}: "
    return f"{at}{'; '.join(told)}." if told else ""
