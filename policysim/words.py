"""Names that tables share, words that many parts say, and the lines of a screen that they stand in."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal, TypeAlias

# In tables: all patients; and in the place of a policy's name, the schedule for all, one private draw of a schedule,
# reactions within a tree of courses, and the bounds of the limit.
ALL, BEST_SCHEDULE, PLAN_ONCE, PLAN_TREE = "all", "best-schedule", "plan-once", "plan-tree"
ACHIEVABLE, UNBEATABLE = "optimal-achievable", "optimal-unbeatable"
# The ways to publish treatments.
NOTHING, NOISY_TABLE, NOISY_VALUES, TRUEST = "nothing", "noisy table", "noisy values", "noisy values, most true"
PRIVATE_DRAW, PRIVATE_RECORD, SAME, AS_IT_IS = "private draw", "private record", "the same for everyone", "as it is"
# A policy that keeps less than what is proven to be the most by no more than this, as a share, keeps the most.
TIGHT = 1e-6
# The benefit kept that tables and headlines ask for.
KEEP = 0.8
ASSUMED_PUBLIC = "the domain, the prior, the utility model, the base measure and the choice of ε"
NO_ADVICE = "not medical advice"
# The advice of a log with signs of errors that no interval covers.
UNANSWERABLE = "This log cannot answer the question: see the warning."


def guesses(loss: float) -> float:
    """e^loss / (1 + e^loss): no mechanism of this loss lets a guess between two equally likely neighbours do better."""
    return 1 / (1 + math.exp(-loss))


def odds_factor(loss: float) -> float:
    """e^loss: the most by which a treatment of this loss changes the odds of any fact; inf beyond the largest float."""
    return math.exp(loss) if loss < math.log(sys.float_info.max) else math.inf


def in_a_row(names: Sequence[str], last: str) -> str:
    """Names after commas, and a word before the last.

    Examples
    --------
    >>> in_a_row(["age", "sex", "asthma"], "and")
    'age, sex and asthma'
    """
    return f" {last} ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def unused(features: Iterable[str] = ("what is hidden",)) -> str:
    """A sentence on hidden features, by default all, without effect on the choice: the model has no price for them."""
    names = [name.replace("_", " ") for name in features]
    it = "it" if len(names) == 1 else "them"
    return (
        f"Under this model no choice of a treatment depends on {in_a_row(names, 'or')}, so it has no price for hiding "
        f"{it}."
    )


def capital(text: str, others: Collection[str] = ()) -> str:
    """A text that begins with a capital letter; as it is where it would then be one of the others.

    Examples
    --------
    >>> capital("heparin"), capital("a for all", ["A for all", "a for all"])
    ('Heparin', 'a for all')
    """
    made = f"{text[:1].upper()}{text[1:]}"
    return text if made in others else made


def level_name(group: str, level: str) -> str:
    """A group of patients in words; without a level, the group is one that the scenario has words for."""
    name = group.replace("_", " ")
    if not level:
        return group
    return {"0": f"not {name}", "1": name}.get(level, f"{name} {level}") if group != "sex" else f"sex {level}"


def attains(kept: float, most: float) -> bool:
    """Whether a policy keeps the most that any can; False where it is not proven (NaN) what that is."""
    return kept >= most - TIGHT


# Exact planning keeps the Q-values of every day: more days than a year are surely a mistake.
MOST_DAYS = 366

# What a figure is laid out for.
SizeName: TypeAlias = Literal["page", "column", "slide"]

# How the name of a policy begins that gives everyone one treatment.
FOR_ALL = "for all: "

# Better in so many versions of the model is better, in so few is worse; between them the model cannot show it.
SURE, UNLIKELY = 0.9, 0.1

# Characters of a line: as many as the terminal has, within these; the most where there is none.
NARROWEST, WIDEST = 40, 100


def line_width() -> int:
    """Characters that a line has room for; the environment's COLUMNS says how wide a terminal is, if it is set."""
    return max(NARROWEST, min(WIDEST, shutil.get_terminal_size((WIDEST, 24)).columns))


def in_lines(text: str, width: int, **options: Any) -> list[str]:
    """The lines of a text, with the options of `textwrap.wrap`; none ends within "ε = 1".

    Examples
    --------
    >>> in_lines("hides it up to ε = 1", 18)
    ['hides it up to', 'ε = 1']
    """
    held = text.replace("ε = ", "ε\u00a0=\u00a0")
    lines = textwrap.wrap(held, width, break_on_hyphens=False, **options)
    return [line.replace("ε\u00a0=\u00a0", "ε = ") for line in lines]


def wrapped(*texts: str, indent: str = "", later: str = "") -> list[str]:
    """Lines that the screen has room for; what the first of a text begins with, and the others."""
    indents = {"initial_indent": indent, "subsequent_indent": later}
    return [line for text in texts for line in in_lines(text, line_width(), **indents)]


def cells(values: list[str], widths: tuple[int, ...]) -> str:
    """One line: the first value to the left of its column, the others to the right of theirs."""
    first, *others = values
    # A value that is too wide moves the line; it never runs into its neighbour.
    padded = [f" {value}".rjust(width) for value, width in zip(others, widths[1:], strict=True)]
    return (first.ljust(widths[0]) + "".join(padded)).rstrip()
