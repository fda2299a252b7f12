"""The vector environment as Stable-Baselines3 wants it: importing this module needs that library."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.records import IntArray
from envs.treatment_vector import TreatmentVectorEnv
from envs.ward import BoolArray, CodeArray

try:
    from stable_baselines3.common.vec_env import VecEnv
except ImportError as error:
    raise ImportError("envs.sb3 needs stable-baselines3: pip install stable-baselines3.") from error


class TreatmentVecEnv(VecEnv):  # type: ignore[misc]  # which has no types where it is not installed
    """Treatment of many patients at once, for Stable-Baselines3 and sb3-contrib.

    When a stay ends, another patient comes in the same step. `infos` has a dictionary for each patient, as of the
    environment of one: "day" and "outcome", at the end of a stay those of its last day, with "terminal_observation".
    `env_method("action_masks")` gives which treatments each may get, as `MaskablePPO` asks for it. `seed` and
    `set_options` hold for the next reset, of all patients.

    Parameters
    ----------
    num_envs : int
        How many patients.
    arguments
        As of `envs.treatment_vector.TreatmentVectorEnv`, but the autoreset mode.

    Raises
    ------
    ValueError
        For options that are not the same for all patients, and for a method or an attribute that is set of some.
    """

    def __init__(self, num_envs: int, **arguments: Any) -> None:
        self._patients = TreatmentVectorEnv(num_envs, autoreset_mode="SameStep", **arguments)
        self._actions: IntArray = np.zeros(num_envs, dtype=np.intp)
        super().__init__(num_envs, self._patients.single_observation_space, self._patients.single_action_space)

    def reset(self) -> CodeArray:
        """Admit patients."""
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ValueError("options must be the same for all patients: set_options takes one mapping.")
        seen, infos = self._patients.reset(seed=self._seeds[0], options=options)
        self.reset_infos = self._of_each(infos["day"], infos["outcome"])
        self._reset_seeds()
        self._reset_options()
        return seen

    def step_async(self, actions: IntArray) -> None:
        """Keep the treatments for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> tuple[CodeArray, NDArray[np.float32], BoolArray, list[dict[str, Any]]]:
        """Treat the patients for a day: what is seen, rewards, whose stay has ended, and infos."""
        seen, rewards, ended, _, infos = self._patients.step(self._actions)
        days, outcomes = infos["day"], infos["outcome"]
        if ended.any():
            # Who has just come has day 0 and no outcome, and so has in the other who stays.
            last = infos["final_info"]
            days = days + last["day"]
            outcomes = {name: came | last["outcome"][name] for name, came in outcomes.items()}
        infos_each = self._of_each(days, outcomes)
        for patient in np.flatnonzero(ended).tolist():
            infos_each[patient]["terminal_observation"] = infos["final_obs"][patient]
        return seen, rewards.astype(np.float32), ended, infos_each

    def close(self) -> None:
        """Nothing has to be closed."""

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """What all patients share, once for each."""
        name = f"single_{attr_name}" if attr_name.endswith("_space") else attr_name
        return [getattr(self._patients, name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Refused: patients share their environment."""
        raise ValueError(f"{attr_name} cannot be set: make an environment with the arguments that are wanted.")

    def env_method(self, method_name: str, *given: Any, indices: Any = None, **named: Any) -> list[Any]:
        """What "action_masks" or "render" gives for each patient."""
        if method_name not in ("action_masks", "render"):
            raise ValueError(f"env_method must be 'action_masks' or 'render', got {method_name!r}.")
        rows = getattr(self._patients, method_name)()
        return [rows[patient] for patient in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: type, indices: Any = None) -> list[bool]:
        """Nobody is."""
        return [False] * len(list(self._get_indices(indices)))

    def _of_each(self, days: IntArray, outcomes: dict[str, BoolArray]) -> list[dict[str, Any]]:
        """The information of each patient."""
        names = [name for name in outcomes if f"_{name}" in outcomes]
        rows = zip(*(outcomes[name].tolist() for name in names), strict=True)
        return [
            {"day": day, "outcome": dict(zip(names, row, strict=True)), "TimeLimit.truncated": False}
            for day, row in zip(days.tolist(), rows, strict=True)
        ]
