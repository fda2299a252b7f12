"""The small figure that stands for a report where many are shown: the options over ε."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from policysim.question.answer import Drawing
from policysim.study.options_table import BENEFIT, EXPONENTIAL, LOSS, PRIVATE

# What is drawn of the options: the first that there is; its axis, and whether it is a share.
DRAWN = {BENEFIT: ("benefit kept", True), "difference": ("difference", False), LOSS: ("utility lost", False)}


def card_of(tables: Mapping[str, pd.DataFrame]) -> list[Drawing]:
    """The private choice and the exponential mechanism over epsilon; empty where there are fewer than two epsilons."""
    # matplotlib is the slowest import of all; everything before may still fail without it.
    from policysim.figures.card import Curves, card  # noqa: PLC0415

    options = tables["options"]
    row = next(name for name in DRAWN if options["row"].eq(name).any())
    cells = options[options["row"].eq(row) & options["epsilon"].between(0, math.inf, inclusive="neither")]
    lines = {
        option: list(zip(of["epsilon"], of["value"], strict=True))
        for option in (PRIVATE, EXPONENTIAL)
        if len(of := cells[cells["option"].eq(option) & cells["value"].notna()]) > 1
    }
    y, share = DRAWN[row]
    return [card(Curves(lines, x="ε (log scale)", y=y, share=share))] if lines else []
