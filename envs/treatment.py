"""The Gymnasium environment of one patient: a thin shell around a ward."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from envs.chart import History, as_image, as_text
from envs.dynamics import CodeArray
from envs.stay import RENDER_MODES, check_render_mode, ward_of
from envs.utility import Payoff, utility_of

THE_PATIENT = np.zeros(1, dtype=np.intp)


class TreatmentEnv(gymnasium.Env[CodeArray, int]):
    """Treatment of one patient, once or day by day.

    ## Description
    A patient comes, and is treated once or on each of several days. By day, each symptom that is present may clear and
    each that is absent may appear, by the treatment; then the patient may die, the more likely the more is left. In the
    night, symptoms that are absent may appear. The scenario is a file that gives every number; the built-in one,
    `covid`, is a model with illustrative effects, not medical advice.

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
    A patient drawn from the scenario's cohort, or `reset(options={"record": {"fever": 1, "age": "60-79"}})`: features
    that are not named have their first level.

    ## Episode End
    The episode terminates with death, with full recovery (nothing that the treatment can change is present in the
    evening; nobody recovers where there is nothing of this kind), or with the last day. It is never truncated.

    ## Information
    `reset` and `step` return

    - `day`: the number of days treated so far.

    and `step` also

    - `outcome`: for each outcome by name, events and `death` among them, whether it was there in the evening or came on
      the day (a bool).

    If the scenario has contraindications, both also return

    - `action_mask`: an array of `int8`, 1 for each treatment that the patient as observed may get, 0 for the others. To
      give one that is not allowed is an error; `action_space.sample(mask)` draws one that is.

    ## Arguments
    ```python
    gymnasium.make("policysim:policysim/Treatment-v0", scenario="covid", utility=None, horizon=1, render_mode=None)
    ```

    - `scenario`: a built-in scenario, or the path of a scenario file (`.toml`).
    - `utility`: `{"weights": {outcome: number >= 0}, "costs": {action: number}}`, in place of the scenario's own
      values for those that are named.
    - `horizon`: the number of days that a stay may last; the danger of death is spread over them.
    - `render_mode`: None, `"ansi"` (the patient's chart as text) or `"rgb_array"` (drawn).

    Each reset takes one number of `np_random` (none if the record is given), each step one for each outcome.

    ## Version History
    - v0: first version.
    """

    # An attribute of the class, as in every environment of Gymnasium, whose base class says an instance's.
    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES), "render_fps": 2}  # type: ignore[misc]

    def __init__(
        self,
        scenario: str = "covid",
        *,
        utility: Mapping[str, Any] | None = None,
        horizon: int = 1,
        render_mode: str | None = None,
    ) -> None:
        self._ward = ward_of(str(scenario), horizon)
        self._payoff = Payoff(self._ward.scenario, utility_of(self._ward.scenario, utility))
        self.render_mode = check_render_mode(render_mode)
        self.action_space = self._ward.action_space()
        self.observation_space = self._ward.observation_space()
        self._history = History(self._ward.scenario, horizon, 1) if render_mode else None
        self._codes: CodeArray | None = None
        self._days, self._over = 0, False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[CodeArray, dict[str, Any]]:
        """Admit a patient; see Starting State. ValueError for options and records that do not exist."""
        super().reset(seed=seed)
        given = self._ward.arrivals.given(options)
        if given is None:
            given = self._ward.arrivals.admit(np.array([self.np_random.random()]))
        self._codes = given
        self._days, self._over = 0, False
        if self._history:
            self._history.admit(THE_PATIENT, self._codes)
        return self._observation(self._codes), {"day": 0, **self._mask(self._codes)}

    def step(self, action: int) -> tuple[CodeArray, float, bool, bool, dict[str, Any]]:
        """Treat the patient for a day.

        Raises
        ------
        ValueError
            For an action that is no treatment, or one that is contraindicated for the patient.
        ResetNeeded
            Before the first reset and after the end of a stay.
        """
        if self._codes is None or self._over:
            raise ResetNeeded(f"the stay has {'ended' if self._over else 'not begun'}: call reset() before step().")
        actions = np.array([self._treatment(action)])
        self._ward.check_allowed(self._codes, actions, "action")
        uniforms = self.np_random.random(self._ward.n_draws)[np.newaxis]
        day = self._ward.treat(self._codes, actions, uniforms, self._days + 1 == self._ward.horizon)
        reward = float(self._payoff.of(self._codes, day.outcomes, actions)[0])
        self._codes, self._over = day.codes, bool(day.over[0])
        self._days += 1
        if self._history:
            self._history.note(THE_PATIENT, actions, day.outcomes, day.codes, day.over)
        outcome = dict(zip(self._ward.scenario.outcomes, day.outcomes[0].tolist(), strict=True))
        info = {"day": self._days, "outcome": outcome, **self._mask(day.codes)}
        return self._observation(day.codes), reward, self._over, False, info

    def render(self) -> str | NDArray[np.uint8] | None:
        """The patient's chart, as the render mode says."""
        if self._history is None:
            gymnasium.logger.warn("render() draws nothing without a render_mode: make(..., render_mode='rgb_array').")
            return None
        if self._codes is None:
            raise ResetNeeded("there is no patient yet: call reset() before render().")
        return draw(self._history, 0, self.render_mode)

    def _mask(self, codes: CodeArray) -> dict[str, Any]:
        """Which treatments the patient may get, where any is contraindicated for anybody."""
        return {"action_mask": self._ward.action_mask(codes)[0]} if self._ward.forbids else {}

    def _observation(self, codes: CodeArray) -> CodeArray:
        seen: CodeArray = self._ward.observe(codes, self._days)[0]
        return seen

    def _treatment(self, action: Any) -> int:
        """The position of a treatment, if it is one."""
        names = self._ward.scenario.actions
        try:
            position = -1 if isinstance(action, bool | np.bool_) else operator.index(action)
        except TypeError:
            position = -1
        if not 0 <= position < len(names):
            allowed = f"a whole number from 0 to {len(names) - 1} ({', '.join(names)})"
            raise ValueError(f"action must be {allowed}, got action={action!r}.")
        return position


def draw(history: History, patient: int, render_mode: str | None) -> str | NDArray[np.uint8]:
    """One patient's chart, as text or as an image."""
    chart = history.chart(patient)
    return as_text(chart) if render_mode == "ansi" else as_image(chart)
