"""Simulated trials with a known truth, for tests of logged data."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from envs.records import Feature, RecordSpace
from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData
from policysim.logs.log_source import LogSource
from policysim.study.declared import LoggedStudy

ARMS = ("wait", "pill", "drip")
# What policysim init is told of examples/trial.csv; and of a trial with the columns arm, sex and success.
ASSIGNED = ("--higher-is-better", "--assigned", "randomised", "--features", "all")
OF_EXAMPLE = ("--treatment", "arm", "--outcome", "cured", "--id", "patient", *ASSIGNED)
OF_SUCCESS = ("--treatment", "arm", "--outcome", "success", "--id", "none", *ASSIGNED)
SPACE = RecordSpace((Feature("old"), Feature("ill", (0, 1, 2)), Feature("woman")))


@dataclass(frozen=True, eq=False)
class Trial:
    """A simulated trial: the study, its log, and the success probability of each record under each arm, (n, k)."""

    study: LoggedStudy
    log: Log
    truth: np.ndarray
    shares: np.ndarray


def success_probabilities(effect: float) -> np.ndarray:
    """The truth, (12, 3): the pill helps the young and the drip the old by `effect`; else all arms are alike."""
    codes = SPACE.codes(np.arange(SPACE.size))
    old, ill = codes[:, 0], codes[:, 1]
    base = 0.55 - 0.1 * ill
    return np.column_stack([base, base + effect * (1 - old), base + effect * old])


def make_trial(n_rows: int, effect: float, seed: int, **choices: object) -> Trial:
    """A trial of equal allocation."""
    rng = np.random.default_rng(seed)
    # Every record but the last occurs: the domain is declared, not found.
    shares = np.append(rng.dirichlet(np.full(SPACE.size - 1, 20.0)), 0.0)
    truth = success_probabilities(effect)
    records = rng.choice(SPACE.size, size=n_rows, p=shares)
    actions = rng.integers(len(ARMS), size=n_rows)
    rewards = (rng.random(n_rows) < truth[records, actions]).astype(float)
    data = LoggedData(actions, rewards, np.full(n_rows, 1 / len(ARMS)), ARMS)
    log = Log(data, records, SPACE, (0,) * len(ARMS), n_rows, {"success": rewards})
    return Trial(small_study(**choices), log, truth, shares)


def small_study(**choices: object) -> LoggedStudy:
    """A study of such a trial."""
    source = LogSource(
        files={"table": Path("trial.csv")},
        treatment="arm",
        treatments=tuple((arm, arm) for arm in ARMS),
        propensity="equal",
        outcome={"success": 1.0},
        utility_range=(0.0, 1.0),
        missing="refuse",
        id="",
        outcome_model="linear",
        features={feature.name: feature for feature in SPACE.features},
    )
    study = LoggedStudy(
        name="trial",
        text="",
        files={},
        title="A small trial",
        hidden_from="the insurer",
        seen="treatment",
        published_patients=10_000,
        adjacency="any-record",
        sensitive=(),
        public=(),
        epsilon=1.0,
        epsilons=(1.0,),
        policies=("greedy", "uniform", "best-fixed"),
        by=(),
        robust=None,
        related={},
        seed=3,
        log=source,
    )
    return replace(study, **choices)
