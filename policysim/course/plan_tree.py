"""A mechanism that reacts, day by day, within a published tree of courses: within one epsilon for all days."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from envs.treatment_response import is_whole
from policies.adjacency import AnyRecord
from policies.arrays import FloatArray, IntArray, non_negative
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policysim.course.course_limit import first_day_limit
from policysim.course.course_tree import NOTHING, Branch, Node, RestValues, settled_node, weighed_tree
from policysim.course.once import MOST_SCHEDULES, SCHEDULES
from policysim.course.planning import optimal_course
from policysim.course.process import Process, checked_features, outcomes_of, require_process
from policysim.course.schedules import ClassSchedules, Schedule, Schedules, sketch_of
from policysim.course.tree_search import TreeSearch
from policysim.progress import SILENT, Progress

EVERYBODY = slice(None)
# A larger epsilon is spent as this one: what it leaves of the benefit is below rounding.
LARGEST_EPSILON = 500.0


@dataclass(frozen=True, eq=False)
class ClassTree:
    """The mechanism of one public class.

    Attributes
    ----------
    root : Node
        Of the published tree; its pieces are sorted for each state of the class.
    poured : float
        How much is poured onto the lowest mass of the root, so that all is 1.
    q : float
        e^-epsilon.
    first : array, (n_branches, n), or None
        How much of it each branch of the root gets; None if that follows from the pieces, as everywhere else.
    """

    root: Node
    poured: float
    q: float
    first: FloatArray | None = None

    def split(
        self, node: Node, poured: float, states: IntArray | slice = EVERYBODY
    ) -> Iterator[tuple[Branch, FloatArray, FloatArray]]:
        """The branches after a node on which so much was poured: each with its probability, and what is poured onto it.

        Both (m,), for states of the class, (m,).
        """
        mass = self.q * node.weight + (1 - self.q) * poured
        for index, branch in enumerate(node.branches):
            if node is self.root and self.first is not None:
                amount = self.first[index, states]
            elif node.owners is None:
                amount = np.full(len(self.root.base), poured)[states]
            else:
                # The first pieces are filled, of which each has a width of 1 (`joined_pieces`).
                amount = (node.owners[: int(poured), states] == index).sum(axis=0, dtype=np.float64)
            yield branch, (self.q * branch.child.weight + (1 - self.q) * amount) / mass, amount

    def after(
        self, node: Node, poured: float, states: IntArray | slice = EVERYBODY
    ) -> Iterator[tuple[Branch, float, FloatArray]]:
        """What may come after a node: a branch, what is poured onto it, and how likely both are in each state, (m,)."""
        for branch, chance, amount in self.split(node, poured, states):
            # What is poured counts no more where the rest of the course is settled.
            if branch.child.rest is not None:
                yield branch, 0.0, chance
                continue
            for end in np.sort(pd.unique(amount)):
                yield branch, float(end), np.where(amount == end, chance, 0.0)

    @cached_property
    def leaves(self) -> list[tuple[Schedule, float, float, float]]:
        """Each course, its weight, and the least and the most that is poured onto it, whatever the states are."""
        courses: list[tuple[Schedule, float, float, float]] = []
        waiting: list[tuple[Node, float, float]] = [(self.root, self.poured, self.poured)]
        while waiting:
            node, least, most = waiting.pop()
            if node.rest is not None:
                courses.append(((*node.prefix, *node.rest), node.weight, least, most))
                continue
            splits = zip(self.split(node, least), self.split(node, most), strict=True)
            for (branch, _, lowest), (_, _, highest) in splits:
                waiting.append((branch.child, float(lowest.min()), float(highest.max())))
        return sorted(courses)

    @property
    def least(self) -> list[float]:
        """The probability of each of the leaves, at least, whatever the states are."""
        unit = 1 / (self.q * self.root.weight + (1 - self.q) * self.poured)
        return [unit * self.q * weight for _, weight, _, _ in self.leaves]

    @property
    def epsilon_spent(self) -> float:
        """The largest log-ratio of the largest and the smallest probability of a course."""
        return max(
            math.log((self.q * weight + (1 - self.q) * most) / (self.q * weight + (1 - self.q) * least))
            for _, weight, least, most in self.leaves
        )

    def counted(self, family: Schedules, rewards: FloatArray | None = None) -> FloatArray:
        """What each first state of the class is expected to earn, or to count in place of rewards, (n,)."""
        computed: dict[tuple[int, float], FloatArray] = {}

        def worth(node: Node, poured: float) -> FloatArray:
            if (id(node), poured) not in computed:
                total = np.zeros(len(family.process.initial))
                for branch, end, chance in self.after(node, poured):
                    later = worth(branch.child, end)
                    total += chance * family.before(later, branch.action, len(node.prefix), rewards)
                computed[id(node), poured] = total
            return computed[id(node), poured]

        return worth(self.root, self.poured)

    def chances(self, family: Schedules) -> dict[Schedule, FloatArray]:
        """The probability of each course, (n,), given the first state of the class, where no stay ends by itself."""
        nothing, always = np.zeros_like(family.process.rewards), np.ones(len(family.process.initial))
        computed: dict[tuple[int, float], dict[Schedule, FloatArray]] = {}

        def courses(node: Node, poured: float) -> dict[Schedule, FloatArray]:
            if node.rest is not None:
                return {(*node.prefix, *node.rest): always}
            if (id(node), poured) not in computed:
                sums: dict[Schedule, FloatArray] = {}
                for branch, end, chance in self.after(node, poured):
                    for course, later in courses(branch.child, end).items():
                        likely = chance * family.before(later, branch.action, len(node.prefix), nothing)
                        sums[course] = sums.get(course, 0.0) + likely
                computed[id(node), poured] = sums
            return computed[id(node), poured]

        return courses(self.root, self.poured)


@dataclass(frozen=True, eq=False)
class TreePlan:
    """A mechanism that publishes a course of actions and reacts to each day's state: see `plan_tree`.

    Attributes
    ----------
    upper_bound : float
        No epsilon-private mechanism for the course has a larger value (`course_limit` of the first day).
    trees : tuple of ClassTree
        What each class does.
    family : ClassSchedules
        The classes and their states.
    courses : array of int, (K, H)
        The courses that may be published; with public classes (n_classes, K, H): each has its own.
    weights : array, (K,) or (n_classes, K)
        m: whatever the states are, course a is published with a probability from m_a to e^epsilon m_a. 0 for courses
        that fill up the rows of a class that has fewer.
    value : float
        The expected return from the initial distribution, exactly.
    epsilon_spent : float
        The exact privacy loss of the published course: the largest log-ratio of its probabilities over all pairs of
        courses of states of one class. delta is 0.
    """

    upper_bound: float
    trees: tuple[ClassTree, ...]
    family: ClassSchedules
    courses: IntArray = field(init=False)
    weights: FloatArray = field(init=False)
    value: float = field(init=False)
    epsilon_spent: float = field(init=False)

    def __post_init__(self) -> None:
        """Compute what the trees of all classes are together."""
        most = max(len(tree.leaves) for tree in self.trees)
        least = [tree.least + [0.0] * (most - len(tree.leaves)) for tree in self.trees]
        vars(self).update(
            courses=self.family.expanded([[course for course, _, _, _ in tree.leaves] for tree in self.trees]),
            weights=np.array(least[0] if self.family.single else least),
            value=float(self.family.process.initial @ self.counted()),
            epsilon_spent=max(tree.epsilon_spent for tree in self.trees),
        )

    @property
    def horizon(self) -> int:
        """How many decisions a course has."""
        return int(self.courses.shape[-1])

    @property
    def classes(self) -> IntArray:
        """The public class of each state, (n,)."""
        return self.family.classes

    @property
    def held(self) -> tuple[int, ...]:
        """For how many decisions each action of a course is held."""
        return self.family.families[0].held

    def counted(self, outcome: str | None = None) -> FloatArray:
        """What each first state is expected to earn, (n,), or an outcome of the process, not discounted; exactly."""
        counts = np.empty(len(self.classes))
        for states, family, tree in zip(self.family.states, self.family.families, self.trees, strict=True):
            counts[states] = tree.counted(family, None if outcome is None else outcomes_of(family.process)[outcome])
        return counts

    def __repr__(self) -> str:
        """In a line."""
        count, length = self.courses.shape[-2:]
        return (
            f"TreePlan({count} courses of {length} decisions, value={self.value:.6g}, "
            f"epsilon_spent={self.epsilon_spent:.6g}, upper_bound={self.upper_bound:.6g})"
        )


def plan_tree(
    process: Process,
    epsilon: float,
    *,
    courses: int = SCHEDULES,
    held: int | None = None,
    public: Sequence[str] = (),
    advance: Callable[[], object] | Progress = SILENT,
) -> TreePlan:
    """React to each day's state within a published tree of courses, hiding the whole course of states.

    It never keeps less than choosing once (`plan_once`), and more where later days tell what the first did not; on the
    ward, whose first day tells most, that begins at about epsilon = 2. The courses and their weights come from the
    process and its initial distribution alone, which are public: those of the best choice once and those that gain
    most, with the best weights for them, until more courses raise the value by less than 0.1 % of what there is to
    gain, or cutting planes prove that no weights are better. Where there are at most 128 courses, all are looked at.
    The search is local otherwise, and other trees may be better.

    Parameters
    ----------
    process : Process
        A `TabularMDP` with a horizon, or the course of a treatment (`build_course`).
    epsilon : float
        Of the whole course, >= 0.
    courses : int, optional
        How many there are at most for each public class, from 2 to 62.
    held : int, optional
        For how many decisions each action is held (`plan_once`).
    public : sequence of str, optional
        Features of the state that are public, beside those that are so in the process; they must never change.
    advance : callable or Progress, optional
        Called after each part of the work.

    Returns
    -------
    TreePlan

    Raises
    ------
    ValueError
        For something else than a process with a horizon, or a process that has no schedule (`plan_once`).

    Notes
    -----
    A course a is published with probability q(a|s) = product over days t of pi_t(a_t|a_1..a_t-1, s_1..s_t), given the
    course of states s. It is hidden if q(a|s) <= e^epsilon q(a|s') for all a and any two courses of states s, s' of one
    public class.

    Proof. Let M(h) be the sum of the weights m over the courses that begin with the published prefix h. The mechanism
    keeps q(h|s) within [M(h), e^epsilon M(h)]. So it is at the root, where q = 1 and the sum of m is from e^-epsilon to
    1. If it is so at h, then whatever today's state is, the mechanism splits q(h|s) among the actions that continue h
    into parts of [M(ha), e^epsilon M(ha)]: they exist, since these bounds add up to those of h. On the last day
    m_a <= q(a|s) <= e^epsilon m_a for every a and s, so that two courses of states differ by e^epsilon at most. Each
    part depends only on the states so far. No course outside the tree is ever published. The largest and the smallest
    q(a|s) over all s are found exactly, from the largest and smallest parts in any state: `epsilon_spent` is the
    logarithm of their largest ratio.

    That a process ends by itself shows, and is taken as public, as everywhere (`plan_once`).

    Examples
    --------
    A fault may come back on each day, and to repair (1) costs something:

    >>> from policysim.course.tabular import TabularMDP
    >>> moves = [[[0.9, 0.1], [0.9, 0.1]], [[0.2, 0.8], [0.9, 0.1]]]
    >>> mdp = TabularMDP(moves, [[0.0, -0.3], [-1.0, -0.3]], [0.6, 0.4], horizon=3, axes="SAS")
    >>> plan = plan_tree(mdp, epsilon=3.0)
    >>> plan.courses.tolist(), round(plan.value, 3), round(plan.epsilon_spent, 9)
    ([[0, 0, 0], [0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]], -0.341, 3.0)
    """
    require_process(process, "plan_tree takes")
    if process.horizon is None:
        raise ValueError("plan_tree needs a horizon: give the process one, or choose once (plan_once).")
    if not is_whole(courses) or not 2 <= courses <= MOST_SCHEDULES:
        raise ValueError(f"courses must be from 2 to {MOST_SCHEDULES}, got courses={courses!r}.")
    epsilon = min(non_negative(epsilon, "epsilon"), LARGEST_EPSILON)
    process = process.with_public(checked_features(public))
    progress = Progress.of(advance)
    family = ClassSchedules.of(process, held)
    progress.expect(len(family.families) + 2)
    limit = first_day_limit(optimal_course(process), process.initial, epsilon)
    progress.advance()
    schedules = family.found(family.best(), int(courses))
    progress.advance()
    return best_tree(family, schedules, epsilon=epsilon, courses=int(courses), limit=limit, progress=progress)


def best_tree(
    family: ClassSchedules,
    schedules: Sequence[Sequence[Schedule]],
    *,
    epsilon: float,
    courses: int,
    limit: float,
    progress: Progress = SILENT,
) -> TreePlan:
    """The best mechanism that the search reaches, never below the best choice once among some schedules of each class.

    `progress` advances by a step a class.
    """
    trees = []
    for one, starts in zip(family.families, schedules, strict=True):
        trees.append(_class_tree(one, starts, min(epsilon, LARGEST_EPSILON), courses))
        progress.advance()
    return TreePlan(upper_bound=limit, trees=tuple(trees), family=family)


def _class_tree(family: Schedules, schedules: Sequence[Schedule], epsilon: float, most: int) -> ClassTree:
    """The best mechanism for a class that the search reaches: a tree, or one choice where that is worth more."""
    q, worth = math.exp(-epsilon), RestValues(family)
    # At an epsilon below the last digit of 1, too.
    if q == 1 or len(schedules) == 1:
        best = schedules[int((family.process.initial @ family.values(schedules)).argmax())]
        return ClassTree(*weighed_tree(worth, {best: 1}, q)[:2], q)
    weights = TreeSearch(replace(family, process=sketch_of(family.process)), q, most).weights(schedules)
    root, poured, value = weighed_tree(worth, weights, q)
    once, value_of_once = _once(family, schedules, epsilon)
    return once if value_of_once > value else ClassTree(root, poured, q)


def _once(family: Schedules, schedules: Sequence[Schedule], epsilon: float) -> tuple[ClassTree, float]:
    """The best private choice of one of the schedules, as a tree that branches at its root only; and its value."""
    q, problem = math.exp(-epsilon), DecisionProblem(family.values(schedules), family.process.initial, AnyRecord())
    chances = Optimal(epsilon).probabilities(problem)
    used = np.flatnonzero(chances.min(axis=0) > 0)
    weights = chances.min(axis=0)[used] / q
    branches = [
        settled_node((), schedules[int(name)], weight).branches[0] for name, weight in zip(used, weights, strict=True)
    ]
    root = Node((), family.process.initial, NOTHING, weights, tuple(branches))
    poured = (chances[:, used].T - q * weights[:, None]) / (1 - q)
    return ClassTree(root, (1 - q * root.weight) / (1 - q), q, poured), problem.value(chances)
