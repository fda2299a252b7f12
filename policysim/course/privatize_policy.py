"""A private policy of anybody's Q-values: a table over all states, or any function from observations to scores."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from envs.toml_reader import is_number
from envs.treatment_response import is_whole
from policies.adjacency import AnyRecord
from policies.arrays import FloatArray, Frozen, IntArray, as_floats, finite_table, logs_of, read_only
from policies.boxes import Boxes, log_rows, published_boxes, regrets_of, response_boxes
from policies.catalogue import make_policy
from policies.exponential import Exponential, ExponentialFitted
from policies.mask import admissible_mask, mask_classes
from policies.masked import masked_problem
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.sampler import draw_actions
from policysim.course.process import InfiniteLossWarning

QNetwork = Callable[[Any], ArrayLike]
# Mechanisms that need one row of scores, and what is public.
FOR_NETWORKS = (ExponentialFitted.name, Exponential.name, RandomizedResponse.name)
# What is declared, and the mechanism that takes it.
TAKEN_BY = dict.fromkeys(("floors", "sharpness", "sample"), ExponentialFitted.name)
TAKEN_BY |= dict.fromkeys(("lower", "upper"), Exponential.name)


@dataclass(frozen=True, eq=False)
class PrivateNetwork(Frozen):
    """A private policy that asks a Q-network.

    Attributes
    ----------
    q_network : callable
        From a batch of m observations to scores, (m, A).
    policy : Policy
        The mechanism, with its epsilon, and the floors and the sharpness that were declared.
    sample : array, (n, A), or None
        Public scores, to which the box is fitted.
    lower, upper : float or None
        The declared bounds of "exponential"; scores are clipped to them.
    mask_public : bool
        Whether it is public which actions an observation allows.
    """

    q_network: QNetwork
    policy: Policy
    sample: FloatArray | None
    lower: float | None
    upper: float | None
    mask_public: bool

    def __post_init__(self) -> None:
        """Check what the mechanism needs, and keep a copy of the sample."""
        name = self.policy.name
        if name not in FOR_NETWORKS:
            raise ValueError(f"policy must be one of {', '.join(FOR_NETWORKS)} for a function, got policy={name!r}.")
        if name == Exponential.name and not _ordered(self.lower, self.upper):
            raise ValueError(
                "lower and upper must be finite bounds of the scores, lower < upper, got "
                f"lower={self.lower!r}, upper={self.upper!r}."
            )
        for weights in self.q_network.parameters() if _is_module(self.q_network) else ():  # type: ignore[attr-defined]  # a module has them
            if not np.isfinite(_as_numpy(weights)).all():
                raise ValueError("q_values must be finite, got a module with parameters that are infinite or NaN.")
        if self.sample is not None:
            object.__setattr__(self, "sample", finite_table(self.sample, "sample"))

    @cached_property
    def _boxes(self) -> dict[tuple[int, ...], Boxes]:
        """Those that were computed, by the actions that are allowed."""
        return {}

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
            For scores that are not an (m, A) array, a module in training mode, a mask that is not public, or floors
            that are not one for each action. The scores themselves may be any: NaN counts as the worst.
        """
        scores = np.array(_asked(self.q_network, observations), dtype=np.float64)
        if scores.ndim != 2 or scores.shape[1] < 2:
            raise ValueError(f"q_values must return scores, (m, A) with A >= 2, got shape {scores.shape}.")
        mask = admissible_mask(admissible, scores.shape)
        if mask is None:
            return self._rows(scores.T, np.arange(scores.shape[1]), scores.shape[1]).T
        if not self.mask_public:
            raise ValueError(
                "an action that only some observations allow tells them apart, at an infinite privacy loss: declare "
                "mask_public=True if it is public which actions are possible."
            )
        table, classes = np.zeros(scores.shape), mask_classes(mask)
        for code in range(int(classes.max()) + 1):
            rows = np.flatnonzero(classes == code)
            actions = np.flatnonzero(mask[rows[0]])
            allowed = np.ix_(rows, actions)
            table[allowed] = self._rows(scores[allowed].T, actions, scores.shape[1]).T
        return table

    def act(self, observations: Any, rng: np.random.Generator, *, admissible: ArrayLike | None = None) -> IntArray:
        """Draw an action for each observation, (m,). Floating point: for simulation, not for a release."""
        return draw_actions(self.probabilities(observations, admissible=admissible), rng)

    def box(self, actions: IntArray, n_actions: int) -> Boxes:
        """The public floors, (k, 1), and sharpness of observations that allow these k >= 2 of A actions."""
        key = tuple(actions.tolist())
        if key not in self._boxes:
            self._boxes[key] = self._new_box(actions, n_actions)
        return self._boxes[key]

    def _new_box(self, actions: IntArray, n_actions: int) -> Boxes:
        policy = self.policy.among(actions, n_actions)
        if not isinstance(policy, ExponentialFitted):
            return response_boxes(len(actions), np.inf, policy.epsilon)
        if self.sample is None:
            sharpness = np.inf if policy.sharpness is None else policy.sharpness
            if policy.floors is None:
                return response_boxes(len(actions), sharpness, policy.epsilon)
            return published_boxes(logs_of(np.array(policy.floors))[:, None], np.array([sharpness]), policy.epsilon)
        if self.sample.shape[1] != n_actions:
            raise ValueError(f"sample must have {n_actions} columns, one for each action, got {self.sample.shape[1]}.")
        likely = np.full(len(self.sample), 1 / len(self.sample))
        ((_, _, boxes),) = policy.boxes(DecisionProblem(self.sample[:, actions], likely, AnyRecord()))
        return boxes

    def _rows(self, scores: FloatArray, actions: IntArray, n_actions: int) -> FloatArray:
        """p(a|observation), (k, m), from scores of the actions that are allowed, (k, m)."""
        if self.policy.name == Exponential.name:
            assert self.lower is not None
            assert self.upper is not None
            width = self.upper - self.lower
            scores = np.clip(np.where(np.isnan(scores), self.lower, scores), self.lower, self.upper)
        regrets = regrets_of(scores)
        best = np.arange(len(regrets))[:, None] == regrets.argmin(axis=0)
        if self.policy.epsilon == np.inf or len(regrets) == 1:
            return np.asarray(best, dtype=np.float64)
        if self.policy.name == Exponential.name:
            # Delta is the width: any two rows of scores lie in the box [lower, upper]^A.
            weights = np.exp(-regrets / width * (self.policy.epsilon / 2))
            return np.asarray(weights / weights.sum(axis=0))
        if isinstance(self.policy, RandomizedResponse):
            # Of equally good actions the first is the answer.
            regrets = np.where(best, 0.0, np.inf)
        return np.asarray(np.exp(log_rows(regrets[:, None, :], self.box(actions, n_actions))[:, 0, :]))


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
class PrivateTable(Frozen):
    """A private policy over all states, made by `privatize_policy` of Q-values, a mechanism and a mask.

    Attributes
    ----------
    probabilities : array, (S, A), or (H, S, A) for a table of each day
        p(a|s); 0 at inadmissible actions.
    guarantee : float
        What one decision is claimed not to lose; inf for masks that differ and are not public.
    epsilon_spent : float
        The exact privacy loss of one decision between any two states: the largest over the days.
    """

    q_values: InitVar[FloatArray]
    policy: InitVar[Policy]
    admissible: InitVar[ArrayLike | bool | None]
    mask_public: InitVar[bool]
    probabilities: FloatArray = field(init=False)
    guarantee: float = field(init=False)
    epsilon_spent: float = field(init=False)

    def __post_init__(
        self, q_values: FloatArray, policy: Policy, admissible: ArrayLike | bool | None, mask_public: bool
    ) -> None:
        """Compute the table, and what it reveals."""
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
        if spent == np.inf and policy.epsilon < np.inf and policy.uses_epsilon:
            warnings.warn(InfiniteLossWarning.EXPLAINED, InfiniteLossWarning, stacklevel=4)
        result = tables.transpose(0, 2, 1)
        guarantee = np.inf if problem.told_apart else policy.guarantee
        probabilities = read_only(result if q_values.ndim == 3 else result[0])
        vars(self).update(probabilities=probabilities, guarantee=guarantee, epsilon_spent=spent)

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
    floors: ArrayLike | None = ...,
    sharpness: float | None = ...,
    sample: ArrayLike | None = ...,
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
    floors: ArrayLike | None = ...,
    sharpness: float | None = ...,
    admissible: ArrayLike | bool | None = ...,
    mask_public: bool = ...,
) -> PrivateTable: ...


