"""Cutting planes over the weights of courses: the best weights, and what no weights exceed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from policies.arrays import FloatArray
from policysim.course.course_tree import Branch, Node, charged, mixed, poured, value_tree
from policysim.course.schedules import Schedule, Schedules


@dataclass(frozen=True)
class Priced:
    """The value at some weights, and the prices that bound it at all others."""

    value: float
    root: Node
    constant: float


def priced_tree(
    family: Schedules, weights: Mapping[Schedule, float], q: float, most: int, ends: FloatArray | None = None
) -> Priced:
    """The value of weights of any scale, Z = sum in [1, 1 / q], at which the mass of the root is 1."""
    prior = family.process.initial
    least = max(weights.values()) * 1e-9
    kept = {course: max(weight, least) for course, weight in weights.items()}
    point = np.array([(1 - q * sum(kept.values())) / (1 - q)]).clip(0.0, sum(kept.values()))
    gained = np.zeros(len(prior))

    def join(place: int, branches: tuple[Branch, ...]) -> Node:
        if place:
            return mixed(branches, place, most)
        return Node(0, gained, np.zeros((0, 0)), np.ones(1), branches)

    root = value_tree(family, kept, join)
    if len(root.branches) == 0:
        raise AssertionError
    worth, slopes = poured(root.branches, point)
    shares = np.array([b.child.weight for b in root.branches])
    base = sum((b.child.weight * b.base for b in root.branches), np.zeros(len(prior)))
    root.slopes = slopes
    value = float(prior @ (q * base + (1 - q) * worth[0]))
    charged(family, root, prior[None].copy(), q)
    return Priced(value, root, float(prior @ slopes[0]))
