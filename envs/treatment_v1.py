"""Version 1 of the Gymnasium environments: the patients of version 0, with random numbers by counting.

A number comes from a key, a place, a time and an outcome (`envs.philox`), whoever computes it: NumPy, compiled code in
any number of threads, or the environment of one patient, which is the vector environment's with one place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from envs import philox
from envs.cohort import FloatArray
from envs.compiled import Pass, is_compiled, why_not
from envs.dynamics import BoolArray, CodeArray
from envs.one_patient import OnePatient
from envs.records import IntArray
from envs.treatment import THE_PATIENT, TreatmentEnv
from envs.treatment_vector import TreatmentVectorEnv

# So many days of patients take NumPy as long as compiling the kernel: seconds, once on a machine.
WORTH_COMPILING = 1 << 23
# And so many as fetching what has been compiled before.
WORTH_FETCHING = 1 << 20


class TreatmentEnvV1(TreatmentEnv):
    """Treatment of one patient, once or day by day: version 1.

    ## Description
    As `policysim/Treatment-v0`, see `envs.treatment.TreatmentEnv`: the same chances, but for the same seed another
    patient, the one in the vector environment's first place.

    ## Version History
    - v1: random numbers by counting.
    """

    def __init__(
        self,
        scenario: str = "covid",
        *,
        utility: Mapping[str, Any] | None = None,
        horizon: int = 1,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(scenario, utility=utility, horizon=horizon, render_mode=render_mode)
        self._counter, self._patient = philox.Counter(), OnePatient(self._ward, self._payoff)
        self._n_actions = len(self._ward.scenario.actions)
        self._begun = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[CodeArray, dict[str, Any]]:
        """Admit a patient; see version 0."""
        super(TreatmentEnv, self).reset(seed=seed)
        self._counter.tick(self.np_random)
        given = self._ward.arrivals.given(options) if options else None
        if given is None:
            self._patient.admit(self._counter)
        else:
            self._patient.admit_given(given)
        self._days, self._over, self._begun = 0, False, True
        seen = self._patient.observe(0)
        if self._history:
            self._history.admit(THE_PATIENT, self._record())
        return seen, {"day": 0, **self._allowed()}

    def step(self, action: int) -> tuple[CodeArray, float, bool, bool, dict[str, Any]]:
        """Treat the patient for a day; see version 0."""
        if self._over or not self._begun:
            raise ResetNeeded(f"the stay has {'ended' if self._over else 'not begun'}: call reset() before step().")
        if type(action) is not int or not 0 <= action < self._n_actions:
            action = self._treatment(action)
        if self._ward.forbids and not self._patient.allowed()[action]:
            self._ward.check_allowed(self._record(), np.array([action]), "action")
        self._counter.tick(self.np_random)
        self._days += 1
        last = self._days == self._ward.horizon
        reward, outcome, self._over = self._patient.treat(self._counter, action, last=last)
        if self._history:
            happened, over = np.array([list(outcome.values())]), np.array([self._over])
            self._history.note(THE_PATIENT, np.array([action]), happened, self._record(), over)
        info: dict[str, Any] = {"day": self._days, "outcome": outcome}
        if self._ward.forbids:
            info |= self._allowed()
        return self._patient.observe(self._days), reward, self._over, False, info

    def render(self) -> str | NDArray[np.uint8] | None:
        """The patient's chart, as the render mode says."""
        self._codes = self._record() if self._begun else None
        return super().render()

    def _record(self) -> CodeArray:
        """Level codes of the patient, (1, n_features)."""
        return self._patient.observe(self._days)[np.newaxis, : len(self._ward.scenario.space.shape)]

    def _allowed(self) -> dict[str, Any]:
        """Which treatments the patient may get, where any is contraindicated for anybody."""
        return {"action_mask": self._patient.allowed()} if self._ward.forbids else {}


