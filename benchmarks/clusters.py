"""How often intervals by cluster hold the true value, and what is claimed where nothing is.

    python benchmarks/clusters.py                   400 trials a line, in ten minutes
    python benchmarks/clusters.py --trials 40       a look

Trials of two arms that do the same, of 8 to 30 clusters each, about 15 patients in a cluster, of unequal numbers.
Whole clusters are allocated, or the patients of each. The correlation of two patients of a cluster is the ICC. Prints
the Markdown tables of docs/notes/off-policy-coverage.md.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
from side_by_side import markdown

from policysim.logs.load_log import Log
from policysim.logs.log_frame import LoggedData
from policysim.report.findings import BETTER, WORSE
from policysim.study.declared import LoggedStudy
from policysim.study.study_problem import indicators
from policysim.trials.arms import arm_means
from policysim.trials.contrasts import against_highest
from policysim.trials.estimate_value import cross_fit, estimate_value
from policysim.trials.evidence import heterogeneity
from policysim.trials.trial_columns import judged_on_splits

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from planted_clusters import clustered_trial

CLUSTERS, CORRELATIONS = (8, 15, 30), (0.05, 0.1, 0.2)
TRUTH = 0.5
ESTIMATES = ("mean of an arm holds", "arms differ", "the same by patients", "doubly robust value holds")
# Of so many times fewer trials, which take longer.
FEWER = 4


def of_arms(data: LoggedData) -> tuple[bool, bool]:
    """Whether the interval of the first arm holds its mean, and whether one arm is called better than the other."""
    arms = arm_means(data)
    apart = against_highest(arms, data)
    return bool(arms["low"][0] <= TRUTH <= arms["high"][0]), bool(apart["low"][0] > 0)


def of_estimates(n_trials: int, *, whole: bool) -> Iterator[dict[str, object]]:
    """A row for each number of clusters and ICC: how many of 100 intervals hold, or claim."""
    for per_arm, icc in product(CLUSTERS, CORRELATIONS):
        rows = []
        for trial in range(n_trials):
            study, log = drawn(trial, per_arm, icc, whole=whole)
            data = log.data
            fitted = cross_fit(data, indicators(log.space, log.records), seed=study.seed)
            low, high = estimate_value(data, np.tile([0.0, 1.0], (data.n_rows, 1)), fitted=fitted).interval
            by_patient = of_arms(replace(data, clusters=None))[1]
            rows.append((*of_arms(data), by_patient, low <= TRUTH <= high))
        yield {
            "clusters an arm": per_arm,
            "ICC": icc,
            **of_100(dict(zip(ESTIMATES, np.mean(rows, axis=0), strict=True))),
        }


def of_claims(n_trials: int, *, whole: bool) -> Iterator[dict[str, object]]:
    """A row for each number of clusters: how many of 100 trials claim that effects differ, or that C is no A."""
    for per_arm in CLUSTERS:
        verdicts, signs = [], []
        for trial in range(n_trials):
            study, log = drawn(trial, per_arm, 0.1, whole=whole)
            verdicts.append(judged_on_splits(study, log, [study.policy("greedy", 1.0)])["verdict"][0])
            signs.append(heterogeneity(log, study)["signs"][0])
        shares = {f"C is {each}": verdicts.count(each) / n_trials for each in (BETTER, WORSE)}
        yield {"clusters an arm": per_arm, "ICC": 0.1, **of_100({"effects differ": np.mean(signs), **shares})}


def drawn(trial: int, per_arm: int, icc: float, *, whole: bool) -> tuple[LoggedStudy, Log]:
    """A trial by its number."""
    return clustered_trial(np.random.default_rng([trial, per_arm, round(1000 * icc), whole]), per_arm, icc, whole=whole)


def of_100(shares: Mapping[str, float]) -> dict[str, str]:
    """Shares among 100."""
    return {name: f"{100 * share:.1f}" for name, share in shares.items()}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=400, help=f"of each line; of claims 1 in {FEWER} (default: 400)")
    parser.add_argument("--only", choices=("clusters", "patients"), help="what was allocated (default: both)")
    chosen = parser.parse_args()
    for what in ("clusters", "patients"):
        if chosen.only in (None, what):
            whole = what == "clusters"
            title = "Whole clusters are allocated" if whole else "The patients of each cluster are allocated"
            print(f"### {title}\n\n{markdown([*of_estimates(chosen.trials, whole=whole)])}", flush=True)
            print(markdown([*of_claims(max(1, chosen.trials // FEWER), whole=whole)]), flush=True)


if __name__ == "__main__":
    main()
