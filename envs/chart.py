"""A patient's chart over the days: what was present morning and evening, what was given, and how the stay ended.

`History` notes the days of one or many patients, `Chart` is one patient's, and `as_text` writes it; `chart_image`
draws it.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

import numpy as np

from envs.dynamics import BoolArray, CodeArray
from envs.records import IntArray
from envs.scenario import Scenario

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
    return "\n".join([*wrapped(f"At admission: {chart.patient}", LINE), *lines, *wrapped(key, LINE), chart.status])


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most so many characters, broken after commas and semicolons only."""
    kept = re.sub(r"(?<![,;]) ", "\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(kept, width, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]
