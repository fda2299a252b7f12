"""One patient treated in plain Python, where arrays of one number would cost more than the numbers.

It reads the tables of the compiled pass (`envs.compiled.Tables`), and decides the same, without the same operations:
all flags of an evening are compared with their limits by one subtraction, and what is certain is not computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from envs import philox
from envs.cohort import FloatArray
from envs.compiled import parts_of, tables_of
from envs.dynamics import FLAGS_AT_ONCE, CodeArray
from envs.philox import WORD, Counter, Key
from envs.records import IntArray
from envs.stay import Ward
from envs.treatment_response import LEAST_EXPONENT, POWERS, STEPS
from envs.utility import Payoff

# Numbers are drawn for so many times at once, the more the longer the environment is used.
FIRST_TIMES, MOST_TIMES = 32, 4_096
# Far more than the error of the exponential.
ROUNDING = 1e-9
# Results that are kept of each kind: a few megabytes.
MOST_KEPT = 4_096
# The words of a day are fields of one integer, each with a guard above it: the bit stays when a limit is subtracted
# that is not above the word, and no field borrows from another.
FIELD, GUARD = 64, WORD
# As 2^64 is 2 modulo this, the remainder of an integer whose fields are bits is these bits side by side.
SIDE_BY_SIDE = (1 << FIELD) - 2
K = TypeVar("K")
V = TypeVar("V")


class Kept(dict[K, V], Generic[K, V]):
    """Results of a function, by its argument; all are forgotten when there are too many."""

    def __init__(self, function: Callable[[K], V]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, key: K) -> V:
        if len(self) >= MOST_KEPT:
            self.clear()
        value = self[key] = self._function(key)
        return value


class Plan(NamedTuple):
    """What a treatment does to patients with the same flags.

    Attributes
    ----------
    limits, lowest : int
        Of each flag's word, in its field: from where on the flag is present in the evening; from where on it may be
        the morning after, in any patient.
    absent : list of float
        P(absent in the evening) of each flag.
    hazards : list of tuple
        For each hazard its bit among the outcomes; what the patient adds to the place in its tables, by `fixed`; where
        the tables of level and slope begin for these flags and this treatment; the danger of each evening's flags.
    cost, of_cost
        Where the costs begin for these flags and this treatment, and what the patient adds.
    """

    limits: int
    lowest: int
    absent: list[float]
    hazards: list[tuple[int, Callable[[int], int], int, int, list[float]]]
    cost: int
    of_cost: Callable[[int], int]


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
        # The flags that may appear in the night: where their tables begin, their groups, and the least in them.
        sizes = (t.of_fixed.max(axis=1) + t.of_flags.max(axis=1) + 1).tolist()
        self._nights = [
            (flag, begin, group, float(t.values[begin : begin + sizes[group]].min()))
            for flag, (begin, group) in enumerate(nights)
            if group >= 0
        ]
        every = np.arange(1 << n_flags)
        self._hazards = [
            (level[0], slope[0], level[1], _sums(danger, every).tolist())
            for level, slope, danger in zip(hazards[::2], hazards[1::2], t.danger, strict=True)
        ]
        self._cost = tables[-1]
        # What the two parts of the record add to a place in the tables of each group.
        self._places = [(of.item, flag_of.item) for of, flag_of in zip(t.of_fixed, t.of_flags, strict=True)]
        self._of_action, self._value = t.of_action.tolist(), t.values.item
        self._present = sum(GUARD << (FIELD * flag) for flag in range(n_flags))
        self._died, self._several = 1 << (ward.n_draws - 1), ward.horizon > 1
        # Absence may depend on no more of the record than the flags.
        self._plain = bool((t.group[:n_flags] < 0).all())
        self._plans = Kept(self._plan)
        self._evenings: Kept[int, int] = Kept(lambda present: (present >> 32) % SIDE_BY_SIDE)
        self._told = Kept(self._tell)
        self._seen, self._masks = Kept(self._show), Kept(self._mask)
        self._key: Key | None = None
        self._start, self._n_times, self._stop = 0, FIRST_TIMES, 0
        self._arrivals: list[tuple[int, int]] = []
        self._fields, self._uniforms = b"", [0.0]

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
        seen = self._seen[self.fixed, self.flags].copy()
        if self._several and day:
            seen[-1] = day
        return seen

    def allowed(self) -> NDArray[np.int8]:
        """Which treatments the patient may get, (n_actions,), as a new array."""
        return self._masks[self.fixed, self.flags].copy()

    def treat(self, counter: Counter, action: int, *, last: bool) -> tuple[float, dict[str, bool], bool]:
        """A day of treatment and the night after it: reward, outcomes, and whether the stay is over."""
        fixed, value, at = self.fixed, self._value, self._drawn(counter)
        plan = self._plans[action, self.flags, 0 if self._plain else fixed]
        size = len(self._fields) // len(self._arrivals)
        words = int.from_bytes(self._fields[at * size : (at + 1) * size], "little")
        present = (words - plan.limits) & self._present
        evening = happened = self._evenings[present]
        at *= len(plan.hazards)
        for bit, of, level, slope, danger in plan.hazards:
            place, uniform = of(fixed), self._uniforms[at]
            exponent = value(slope + place) * danger[evening] + value(level + place)
            # e^x is at least 1 + x, which settles most.
            if uniform >= 1.0 + exponent - ROUNDING and uniform >= exp_of(exponent):
                happened |= bit
            at += 1
        harm, outcomes = self._told[happened]
        reward = 0.0 - (value(plan.cost + plan.of_cost(fixed)) + harm)
        over = last or happened >= self._died or (evening == 0 and self._present > 0)
        self.flags = evening
        if not over and (words - plan.lowest) & self._present != present:
            self.flags |= self._appearing(words, evening, plan.absent)
        return reward, outcomes.copy(), over

    def _appearing(self, words: int, evening: int, absent: list[float]) -> int:
        """The flags that appear in the night."""
        found = 0
        for flag, begin, group, _ in self._nights:
            of, flag_of = self._places[group]
            uniform = ((words >> (FIELD * flag)) % WORD + 0.5) / WORD
            appears = uniform >= self._value(begin + of(self.fixed) + flag_of(evening)) * absent[flag]
            found |= appears << flag
        return found

    def _plan(self, given: tuple[int, int, int]) -> Plan:
        """What an action does to patients with these flags; `fixed` comes third, if it matters."""
        action, flags, fixed = given
        begins = [flag_of(flags) + action * of for (_, flag_of), of in zip(self._places, self._of_action, strict=True)]
        absent = [
            self._value(begin + (self._places[group][0](fixed) + begins[group] if group >= 0 else 2 * action + present))
            for (begin, group), present in zip(self._absences, ((flags >> flag) & 1 for flag in count()), strict=False)
        ]
        lowest = list(absent)
        for flag, _, _, least in self._nights:
            lowest[flag] *= least
        hazards = [
            (1 << (len(absent) + hazard), self._places[group][0], level + begins[group], slope + begins[group], danger)
            for hazard, (level, slope, group, danger) in enumerate(self._hazards)
        ]
        begin, group = self._cost
        return Plan(_limits(absent), _limits(lowest), absent, hazards, begin + begins[group], self._places[group][0])

    def _show(self, record: tuple[int, int]) -> CodeArray:
        """What is seen of a patient on day 0, (n_columns,)."""
        seen: CodeArray = self._tables.codes_of_fixed[record[0]] | self._tables.codes_of_flags[record[1]]
        return seen

    def _mask(self, record: tuple[int, int]) -> NDArray[np.int8]:
        """Which treatments a patient may get, (n_actions,)."""
        of, flag_of = self._places[self._tables.of_mask]
        mask: NDArray[np.int8] = self._tables.allowed[of(record[0]) + flag_of(record[1])]
        return mask

    def _tell(self, happened: int) -> tuple[float, dict[str, bool]]:
        """The harm of the outcomes whose bits are set, and the outcomes by name."""
        harm = float(_sums(self._tables.harm[0], np.array([happened]))[0])
        return harm, {name: bool(happened >> bit & 1) for bit, name in enumerate(self._ward.scenario.outcomes)}

    def _drawn(self, counter: Counter) -> int:
        """The place of the counter's time among those drawn."""
        at = counter.time - self._start
        if counter.key is not self._key or not 0 <= at < len(self._arrivals):
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
        self._arrivals = list(zip(*(t.high[high] + t.low[low]).T.tolist(), strict=True))
        words = philox.day_words(counter.key, places, times, self._ward.n_draws)
        self._fields = (words[: t.n_flags].T | np.uint64(GUARD)).astype("<u8").tobytes()
        self._uniforms = philox.middles(words[t.n_flags :]).T.ravel().tolist()


def _one_patient(ward: Ward, payoff: Payoff, fixed: int, flags: int) -> OnePatient:
    patient = OnePatient(ward, payoff)
    patient.fixed, patient.flags = fixed, flags
    return patient


def exp_of(exponent: float) -> float:
    """`envs.treatment_response.exp_of`."""
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


def _limits(chances: list[float]) -> int:
    """From which word on a number is not below each chance, in fields.

    A word stands for the middle of its interval (`envs.philox.middles`). The subtraction is exact, or its result lies
    between -1/2 and 0, which is rounded up to 0.
    """
    limits = (min(max(math.ceil(chance * WORD - 0.5), 0), WORD) for chance in chances)
    return sum(limit << (FIELD * flag) for flag, limit in enumerate(limits))
