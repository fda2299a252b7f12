"""Draws the pictures of docs/figures.md and docs/exponential.md: python docs/figures/draw.py FOLDER NAME...

It draws all of them by default. Run `make report` and `make reports` first: it reads the tables under reports/.
Pictures are small: for a page of text.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from PIL import Image

import policysim as ps
from policies.boxes import Boxes, log_rows
from policies.distinct import once_each
from policies.exponential import Exponential
from policysim import figures
from policysim.figures.lettering import set_log_ticks
from policysim.figures.looks import GREY, canvas

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


def acceptability() -> Figure:
    """Whether B is better than A on the ward, over what a death weighs."""
    report = ps.report(ROOT / "examples" / "ward" / "study.toml", epsilons=[1.0])
    return figures.acceptability(report.tables["acceptability"], stated=20, one="a death")


def trade_off() -> Figure:
    """How well any test tells two patients of the ward apart, under randomised response at ε = 1."""
    problem = ps.build_problem(ps.load_study(ROOT / "examples" / "ward" / "study.toml"))
    return figures.trade_off(ps.trade_off(ps.make_policy("randomized-response", epsilon=1.0).fit(problem)))


# The outcome that leads covid, and what it is called.
LEAD, TITLES = "death", {"death": "deaths"}
FIGURES: dict[str, Callable[[], Figure]] = {
    "frontier": lambda: figures.frontier(table("covid", "comparison"), lead=LEAD, titles=TITLES),
    "benefit_vs_harm": lambda: figures.benefit_vs_harm(
        table("covid", "frontier"), table("covid", "comparison"), titles=TITLES
    ),
    "benefit_parts": lambda: figures.benefit_parts(table("covid", "losses-by-outcome"), lead=LEAD),
    "acceptability": acceptability,
    "loss_by_group": lambda: figures.loss_by_group(at_one("covid")),
    "patient_losses": lambda: figures.patient_losses(table("covid", "patient-losses")),
    "action_probabilities": lambda: figures.action_probabilities(examples("covid")),
    "price_bars": lambda: figures.price_bars(table("covid", "price-list")),
    "forest": lambda: figures.forest(at_one("actg175")),
    "value_over_days": lambda: figures.value_over_days(table("covid-14-days", "comparison")),
    "ways_over_days": lambda: figures.ways_over_days(table("covid-14-days", "ways")),
    "published_over_days": lambda: figures.published_over_days(table("covid-14-days", "published")),
    "publishing": lambda: figures.publishing(ways_to_publish("covid")),
    "trade_off": trade_off,
}


def odds_against_regret() -> Figure:
    """On covid at ε = 1: the odds of the second of two treatments of equal floors, by the patient's regret for it."""
    textbook = ps.make_policy("exponential", epsilon=1.0)
    problem = once_each(textbook, ps.build_problem(ps.load_study("covid")))
    ((_, _, boxes),) = Exponential(1.0, calibration="fitted").boxes(problem)
    sharpness = float(boxes.sharpness[0])
    regrets = np.geomspace(0.001, 1000, 601)
    pairs = np.stack([np.zeros_like(regrets), regrets])[:, None, :]
    floors = np.full((2, 1), -np.log1p(np.e))
    looks = figures.looks(["exponential", "exponential-fitted", "optimal"])
    curves = [
        ("exponential", "solid", "textbook", -regrets / (2 * problem.sensitivity.value)),
        *(
            (name, dashes, words, np.diff(log_rows(pairs, Boxes(1.0, floors, np.array([s]))), axis=0)[0, 0])
            for name, dashes, words, s in (
                ("exponential-fitted", "dotted", "fitted, a quarter as sharp", sharpness / 4),
                ("exponential-fitted", "solid", f"fitted, sharpness {sharpness:.0f}", sharpness),
                ("exponential-fitted", "dashed", "fitted, four times as sharp", 4 * sharpness),
                ("optimal", "solid", "the optimum (infinite sharpness)", np.inf),
            )
        ),
    ]
    spreads = np.ptp(problem.utilities, axis=1)
    median = float(np.quantile(spreads, 0.5, weights=problem.prior, method="inverted_cdf"))
    with canvas(page=(7.2, 3.2), column=3.2) as made:
        (axes,) = made.panels(1)
        for name, dashes, words, logs in curves:
            axes.plot(regrets, np.exp(logs), color=looks[name].colour, linestyle=dashes, label=words)
        for regret, words in ((median, "half of the patients"), (float(spreads.max()), "all patients")):
            axes.axvline(regret, color=GREY, linewidth=0.8, zorder=0)
            about = {"xytext": (-3, 0), "textcoords": "offset points", "ha": "right"}
            axes.annotate(f"{words}:\n{regret:.3g} or less", (regret, 0.06), **about)
        axes.set_xscale("log")
        set_log_ticks(axes.xaxis, regrets[0], regrets[-1], most=8)
        axes.set_ylim(0, 1.04)
        axes.set_yticks([0, 0.25, np.exp(-1), 0.5, 0.75, 1], ["0", "0.25", "1/e", "0.5", "0.75", "1"])
        made.name(axes, "Odds of a treatment against the best one, ε = 1", "regret: what the patient loses by it")
        made.legend(handles=axes.get_lines()[: len(curves)], width=0.28 * made.width)
        return made.drawn


def benefit_over_epsilon() -> Figure:
    """On covid: the share of the benefit that the exponential mechanism keeps, textbook and fitted; the limit."""
    study = ps.load_study("covid")
    rows = ps.compare(ps.build_problem(study), policies=list(CURVES), epsilons=study.epsilons)
    looks = figures.looks(list(CURVES))
    with canvas(page=(7.2, 3.0), column=3.0) as made:
        (axes,) = made.panels(1)
        for name, (words, width) in CURVES.items():
            line = rows[(rows["policy"] == name) & (rows["group"] == "all")]
            look = {"color": looks[name].colour, "linewidth": width, "alpha": 0.3 if name == "optimal" else 1.0}
            axes.plot(line["epsilon"], line["benefit_kept"], label=words, **look)
        axes.axhline(0, color=GREY, linewidth=0.8)
        axes.annotate("the same treatment for everyone", (0.05, 0), xytext=(0, -10), textcoords="offset points")
        axes.yaxis.set_major_formatter(PercentFormatter(1))
        figures.set_epsilon_axis(axes, rows["epsilon"])
        made.name(axes, "Share of the possible benefit that is kept", "ε (log scale)")
        made.legend(handles=axes.get_lines()[: len(CURVES)], width=0.22 * made.width)
        return made.drawn


# What each line is called, and its width.
CURVES = {
    "optimal": ("limit of all ε-private policies", 6.0),
    "exponential-fitted": ("fitted", 1.5),
    "exponential": ("textbook", 1.5),
}
# Those of docs/exponential.md, which no function of `policysim.figures` draws.
EXPLANATIONS: dict[str, Callable[[], Figure]] = {
    "odds_against_regret": odds_against_regret,
    "benefit_over_epsilon": benefit_over_epsilon,
}


def draw(folder: Path, names: list[str]) -> None:
    """Write NAME.png for each name."""
    for name in names:
        picture = BytesIO()
        (FIGURES | EXPLANATIONS)[name]().savefig(picture, format="png", dpi=DOTS)
        # So few colours need half the bytes.
        Image.open(picture).convert("RGB").quantize(COLOURS).save(folder / f"{name}.png", optimize=True)


if __name__ == "__main__":
    draw(
        Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent), sys.argv[2:] or list(FIGURES | EXPLANATIONS)
    )
