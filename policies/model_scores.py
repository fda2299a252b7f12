"""Models of others as scores of actions: a classifier, an agent, a function, a table.

A model is asked about rows of any kind, or about all records of a decision problem. Its scores may be any numbers of
which larger is better; NaN counts as the worst. A row must be scored by itself: what depends on the other rows of its
batch is refused where it can be seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from policies.arrays import BLOCK, FloatArray, Frozen, IntArray, as_floats, read_only
from policies.problem import DecisionProblem, once_per_problem
from policies.records import has_features

# Scores of one row that differ by more, relative to the largest, are not those of float32 in another order of sums.
SAME = 1e-3
EVAL_FIRST = (
    "model is in training mode, in which the scores of an observation may depend on others and on chance: call "
    "model.eval() first."
)


# Two models are the same if they are one object: policies that are compared are told apart by them.
@dataclass(frozen=True, eq=False)
class Function(Frozen):
    """A function from a batch of m observations to scores, (m, A): an array or a tensor.

    About a problem it is asked by observations as an environment gives them: the position of the level of each feature,
    (m, n_features); for records without features their numbers, (m,). A torch module gets a tensor of the type and on
    the device of its parameters; it must be in evaluation mode, and its parameters finite.
    """

    model: Any
    # The scores of a function of one action only are more likely those of the second of two.
    fewest_actions: ClassVar[int] = 2

    def ask(self, rows: Any) -> Any:
        """What the model says of a batch."""
        if _is_module(self.model):
            first = next(iter(self.model.parameters()), None)
            if first is not None and not hasattr(rows, "detach"):
                rows = first.detach().new_tensor(np.asarray(rows))
        return self.model(rows)

    def scores(self, rows: Any) -> FloatArray:
        """The scores of a batch, (m, A); ValueError for another shape."""
        table = as_floats(_as_numpy(self.ask(rows)), "scores")
        if table.ndim != 2 or table.shape[1] < self.fewest_actions:
            raise ValueError(f"model must return scores, (m, A) with A >= 2, got shape {table.shape}.")
        return table

    def rows(self, problem: DecisionProblem, records: IntArray) -> Any:
        """What the model is asked about some records."""
        if not has_features(problem.records):
            return records
        # A method of the records of a scenario, an array of those of a table.
        codes: Any = problem.records.codes  # type: ignore[attr-defined]
        return codes(records) if callable(codes) else codes[records]

    def columns(self, problem: DecisionProblem) -> IntArray:
        """The action that each column of the scores is about, by its number: their order."""
        return np.arange(problem.n_actions)


@dataclass(frozen=True, eq=False)
class Agent(Function):
    """An agent of Stable-Baselines3, or what has its interface: `policy.get_distribution`, or a Q-network `q_net`.

    Its scores are the probabilities of the actions, or the Q-values. It is put into evaluation mode before it is
    asked, as its own `predict` does.
    """

    @property
    def network(self) -> Any:
        """The policy of an agent."""
        return getattr(self.model, "policy", self.model)

    def ask(self, rows: Any) -> Any:
        """The probabilities of its actions, or its Q-values."""
        shape = getattr(getattr(self.network, "observation_space", None), "shape", None)
        if shape is not None and np.shape(rows)[1:] != shape:
            raise ValueError(
                f"the agent sees observations of shape {shape}, got {np.shape(rows)[1:]}. An agent of several days "
                "sees the day, too: train one on horizon=1, or privatize a function that adds the day."
            )
        self.network.set_training_mode(False)
        observations, _ = self.network.obs_to_tensor(np.asarray(rows))
        if not hasattr(self.network, "get_distribution"):
            return self.network.q_net(observations)
        distribution = self.network.get_distribution(observations).distribution
        if not hasattr(distribution, "probs"):
            raise ValueError("the agent must choose one of a list of actions (a space Discrete), and does not.")
        return distribution.probs


@dataclass(frozen=True, eq=False)
class Classifier(Function):
    """What has `predict_proba` and `classes_`, as classifiers of scikit-learn: classes are treatments, by their names.

    About a problem it is asked by a DataFrame with the columns that it was fitted to (`feature_names_in_`; all features
    in their order if it has no names), which hold levels as `DecisionProblem.decode` gives them.
    """

    fewest_actions: ClassVar[int] = 1

    def ask(self, rows: Any) -> Any:
        """The probabilities of its classes."""
        return self.model.predict_proba(rows)

    def rows(self, problem: DecisionProblem, records: IntArray) -> Any:
        """A DataFrame of the features that the model knows."""
        frame = problem.decode(records)
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            return frame.to_numpy() if hasattr(self.model, "n_features_in_") else frame
        unknown = [name for name in names if name not in frame.columns]
        if unknown:
            raise ValueError(
                f"the model was fitted to {', '.join(map(repr, unknown))}, which the records do not have; features: "
                f"{', '.join(frame.columns)}. Fit a pipeline that begins with these columns."
            )
        return frame[list(names)]

    def columns(self, problem: DecisionProblem) -> IntArray:
        """The treatment that each class names; of numbers that are no names, the treatment of that number."""
        classes: list[Any] = np.asarray(self.model.classes_).tolist()
        actions = list(problem.actions)
        if not any(str(label) in actions for label in classes) and all(map(_is_number, classes)):
            places = [int(label) if 0 <= label < len(actions) else -1 for label in classes]
        else:
            places = [actions.index(str(label)) if str(label) in actions else -1 for label in classes]
        if -1 in places:
            raise ValueError(
                f"the model has a class {classes[places.index(-1)]!r}, which is no treatment of the problem; "
                f"known: {', '.join(actions)}."
            )
        return np.array(places, dtype=np.intp)


@dataclass(frozen=True, eq=False)
class Table(Function):
    """Scores of each state, (S, A), by its number: a row for each record of a problem, in its order."""

    def __post_init__(self) -> None:
        """Keep a copy."""
        table = np.array(as_floats(self.model, "model"))
        if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
            raise ValueError(
                f"model must be a classifier, an agent, a function or a table of scores, (S, A) with A >= 2, got an "
                f"array of shape {table.shape}. Of days give one after the other: [... for day in q_values]."
            )
        object.__setattr__(self, "model", read_only(table))

    def ask(self, rows: Any) -> Any:
        """The rows of these states; ValueError for what is no state."""
        states = np.asarray(rows)
        if states.ndim != 1 or states.dtype.kind not in "iu" or ((states < 0) | (states >= len(self.model))).any():
            raise ValueError(f"states must be whole numbers from 0 to {len(self.model) - 1}, (m,), got {rows!r}.")
        return self.model[states]

    def rows(self, problem: DecisionProblem, records: IntArray) -> Any:
        """Record numbers; ValueError for a table that is of other rows."""
        if len(self.model) != problem.n_records:
            raise ValueError(
                f"a table of scores must have a row for each of the {problem.n_records:,} records, got "
                f"{len(self.model):,} rows: give the model itself, privatize_policy(model, epsilon=...)."
            )
        return records


def scorer_of(model: Any) -> Function:
    """How a model is asked, by what it has.

    Raises
    ------
    ValueError
        For what is no model, a classifier that was not fitted, or a module in training mode or with parameters that
        are not finite.
    """
    if isinstance(model, Function):
        return model
    owner = getattr(model, "__self__", None)
    if hasattr(owner, "predict_proba") and getattr(model, "__name__", "") == "predict_proba":
        model = owner
    if hasattr(model, "predict_proba"):
        if not hasattr(model, "classes_"):
            raise ValueError(f"model must be fitted: {type(model).__name__} has no classes_, call fit(X, y) first.")
        return Classifier(model)
    network = getattr(model, "policy", model)
    if hasattr(network, "obs_to_tensor"):
        if not (hasattr(network, "get_distribution") or hasattr(network, "q_net")):
            raise ValueError(
                f"{type(network).__name__} has neither get_distribution nor q_net: give a function from observations "
                "to scores."
            )
        return Agent(model)
    if callable(model):
        for weights in model.parameters() if _is_module(model) else ():
            if not np.isfinite(_as_numpy(weights)).all():
                raise ValueError("model must be finite, got a module with parameters that are infinite or NaN.")
        return Function(model)
    if hasattr(model, "predict"):
        raise ValueError(
            f"model must give probabilities or scores, and {type(model).__name__} has no predict_proba: give a "
            "function from rows to scores, one for each action."
        )
    return Table(model)


@once_per_problem
def scores_of(problem: DecisionProblem, scorer: Function) -> FloatArray:
    """The scores of all records of a problem, (n_records, n_actions); -inf for a treatment that the model never saw.

    ValueError for scores of another shape, and where the last record is scored otherwise beside others than alone.
    """
    columns = scorer.columns(problem)
    table = np.full((problem.n_records, problem.n_actions), -np.inf, order="F")
    for start in range(0, problem.n_records, BLOCK):
        records = np.arange(start, min(start + BLOCK, problem.n_records))
        scores = scorer.scores(scorer.rows(problem, records))
        if scores.shape != (len(records), len(columns)):
            raise ValueError(
                f"model must score {len(columns)} actions ({', '.join(problem.actions)}) for each record: of "
                f"{len(records)} records it returned shape {scores.shape}."
            )
        table[records[:, None], columns] = scores
    last = records[-1:]
    alone, beside = scorer.scores(scorer.rows(problem, last)), scores[-1:]
    close = SAME * float(np.abs(beside[np.isfinite(beside)]).max(initial=0.0))
    if not np.allclose(alone, beside, rtol=0.0, atol=close, equal_nan=True):
        raise ValueError(
            f"model must score each record by itself, and scores [{problem.records.describe(int(last[0]))}] "
            f"{alone[0].tolist()} alone and {beside[0].tolist()} beside others: nothing is private then."
        )
    return read_only(table)


def _is_number(label: Any) -> bool:
    """Whether a class is a whole number."""
    return not isinstance(label, bool) and isinstance(label, int | float) and float(label).is_integer()


def _is_module(model: Any) -> bool:
    """Whether it has `parameters` and `training`, as those of torch, which is not imported; ValueError in training."""
    if not callable(getattr(model, "parameters", None)) or not hasattr(model, "training"):
        return False
    if model.training:
        raise ValueError(EVAL_FIRST)
    return True


def _as_numpy(scores: Any) -> Any:
    """A tensor without its gradient, on the CPU, in double precision; anything else as it is."""
    return scores.detach().cpu().double().numpy() if hasattr(scores, "detach") else scores
