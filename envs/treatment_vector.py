"""The Gymnasium environment of many patients at once: a thin shell around a ward, without a loop over patients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from envs.chart import History
from envs.cohort import FloatArray
from envs.dynamics import BoolArray, CodeArray
from envs.records import IntArray
from envs.stay import RENDER_MODES, check_render_mode, ward_of
from envs.toml_reader import shown
from envs.treatment import draw
from envs.treatment_response import is_whole
from envs.utility import Payoff, utility_of


class TreatmentVectorEnv(VectorEnv[CodeArray, IntArray, NDArray[Any]]):
    """Treatment of many patients at once, without a loop over them.

    ## Description
    Many patients of `policysim/Treatment-v0` at once: see `envs.treatment.TreatmentEnv` for what happens to each, and
    for the spaces, rewards, starting state and information, which are batched as Gymnasium's `SyncVectorEnv` does.

    ## Episode End
    What happens when a patient's stay has ended is the autoreset mode:

    - `"NextStep"`: the next step ignores the action and admits another patient, with reward 0.
    - `"SameStep"`: the same step admits another patient; the last observation and information of the one who left are
      in `final_obs` and `final_info`.
    - `"Disabled"`: admit others with `reset(options={"reset_mask": mask})`. Until then, steps change nothing for the
      patient: the same observation, reward 0, terminated.

    ## Arguments
    ```python
    gymnasium.make_vec("policysim:policysim/Treatment-v0", num_envs=1024, autoreset_mode="NextStep", ...)
    ```

    - `num_envs`: how many patients.
    - `scenario`, `utility`, `horizon`, `render_mode`: as for one patient.
    - `autoreset_mode`: one of the above.

    Each admission of n patients takes n numbers of `np_random`, each step first one for each outcome and patient,
    outcome by outcome.

    ## Version History
    - v0: first version.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # as in TreatmentEnv
        "render_modes": list(RENDER_MODES),
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str = "covid",
        *,
        utility: Mapping[str, Any] | None = None,
        horizon: int = 1,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = "NextStep",
    ) -> None:
        if not is_whole(num_envs) or num_envs < 1:
            raise ValueError(f"num_envs must be a whole number >= 1, got num_envs={num_envs!r}.")
        self._ward = ward_of(str(scenario), horizon)
        self._payoff = Payoff(self._ward.scenario, utility_of(self._ward.scenario, utility))
        self.num_envs = int(num_envs)
        self.render_mode = check_render_mode(render_mode)
        try:
            self._mode = AutoresetMode(autoreset_mode)
        except ValueError:
            known = ", ".join(repr(known.value) for known in AutoresetMode)
            raise ValueError(f"autoreset_mode must be one of {known}, got {autoreset_mode!r}.") from None
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}  # type: ignore[misc]
        self.single_action_space = self._ward.action_space()
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.single_observation_space = self._ward.observation_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._history = History(self._ward.scenario, horizon, self.num_envs) if render_mode else None
        names = self._ward.scenario.outcomes
        self._told = (*names, *(f"_{name}" for name in names))
        n_features = len(self._ward.scenario.space.shape)
        self._codes: CodeArray = np.zeros((self.num_envs, n_features), dtype=np.int16, order="F")
        self._days = np.zeros(self.num_envs, dtype=np.int64)
        self._over = np.ones(self.num_envs, dtype=np.bool_)
        self._admitted = np.zeros(self.num_envs, dtype=np.bool_)
        self._full, self._everyone = False, np.ones(self.num_envs, dtype=np.bool_)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[CodeArray, dict[str, Any]]:
        """Admit patients: all, or those of `options["reset_mask"]`, an array of bool (num_envs,).

        Raises
        ------
        ValueError
            For options and records that do not exist, and for a mask of another shape or type, or without a True.
        """
        super().reset(seed=seed)
        others = {name: value for name, value in (options or {}).items() if name != "reset_mask"}
        who = self._mask(options["reset_mask"]) if options and "reset_mask" in options else self._everyone
        self._admit(np.flatnonzero(who), self._ward.arrivals.given(others))
        self._admitted |= who
        self._full = bool(self._admitted.all())
        return self._observation(), self._state(who)

    def step(self, actions: ArrayLike) -> tuple[CodeArray, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Treat the patients for a day.

        Raises
        ------
        ValueError
            For actions that are no treatments, or contraindicated for their patients, naming the first.
        ResetNeeded
            Before every patient has been admitted once.
        """
        if not self._full:
            raise ResetNeeded("there are no patients yet: call reset() before step().")
        treatments = self._treatments(actions)
        if self._ward.forbids:
            self._check_allowed(treatments)
        rewards, treated, outcomes = self._turn(treatments)
        if self._history:
            who, others = np.flatnonzero(treated), np.flatnonzero(~treated)
            self._history.note(who, treatments[who], outcomes[who], self._codes[who], self._over[who])
            if self._mode is AutoresetMode.NEXT_STEP:
                self._history.admit(others, self._codes[others])
        terminations, infos = self._over.copy(), {}
        if self._mode is AutoresetMode.SAME_STEP:
            infos, treated = self._farewell(outcomes), ~terminations
            self._admit(np.flatnonzero(terminations))
        infos |= self._information(self._everyone, treated, outcomes)
        return self._observation(), rewards, terminations, np.zeros(self.num_envs, dtype=np.bool_), infos

    def _turn(self, treatments: IntArray) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Treat those whose stay goes on; where it has ended, admit others if the autoreset mode is the next step.

        Returns new arrays: rewards, (n,), who was treated, (n,), and outcomes, (n, n_outcomes).
        """
        idle = self._over
        treated, uniforms = ~idle, self._draw_day()
        day = self._ward.treat(self._codes, treatments, uniforms, self._days + 1 == self._ward.horizon, idle)
        rewards = self._payoff.of(self._codes, day.outcomes, treatments)
        rewards *= treated
        rewards += 0.0  # no minus zeros
        self._codes, self._over, self._days = day.codes, day.over, self._days + treated
        if self._mode is AutoresetMode.NEXT_STEP:
            self._settle(np.flatnonzero(idle), None)
        return rewards, treated, day.outcomes

    def _check_allowed(self, treatments: IntArray) -> None:
        """ValueError for the first patient whose treatment is contraindicated."""
        self._ward.check_allowed(self._codes, treatments, "actions[{}]", self._over)

    def _action_mask(self) -> NDArray[np.int8]:
        """Which treatments the patients may get, (n, n_actions), as a new array."""
        return self._ward.action_mask(self._codes)

    def _draw_day(self) -> FloatArray:
        """Numbers for a day of treatment, (n, n_outcomes)."""
        return self.np_random.random((self._ward.n_draws, self.num_envs)).T

    def _draw_arrivals(self, who: IntArray) -> FloatArray:
        """Numbers for admissions to some places, (m,)."""
        return self.np_random.random(who.size)

    def render(self) -> tuple[str | NDArray[np.uint8], ...] | None:
        """The charts of all patients, as the render mode says."""
        if self._history is None:
            gymnasium.logger.warn("render() draws nothing without a render_mode: make_vec(..., render_mode='ansi').")
            return None
        if not self._full:
            raise ResetNeeded("there are no patients yet: call reset() before render().")
        return tuple(draw(self._history, patient, self.render_mode) for patient in range(self.num_envs))

    def _admit(self, who: IntArray, given: CodeArray | None = None) -> None:
        """Admit patients to some places, and begin their charts: drawn from the cohort if none is given."""
        self._settle(who, given)
        if self._history:
            self._history.admit(who, self._codes[who])

    def _settle(self, who: IntArray, given: CodeArray | None) -> None:
        """Admit patients to some places."""
        if not who.size:
            return
        codes = self._ward.arrivals.admit(self._draw_arrivals(who)) if given is None else given
        if who.size == self.num_envs == len(codes):
            self._codes = codes
        else:
            for column, new in zip(self._codes.T, codes.T, strict=True):
                column[who] = new
        self._days[who], self._over[who] = 0, False

    def _observation(self) -> CodeArray:
        return self._ward.observe(self._codes, self._days)

    def _farewell(self, outcomes: BoolArray) -> dict[str, Any]:
        """The last observation and information of those whose stay has just ended, if any."""
        left = self._over.copy()
        who = np.flatnonzero(left)
        if not who.size:
            return {}
        rows = self._ward.observe(self._codes[who], self._days[who])
        last = np.full(self.num_envs, None, dtype=object)
        last[who] = np.fromiter(rows, dtype=object, count=len(rows))
        final = self._information(left, left, outcomes)
        return {"final_obs": last, "_final_obs": left.copy(), "final_info": final, "_final_info": left}

    def _information(self, told: BoolArray, treated: BoolArray, outcomes: BoolArray) -> dict[str, Any]:
        """The day for those who are told it, the outcomes for those treated, and who that is, as new arrays."""
        infos = self._state(told)
        if treated.any():
            happened = outcomes.T & treated if self._mode is AutoresetMode.SAME_STEP else outcomes.T
            whose = np.empty((len(happened) + 1, self.num_envs), dtype=np.bool_)
            whose[:] = treated
            infos["outcome"] = dict(zip(self._told, (*happened, *whose[1:]), strict=True))
            infos["_outcome"] = whose[0]
        return infos

    def _state(self, told: BoolArray) -> dict[str, Any]:
        """The day and the allowed treatments, for those who are told them."""
        infos: dict[str, Any] = {"day": self._days.copy(), "_day": told.copy()}
        if told is not self._everyone:
            infos["day"] *= told
        if self._ward.forbids:
            mask = self._action_mask()
            if told is not self._everyone:
                mask *= told[:, np.newaxis]
            infos |= {"action_mask": mask, "_action_mask": told.copy()}
        return infos

    def _treatments(self, actions: ArrayLike) -> IntArray:
        """The positions of the treatments, if all are some."""
        given, names = np.asarray(actions), self._ward.scenario.actions
        if given.dtype.kind not in "iu" or given.shape != (self.num_envs,):
            wanted = f"whole numbers of shape ({self.num_envs},)"
            raise ValueError(f"actions must be {wanted}, got {given.dtype} of shape {given.shape}.")
        if given.min() < 0 or given.max() >= len(names):
            bad = int(np.flatnonzero((given < 0) | (given >= len(names)))[0])
            allowed = f"whole numbers from 0 to {len(names) - 1} ({', '.join(names)})"
            raise ValueError(f"actions must be {allowed}, got actions[{bad}]={given[bad]}.")
        # One kind of array, whatever was given: compiled code would be compiled anew, for seconds, for each other.
        return np.require(given, np.intp, ["C", "W"])

    def _mask(self, mask: Any) -> BoolArray:
        """Who is admitted, if the mask is one."""
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            wanted = f"an array of bool of shape ({self.num_envs},)"
            raise ValueError(f"options['reset_mask'] must be {wanted}, got {shown(mask)}.")
        if not mask.any():
            raise ValueError("options['reset_mask'] must be True for somebody.")
        return mask
