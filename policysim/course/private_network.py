"""A private policy that asks a Q-network: one row of scores at a time, calibrated over a declared box."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import AnyRecord
from policies.arrays import FloatArray, IntArray
from policies.exponential import ExponentialFamily
from policies.mask import admissible_mask
from policies.masked import masked_problem
from policies.policy import Policy, draw_actions, two_values
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse

QNetwork = Callable[[Any], ArrayLike]
# Mechanisms that need nothing but one row of scores and a scale.
FOR_NETWORKS = ("exponential", "exponential-bounded-range", "exponential-tight", "randomized-response")


@dataclass(frozen=True, eq=False)
class PrivateNetwork:
    """A private policy that asks a Q-network.

    Attributes
    ----------
    q_network : callable
        From a batch of m observations to scores, (m, A).
    policy : Policy
        The mechanism, with its epsilon.
    lower, upper : float or None
        The declared bounds; scores are clipped to them.
    mask_public : bool
        Whether it is public which actions an observation allows.
    """

    q_network: QNetwork
    policy: Policy
    lower: float | None
    upper: float | None
    mask_public: bool
    _scales: dict[int, float] = field(default_factory=dict)

    @property
    def guarantee(self) -> float:
        """What one decision never loses, between any two observations whatever (that allow the same actions)."""
        return self.policy.guarantee

    def probabilities(self, observations: Any, *, admissible: ArrayLike | None = None) -> FloatArray:
        """p(a|observation), (m, A).

        Parameters
        ----------
        observations : batch of m observations
            Handed to the network as it is.
        admissible : array of bool, (m, A), optional
            Which actions each observation allows. Only with mask_public.

        Raises
        ------
        ValueError
            For scores that are not an (m, A) array of finite numbers, a module in training mode, or a mask that is not
            public.
        """
        scores: FloatArray = np.array(_asked(self.q_network, observations), dtype=np.float64, order="F")
        if scores.ndim != 2 or scores.shape[1] < 2 or not np.isfinite(scores).all():
            raise ValueError(f"q_values must return finite numbers, (m, A) with A >= 2, got {_what(scores)}.")
        mask = admissible_mask(admissible, scores.shape)
        if mask is not None and not self.mask_public:
            raise ValueError(
                "an action that only some observations allow tells them apart, at an infinite privacy loss: declare "
                "mask_public=True if it is public which actions are possible."
            )
        if isinstance(self.policy, RandomizedResponse):
            # It only asks which action is best, so that a row does not depend on what stands beside it.
            return masked_problem(scores, uniform_prior(len(scores)), mask).tables(self.policy)[1]
        np.clip(scores, self.lower, self.upper, out=scores)
        if mask is not None:
            scores[~mask] = -np.inf
        return _exponential(scores, self._scale(scores.shape[1]))

    def act(self, observations: Any, rng: np.random.Generator, *, admissible: ArrayLike | None = None) -> IntArray:
        """Draw an action for each observation, (m,). Floating point: for simulation, not for a release."""
        return draw_actions(self.probabilities(observations, admissible=admissible), rng)

    def _scale(self, n_actions: int) -> float:
        """The scale of the mechanism over the whole declared box, found once."""
        if n_actions not in self._scales:
            assert self.lower is not None
            assert self.upper is not None
            self._scales[n_actions] = box_scale(self.policy, n_actions, self.upper - self.lower)
        return self._scales[n_actions]


def box_scale(policy: Policy, n_actions: int, width: float) -> float:
    """The scale s of an exponential mechanism for all scores in a box [lower, lower + width]^A.

    The corners with one score apart from all others attain sensitivity, range and exact loss of the whole box.
    """
    assert isinstance(policy, ExponentialFamily)
    if policy.epsilon == 0:
        return np.inf
    corner = np.eye(n_actions) * width
    corners = np.concatenate([corner, width - corner])
    return policy.scale(DecisionProblem(corners, uniform_prior(len(corners)), AnyRecord()))


def _exponential(scores: FloatArray, scale: float) -> FloatArray:
    """p proportional to exp(score / s) for each row, (m, A), whatever stands beside it; 0 at scores of -inf."""
    if scale == 0:
        return two_values(scores.argmax(axis=1), scores.shape[1], 1.0, 0.0)
    gaps = np.subtract(scores, scores.max(axis=1)[:, None], out=scores)
    weights = np.where(np.isneginf(gaps), 0.0, np.exp(np.maximum(gaps, np.finfo(float).min) / scale))
    return np.asarray(weights / weights.sum(axis=1)[:, None])


def uniform_prior(size: int) -> FloatArray:
    """A prior for mechanisms that never look at it."""
    return np.full(size, 1 / size)


def require_usable(network: Any) -> None:
    """ValueError for a module that is in training mode, or whose parameters are not all finite.

    A module is whatever has `parameters` and `training`, as those of torch; torch itself is not imported.
    """
    if not _is_module(network):
        return
    _refuse_training(network)
    for parameter in network.parameters():
        if not np.isfinite(_as_numpy(parameter)).all():
            raise ValueError("q_values must be finite, got a module with parameters that are infinite or NaN.")


def _is_module(network: Any) -> bool:
    return callable(getattr(network, "parameters", None)) and hasattr(network, "training")


def _refuse_training(network: Any) -> None:
    if network.training:
        raise ValueError(
            "q_values is in training mode, in which the scores of an observation may depend on others and on chance: "
            "call q_values.eval() first."
        )


def _asked(network: Any, observations: Any) -> Any:
    """The scores of a batch: of a module, from a tensor like its parameters."""
    if _is_module(network):
        _refuse_training(network)
        first = next(iter(network.parameters()), None)
        if first is not None and not hasattr(observations, "detach"):
            observations = first.detach().new_tensor(np.asarray(observations))
    return _as_numpy(network(observations))


def _as_numpy(scores: Any) -> Any:
    """A tensor without its gradient, on the CPU, in double precision; anything else as it is."""
    return scores.detach().cpu().double().numpy() if hasattr(scores, "detach") else scores


def _what(scores: FloatArray) -> str:
    if np.isnan(scores).any():
        return "NaN"
    return "infinite ones" if np.isinf(scores).any() else f"shape {scores.shape}"
