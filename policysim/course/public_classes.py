"""Public classes of states: those that share what is public of them, and are hidden among each other alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from policies.adjacency import AnyRecord, OneFeature
from policies.arrays import FloatArray, IntArray
from policysim.study.declared import ScenarioStudy
from policysim.study.stated_bounds import hidden_contraindications, why_refused

WHY_UNCHANGING = "what is public of it on later days would reveal the hidden part of the first record."


def checked_features(features: Any) -> list[str]:
    """The names as a list; ValueError for a single text."""
    if isinstance(features, str) or not isinstance(features, Sequence):
        raise ValueError(f"public must be a list of features, got public={features!r}.")
    return list(features)


def refined(classes: IntArray | None, levels: IntArray) -> IntArray:
    """Classes of which each is split by the levels of one more feature, (n,), numbered from 0.

    Examples
    --------
    >>> refined(np.array([0, 0, 1, 1]), np.array([0, 2, 2, 2])).tolist()
    [0, 1, 2, 2]
    """
    codes = levels if classes is None else classes * (int(levels.max()) + 1) + levels
    found: IntArray = np.unique(codes, return_inverse=True)[1]
    return found


def class_members(classes: IntArray) -> list[IntArray]:
    """The states of each class, in its order, rising."""
    order = np.argsort(classes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(classes[order])) + 1)


def one_start(initial: FloatArray, classes: IntArray | None) -> bool:
    """Whether each public class has one possible first state: what looks at that alone then learns nothing hidden.

    Examples
    --------
    >>> one_start(np.array([0.0, 1.0]), None), one_start(np.array([0.5, 0.5]), None)
    (True, False)
    >>> one_start(np.array([0.5, 0.5]), np.array([0, 1]))
    True
    """
    possible = np.flatnonzero(initial)
    return len(possible) == (1 if classes is None else len(np.unique(classes[possible])))


def public_over_days(study: ScenarioStudy) -> tuple[str, ...]:
    """The features of a study that are public on all days; empty under any-record.

    ValueError for what does not compose over days: one-feature, and public features that may change from day to day;
    and for contraindications by hidden features.
    """
    read = hidden_contraindications(study.scenario, study.adjacency, study.sensitive)
    if read:
        raise ValueError(why_refused(read, study.epsilon))
    if study.adjacency == AnyRecord.name:
        return ()
    if study.adjacency == OneFeature.name:
        raise ValueError(
            f"over days {study.adjacency} does not compose: a feature that differs today makes several differ "
            'tomorrow, so that the days together lose more than was claimed; set adjacency = "any-record", or name '
            "the features that are public and never change, with [privacy] public"
        )
    scenario = study.scenario
    public = tuple(name for name in scenario.space.names if name not in study.sensitive)
    changing = [name for name in public if name in scenario.transient]
    if changing:
        kept = ", ".join(f'"{name}"' for name in public if name not in changing)
        instead = f"[privacy] public = [{kept}]" if kept else 'adjacency = "any-record"'
        raise ValueError(
            f"over days what is public must never change, and {', '.join(changing)} may: what is public of it tomorrow "
            f"depends on what is hidden today, and would reveal it; set {instead}"
        )
    return public
