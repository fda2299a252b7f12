"""One treatment for all that may change by the day: it looks at nobody, and so costs no privacy at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.arrays import FloatArray
from policies.policy import constant_logs
from policysim.processes.evaluation import DailyTables
from policysim.processes.process import Process
from policysim.processes.step_problems import q_table

NAME = "best-schedule"


def best_schedule(process: Process, start: Sequence[int]) -> tuple[int, ...]:
    """The action that everybody gets on each day of a finite horizon, best as far as one day's change can tell.

    Coordinate ascent: the action of each day, from the last to the first, is made the best one given the others,
    until none changes. The value rises with every change, so that this ends; another schedule that differs on several
    days may be better still.

    Parameters
    ----------
    process : Process
    start : sequence of int
        The actions of the days to begin with.
    """
    schedule = list(start)
    while True:
        masses = _masses(process, schedule)
        found, values = list(schedule), np.zeros(len(process.initial))
        for day in reversed(range(len(schedule))):
            q_values = q_table(process, values)
            worth = masses[day] @ q_values
            if worth.max() > worth[schedule[day]] + 1e-12 * np.abs(worth).max():
                found[day] = int(worth.argmax())
            values = q_values[:, found[day]].copy()
        if found == schedule:
            return tuple(schedule)
        schedule = found


def schedule_tables(process: Process, schedule: tuple[int, ...]) -> DailyTables:
    """log p and p of each day, (n, k), of giving everybody the action of the day."""

    def of_day(day: int) -> tuple[FloatArray, FloatArray]:
        row = np.full(len(process.actions), -np.inf)
        row[schedule[day]] = 0.0
        logs = constant_logs(row, len(process.initial))
        return logs, np.exp(logs)

    return of_day


def _masses(process: Process, schedule: list[int]) -> list[FloatArray]:
    tables = schedule_tables(process, tuple(schedule))
    masses = [process.initial]
    for day in range(len(schedule) - 1):
        masses.append(process.push(masses[-1], tables(day)[1]))
    return masses
