"""The Gymnasium environment of many patients at once: a thin shell around `envs.inpatients`, with no loop over them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from envs.cohort import FloatArray
from envs.inpatients import Patients
from envs.records import IntArray
from envs.scenario import Scenario
from envs.toml_reader import shown
from envs.treatment import INADMISSIBLE, RENDER_MODES, Charts, check_option
from envs.treatment_response import is_whole
from envs.ward import BoolArray, CodeArray, ward_of


class TreatmentVectorEnv(VectorEnv[CodeArray, IntArray, NDArray[Any]]):
    """Treatment of many patients at once, without a loop over them; with the extra `fast` compiled, in threads.

    ## Description
    Many patients of `policysim/Treatment-v1` at once: see `envs.treatment.TreatmentEnv` for what happens to each, and
    for the spaces, rewards, starting state and information, which are batched as Gymnasium's `SyncVectorEnv` does.

    ## Episode End
    What happens when a patient's stay has ended is the autoreset mode:

    - `"NextStep"`: the next step ignores the action and admits another patient, with reward 0.
    - `"SameStep"`: the same step admits another patient; the last observation and information of the one who left are
      in `final_obs` and `final_info`.
    - `"Disabled"`: admit others with `reset(options={"reset_mask": mask})`. Until then, steps change nothing for the
      patient: the same observation, no outcome, reward 0, terminated.

    ## Arguments
    ```python
    gymnasium.make_vec("policysim:policysim/Treatment-v1", num_envs=65_536, autoreset_mode="NextStep", ...)
    ```

    - `num_envs`: how many patients.
    - `scenario`, `study`, `utility`, `horizon`, `render_mode`, `inadmissible`, `compiled`: as for one patient.
    - `autoreset_mode`: one of the above.

    A reset with a seed takes one number of `np_random`. The numbers of a reset or step come from that, from how many
    there have been, and from the patient's place.

    ## Version History
    - v1: first version.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]  # as in TreatmentEnv
        "render_modes": list(RENDER_MODES),
        "render_fps": 2,
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        scenario: str | Path | Scenario = "covid",
        *,
        utility: Mapping[str, Any] | None = None,
        horizon: int = 1,
        render_mode: str | None = None,
        autoreset_mode: str | AutoresetMode = "NextStep",
        inadmissible: str = "raise",
        compiled: bool | None = None,
    ) -> None:
        if not is_whole(num_envs) or num_envs < 1:
            raise ValueError(f"num_envs must be a whole number >= 1, got num_envs={num_envs!r}.")
        self.ward, self.num_envs = ward_of(scenario, horizon, utility), int(num_envs)
        self._patients = Patients(self.ward, self.num_envs, compiled)
        self.render_mode = check_option("render_mode", render_mode, (None, *RENDER_MODES))
        self._inadmissible = check_option("inadmissible", inadmissible, INADMISSIBLE)
        mode = autoreset_mode.value if isinstance(autoreset_mode, AutoresetMode) else autoreset_mode
        self._mode = AutoresetMode(check_option("autoreset_mode", mode, tuple(known.value for known in AutoresetMode)))
        self.metadata = {**self.metadata, "autoreset_mode": self._mode}  # type: ignore[misc]
        self.single_action_space = self.ward.action_space()
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.single_observation_space = self.ward.observation_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self._charts = Charts(self.ward.scenario, horizon, self.num_envs) if render_mode else None
        self._admitted = np.zeros(self.num_envs, dtype=np.bool_)

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
        arrivals, who = self.ward.arrivals(others), np.ones(self.num_envs, dtype=np.bool_)
        if options and "reset_mask" in options:
            who = self._mask(options["reset_mask"])
        self._patients.admit(np.flatnonzero(who), self.np_random, *arrivals)
        self._admitted |= who
        seen = self._patients.observe()
        self._note_admissions(who, seen)
        nothing = np.zeros((len(self.ward.scenario.outcomes), self.num_envs), dtype=np.bool_)
        return seen, self._information(who.copy(), seen, nothing)

    def step(self, actions: ArrayLike) -> tuple[CodeArray, FloatArray, BoolArray, BoolArray, dict[str, Any]]:
        """Treat the patients for a day.

        Raises
        ------
        ValueError
            For actions that are no treatments, or contraindicated for their patients, naming the first.
        ResetNeeded
            Before every patient has been admitted once.
        """
        if not self._admitted.all():
            raise ResetNeeded("there are no patients yet: call reset() before step().")
        treatments = self._treatments(actions)
        idle = self._patients.places.over.copy()
        readmit = self._mode is AutoresetMode.NEXT_STEP
        rewards, outcomes = self._patients.room()
        seen = self._patients.treat(treatments, self.np_random, rewards, outcomes, readmit=readmit)
        terminations = self._patients.places.over.copy()
        if self._charts:
            who = np.flatnonzero(~idle)
            codes = seen[who, : len(self.ward.scenario.space.shape)]
            self._charts.note(who, treatments[who], outcomes.T[who], codes, terminations[who])
            if readmit:
                self._note_admissions(idle, seen)
        infos: dict[str, Any] = {}
        if self._mode is AutoresetMode.SAME_STEP and terminations.any():
            infos = self._farewell(terminations, seen, outcomes)
            self._patients.admit(np.flatnonzero(terminations), self.np_random, self.ward.sampler, None)
            seen, outcomes = self._patients.observe(), outcomes & ~terminations
            self._note_admissions(terminations, seen)
        infos |= self._information(np.ones(self.num_envs, dtype=np.bool_), seen, outcomes)
        return seen, rewards, terminations, np.zeros(self.num_envs, dtype=np.bool_), infos

    def render(self) -> tuple[str, ...] | None:
        """The charts of all patients, as text."""
        if self._charts is None:
            gymnasium.logger.warn("render() shows nothing without a render_mode: make_vec(..., render_mode='ansi').")
            return None
        if not self._admitted.all():
            raise ResetNeeded("there are no patients yet: call reset() before render().")
        return tuple(self._charts.text(patient) for patient in range(self.num_envs))

    def action_masks(self) -> BoolArray:
        """Which treatments the patients may get, (num_envs, n_actions)."""
        return self._patients.allowed().astype(np.bool_)

    def _note_admissions(self, who: BoolArray, seen: CodeArray) -> None:
        """Begin the charts of some patients."""
        if self._charts:
            self._charts.admit(np.flatnonzero(who), seen[who, : len(self.ward.scenario.space.shape)])

    def _farewell(self, left: BoolArray, seen: CodeArray, outcomes: BoolArray) -> dict[str, Any]:
        """The last observation and information of those whose stay has just ended."""
        who, last = np.flatnonzero(left), np.full(self.num_envs, None, dtype=object)
        last[who] = np.fromiter(seen[who], dtype=object, count=len(who))
        final = self._information(left.copy(), seen, outcomes)
        return {"final_obs": last, "_final_obs": left.copy(), "final_info": final, "_final_info": left.copy()}

    def _information(self, informed: BoolArray, seen: CodeArray, outcomes: BoolArray) -> dict[str, Any]:
        """The day, outcomes and allowed treatments of the places that are informed, and which these are."""
        days, everyone = self._patients.places.days, informed.all()
        rows = outcomes if everyone else outcomes & informed
        outcome = dict(zip(self.ward.scenario.outcomes, rows, strict=True))
        infos: dict[str, Any] = {"day": days.copy() if everyone else days * informed, "_day": informed}
        infos["outcome"] = outcome | {f"_{name}": informed for name in outcome}
        infos["_outcome"] = informed
        if self.ward.forbids:
            allowed = self._patients.allowed()
            infos |= {
                "action_mask": allowed if everyone else allowed * informed[:, np.newaxis],
                "_action_mask": informed,
            }
        return infos

    def _treatments(self, actions: ArrayLike) -> IntArray:
        """The positions of the treatments, if all are allowed, or those given in their place."""
        given, names = np.asarray(actions), self.ward.scenario.actions
        if given.dtype.kind not in "iu" or given.shape != (self.num_envs,):
            wanted = f"whole numbers of shape ({self.num_envs},)"
            raise ValueError(f"actions must be {wanted}, got {given.dtype} of shape {given.shape}.")
        # One kind of array, whatever was given: compiled code would be compiled anew, for seconds, for each other.
        usual = given.dtype == np.intp and given.flags.c_contiguous and given.flags.writeable
        treatments = given if usual else np.array(given, dtype=np.intp)
        if (treatments.view(np.uintp) >= len(names)).any():
            bad = int(np.flatnonzero((given < 0) | (given >= len(names)))[0])
            allowed = f"whole numbers from 0 to {len(names) - 1} ({', '.join(names)})"
            raise ValueError(f"actions must be {allowed}, got actions[{bad}]={given[bad]}.")
        if self.ward.forbids:
            mask = self._patients.allowed()
            wrong = (mask[np.arange(self.num_envs), treatments] == 0) & ~self._patients.places.over
            if wrong.any() and self._inadmissible == "raise":
                first = int(wrong.argmax())
                codes = self._patients.observe()[first, : len(self.ward.scenario.space.shape)]
                raise self.ward.refusal(f"actions[{first}]", int(treatments[first]), codes, mask[first])
            treatments = np.where(wrong, mask.argmax(axis=1), treatments)
        return treatments

    def _mask(self, mask: Any) -> BoolArray:
        """Who is admitted, if the mask is one."""
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.num_envs,):
            wanted = f"an array of bool of shape ({self.num_envs},)"
            raise ValueError(f"options['reset_mask'] must be {wanted}, got {shown(mask)}.")
        if not mask.any():
            raise ValueError("options['reset_mask'] must be True for somebody.")
        return mask
