"""Draws the pictures of docs/figures.md: python docs/figures/draw.py FOLDER NAME..., all of them by default.

Run `make report` and `make reports` first: it reads the tables under reports/. Pictures are small: for a page of text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from PIL import Image

import policysim as ps
from policysim import figures

ROOT = Path(__file__).parents[2]
DOTS, COLOURS = 75, 64  # per inch; of a picture


def table(report: str, name: str) -> pd.DataFrame:
    """A table of a report."""
    return pd.read_csv(ROOT / "reports" / report / f"{name}.csv")


def at_one(report: str) -> pd.DataFrame:
    """The comparison of a report at ε = 1."""
    rows = table(report, "comparison")
    found: pd.DataFrame = rows[rows["epsilon"] == 1]
    return found


def examples(report: str) -> pd.DataFrame:
    """What example patients get under the optimum."""
    rows = table(report, "examples")
    found: pd.DataFrame = rows[rows["policy"] == "optimal"]
    return found


def ways_to_publish(study: str) -> pd.DataFrame:
    """What each way to publish costs, at several ε."""
    return ps.ways_to_publish(ps.build_problem(ps.load_study(study)), [0.1, 0.3, 0.5, 1, 2, 3, 5, 10])


FIGURES: dict[str, Callable[[], Figure]] = {
    "frontier": lambda: figures.frontier(table("covid", "comparison")),
    "benefit_vs_harm": lambda: figures.benefit_vs_harm(table("covid", "frontier"), table("covid", "comparison")),
    "benefit_parts": lambda: figures.benefit_parts(table("covid", "losses-by-outcome")),
    "loss_by_group": lambda: figures.loss_by_group(at_one("covid")),
    "patient_losses": lambda: figures.patient_losses(table("covid", "patient-losses")),
    "action_probabilities": lambda: figures.action_probabilities(examples("covid")),
    "price_bars": lambda: figures.price_bars(table("covid", "price-list")),
    "forest": lambda: figures.forest(at_one("actg175")),
    "value_over_days": lambda: figures.value_over_days(table("covid-14-days", "comparison")),
    "ways_over_days": lambda: figures.ways_over_days(table("covid-14-days", "ways")),
    "published_over_days": lambda: figures.published_over_days(table("covid-14-days", "published")),
    "publishing": lambda: figures.publishing(ways_to_publish("covid")),
}


def draw(folder: Path, names: list[str]) -> None:
    """Write NAME.png for each name."""
    for name in names:
        picture = BytesIO()
        FIGURES[name]().savefig(picture, format="png", dpi=DOTS)
        # So few colours need half the bytes.
        Image.open(picture).convert("RGB").quantize(COLOURS).save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent), sys.argv[2:] or list(FIGURES))
