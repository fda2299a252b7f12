"""A patient's chart over the days: what was present morning and evening, what was given, and how the stay ended.

`History` notes the days of one or many patients, `Chart` is one patient's; `as_text` writes it and `as_image` draws it.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from envs.records import IntArray
from envs.scenario import Scenario
from envs.ward import BoolArray, CodeArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Of a longer stay, the last days are shown: more would not be legible.
DAYS_SHOWN = 20
PRESENT, ABSENT = "■", "·"
LINE = 79


@dataclass(frozen=True)
class Chart:
    """One patient's chart.

    Attributes
    ----------
    scenario : Scenario
        Names everything.
    horizon : int
        The number of days that a stay may last.
    patient : str
        The record at admission, in words.
    first : int
        The first day shown, from 1.
    treatments : array, (n_days,)
        Positions of the treatments given, from the first day shown.
    evenings : array, (n_days, n_outcomes)
        What came of each: flags that were present, events that happened, and death.
    mornings : array, (n_days or n_days + 1, n_transient)
        The transient flags before each treatment, and of the coming morning if the stay goes on.
    """

    scenario: Scenario
    horizon: int
    patient: str
    first: int
    treatments: IntArray
    evenings: BoolArray
    mornings: BoolArray

    @property
    def days(self) -> int:
        """Days treated so far."""
        return self.first - 1 + len(self.treatments)

    @property
    def over(self) -> bool:
        """Whether the stay has ended."""
        return len(self.mornings) == len(self.treatments)

    @property
    def status(self) -> str:
        """How the stay ended, or how far it is."""
        if not self.over:
            return f"day {self.days} of {self.horizon}" if self.days else "admitted"
        flags, died = self.evenings[-1, : self.mornings.shape[1]], self.evenings[-1, -1]
        end = "died" if died else "discharged" if flags.any() else "recovered"
        return f"{end} on day {self.days}"

    @property
    def labels(self) -> list[str]:
        """The transient flags and the events, in words."""
        return [self.scenario.outcome_title(name) for name in self.scenario.outcomes[:-1]]

    @property
    def treatment_titles(self) -> str:
        """What the names of the treatments stand for."""
        pairs = [(name, treatment.title) for name, treatment in self.scenario.treatments.items()]
        return ", ".join(name if name == title else f"{name} = {title}" for name, title in pairs)


class History:
    """The days of some patients, as far as their charts show them.

    Parameters
    ----------
    scenario : Scenario
        Names everything.
    horizon : int
        The number of days that a stay may last.
    n_patients : int
        How many charts are kept.
    """

    def __init__(self, scenario: Scenario, horizon: int, n_patients: int) -> None:
        self._scenario, self._horizon = scenario, horizon
        self._axes = [scenario.space.axis(flag) for flag in scenario.transient]
        n_flags, length = len(self._axes), min(horizon, DAYS_SHOWN)
        self._records = np.zeros((n_patients, len(scenario.space.shape)), dtype=np.int16)
        self._days = np.zeros(n_patients, dtype=np.intp)
        self._over = np.zeros(n_patients, dtype=np.bool_)
        # By day, counted round and round in the days that are shown; one more morning than evenings is known.
        self._mornings = np.zeros((n_patients, length + 1, n_flags), dtype=np.bool_)
        self._evenings = np.zeros((n_patients, length, len(scenario.outcomes)), dtype=np.bool_)
        self._treatments = np.zeros((n_patients, length), dtype=np.intp)

    def admit(self, who: IntArray, codes: CodeArray) -> None:
        """Begin the charts of some patients with their records, (len(who), n_features)."""
        self._records[who], self._days[who], self._over[who] = codes, 0, False
        self._mornings[who, 0] = codes[:, self._axes] > 0

    def note(self, who: IntArray, treatments: IntArray, outcomes: BoolArray, codes: CodeArray, over: BoolArray) -> None:
        """Note a day of some patients: what they got, what came of it, and the record the next morning."""
        now = self._days[who]
        self._treatments[who, now % self._treatments.shape[1]] = treatments
        self._evenings[who, now % self._evenings.shape[1]] = outcomes
        self._mornings[who, (now + 1) % self._mornings.shape[1]] = codes[:, self._axes] > 0
        self._days[who], self._over[who] = now + 1, over

    def chart(self, patient: int) -> Chart:
        """The chart of one patient."""
        days, length = int(self._days[patient]), self._treatments.shape[1]
        known = days if self._over[patient] else days + 1  # the coming morning is
        first = max(0, known - length)
        evenings, mornings = np.arange(first, days), np.arange(first, known)
        return Chart(
            self._scenario,
            self._horizon,
            self._scenario.space.describe(int(self._scenario.space.indices(self._records[[patient]])[0])),
            first + 1,
            self._treatments[patient, evenings % length],
            self._evenings[patient, evenings % length],
            self._mornings[patient, mornings % self._mornings.shape[1]],
        )


def as_text(chart: Chart) -> str:
    """The chart in characters: two marks a day for each flag, of the morning and of the evening; one for an event."""
    scenario = chart.scenario
    width = max(2, *(len(action) for action in scenario.actions), len(str(chart.horizon))) + 1
    margin = max(len(label) for label in [*chart.labels, "treatment"]) + 2

    def row(label: str, cells: list[str]) -> str:
        return (f"{label:<{margin}}" + "".join(f"{cell:<{width}}" for cell in cells)).rstrip()

    numbers = [str(chart.first + day) for day in range(len(chart.mornings))]
    given = [scenario.actions[treatment] for treatment in chart.treatments]
    lines = [row("day", numbers), row("treatment", given)]
    for place, label in enumerate(chart.labels):
        known = chart.mornings[:, place] if place < len(scenario.transient) else None
        # An event belongs to no morning.
        marks = [" "] * len(chart.mornings) if known is None else [PRESENT if there else ABSENT for there in known]
        for day, present in enumerate(chart.evenings[:, place]):
            marks[day] += PRESENT if present else ABSENT
        lines.append(row(label, marks))
    words = "in the morning and in the evening" + (", or events of the day" if scenario.events else "")
    key = f"{PRESENT} present, {ABSENT} absent, {words}; {chart.treatment_titles}"
    return "\n".join(
        [
            *wrapped_at_commas(f"At admission: {chart.patient}", LINE),
            *lines,
            *wrapped_at_commas(key, LINE),
            chart.status,
        ]
    )


def wrapped_at_commas(text: str, width: int) -> list[str]:
    """Lines of at most so many characters, broken after commas and semicolons only."""
    kept = re.sub(r"(?<![,;]) ", "\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(kept, width, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


# Inches: of the labels on the left, a day, the shortest row of days, a row, what stands around, the narrowest image.
LABELS, DAY, DAYS, ROW, ABOVE, BELOW, RIGHT, NARROWEST = 1.5, 0.42, 1.6, 0.34, 0.85, 0.65, 1.2, 6.0
DOTS = 100
LETTERS_PER_INCH, LINES = 12, 2
INK, FAINT, BAR = "#222222", "#D0D0D0", "#0072B2"
# Light enough for dark letters on them, which are what tells them apart.
TILES = ("#FFFFFF", "#BFE3F5", "#FBE3A6", "#E7C9DC", "#C3E6D8", "#F5CDB6")


def as_image(chart: Chart) -> NDArray[np.uint8]:
    """The chart drawn, (height, width, 3): of even numbers that depend on the scenario and the horizon only."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - takes a second to import
    from matplotlib.figure import Figure  # noqa: PLC0415

    n_days, n_rows = min(chart.horizon, DAYS_SHOWN), len(chart.labels) + 1
    days = max(DAY * n_days, DAYS)
    width, height = _even(max(NARROWEST, LABELS + days + RIGHT)), _even(ABOVE + ROW * n_rows + BELOW)
    figure = Figure(figsize=(width, height), dpi=DOTS, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((LABELS / width, BELOW / height, days / width, ROW * n_rows / height))
    axes.set(xlim=(0, n_days), ylim=(n_rows - 0.5, -0.5))
    _grid(axes, chart, n_days)
    _marks(axes, chart)
    _end(axes, chart, n_days)
    _words(figure, chart)
    canvas.draw()  # type: ignore[no-untyped-call]  # matplotlib's
    image = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    return image[..., :3].copy()


def _even(inches: float) -> float:
    """Rounded to an even number of dots, as video formats want them."""
    return 2 * round(inches * DOTS / 2) / DOTS


def _grid(axes: Axes, chart: Chart, n_days: int) -> None:
    """Days along the top, flags along the side, and a faint line for each: absent."""
    axes.set_xticks(np.arange(n_days) + 0.5, [str(chart.first + day) for day in range(n_days)], fontsize=9)
    axes.set_yticks(range(len(chart.labels) + 1), ["treatment", *chart.labels], fontsize=10)
    axes.tick_params(length=0, labeltop=True, labelbottom=False, colors=INK)
    for side in axes.spines.values():
        side.set_visible(False)
    axes.text(-0.08 / max(DAY, DAYS / n_days), -0.8, "day", ha="right", va="center", fontsize=10, color=INK)
    axes.vlines(np.arange(n_days + 1), 0.5, len(chart.labels) + 0.5, color=FAINT, linewidth=0.6, zorder=0)
    axes.hlines(np.arange(1, len(chart.labels) + 1), 0, n_days, color=FAINT, linewidth=1.2, zorder=0)


def _marks(axes: Axes, chart: Chart) -> None:
    """A tile for each treatment, and a thick bar wherever a flag is present.

    The left half of a day is its morning, the right half its evening. What came of the day stands in the right half:
    events, too.
    """
    for day, treatment in enumerate(chart.treatments):
        tile = TILES[treatment % len(TILES)]
        axes.broken_barh([(day + 0.05, 0.9)], (-0.36, 0.72), facecolor=tile, edgecolor=INK, linewidth=0.8)
        name = chart.scenario.actions[treatment]
        axes.text(day + 0.5, 0, name, ha="center", va="center", fontsize=9 if len(name) < 4 else 6, color=INK)
    for place in range(len(chart.labels)):
        halves = np.zeros(2 * len(chart.mornings), dtype=np.bool_)
        if place < chart.mornings.shape[1]:
            halves[0::2] = chart.mornings[:, place]
        halves[1 : 2 * len(chart.evenings) : 2] = chart.evenings[:, place]
        edges = np.flatnonzero(np.diff(np.concatenate([[0], halves, [0]]))).reshape(-1, 2) / 2
        axes.broken_barh([(start, end - start) for start, end in edges], (place + 0.72, 0.56), facecolor=BAR)


def _end(axes: Axes, chart: Chart, n_days: int) -> None:
    """Where the stay has got to, or what it came to in words; hatched after that."""
    bottom = len(chart.labels) + 0.5
    if not chart.over:
        now = len(chart.treatments) + 0.5
        axes.vlines([now], -0.35, bottom, color=INK, linewidth=1.2, linestyle=":")
        axes.text(now + 0.1, 0, "now", va="center", fontsize=9, color=INK)
        return
    end = len(chart.treatments)
    axes.vlines([end], -0.5, bottom, color=INK, linewidth=2.5, clip_on=False)
    axes.broken_barh([(end, n_days - end)], (0.5, bottom - 0.5), facecolor="none", edgecolor=FAINT, hatch="//")
    place = end + 0.08 / max(DAY, DAYS / n_days)
    words = chart.status.replace(" on", "\non")
    axes.text(place, 0, words, va="center", fontsize=9, fontweight="bold", color=INK)


def _words(figure: Figure, chart: Chart) -> None:
    """The patient above; below, what the marks and the treatments are."""
    width, height = figure.get_size_inches()
    letters = int(width * LETTERS_PER_INCH)
    who = wrapped_at_commas(f"At admission: {chart.patient}", letters)
    who = who if len(who) <= LINES else [*who[: LINES - 1], f"{who[LINES - 1]} …"]
    figure.text(0.1 / width, 1 - 0.08 / height, "\n".join(who), va="top", fontsize=10, color=INK)
    key = f"bar: present (left half of a day: morning, right half: evening); {chart.treatment_titles}"
    key = "\n".join(wrapped_at_commas(key, int(1.3 * letters)))
    figure.text(0.1 / width, (BELOW - 0.12) / height, key, va="top", fontsize=8.5, color=INK)
