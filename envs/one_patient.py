"""One patient treated in plain Python, where arrays of one number would cost more than the numbers.

It reads the tables of the compiled pass (`envs.compiled.Tables`), and does the same operations in the same order.
"""

from __future__ import annotations

from itertools import compress
from typing import Any

import numpy as np

from envs import philox
from envs.cohort import FloatArray
from envs.compiled import parts_of, tables_of
from envs.dynamics import FLAGS_AT_ONCE, CodeArray
from envs.hazard import LEAST_EXPONENT, POWERS, STEPS
from envs.philox import Counter, Key
from envs.records import IntArray
from envs.stay import Ward
from envs.utility import Payoff

# Numbers are drawn for so many times at once, the more the longer the environment is used.
FIRST_TIMES, MOST_TIMES = 32, 4_096
# Far more than the error of the exponential.
ROUNDING = 1e-9


class OnePatient:
    """The patient of an environment, as two numbers (`envs.compiled`), and what a day does to him.

    Parameters
    ----------
    ward, payoff
        What happens to the patient, and what it is worth.

    Attributes
    ----------
    fixed, flags : int
        The record.
    """

    def __init__(self, ward: Ward, payoff: Payoff) -> None:
        self._tables, n_flags = tables_of(ward, payoff), len(ward.flag_axes)
        self._ward, self._payoff = ward, payoff
        self.fixed = self.flags = 0
        t = self._tables
        tables = list(zip(t.start.tolist(), t.group.tolist(), strict=True))
        self._absences, nights, hazards = tables[:n_flags], tables[n_flags : 2 * n_flags], tables[2 * n_flags : -1]
        self._nights: dict[int, list[tuple[int, int]]] = {}
        for flag, (begin, group) in enumerate(nights):
            if group >= 0:
                self._nights.setdefault(group, []).append((flag, begin))
        every = np.arange(1 << n_flags)
        self._hazards = [
            (level[0], slope[0], level[1], _sums(danger, every).tolist())
            for level, slope, danger in zip(hazards[::2], hazards[1::2], t.danger, strict=True)
        ]
        # What the two parts of the record add to a place in the tables of each group.
        self._places = [(of.item, flag_of.item) for of, flag_of in zip(t.of_fixed, t.of_flags, strict=True)]
        self._bits = [1 << flag for flag in range(n_flags)]
        self._cost, self._harm, self._of_action = tables[-1], t.harm[0].tolist(), t.of_action.tolist()
        # P(absent in the evening) of each flag, by action and flags, kept where nothing else matters.
        self._plain = bool((t.group[:n_flags] < 0).all())
        self._absent: dict[tuple[int, int], list[float]] = {}
        self._key: Key | None = None
        self._start, self._n_times = 0, FIRST_TIMES
        self._arrivals: list[list[int]] = []
        self._days: list[list[float]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """What a copy is made of: it shares the tables, and draws the same numbers anew."""
        return _one_patient, (self._ward, self._payoff, self.fixed, self.flags)

    def admit(self, counter: Counter) -> None:
        """Admit a patient drawn from the cohort."""
        at = self._drawn(counter)
        self.fixed, self.flags = self._arrivals[at]

    def admit_given(self, codes: CodeArray) -> None:
        """Admit a patient with these level codes, (1, n_features)."""
        self.fixed, self.flags = (int(part[0]) for part in parts_of(self._ward, codes))

    def observe(self, day: int) -> CodeArray:
        """What is seen of the patient, (n_columns,)."""
        seen: CodeArray = self._tables.codes_of_fixed[self.fixed] | self._tables.codes_of_flags[self.flags]
        if self._ward.horizon > 1:
            seen[-1] = day
        return seen

    def treat(self, counter: Counter, action: int, *, last: bool) -> tuple[float, list[bool], bool]:
        """A day of treatment and the night after it: reward, outcomes, and whether the stay is over."""
        t, fixed, flags, drawn = self._tables, self.fixed, self.flags, self._drawn(counter)
        uniforms = self._days[drawn]
        of_action, value = self._of_action, t.values.item
        absent = self._absent.get((action, flags)) or self._absences_of(action, flags)
        outcomes = [uniform >= limit for uniform, limit in zip(uniforms, absent, strict=False)]
        evening = happened = sum(compress(self._bits, outcomes))
        for level, slope, group, danger in self._hazards:
            of, flag_of = self._places[group]
            place = of(fixed) + flag_of(flags) + action * of_action[group]
            exponent = value(slope + place) * danger[evening] + value(level + place)
            uniform = uniforms[len(outcomes)]
            # e^x is at least 1 + x, which settles most.
            came = uniform >= 1.0 + exponent - ROUNDING and uniform >= exp_of(exponent)
            happened |= came << len(outcomes)
            outcomes.append(came)
        begin, group = self._cost
        harm = 0.0
        for part, sums in enumerate(self._harm):
            harm += sums[(happened >> (FLAGS_AT_ONCE * part)) & ((1 << FLAGS_AT_ONCE) - 1)]
        of, flag_of = self._places[group]
        reward = 0.0 - (value(begin + of(fixed) + flag_of(flags) + action * of_action[group]) + harm)
        over = last or outcomes[-1] or (evening == 0 and t.n_flags > 0)
        self.flags = evening
        if not over:
            for group, flags_of_group in self._nights.items():
                of, flag_of = self._places[group]
                place = of(fixed) + flag_of(evening)
                for flag, begin in flags_of_group:
                    if not outcomes[flag] and uniforms[flag] >= value(begin + place) * absent[flag]:
                        self.flags |= 1 << flag
        return reward, outcomes, over

    def _absences_of(self, action: int, flags: int) -> list[float]:
        """P(absent in the evening) of each flag."""
        strides = zip(self._places, self._of_action, strict=True)
        at = [of(self.fixed) + flag_of(flags) + action * stride for (of, flag_of), stride in strides]
        found = [
            self._tables.values.item(begin + (at[group] if group >= 0 else 2 * action + ((flags >> flag) & 1)))
            for flag, (begin, group) in enumerate(self._absences)
        ]
        if self._plain:
            self._absent[action, flags] = found
        return found

    def _drawn(self, counter: Counter) -> int:
        """The place of the counter's time among those drawn."""
        at = counter.time - self._start
        if counter.key != self._key or not 0 <= at < len(self._days):
            self._draw(counter)
            return 0
        return at

    def _draw(self, counter: Counter) -> None:
        """Draw for the counter's time and some that follow: whom it would admit, and the numbers of a day."""
        t, times = self._tables, counter.time + np.arange(self._n_times)
        self._key, self._start, self._n_times = counter.key, counter.time, min(2 * self._n_times, MOST_TIMES)
        places = np.zeros(len(times), dtype=np.intp)
        records = self._ward.arrivals.sampler.records(philox.arrivals(counter.key, places, times))
        high, low = np.divmod(records, len(t.low))
        self._arrivals = (t.high[high] + t.low[low]).tolist()
        self._days = philox.days(counter.key, places, times, self._ward.n_draws).T.tolist()


def _one_patient(ward: Ward, payoff: Payoff, fixed: int, flags: int) -> OnePatient:
    patient = OnePatient(ward, payoff)
    patient.fixed, patient.flags = fixed, flags
    return patient


def exp_of(exponent: float) -> float:
    """`envs.hazard.exp_of`."""
    rest = max(exponent, LEAST_EXPONENT)
    step = int(rest * -STEPS)
    rest += step * (1 / STEPS)
    series = 1.0 + rest * (1.0 + rest * (0.5 + rest * (1 / 6 + rest * (1 / 24 + rest * (1 / 120)))))
    return series * float(POWERS[step])


def _sums(parts: FloatArray, flags: IntArray) -> FloatArray:
    """`FlagSum.of`, (m,), of sums by twelve flags, (n_parts, 4096)."""
    total = np.zeros(len(flags))
    for part, sums in enumerate(parts):
        total += sums[(flags >> (FLAGS_AT_ONCE * part)) & ((1 << FLAGS_AT_ONCE) - 1)]
    return total
