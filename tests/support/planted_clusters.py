"""Cluster trials with a known truth, for tests and benchmarks: villages whose patients succeed alike."""

from dataclasses import replace

import numpy as np
from small_trials import SPACE, small_study

from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData
from policysim.study.declared import LoggedStudy

ARMS = ("none", "net")
SIZE = 15


def clustered_trial(
    rng: np.random.Generator,
    per_arm: int,
    icc: float,
    *,
    whole: bool = True,
    size: float = 0.5,
    shared: bool = False,
    gain: float = 0.0,
) -> tuple[LoggedStudy, Log]:
    """A trial of two arms in which no arm does more, and its study.

    Parameters
    ----------
    rng : Generator
    per_arm : int
        Clusters of each arm.
    icc : float
        The correlation of two patients of a cluster: its share of successes is from a beta distribution.
    whole : bool
        Whether whole clusters were allocated, else patients.
    size : float
        How unequal clusters are: the standard deviation of the logarithm of their size, 15 on average.
    shared : bool
        Whether all patients of a cluster have the same features.
    gain : float
        What the second arm adds to the share of successes.
    """
    n_clusters = len(ARMS) * per_arm
    sizes = np.maximum(3, np.rint(SIZE * np.exp(rng.normal(-(size**2) / 2, size, n_clusters)))).astype(int)
    clusters = np.repeat(np.arange(n_clusters), sizes)
    n = len(clusters)
    level = rng.beta(*2 * [(1 - icc) / icc / 2], n_clusters)
    actions = rng.permutation(np.arange(n_clusters) % len(ARMS))[clusters] if whole else rng.integers(2, size=n)
    records = rng.integers(SPACE.size, size=n_clusters)[clusters] if shared else rng.integers(SPACE.size, size=n)
    rewards = (rng.random(n) < level[clusters] + gain * actions).astype(float)
    data = LoggedData(actions, rewards, np.full(n, 0.5), ARMS, clusters=clusters)
    log = Log(data, records, SPACE, (0, 0), n, {"success": rewards})
    study = small_study(seed=int(rng.integers(2**31)), policies=("greedy", "optimal"))
    source = replace(study.log, treatments=tuple((arm, arm) for arm in ARMS), cluster="village")
    return replace(study, log=source), log