def privatize_policy(
    q_values: ArrayLike | QNetwork,
    epsilon: float,
    *,
    policy: str = ExponentialFitted.name,
    floors: ArrayLike | None = None,
    sharpness: float | None = None,
    sample: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
    admissible: ArrayLike | bool | None = None,
    mask_public: bool = False,
) -> PrivateTable | PrivateNetwork:
    """Make a private policy of Q-values: who sees one action can hardly tell the state (or observation) behind it.

    Parameters
    ----------
    q_values : array, (S, A) or (H, S, A), or callable
        A table over *all* states, such as `plan(mdp).q_values`, which counts all states as equally likely. -inf stands
        for an action that a state does not allow. Or a function from a batch of m observations to scores, (m, A), such
        as a Q-network, or the log-probabilities of an actor: any scores of which larger is better, as an array or a
        tensor. NaN counts as the worst score. A torch module is given its observations as a tensor of the type and on
        the device of its parameters. The scores of an observation must not depend on the others in its batch: a module
        in training mode, in which batch normalisation and dropout do that, is refused.
    epsilon : float
        The privacy parameter of one decision, >= 0.
    policy : str, optional
        A mechanism; for a function one of `FOR_NETWORKS`. "exponential-fitted" makes the mean score large: take it for
        scores in units of utility. Where only the order of scores means something, take "randomized-response".
    floors, sharpness : sequence of A floats, and float, optional
        Of "exponential-fitted", as in `policies.exponential.Exponential`. Declare them without looking at anybody's
        observations. For a function without a sample they are 1 / (e^epsilon + A - 1) and inf by default: randomised
        response, but that ties share.
    sample : array, (n, A), optional
        For a function with "exponential-fitted": scores that you declare public, such as those of simulated patients.
        Floors and sharpness are fitted to them, with equal weights. New observations are as private as these.
    lower, upper : float, optional
        For a function with "exponential", which needs them: bounds of its scores, declared without looking at anybody's
        observations; scores outside are clipped. Bounds as narrow as the scores allow give the least noise.
    admissible : array of bool, (S, A), or True, optional
        For a table: which actions each state allows; True for all. For a function, give the mask with each batch.
    mask_public : bool, optional
        Whether it is public which actions a state allows. If not, the privacy loss of masks that differ is infinite.

    Returns
    -------
    PrivateTable or PrivateNetwork

    Raises
    ------
    ValueError
        For a policy that cannot be used so, parameters that it does not take, bounds that are missing, not finite or in
        the wrong order, a table whose admissible entries are not finite, a sample that is not a table of finite
        numbers, or a module in training mode or with parameters that are not finite.

    Warns
    -----
    InfiniteLossWarning
        If the loss of the table is infinite although epsilon is finite.

    Notes
    -----
    Each row of a function lies between public floors and e^epsilon times these, whatever its scores are; that is its
    proof of privacy (`policies.boxes`). The textbook's mechanism has a scale instead, 2 (upper - lower) / epsilon,
    which holds for scores between the bounds alone.

    Examples
    --------
    >>> private = privatize_policy([[0.0, 1.0], [1.0, 0.0]], 1.0)
    >>> private.probabilities.round(3).tolist()
    [[0.269, 0.731], [0.731, 0.269]]
    >>> network = privatize_policy(lambda batch: [[0.0, 9.0], [float("nan"), 0.5], [1.0, 1.0]], 1.0)
    >>> network.probabilities(["first", "second", "third"]).round(3).tolist()
    [[0.269, 0.731], [0.269, 0.731], [0.5, 0.5]]
    """
    declared = {"floors": floors, "sharpness": sharpness, "sample": sample, "lower": lower, "upper": upper}
    for parameter, value in declared.items():
        if value is not None and policy != TAKEN_BY[parameter]:
            raise ValueError(f"{parameter} is for {TAKEN_BY[parameter]}, got policy={policy!r}.")
    fitted = {"floors": floors, "sharpness": sharpness} if policy == ExponentialFitted.name else {}
    mechanism = make_policy(policy, epsilon=epsilon, **fitted)
    if not callable(q_values):
        if not (lower is upper is sample is None):
            raise ValueError(
                "sample, lower and upper are for a function: a table of all states needs none. For a table of some of "
                "them, pass lambda states: q_values[states]."
            )
        return PrivateTable(np.array(q_values, dtype=np.float64), mechanism, admissible, mask_public)
    if admissible is not None and admissible is not True:
        raise ValueError("admissible is for a table: give a network's mask with each batch of observations.")
    public = None if sample is None else as_floats(sample, "sample")
    return PrivateNetwork(q_values, mechanism, public, lower, upper, bool(mask_public))


def _number(value: Any, size: int, name: str) -> int:
    if not is_whole(value) or not 0 <= value < size:
        raise ValueError(f"{name} must be whole numbers from 0 to {size - 1}, got {value!r}.")
    return int(value)


def _ordered(lower: Any, upper: Any) -> bool:
    """Whether the bounds are numbers whose distance is finite, and neither 0 nor lost in rounding."""
    return is_number(lower) and is_number(upper) and 0 < float(upper) - float(lower) < np.inf
