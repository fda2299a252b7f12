"""Logs with a known truth, on which everything that is told of a trial can be wrong: benchmarks and tests draw them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from small_trials import small_study

from envs.records import Feature, RecordSpace
from policies.policy import Policy
from policies.reference import BestFixed
from policies.sampler import draw_actions
from policysim.logs.adjusters import Covariates
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData
from policysim.logs.log_source import ESTIMATE, STACKED
from policysim.logs.outcome_models import predicted_without
from policysim.logs.treatments import dealt_parts, estimate_propensities
from policysim.study.declared import LoggedStudy
from policysim.trials import trial_columns
from policysim.trials.estimators import Moments, over_splits
from policysim.trials.evidence import heterogeneity
from policysim.trials.splits import Measure, Measured, split_log
from policysim.trials.trial_columns import groups_of

SPACE = RecordSpace((Feature("old"), Feature("ill"), Feature("site", (0, 1, 2))))
OLD, ILL, SITE = SPACE.codes(np.arange(SPACE.size)).T.astype(float)
BOTH = OLD == ILL  # of both features together, and of neither alone
ARMS = ("wait", "pill", "drip")


@dataclass(frozen=True)
class World:
    """Who succeeds under each arm and who gets it, (n_records, k) each; all records are equally frequent."""

    success: np.ndarray
    propensities: np.ndarray
    patients: int = 600
    estimated: bool = False

    @property
    def is_null(self) -> bool:
        """Whether no arm does more for one patient than for another."""
        return bool(np.ptp(self.success - self.success[:, :1], axis=0).max() < 1e-12)


def _columns(*arms: np.ndarray | float) -> np.ndarray:
    return np.column_stack([np.broadcast_to(arm, SPACE.size) for arm in arms]).astype(float)


def _odds(*logits: np.ndarray | float) -> np.ndarray:
    odds = np.exp(_columns(*logits))
    return odds / odds.sum(axis=1, keepdims=True)


BY_LOT = np.full((SPACE.size, 3), 1 / 3)
WORLDS = {
    "randomised": World(_columns(0.5 - 0.1 * ILL, 0.4 + 0.2 * OLD, 0.6 - 0.2 * OLD), BY_LOT),
    "tied arms": World(_columns(*3 * [0.6 - 0.2 * ILL]), BY_LOT),
    "poor overlap": World(
        _columns(0.5 - 0.1 * ILL, 0.4 + 0.2 * OLD, 0.6 - 0.2 * OLD), _odds(0, 1.2 - 2.4 * OLD, 2.4 * OLD - 1.2)
    ),
    "rare outcome": World(_columns(0.94, 0.95 + 0.03 * OLD, 0.98 - 0.04 * OLD), BY_LOT),
    "estimated propensities": World(
        _columns(0.7 - 0.3 * ILL, 0.6 - 0.3 * ILL + 0.15 * OLD),
        _odds(0, 1.5 * ILL + 0.7 * OLD - 1),
        1000,
        estimated=True,
    ),
    "interaction confounding": World(
        _columns(0.2 + 0.5 * BOTH, 0.25 + 0.5 * BOTH), _odds(0, 2.4 * BOTH - 1.2), 1000, estimated=True
    ),
}


# 500 patients each: what no policy gains anything in, and two in which choosing for each gains .10 over one arm.
GAIN = 0.10
NULLS = {
    "no effect": World(_columns(*3 * [0.6 - 0.2 * ILL]), BY_LOT, 500),
    "equal effects in all": World(_columns(*[level - 0.1 * ILL for level in (0.5, 0.55, 0.6)]), BY_LOT, 500),
    "a strong effect in all": World(_columns(*[level - 0.1 * ILL for level in (0.3, 0.5, 0.7)]), BY_LOT, 500),
    "one arm differs, no gain": World(_columns(0.4 - 0.1 * ILL, 0.35 + 0.2 * OLD, 0.65), BY_LOT, 500),
    "rare outcome": World(_columns(*3 * [0.96]), BY_LOT, 500),
    "unequal allocation": World(_columns(*3 * [0.6 - 0.2 * ILL]), np.tile([0.7, 0.2, 0.1], (SPACE.size, 1)), 500),
}
GAINS = {
    "gain .10, two arms": World(
        _columns(0.6 - 0.2 * OLD - 0.1 * ILL, 0.4 + 0.2 * OLD - 0.1 * ILL), np.full((SPACE.size, 2), 0.5), 500
    ),
    "gain .10, three arms": World(
        _columns(*[0.55 - 0.1 * ILL + 0.2 * part for part in (0, 1 - OLD, OLD)]), BY_LOT, 500
    ),
}


def planted_log(world: World, rng: np.random.Generator, model: str = "linear") -> tuple[LoggedStudy, Log]:
    """A study and its log, drawn from a world."""
    names = ARMS[: world.success.shape[1]]
    records = rng.integers(SPACE.size, size=world.patients)
    actions = draw_actions(world.propensities[records], rng)
    rewards = (rng.random(world.patients) < world.success[records, actions]).astype(float)
    known, predicted = world.propensities[records, actions], None
    data = LoggedData(actions, rewards, known, names)
    if world.estimated:
        columns = Covariates.of_log(SPACE, records, None, None)
        data = replace(data, propensities=estimate_propensities(columns, data))
        predicted = predicted_without(STACKED, columns.rows, data, dealt_parts(actions))
    study = small_study(policies=("greedy", "optimal", "randomized-response"), seed=int(rng.integers(2**31)))
    source = replace(
        study.log,
        files={"table": Path("planted.csv")},
        treatments=tuple((arm, arm) for arm in names),
        features={feature.name: feature for feature in SPACE.features},
        outcome_model=model,
        propensity=ESTIMATE if world.estimated else "p",
    )
    log = Log(data, records, SPACE, (0,) * len(names), world.patients, {"success": rewards}, predicted=predicted)
    return replace(study, log=source), log


def told_of(world: World, study: LoggedStudy, log: Log) -> Iterator[tuple[str, float, list[Moments]]]:
    """For each policy its true difference to the arm chosen on other folds, and its estimates on all splits.

    Splits are added as `compare` adds them.
    """
    policies: list[Policy] = [study.policy(name, 1.0) for name in study.policies]
    truths: dict[str, list[float]] = {policy.name: [] for policy in policies}
    measured: dict[Policy, list[Measured]] = {policy: [] for policy in policies}
    splits, everyone = split_log(log, study), groups_of(log, ())
    for place, split in enumerate(islice(splits, trial_columns.REPEATS * trial_columns.MOST_TIMES)):
        looked = place and place % trial_columns.REPEATS == 0
        if looked and not any(trial_columns.is_close(trial_columns.everyones(each)) for each in measured.values()):
            break
        measure = Measure(split, everyone)
        sizes = np.bincount(split.folds) / len(split.folds)
        for policy in policies:
            apart = [policy.probabilities(each) - BestFixed().probabilities(each) for each in split.problems]
            truths[policy.name].append(
                sum(size * (world.success * table).sum(axis=1).mean() for size, table in zip(sizes, apart, strict=True))
            )
            measured[policy].append(measure(policy))
    for policy, settled in trial_columns.settled(study, log, measured, everyone).items():
        differences = trial_columns.everyones(settled)
        # Of the policies that are made from all data the difference is 0.
        changed = differences != trial_columns.everyones(measured[policy])
        yield policy.name, 0.0 if changed else float(np.mean(truths[policy.name])), differences


def repeated(world: World, draws: int, seed: int, model: str = "linear", *, look: bool = True) -> pd.DataFrame:
    """What is told of some logs: a row for each policy, with its error.

    And of null worlds, where one has a look, whether signs of heterogeneity are told.
    """
    rng, rows = np.random.default_rng(seed), []
    for draw in range(draws):
        study, log = planted_log(world, rng, model)
        signs = float(heterogeneity(log, study)["signs"][0]) if look and world.is_null else math.nan
        for policy, truth, estimates in told_of(world, study, log):
            told = over_splits(estimates)
            covered = told.low - 1e-12 <= truth <= told.high + 1e-12
            rows.append((draw, policy, covered, told.value - truth, told.low > 0 >= truth, signs))
    return pd.DataFrame(rows, columns=["draw", "policy", "covered", "error", "invented", "signs"])
