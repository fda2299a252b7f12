"""A private policy of anybody's model: rows in a public box, whatever its scores are, for records and observations."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from policies.adjacency import AnyRecord
from policies.arrays import BoolArray, FloatArray, IntArray, finite_table, logs_of
from policies.boxes import LARGEST_EPSILON, Boxes, log_rows, published_boxes, regrets_of, response_boxes
from policies.catalogue import CATALOGUE, NAME, RESERVED, make_policy
from policies.exponential import Exponential, ExponentialFitted
from policies.mask import admissible_mask, mask_classes
from policies.model_scores import Agent, Classifier, Table, scorer_of, scores_of
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.sampler import draw_actions

Bounds: TypeAlias = tuple[float, float] | Literal["simplex"]
SIMPLEX: Literal["simplex"] = "simplex"
# Mechanisms that need one row of scores, and what is public.
FOR_MODELS = (ExponentialFitted.name, Exponential.name, RandomizedResponse.name)
# What is declared, and the mechanism that takes it.
TAKEN_BY = dict.fromkeys(("floors", "sharpness", "sample"), ExponentialFitted.name)
TAKEN_BY |= dict.fromkeys(("lower", "upper", "bounds"), Exponential.name)


@dataclass(frozen=True)
class PrivateModel(Policy):
    """The choice of a model, made private: a row lies between public floors and ceilings, whatever the scores are.

    It goes wherever a policy goes: `compare`, `report`, `fit`, `dataclasses.replace(private, epsilon=2)`. Of a problem
    the model is asked about all records, once; what it never saw gets the worst score. Rows are also given directly,
    to patients whom no problem lists.

    Parameters
    ----------
    epsilon : float
        The privacy parameter of one decision, >= 0.
    name : str
        In tables and figures.
    model : what `policies.model_scores.scorer_of` takes
        Public: it must not depend on the treated patients. It does not protect the patients to whom it was fitted.
    mechanism : Policy
        One of `FOR_MODELS`, with its floors and sharpness in the order of the model's columns; its epsilon is replaced.
    floors_of : DecisionProblem, optional
        A public problem whose floors at this epsilon are taken: those of "exponential-fitted" on it.
    public_scores : array, (n, A), optional
        In the order of the model's columns: floors and sharpness are fitted to them. Kept as tuples, which compare.
    bounds : (float, float) or "simplex", optional
        Of "exponential": the least and the largest score, or that scores are probabilities.
    mask_public : bool
        Whether it is public which actions an observation allows. Masks of a problem are.

    Raises
    ------
    ValueError
        For parameters that do not go together.

    Notes
    -----
    epsilon-private between any two records or observations, under every adjacency: a row lies in [w, e^epsilon w] for
    floors w that depend on what is declared and on which actions are allowed, which is public (`policies.boxes`).
    "exponential" computes a row by a scale in place of a box, and lies in one, too. With the scale s, p(a|x) is
    1 / (1 + sum over b != a of exp((u_b - u_a) / s)), for k actions:

    - Scores in [lower, upper], s = 2 (upper - lower) / epsilon (McSherry & Talwar 2007): each exponent lies between
      -epsilon/2 and epsilon/2. So p lies between w = 1 / (1 + (k - 1) e^(epsilon/2)) and
      1 / (1 + (k - 1) e^(-epsilon/2)) <= e^epsilon w, as e^epsilon (1 + (k - 1) e^(-epsilon/2)) >=
      1 + (k - 1) e^(epsilon/2).
    - Probabilities, u >= 0 with sum u <= 1 (those of the allowed actions), s = 1 / epsilon. As u_b - u_a >= -1,
      p <= 1 / (1 + (k - 1) e^-epsilon) = e^epsilon w with w = 1 / (e^epsilon + k - 1). By convexity
      e^(epsilon u_b) <= 1 + u_b (e^epsilon - 1), and e^(-epsilon u_a) <= 1, so that the sum over b != a is at most
      k - 1 + (e^epsilon - 1): p >= w. Both are attained, at u = e_a and u = e_b: no smaller scale will do, and the
      scale 2 Delta / epsilon = 2 / epsilon of the textbook would spend half of epsilon.
    """

    name: str = "private-model"  # type: ignore[misc]  # several models in one report have names of their own
    model: Any = None
    mechanism: Policy = field(default_factory=ExponentialFitted)
    floors_of: DecisionProblem | None = None
    public_scores: Any = field(default=None, repr=False)
    bounds: Bounds | None = None
    mask_public: bool = False
    uses_prior = False
    across_masks = True  # the model is asked about all records at once, and knows no classes

    def __post_init__(self) -> None:
        """Check what the mechanism needs."""
        super().__post_init__()
        object.__setattr__(self, "model", scorer_of(self.model))
        if self.mechanism.name not in FOR_MODELS:
            raise ValueError(
                f"policy must be one of {', '.join(FOR_MODELS)} for a model, got policy={self.mechanism.name!r}."
            )
        object.__setattr__(self, "mechanism", replace(self.mechanism, epsilon=self.epsilon))
        if not re.fullmatch(NAME, self.name) or re.fullmatch(RESERVED, self.name) or self.name in CATALOGUE:
            raise ValueError(
                f"name must be lower-case letters and digits with hyphens between, and no policy's of the catalogue, "
                f"got name={self.name!r}."
            )
        if self.mechanism.name == Exponential.name:
            self._check_bounds()
        if self.public_scores is not None:
            table = finite_table(self.public_scores, "sample")
            object.__setattr__(self, "public_scores", tuple(map(tuple, table.tolist())))

    def _check_bounds(self) -> None:
        """ValueError unless the bounds are two numbers in order, or "simplex" for what has probabilities."""
        if self.bounds == SIMPLEX:
            if isinstance(self.model, Agent) and not hasattr(self.model.network, "get_distribution"):
                raise ValueError('bounds="simplex" is for probabilities: a Q-network needs lower=... and upper=....')
            return
        lower, upper = (None, None) if self.bounds is None else self.bounds
        if lower is None or upper is None or not -np.inf < lower < upper < np.inf:
            raise ValueError(
                "exponential needs finite bounds of the scores, lower < upper, or bounds='simplex' for probabilities, "
                f"got lower={lower!r}, upper={upper!r}."
            )

    @cached_property
    def _boxes(self) -> dict[tuple[int, ...], Boxes]:
        """Those that were computed, by the actions that are allowed."""
        return {}

    def predict_proba(self, rows: Any, *, admissible: ArrayLike | None = None) -> FloatArray:
        """p(a|observation), (m, A), for rows that the model is asked about as they are.

        Nothing is private if the model scores a row by the others of its batch, too. `fit` notices that, this does not.

        Parameters
        ----------
        rows : batch of m rows
            Of a classifier a DataFrame or an array as its own `predict_proba` takes, of a table numbers of states, else
            observations.
        admissible : array of bool, (m, A), optional
            Which actions each row allows. Only with mask_public.

        Returns
        -------
        array, (m, A)
            In the order of the model's columns, for a classifier its `classes_`.

        Raises
        ------
        ValueError
            For scores that are not an (m, A) array, a module in training mode, a mask that is not public, or floors
            that are not one for each action. The scores themselves may be any.
        """
        scores = self.model.scores(rows)
        if isinstance(self.model, Table) and admissible is None:
            admissible = ~np.isneginf(scores)
        mask = admissible_mask(admissible, scores.shape)
        if mask is not None and not self.mask_public:
            raise ValueError(
                "an action that only some observations allow identifies them, at an infinite privacy loss: declare "
                "mask_public=True if it is public which actions are possible."
            )
        return np.ascontiguousarray(np.exp(self._log_table(scores, mask)))

    def act(self, observation: Any, rng: np.random.Generator, *, admissible: ArrayLike | None = None) -> int | IntArray:
        """Draw the number of an action for each row, (m,), as an environment's `step` takes it; an int for one.

        One row is an observation, (n_features,), of an agent or a function, and one state of a table. Floating point:
        for simulation, not for a release. A generator with the seed of the environment would draw actions that go with
        what is about to happen.
        """
        if isinstance(self.model, Classifier):
            raise ValueError("a classifier names treatments: fit(problem).act(...) draws their numbers.")
        single = np.ndim(observation) == (0 if isinstance(self.model, Table) else 1)
        rows = np.asarray(observation)[np.newaxis] if single else observation
        actions = draw_actions(self.predict_proba(rows, admissible=admissible), rng)
        return int(actions[0]) if single else actions

    def box(self, actions: IntArray, n_actions: int) -> Boxes:
        """The public floors, (k, 1), and sharpness of rows that allow these k >= 2 of the model's A actions.

        Rows of all mechanisms lie in it; that of "exponential" is the one of the proof above.
        """
        key = tuple(actions.tolist())
        if key not in self._boxes:
            self._boxes[key] = self._new_box(actions, n_actions)
        return self._boxes[key]

    def _new_box(self, actions: IntArray, n_actions: int) -> Boxes:
        policy = self.mechanism.among(actions, n_actions)
        if isinstance(self.bounds, tuple):
            epsilon = min(policy.epsilon, LARGEST_EPSILON)
            floor = -np.logaddexp(0.0, np.log(len(actions) - 1) + epsilon / 2)
            return Boxes(epsilon, np.full((len(actions), 1), floor), np.array([np.inf]))
        if self.floors_of is not None:
            return self._box_of_problem(self.floors_of, actions)
        if not isinstance(policy, ExponentialFitted):
            return response_boxes(len(actions), np.inf, policy.epsilon)
        if self.public_scores is None:
            sharpness = np.inf if policy.sharpness is None else policy.sharpness
            if policy.floors is None:
                return response_boxes(len(actions), sharpness, policy.epsilon)
            return published_boxes(logs_of(np.array(policy.floors))[:, None], np.array([sharpness]), policy.epsilon)
        sample = np.array(self.public_scores)
        if sample.shape[1] != n_actions:
            raise ValueError(f"sample must have {n_actions} columns, one for each action, got {sample.shape[1]}.")
        likely = np.full(len(sample), 1 / len(sample))
        ((_, _, boxes),) = policy.boxes(DecisionProblem(sample[:, actions], likely, AnyRecord()))
        return boxes

    def _box_of_problem(self, problem: DecisionProblem, actions: IntArray) -> Boxes:
        """The box of "exponential-fitted" for everyone in a public problem, among these of the model's actions."""
        columns, epsilon = self.model.columns(problem)[actions], min(self.epsilon, LARGEST_EPSILON)
        if not isinstance(problem.adjacency, AnyRecord) or columns.tolist() != list(range(problem.n_actions)):
            problem = DecisionProblem(problem.utilities[:, columns], problem.prior, AnyRecord())
        ((_, _, boxes),) = ExponentialFitted(epsilon).boxes(problem)
        # Scores of a model are in no unit of utility: unless a sharpness is declared, their order counts.
        declared = getattr(self.mechanism, "sharpness", None)
        return replace(boxes, sharpness=np.array([np.inf if declared is None else declared]))

    def _log_probabilities(self, problem: DecisionProblem) -> FloatArray:
        scores, columns = scores_of(problem, self.model), self.model.columns(problem)
        floors_of = self.floors_of
        if floors_of is not None and list(floors_of.actions) != list(problem.actions):
            raise ValueError(
                f"floors are those of a problem with the actions {', '.join(floors_of.actions)}: the actions of this "
                f"one are {', '.join(problem.actions)}."
            )
        return self._with_columns(columns, problem.n_actions)._log_table(scores, problem.admissible)

    def _with_columns(self, columns: IntArray, n_actions: int) -> PrivateModel:
        """The same with floors and sample in the order of a problem's actions, in place of that of the columns."""
        if columns.tolist() == list(range(n_actions)):
            return self
        order, reordered, mechanism = np.argsort(columns), replace(self, model=np.asarray), self.mechanism
        if isinstance(mechanism, ExponentialFitted) and mechanism.floors is not None:
            floors = tuple(np.array(mechanism.floors)[order].tolist())
            reordered = replace(reordered, mechanism=replace(mechanism, floors=floors))
        if self.public_scores is not None:
            reordered = replace(reordered, public_scores=np.array(self.public_scores)[:, order])
        return reordered

    def _log_table(self, scores: FloatArray, mask: BoolArray | None) -> FloatArray:
        """log p(a|x), (m, A), column-major: for each set of rows that allow the same, in the box of these actions."""
        n_actions = scores.shape[1]
        scores = self._within_bounds(scores)
        if mask is None:
            return self._log_rows(scores.T, np.arange(n_actions), n_actions).T
        table, classes = np.full(scores.shape, -np.inf, order="F"), mask_classes(mask)
        for code in range(int(classes.max()) + 1):
            rows = np.flatnonzero(classes == code)
            actions = np.flatnonzero(mask[rows[0]])
            allowed = np.ix_(rows, actions)
            table[allowed] = self._log_rows(scores[allowed].T, actions, n_actions).T
        return table

    def _within_bounds(self, scores: FloatArray) -> FloatArray:
        """Scores, (m, A), that are what "exponential" takes them for, whatever they were."""
        if self.bounds is None:
            return scores
        lower, upper = (0.0, 1.0) if self.bounds == SIMPLEX else self.bounds
        clipped: FloatArray = np.clip(np.where(np.isnan(scores), lower, scores), lower, upper)
        return clipped / np.maximum(clipped.sum(axis=1, keepdims=True), 1.0) if self.bounds == SIMPLEX else clipped

    def _log_rows(self, scores: FloatArray, actions: IntArray, n_actions: int) -> FloatArray:
        """log p(a|x), (k, m), from scores of the actions that are allowed, (k, m)."""
        regrets = regrets_of(scores)
        best = np.arange(len(regrets))[:, None] == regrets.argmin(axis=0)
        if self.epsilon == np.inf or len(regrets) == 1:
            return logs_of(best.astype(np.float64))
        if self.bounds is not None:
            # Half of what scores may differ by in the proof: Delta of the bounds, or 1/2 in the simplex.
            width = 0.5 if self.bounds == SIMPLEX else self.bounds[1] - self.bounds[0]
            logs = -regrets / width * (self.epsilon / 2)
            return np.asarray(logs - np.logaddexp.reduce(logs, axis=0))
        if isinstance(self.mechanism, RandomizedResponse):
            # Of equally good actions the first is the answer.
            regrets = np.where(best, 0.0, np.inf)
        return np.asarray(log_rows(regrets[:, None, :], self.box(actions, n_actions))[:, 0, :])