class TreatmentVectorEnvV1(TreatmentVectorEnv):
    """Treatment of many patients at once, compiled, in threads.

    ## Description
    As `policysim/Treatment-v0`, see `envs.treatment_vector.TreatmentVectorEnv`: the same chances, but for the same seed
    other patients.

    ## Arguments
    ```python
    gymnasium.make_vec("policysim:policysim/Treatment-v1", num_envs=65_536, autoreset_mode="NextStep", ...)
    ```

    - `num_envs`, `scenario`, `utility`, `horizon`, `render_mode`, `autoreset_mode`: as in v0.
    - `compiled`: whether to treat the patients by compiled code, which needs the extra `fast`. By default, once that
      pays: compiling takes some seconds, the first time on a machine. Nothing that happens depends on it, nor on the
      number of processors.

    A reset with a seed takes two numbers of `np_random`, the key. The numbers of a reset or step come from the key, the
    count of resets and steps since then, and the patient's place.

    ## Version History
    - v1: random numbers by counting, compiled.
    """

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str = "covid",
        *,
        utility: Mapping[str, Any] | None = None,
        horizon: int = 1,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = "NextStep",
        compiled: bool | None = None,
    ) -> None:
        self._pass: Pass | None = None
        self._seen: CodeArray | None = None
        super().__init__(
            num_envs,
            scenario,
            utility=utility,
            horizon=horizon,
            render_mode=render_mode,
            autoreset_mode=autoreset_mode,
        )
        if compiled not in (None, True, False):
            raise ValueError(f"compiled must be True, False or None, got compiled={compiled!r}.")
        reason = why_not(self._ward)
        if compiled and reason:
            raise ValueError(f"compiled=True: {reason}.")
        self._treated, self._compiled = 0, bool(compiled)
        self._may_compile = compiled is not False and not reason
        self._counter = philox.Counter()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[CodeArray, dict[str, Any]]:
        """Admit patients: all, or those of `options["reset_mask"]`; see version 0."""
        super(TreatmentVectorEnv, self).reset(seed=seed)
        self._counter.tick(self.np_random)
        self._change_to_pass()
        return super().reset(options=options)

    def _turn(self, treatments: IntArray) -> tuple[FloatArray, BoolArray, BoolArray]:
        self._counter.tick(self.np_random)
        self._change_to_pass()
        if self._pass is None:
            self._treated += self.num_envs
            return super()._turn(treatments)
        key, time = self._counter.key, self._counter.time
        next_step = self._mode is AutoresetMode.NEXT_STEP
        self._seen, rewards, treated, outcomes = self._pass.treat(time, key, treatments, next_step=next_step)
        return rewards, treated, outcomes.T

    def _settle(self, who: IntArray, given: CodeArray | None) -> None:
        if self._pass is None:
            super()._settle(who, given)
            return
        self._seen = None
        if given is None:
            self._pass.admit(self._counter.time, self._counter.key, who)
        else:
            self._pass.admit_given(who, given)

    def _observation(self) -> CodeArray:
        if self._pass is None:
            return super()._observation()
        # What the pass has just filled in is given away once.
        seen, self._seen = self._pass.observe() if self._seen is None else self._seen, None
        return seen

    def _check_allowed(self, treatments: IntArray) -> None:
        if self._pass is None or self._pass.refuses(treatments):
            super()._check_allowed(treatments)

    def _action_mask(self) -> NDArray[np.int8]:
        return super()._action_mask() if self._pass is None else self._pass.action_mask()

    def _draw_day(self) -> FloatArray:
        # No number depends on another: those that nobody needs are not computed.
        treated, uniforms = np.flatnonzero(~self._over), np.zeros((self._ward.n_draws, self.num_envs))
        drawn = philox.days(self._counter.key, treated, self._counter.time, self._ward.n_draws)
        for row, numbers in zip(uniforms, drawn, strict=True):
            row[treated] = numbers
        return uniforms.T

    def _draw_arrivals(self, who: IntArray) -> FloatArray:
        return philox.arrivals(self._counter.key, who, self._counter.time)

    def _change_to_pass(self) -> None:
        """Go on with compiled code, if it pays from now on."""
        if self._pass is not None or not self._may_compile:
            return
        if self._compiled or self._treated >= (WORTH_FETCHING if is_compiled() else WORTH_COMPILING):
            try:
                self._pass = Pass(self._ward, self._payoff, codes=self._codes, days=self._days, over=self._over)
            except ImportError:  # a numba that does not know this NumPy
                if self._compiled:
                    raise
                self._may_compile = False
                return
            self._days, self._over = self._pass.places.days, self._pass.places.over

    @property
    def _codes(self) -> CodeArray:
        return self._numpy_codes if self._pass is None else self._pass.codes()

    @_codes.setter
    def _codes(self, codes: CodeArray) -> None:
        self._numpy_codes = codes

    def __getstate__(self) -> dict[str, Any]:
        """What a copy is made of: all but the pass, which it makes for itself."""
        return {**vars(self), "_numpy_codes": self._codes, "_pass": None, "_seen": None}
