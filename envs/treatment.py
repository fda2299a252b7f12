"""The Gymnasium environment of one patient: a thin shell around `envs.inpatients`. And patients' charts, as text."""

from __future__ import annotations

import operator
import re
import textwrap
from collections.abc import Mapping, Sequence
from itertools import compress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from envs.inpatients import Patients
from envs.records import IntArray
from envs.scenario import Scenario
from envs.ward import BoolArray, CodeArray, ward_of

RENDER_MODES, INADMISSIBLE = ("ansi",), ("raise", "first-allowed")
T = TypeVar("T")
# Asked in every step: a tuple is faster than a union.
BOOLS = (bool, np.bool_)
THE_PATIENT = np.zeros(1, dtype=np.intp)


class TreatmentEnv(gymnasium.Env[CodeArray, int]):
    """Treatment of one patient, once or day by day.

    ## Description
    A patient comes, and is treated once or on each of several days. By day, each symptom that is present may clear and
    each that is absent may appear, by the treatment; then the patient may die, the more likely the more is left. In the
    night, symptoms that are absent may appear. The scenario is a file that gives every number; the built-in one,
    `covid`, is a model with assumed effects, not medical advice.

    ## Action Space
    `Discrete(4)` for `covid`: the treatments of the scenario, in its order.

    | action | name | treatment |
    |---|---|---|
    | 0 | a0 | no drug |
    | 1 | a1 | antiviral |
    | 2 | a2 | anti-inflammatory |
    | 3 | a3 | both drugs |

    ## Observation Space
    `MultiDiscrete` of `int16`: the position of the level of each feature of the patient's record, in the scenario's
    order; for `covid` covid_positive, covid_recovered, seven symptoms, six comorbidities (absent 0, present 1), age
    (five bands), sex, vaccine (none, v1, v2, v3). With `horizon` > 1 one more: the number of days treated so far,
    0 to `horizon`. It is the record of the morning; when the stay ends, of the last evening.

    ## Rewards
    The realised utility of the day: minus the weight of everything that is present in the evening, minus the weights
    of events and of death if they came, minus the cost of the treatment.

    ## Starting State
    A patient drawn from the scenario's cohort. `reset(options={"where": {"fever": 1, "age": ["60-79", "80+"]}})` draws
    a patient with these levels (`policysim.build_course(..., where=...)` has the exact values), and
    `reset(options={"record": {"fever": 1, "age": "60-79"}})` gives one: features that are not named have their first
    level.

    ## Episode End
    The episode terminates with death, with full recovery (nothing that the treatment can change is present in the
    evening; nobody recovers where there is nothing of this kind), or with the last day. It is never truncated.

    ## Information
    `reset` and `step` return

    - `day`: the number of days treated so far.
    - `outcome`: for each outcome by name, events and `death` among them, whether it was there in the evening or came on
      the day (a bool); after `reset` nothing has.

    and, if the scenario has contraindications,

    - `action_mask`: an array of `int8`, 1 for each treatment that the patient as observed may get, 0 for the others.
      `action_space.sample(mask)` draws one that is allowed; `action_masks()` is the same as bools, in any scenario.

    ## Arguments
    ```python
    gymnasium.make("policysim:policysim/Treatment-v1", scenario="covid", utility=None, horizon=1, render_mode=None)
    ```

    - `scenario`: a built-in scenario, the path of a scenario file (`.toml`), or a `Scenario`, as
      `policysim.load_scenario` reads it.
    - `study`: in place of a scenario, for `gymnasium.make` and `make_vec`: a built-in study, the path of a study file,
      or a `Study`. Its scenario comes, and rewards are by its `[utility]`.
    - `utility`: `{"weights": {outcome: number >= 0}, "costs": {action: number}}`, in place of the scenario's or the
      study's own values for those that are named.
    - `horizon`: the number of days that a stay may last; the danger of death is spread over them.
    - `render_mode`: None or `"ansi"`, the patient's chart as text.
    - `inadmissible`: what becomes of a treatment that is not allowed: `"raise"` refuses it, `"first-allowed"` gives the
      first that is allowed in its place.
    - `compiled`: whether to use compiled code, which needs the extra `fast`. By default as soon as that saves time, and
      at once in a process that has it. The results are the same.

    A reset with a seed takes one number of `np_random`; all that happens comes from that, and from how many resets and
    steps there have been.

    ## Version History
    - v1: first version.
    """

    # An attribute of the class, as in every environment of Gymnasium, whose base class says an instance's.
    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # type: ignore[misc]

    def __init__(
        self,
        scenario: str | Path | Scenario = "covid",
        *,
        utility: Mapping[str, Any] | None = None,
        horizon: int = 1,
        render_mode: str | None = None,
        inadmissible: str = "raise",
        compiled: bool | None = None,
    ) -> None:
        self.ward = ward_of(scenario, horizon, utility)
        self._patients = Patients(self.ward, 1, compiled)
        self.render_mode = check_option("render_mode", render_mode, (None, *RENDER_MODES))
        self._inadmissible = check_option("inadmissible", inadmissible, INADMISSIBLE)
        self.action_space = self.ward.action_space()
        self.observation_space = self.ward.observation_space()
        self._charts = Charts(self.ward.scenario, horizon, 1) if render_mode else None
        self._nothing, self._n_actions = dict.fromkeys(self.ward.scenario.outcomes, False), self.action_space.n
        self._action, (self._reward, self._outcomes) = np.zeros(1, dtype=np.intp), self._patients.room()
        self._days, self._begun = 0, False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[CodeArray, dict[str, Any]]:
        """Admit a patient; see Starting State. ValueError for options and records that do not exist."""
        super().reset(seed=seed)
        sampler, parts = self.ward.arrivals(options)
        self._days, self._begun = 0, True
        if parts is None:  # one call, as of a vector environment that admits somebody in the next step
            self._patients.places.over[0] = True
            given = self._action, self.np_random, self._reward, self._outcomes
            seen = self._patients.treat(*given, readmit=True, sampler=sampler)
        else:
            self._patients.admit(THE_PATIENT, self.np_random, sampler, parts)
            seen = self._patients.observe()
        if self._charts:
            self._charts.admit(THE_PATIENT, self._record())
        return seen[0], self._information(())

    def step(self, action: int) -> tuple[CodeArray, float, bool, bool, dict[str, Any]]:
        """Treat the patient for a day.

        Raises
        ------
        ValueError
            For an action that is no treatment, or one that is contraindicated for the patient.
        ResetNeeded
            Before the first reset and after the end of a stay.
        """
        over = self._patients.places.over
        if over[0]:
            raise ResetNeeded(f"the stay has {'ended' if self._begun else 'not begun'}: call reset() before step().")
        self._action[0] = self._treatment(action)
        seen = self._patients.treat(self._action, self.np_random, self._reward, self._outcomes, readmit=False)
        self._days += 1
        if self._charts:
            self._charts.note(THE_PATIENT, self._action, self._outcomes.T, self._record(), over)
        return seen[0], self._reward.item(), over.item(), False, self._information(self._outcomes.ravel().tolist())

    def render(self) -> str | None:
        """The patient's chart, as text."""
        if self._charts is None:
            gymnasium.logger.warn("render() shows nothing without a render_mode: make(..., render_mode='ansi').")
            return None
        if not self._begun:
            raise ResetNeeded("there is no patient yet: call reset() before render().")
        return self._charts.text(0)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which treatments the patient may get, (n_actions,), as sb3-contrib asks for it."""
        return np.asarray(self._patients.allowed()[0], dtype=np.bool_)

    def _information(self, came: Sequence[bool]) -> dict[str, Any]:
        """The information about a day, with its outcomes."""
        outcomes = self._nothing.copy()
        for name in compress(self._nothing, came):
            outcomes[name] = True
        info: dict[str, Any] = {"day": self._days, "outcome": outcomes}
        return info | {"action_mask": self._patients.allowed()[0]} if self.ward.forbids else info

    def _record(self) -> CodeArray:
        """Level codes of the patient, (1, n_features)."""
        return self._patients.observe()[:, : len(self.ward.scenario.space.shape)]

    def _treatment(self, action: Any) -> int:
        """The position of a treatment, if it is one that is allowed, or the one given in its place."""
        try:
            position = -1 if isinstance(action, BOOLS) else operator.index(action)
        except TypeError:
            position = -1
        if not 0 <= position < self._n_actions:
            allowed = f"a whole number from 0 to {self._n_actions - 1} ({', '.join(self.ward.scenario.actions)})"
            raise ValueError(f"action must be {allowed}, got action={action!r}.")
        if self.ward.forbids:
            mask = self._patients.allowed()[0]
            if not mask[position]:
                if self._inadmissible == "raise":
                    raise self.ward.refusal("action", position, self._record()[0], mask)
                position = int(mask.argmax())
        return position


# Of a longer stay, the last days are shown: more would not be legible.
DAYS_SHOWN = 20
ABSENT, PRESENT = "·", "■"
LINE = 79


class Charts:
    """What was present, morning and evening, on the days of some patients, what they got, and how their stays ended.

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
        length = min(horizon, DAYS_SHOWN)
        self._records = np.zeros((n_patients, len(scenario.space.shape)), dtype=np.int16)
        self._days = np.zeros(n_patients, dtype=np.intp)
        self._over = np.zeros(n_patients, dtype=np.bool_)
        # By day, modulo the days that are shown; of mornings there is one more, as the coming one is known.
        self._mornings = np.zeros((n_patients, length + 1, len(self._axes)), dtype=np.bool_)
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

    def text(self, patient: int) -> str:
        """One patient's chart: two marks a day for each flag, of the morning and of the evening; one for an event."""
        scenario, n_days = self._scenario, int(self._days[patient])
        n_shown = self._treatments.shape[1]
        n_mornings = n_days if self._over[patient] else n_days + 1
        shown_days = range(max(0, n_mornings - n_shown), n_mornings)
        treatments = [self._treatments[patient, day % n_shown] for day in shown_days if day < n_days]
        table = [
            ["day", *(str(day + 1) for day in shown_days)],
            ["treatment", *(scenario.actions[treatment] for treatment in treatments)],
        ]
        for place, outcome in enumerate(scenario.outcomes[:-1]):
            marks = []
            for day in shown_days:
                mark = " "  # an event belongs to no morning
                if place < len(self._axes):
                    mark = PRESENT if self._mornings[patient, day % (n_shown + 1), place] else ABSENT
                if day < n_days:
                    mark += PRESENT if self._evenings[patient, day % n_shown, place] else ABSENT
                marks.append(mark)
            table.append([scenario.outcome_title(outcome), *marks])
        margin = max(len(label) for label, *_ in table) + 2
        width = max(2, *(len(action) for action in scenario.actions), len(str(self._horizon))) + 1
        rows = [f"{label:<{margin}}" + "".join(f"{cell:<{width}}" for cell in cells) for label, *cells in table]
        record = scenario.space.describe(int(scenario.space.indices(self._records[[patient]])[0]))
        return "\n".join(
            [
                *wrapped_at_commas(f"At admission: {record}", LINE),
                *(row.rstrip() for row in rows),
                *wrapped_at_commas(self._key(), LINE),
                self._status(patient),
            ]
        )

    def _key(self) -> str:
        """What the marks and the names of the treatments stand for."""
        events = ", or events of the day" if self._scenario.events else ""
        titles = [(name, treatment.title) for name, treatment in self._scenario.treatments.items()]
        treatments = ", ".join(name if name == title else f"{name} = {title}" for name, title in titles)
        return f"{PRESENT} present, {ABSENT} absent, in the morning and in the evening{events}; {treatments}"

    def _status(self, patient: int) -> str:
        """How the stay ended, or how far it is."""
        days = int(self._days[patient])
        if not self._over[patient]:
            return f"day {days} of {self._horizon}" if days else "admitted"
        evening = self._evenings[patient, (days - 1) % self._evenings.shape[1]]
        flags, died = evening[: len(self._axes)], evening[-1]
        end = "died" if died else "discharged" if flags.any() else "recovered"
        return f"{end} on day {days}"


def wrapped_at_commas(text: str, width: int) -> list[str]:
    """Lines of at most so many characters, broken after commas and semicolons only."""
    tied = re.sub(r"(?<![,;]) ", "\N{NO-BREAK SPACE}", text)
    lines = textwrap.wrap(tied, width, break_on_hyphens=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def check_option(name: str, value: T, known: tuple[T, ...]) -> T:
    """The value of an argument; ValueError if it is none of the known ones."""
    if value not in known:
        wanted = ", ".join(repr(each) for each in known if each is not None)
        raise ValueError(f"{name} must be {'None or ' * (None in known)}one of {wanted}, got {value!r}.")
    return value
