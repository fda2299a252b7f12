"""A private policy of anybody's Q-values: a table over all states, or a network with declared bounds."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from envs.treatment_response import is_whole
from policies.adjacency import AnyRecord
from policies.arrays import FloatArray, IntArray
from policies.catalogue import CATALOGUE, make_policy
from policies.exponential import ExponentialFamily
from policies.mask import admissible_mask, mask_classes
from policies.masked import masked_problem
from policies.policy import Policy, draw_actions, two_values
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policysim.course.process import InfiniteLossWarning

QNetwork = Callable[[Any], ArrayLike]
# Mechanisms that need nothing but one row of scores and a scale.
FOR_NETWORKS = ("exponential", "exponential-bounded-range", "exponential-tight", "randomized-response")
# Widths of declared bounds whose products with any scale stay normal numbers.
LEAST_WIDTH, MOST_WIDTH = 1e-150, 1e150


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
            infinite = "infinite ones" if np.isinf(scores).any() else f"shape {scores.shape}"
            what = "NaN" if np.isnan(scores).any() else infinite
            raise ValueError(f"q_values must return finite numbers, (m, A) with A >= 2, got {what}.")
        mask = admissible_mask(admissible, scores.shape)
        if mask is not None and not self.mask_public:
            raise ValueError(
                "an action that only some observations allow tells them apart, at an infinite privacy loss: declare "
                "mask_public=True if it is public which actions are possible."
            )
        if isinstance(self.policy, RandomizedResponse):
            # It only asks which action is best, so that a row does not depend on what stands beside it.
            return masked_problem(scores, np.full(len(scores), 1 / len(scores)), mask).tables(self.policy)[1]
        np.clip(scores, self.lower, self.upper, out=scores)
        if mask is not None:
            scores[~mask] = -np.inf
        n_actions = scores.shape[1]
        if n_actions not in self._scales:
            assert self.lower is not None
            assert self.upper is not None
            # That of the whole declared box, found once.
            self._scales[n_actions] = box_scale(self.policy, n_actions, self.upper - self.lower)
        return _exponential(scores, self._scales[n_actions])

    def act(self, observations: Any, rng: np.random.Generator, *, admissible: ArrayLike | None = None) -> IntArray:
        """Draw an action for each observation, (m,). Floating point: for simulation, not for a release."""
        return draw_actions(self.probabilities(observations, admissible=admissible), rng)


def box_scale(policy: Policy, n_actions: int, width: float) -> float:
    """The scale s of an exponential mechanism for all scores in a box [lower, lower + width]^A.

    The corners with one score apart from all others attain sensitivity, range and exact loss of the whole box.
    """
    assert isinstance(policy, ExponentialFamily)
    if policy.epsilon == 0:
        return np.inf
    corner = np.eye(n_actions) * width
    corners = np.concatenate([corner, width - corner])
    return policy.scale(DecisionProblem(corners, np.full(len(corners), 1 / len(corners)), AnyRecord()))


def _exponential(scores: FloatArray, scale: float) -> FloatArray:
    """p proportional to exp(score / s) for each row, (m, A), whatever stands beside it; 0 at scores of -inf."""
    if scale == 0:
        return two_values(scores.argmax(axis=1), scores.shape[1], 1.0, 0.0)
    gaps = np.subtract(scores, scores.max(axis=1)[:, None], out=scores)
    weights = np.where(np.isneginf(gaps), 0.0, np.exp(np.maximum(gaps, np.finfo(float).min) / scale))
    return np.asarray(weights / weights.sum(axis=1)[:, None])


def _is_module(network: Any) -> bool:
    """Whether it has `parameters` and `training`, as those of torch, which is not imported; ValueError in training."""
    if not callable(getattr(network, "parameters", None)) or not hasattr(network, "training"):
        return False
    if network.training:
        raise ValueError(
            "q_values is in training mode, in which the scores of an observation may depend on others and on chance: "
            "call q_values.eval() first."
        )
    return True


def _asked(network: Any, observations: Any) -> Any:
    """The scores of a batch: of a module, from a tensor like its parameters."""
    if _is_module(network):
        first = next(iter(network.parameters()), None)
        if first is not None and not hasattr(observations, "detach"):
            observations = first.detach().new_tensor(np.asarray(observations))
    return _as_numpy(network(observations))


def _as_numpy(scores: Any) -> Any:
    """A tensor without its gradient, on the CPU, in double precision; anything else as it is."""
    return scores.detach().cpu().double().numpy() if hasattr(scores, "detach") else scores


@dataclass(frozen=True, eq=False)
class PrivateTable:
    """A private policy over all states.

    Attributes
    ----------
    probabilities : array, (S, A), or (H, S, A) for a table of each day
        p(a|s); 0 at inadmissible actions.
    guarantee : float
        What one decision is claimed not to lose; inf for masks that differ and are not public.
    epsilon_spent : float
        The exact privacy loss of one decision between any two states: the largest over the days.
    """

    probabilities: FloatArray
    guarantee: float
    epsilon_spent: float

    def act(self, states: ArrayLike, rng: np.random.Generator, *, day: int | None = None) -> IntArray:
        """Draw an action for each state number, (m,); `day` counts from 0, for a table of each day.

        Floating point: for simulation, not for a release.
        """
        if (day is None) != (self.probabilities.ndim == 2):
            raise ValueError(f"day must be given for a table of each day, and only then, got day={day!r}.")
        table = self.probabilities if day is None else self.probabilities[_number(day, len(self.probabilities), "day")]
        rows = [_number(state, len(table), "states") for state in np.atleast_1d(states).tolist()]
        return draw_actions(table[np.array(rows, dtype=np.intp)], rng)


@overload
def privatize_policy(
    q_values: QNetwork,
    epsilon: float,
    *,
    policy: str = ...,
    lower: float | None = ...,
    upper: float | None = ...,
    mask_public: bool = ...,
) -> PrivateNetwork: ...


@overload
def privatize_policy(
    q_values: ArrayLike,
    epsilon: float,
    *,
    policy: str = ...,
    admissible: ArrayLike | bool | None = ...,
    mask_public: bool = ...,
) -> PrivateTable: ...


def privatize_policy(
    q_values: ArrayLike | QNetwork,
    epsilon: float,
    *,
    policy: str = "exponential-tight",
    lower: float | None = None,
    upper: float | None = None,
    admissible: ArrayLike | bool | None = None,
    mask_public: bool = False,
) -> PrivateTable | PrivateNetwork:
    """Make a private policy of Q-values: who sees one action can hardly tell the state (or observation) behind it.

    Parameters
    ----------
    q_values : array, (S, A) or (H, S, A), or callable
        A table over *all* states, such as `plan(mdp).q_values`: its exact sensitivity is used. -inf stands for an
        action that a state does not allow. Or a function from a batch of m observations to scores, (m, A), such as a
        Q-network, or the log-probabilities of an actor, which 0 bounds from above: any finite scores of which larger
        is better, as an array or a tensor. A torch module is given its observations as a tensor of the type and on the
        device of its parameters. The scores of an observation must not depend on the others in its batch: a module in
        training mode, in which batch normalisation and dropout do that, is refused.
    epsilon : float
        The privacy parameter of one decision, >= 0.
    policy : str, optional
        A mechanism that needs no prior; for a network one of `FOR_NETWORKS`.
    lower, upper : float, optional
        For a network: bounds of its scores, declared without looking at anybody's observations; scores outside are
        clipped. "randomized-response" needs none. Bounds as narrow as the scores allow give the least noise.
    admissible : array of bool, (S, A), or True, optional
        For a table: which actions each state allows; True for all. For a network, give the mask with each batch.
    mask_public : bool, optional
        Whether it is public which actions a state allows. If not, the privacy loss of masks that differ is infinite.

    Returns
    -------
    PrivateTable or PrivateNetwork

    Raises
    ------
    ValueError
        For a policy that cannot be used so, bounds that are missing, not finite or in the wrong order, a table whose
        admissible entries are not finite, or a module in training mode or with parameters that are not finite.

    Warns
    -----
    InfiniteLossWarning
        If the loss of the table is infinite although epsilon is finite.

    Notes
    -----
    A table of some of the states, or a network, says nothing about how far scores can differ between states that were
    not seen; the sensitivity of what was seen is no bound. With declared bounds, any two rows of scores lie in the box
    [lower, upper]^A. Over the box, one score differs by at most Delta = upper - lower, and d_a = q_a - q'_a ranges
    over at most Gamma = 2 Delta: (upper, lower, ...) against (lower, upper, ...) attains both. So
    "exponential" and "exponential-bounded-range" have the same scale, 2 Delta / epsilon. For a scale s, p(a|q) is
    largest where q_a = upper and all others = lower, and smallest the other way round, so with t = Delta / s

        exact loss = t + log((A - 1 + e^-t) / (1 + (A - 1) e^-t)),

    and "exponential-tight" takes the t at which this is epsilon: for two actions t = epsilon, half the noise. It
    rises with A, so that fewer admissible actions lose no more.

    Examples
    --------
    >>> private = privatize_policy([[0.0, 1.0], [1.0, 0.0]], 1.0)
    >>> private.probabilities.round(3).tolist()
    [[0.269, 0.731], [0.731, 0.269]]
    >>> network = privatize_policy(lambda batch: [[0.0, 9.0], [1.0, 0.5]], 1.0, lower=0, upper=1)
    >>> network.probabilities(["first", "second"]).round(3).tolist()
    [[0.269, 0.731], [0.622, 0.378]]
    """
    mechanism = make_policy(policy, epsilon=epsilon)
    if not callable(q_values):
        if lower is not None or upper is not None:
            raise ValueError(
                "lower and upper are for a function: a table of all states needs none. For a table of some of them, "
                "pass lambda states: q_values[states]."
            )
        return _private_table(np.array(q_values, dtype=np.float64), mechanism, admissible, mask_public)
    if admissible is not None and admissible is not True:
        raise ValueError("admissible is for a table: give a network's mask with each batch of observations.")
    if policy not in FOR_NETWORKS:
        raise ValueError(f"policy must be one of {', '.join(FOR_NETWORKS)} for a function, got policy={policy!r}.")
    if policy != RandomizedResponse.name and not _ordered(lower, upper):
        raise ValueError(
            f"lower and upper must be finite bounds of the scores, lower < upper and {LEAST_WIDTH:g} to {MOST_WIDTH:g} "
            f"apart, got lower={lower!r}, upper={upper!r}."
        )
    for parameter in q_values.parameters() if _is_module(q_values) else ():  # type: ignore[attr-defined]  # a module has them
        if not np.isfinite(_as_numpy(parameter)).all():
            raise ValueError("q_values must be finite, got a module with parameters that are infinite or NaN.")
    return PrivateNetwork(q_values, mechanism, lower, upper, bool(mask_public))


def _private_table(
    q_values: FloatArray, policy: Policy, admissible: ArrayLike | None, mask_public: bool
) -> PrivateTable:
    if policy.uses_prior:
        names = ", ".join(sorted(name for name, kind in CATALOGUE.items() if not kind.uses_prior))
        raise ValueError(f"policy must be one of {names}: {policy.name} needs a prior; policysim.compare gives it one.")
    if q_values.ndim not in (2, 3) or 0 in q_values.shape:
        raise ValueError(f"q_values must be (S, A) or (H, S, A), got shape {q_values.shape}.")
    days = q_values if q_values.ndim == 3 else q_values[None]
    mask = admissible_mask(~np.isneginf(days[0]) if admissible is None else admissible, days[0].shape)
    classes = mask_classes(mask) if mask is not None and mask_public else None
    tables = np.empty((len(days), days.shape[2], days.shape[1]))
    spent = 0.0
    for day, scores in enumerate(days):
        problem = masked_problem(scores, np.full(len(scores), 1 / len(scores)), mask, classes=classes)
        logs, probabilities = problem.tables(policy)
        tables[day] = probabilities.T
        spent = max(spent, problem.epsilon_spent(logs))
    result = tables.transpose(0, 2, 1)
    if spent == np.inf and policy.epsilon < np.inf and policy.uses_epsilon:
        warnings.warn(InfiniteLossWarning.EXPLAINED, InfiniteLossWarning, stacklevel=3)
    guarantee = np.inf if problem.told_apart else policy.guarantee
    return PrivateTable(result if q_values.ndim == 3 else result[0], guarantee, spent)


def _number(value: Any, size: int, name: str) -> int:
    if not is_whole(value) or not 0 <= value < size:
        raise ValueError(f"{name} must be whole numbers from 0 to {size - 1}, got {value!r}.")
    return int(value)


def _ordered(lower: float | None, upper: float | None) -> bool:
    """Whether the bounds are finite numbers whose distance is one too, and neither 0 nor lost in rounding."""
    numbers = [isinstance(bound, Real) and not isinstance(bound, bool) for bound in (lower, upper)]
    if not all(numbers) or lower is None or upper is None:
        return False
    width = float(upper) - float(lower)
    return bool(np.isfinite([lower, upper]).all()) and LEAST_WIDTH <= width <= MOST_WIDTH