def privatize_policy(
    model: Any,
    epsilon: float,
    *,
    policy: str = ExponentialFitted.name,
    floors: ArrayLike | DecisionProblem | None = None,
    sharpness: float | None = None,
    sample: ArrayLike | None = None,
    lower: float | None = None,
    upper: float | None = None,
    bounds: str | None = None,
    mask_public: bool = False,
    name: str = "private-model",
) -> PrivateModel:
    """Make a private policy of a model: a treatment changes the odds of a patient's record by at most e^epsilon.

    Nothing is ever fitted to the rows that are to be protected. By default each row lies between floors and ceilings
    that follow from epsilon and the number of actions alone. That is randomised response: the best action has
    e^epsilon / (e^epsilon + k - 1), and equally good ones share.

    Parameters
    ----------
    model : classifier, agent, callable or array, (S, A)
        - A classifier of scikit-learn, or its `predict_proba`: `classes_` are treatments, by their names.
        - An agent of Stable-Baselines3: probabilities of an actor, or values of a Q-network. Others with
          `policy.get_distribution` or `policy.q_net`, and `policy.obs_to_tensor`, will do.
        - A function, or a torch module in evaluation mode, from a batch of m observations to scores, (m, A), of which
          larger is better. NaN counts as the worst.
        - A table of scores of each state, such as the `q_values` of a plan: a row is asked for by its number. -inf
          stands for an action that a state does not allow.

        The model must be public, and score each row by itself. The patients whom it was fitted to are not protected.
    epsilon : float
        The privacy parameter of one decision, >= 0.
    policy : str, optional
        One of `FOR_MODELS`. "exponential-fitted" makes the mean score large: take a `sample` only of scores in units of
        utility, such as Q-values, and not of probabilities; "randomized-response" takes the first of equally good
        actions; "exponential" is the mechanism of the textbook.
    floors, sharpness : sequence of A floats, and float, optional
        Of "exponential-fitted", as in `policies.exponential.Exponential`: declared without looking at anybody's record.
        By default 1 / (e^epsilon + A - 1), and inf. `floors=problem` takes the floors that are best for the utilities
        and the prior of a problem, both public: treatments that are bad for many get less, or nothing.
    sample : array, (n, A), optional
        Of "exponential-fitted": scores that you declare public, such as those of simulated patients or of all states
        of a process. Floors and sharpness are fitted to them, with equal weights. New rows are as private as these.
    lower, upper : float, optional
        Of "exponential": bounds of the scores, declared without looking at anybody's record; others are clipped.
    bounds : "simplex", optional
        Of "exponential", in place of lower and upper: scores are probabilities. What is negative counts as 0, and a sum
        above 1 is divided by.
    mask_public : bool, optional
        Whether it is public which actions a row allows, where masks are given with rows. If not, they are refused.
    name : str, optional
        In tables and figures: several models in one report need several names.

    Returns
    -------
    PrivateModel
        A `policies.policy.Policy`: for `compare`, `report` and `fit`. `predict_proba(rows)` and `act(observation, rng)`
        ask the model directly.

    Raises
    ------
    ValueError
        For parameters that do not go together or are out of range, what is no model, a classifier that was not fitted,
        a module in training mode or with parameters that are not finite.

    Examples
    --------
    >>> private = privatize_policy(lambda batch: [[0.0, 9.0], [float("nan"), 0.5], [1.0, 1.0]], 1.0)
    >>> private.predict_proba(["first", "second", "third"]).round(3).tolist()
    [[0.269, 0.731], [0.269, 0.731], [0.5, 0.5]]
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> problem.value(privatize_policy([[0.0, 1.0], [1.0, 0.0]], 1.0)).__round__(3)
    0.731
    """
    declared = {"floors": floors, "sharpness": sharpness, "sample": sample}
    declared |= {"lower": lower, "upper": upper, "bounds": bounds}
    for parameter, value in declared.items():
        if value is not None and policy != TAKEN_BY[parameter]:
            raise ValueError(f"{parameter} is for {TAKEN_BY[parameter]}, got policy={policy!r}.")
    if bounds not in (None, SIMPLEX) or (bounds is not None and not (lower is upper is None)):
        raise ValueError(
            f'bounds must be "simplex", without lower and upper, got bounds={bounds!r}, lower={lower!r}, '
            f"upper={upper!r}."
        )
    problem, given = (floors, None) if isinstance(floors, DecisionProblem) else (None, floors)
    if problem is not None and sample is not None:
        raise ValueError("floors of a problem are fitted already: give floors=problem or sample=..., got both.")
    fitted = {"floors": given, "sharpness": sharpness} if policy == ExponentialFitted.name else {}
    mechanism = make_policy(policy, epsilon=epsilon, **fitted)
    limits: Any = SIMPLEX if bounds is not None else None if lower is upper is None else (lower, upper)
    return PrivateModel(
        epsilon,
        name,
        model=model,
        mechanism=mechanism,
        floors_of=problem,
        public_scores=sample,
        bounds=limits,
        mask_public=bool(mask_public),
    )
