"""Process: a decision process over days, as the questions that planning asks of it."""

from __future__ import annotations

from typing import ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from policies.arrays import FloatArray
from policies.problem import Records

BoolArray: TypeAlias = NDArray[np.bool_]


class InfiniteLossWarning(UserWarning):
    """No finite epsilon holds: states that allow different actions are told apart by the actions that are taken."""

    EXPLAINED: ClassVar[str] = (
        "the privacy loss is infinite at every epsilon: an action that only some states allow tells them from the "
        "others. Give mask_public=True if it is public which actions a state allows; or make the process with "
        "admissible=True if every state can take every action."
    )


class Process(Protocol):
    """A decision process: each day one state (the record) is seen, one action is taken, and the state moves on.

    Tables are column-major, (n_states, n_actions): whoever works on a process goes along columns, day by day, and
    never asks for a matrix of states by states.
    """

    @property
    def horizon(self) -> int | None:
        """The number of decisions, or None for a process that goes on until it ends by itself."""

    @property
    def discount(self) -> float:
        """What a reward is worth one decision later, in (0, 1]."""

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the k actions."""

    @property
    def records(self) -> Records:
        """Words and groups for the states."""

    @property
    def initial(self) -> FloatArray:
        """The distribution of the first state, (n,)."""

    @property
    def rewards(self) -> FloatArray:
        """The expected reward of one step, (n, k), read-only and column-major; 0 at inadmissible actions."""

    @property
    def admissible(self) -> BoolArray | None:
        """Which actions each state allows, (n, k); None if every state allows all."""

    @property
    def mask_public(self) -> bool:
        """Whether which actions a state allows is public, so that only states that allow the same are hidden."""

    def continuation(self, values: FloatArray) -> FloatArray:
        """E[values(next state)], (n, k), of the (n,) values; a step that ends the process adds nothing.

        Not discounted. Anything finite may stand at inadmissible actions.
        """

    def push(self, distribution: FloatArray, probabilities: FloatArray) -> FloatArray:
        """The mass of the next state, (n,), if states have mass `distribution`, (n,), and act by `probabilities`.

        `probabilities` is (n, k) with 0 at inadmissible actions. Mass that ends with the step is left out, so that
        the result sums to at most what it was given.
        """
