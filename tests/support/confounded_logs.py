"""Logs without any effect that look like one: confounded, or with outcomes missing or censored by what patients are.

Each is a file and the text of a study, as a user has them; benchmarks and tests draw them.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from policysim.logs.load_log import load_log
from policysim.study.study_reader import load_study
from policysim.trials.arms import arms_of
from policysim.trials.contrasts import against_highest

HEAD = """
[data]
file = "log.csv"
treatment = "arm"
{data}
[data.treatments]
0 = "wait"
1 = "pill"
[data.features]
{features}
[privacy]
hidden_from = "others"
adjacency = "any-record"
epsilon = 1.0
[compare]
policies = ["best-fixed", "optimal"]
"""


@dataclass(frozen=True)
class World:
    """How a log is drawn, of so many patients, and what its study says; `adjusted` is a line that makes it right."""

    draw: Callable[[int, np.random.Generator], pd.DataFrame]
    patients: int
    data: str
    features: str
    adjusted: str = ""

    def study(self, *, adjusted: bool = True) -> str:
        """The text of the study."""
        lines = [self.data, *([self.adjusted] if adjusted else [])]
        return HEAD.format(data="\n".join(filter(None, lines)), features=self.features)


def _chance(logits):
    return 1 / (1 + np.exp(-logits))


def twenty_columns(n, rng):
    """20 columns of 0 and 1, of which the last decides treatment and outcome."""
    table = rng.integers(2, size=(n, 20))
    arm = rng.random(n) < 0.2 + 0.6 * table[:, 19]
    cured = rng.random(n) < 0.35 + 0.3 * table[:, 19]
    columns = {f"c{place + 1}": table[:, place] for place in range(20)}
    return pd.DataFrame({"arm": arm.astype(int), "cured": cured.astype(int), **columns})


def number_confounds(n, rng):
    """A number that decides treatment and outcome, more finely than its quarters say."""
    x = rng.normal(size=n)
    arm, cured = rng.random(n) < _chance(1.2 * x), rng.random(n) < _chance(1.2 * x)
    return pd.DataFrame({"arm": arm.astype(int), "cured": cured.astype(int), "x": x.round(4)})


def missing_in_one_arm(n, rng):
    """By lot; of one arm's ill, who are cured less often, 60 % of the outcomes are missing."""
    ill, arm = rng.integers(2, size=n), rng.integers(2, size=n)
    cured = (rng.random(n) < 0.7 - 0.4 * ill).astype(float)
    cured[(arm == 1) & (ill == 1) & (rng.random(n) < 0.6)] = np.nan
    return pd.DataFrame({"arm": arm, "cured": cured, "ill": ill, "other": rng.integers(3, size=n)})


def missing_by_number(n, rng):
    """By lot; outcomes of one arm are missing the more often the higher a number is that also decides the outcome."""
    x, arm = rng.normal(size=n), rng.integers(2, size=n)
    cured = (rng.random(n) < _chance(x)).astype(float)
    cured[(arm == 1) & (rng.random(n) < _chance(1.2 * x - 1))] = np.nan
    return pd.DataFrame({"arm": arm, "cured": cured, "x": x.round(4), "other": rng.integers(3, size=n)})


def censored_in_one_arm(n, rng, competing=False):
    """By lot; the ill have the event sooner, and in one arm follow-up of the ill ends early."""
    ill, arm = rng.integers(2, size=n), rng.integers(2, size=n)
    event = rng.exponential(1 / np.where(ill == 1, 2.0, 0.4))
    ends = np.minimum(rng.exponential(1 / np.where((ill == 1) & (arm == 1), 2.5, 0.15)), 1.5)
    other = rng.exponential(1 / np.where(ill == 1, 0.8, 0.2)) if competing else np.full(n, np.inf)
    times = np.minimum.reduce([event, ends, other])
    status = np.select([event == times, other == times], [1, 2], 0)
    frame = pd.DataFrame({"arm": arm, "years": times.round(6), "status": status, "ill": ill})
    return frame.assign(other=rng.integers(3, size=n))


LOT = 'propensity = "equal"'
CURED, ESTIMATED = "outcome = { cured = 1.0 }", 'propensity = "estimate"'
FOLLOWED = 'time = "years"\nevent = "status"\nhorizon = 1'
ILL = "ill = { levels = [0, 1] }\nother = { levels = [0, 1, 2] }"
OTHERS = [f"c{place}" for place in range(4, 21)]
WORLDS = {
    "the last of 20 columns confounds": World(
        twenty_columns,
        1_000,
        f"{CURED}\n{ESTIMATED}",
        "\n".join(f"c{place} = {{ levels = [0, 1] }}" for place in (1, 2, 3)),
        f"adjust_for = {OTHERS}".replace("'", '"'),
    ),
    "a number confounds, cut at its quarters": World(
        number_confounds, 4_000, f"{CURED}\n{ESTIMATED}", "x = { cuts = [-0.67, 0, 0.67] }"
    ),
    "outcomes missing in one arm by a feature": World(
        missing_in_one_arm, 1_000, f'{CURED}\n{LOT}\nmissing = "exclude"', ILL
    ),
    "outcomes missing in one arm by an adjuster": World(
        missing_by_number,
        1_000,
        f'{CURED}\n{LOT}\nmissing = "exclude"',
        "other = { levels = [0, 1, 2] }",
        'adjust_for = ["x"]',
    ),
    "censored in one arm by a feature": World(censored_in_one_arm, 1_000, f"{FOLLOWED}\n{LOT}", ILL),
}


def written(world, folder, rng, *, adjusted=True):
    """The study's path, beside its log."""
    world.draw(world.patients, rng).to_csv(folder / "log.csv", index=False)
    path = folder / "study.toml"
    path.write_text(world.study(adjusted=adjusted), encoding="utf-8")
    return path


def told_of_arms(path):
    """The difference of the arms with its interval, as a report has it, and the first arm's mean with its own."""
    study = load_study(path)
    log = load_log(study.log)
    arms = arms_of(log, study.log)
    arms = arms[arms["outcome"] == log.rewarded]
    first, second = arms[["mean", "low", "high"]].to_numpy()
    highest, _, value, low, high = against_highest(arms, log.data, log.predicted).iloc[0]
    difference = (value, low, high) if highest == arms["arm"].iloc[1] else (-value, -high, -low)
    return difference, first, second
