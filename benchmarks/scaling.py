"""How long a comparison takes with more records, treatments, epsilons and days: python benchmarks/scaling.py.

Tables of independent normal utilities: no two rows are alike, so that nothing is saved by merging them. Days are those
of covid.
"""

import statistics
import time

import numpy as np
from side_by_side import machine, markdown

import policysim as ps

RECORDS, ACTIONS, EPSILONS, DAYS = (10_000, 100_000, 1_000_000), (2, 4, 8, 12), (1, 6, 24), (1, 7, 14)
POLICIES = ("greedy", "best-fixed", "exponential", "randomized-response", "optimal")
REPEATS = 3


def compare(records=100_000, actions=4, epsilons=6):
    """Seconds of one comparison, the median of several; the problem is built anew each time."""
    grid = np.geomspace(0.1, 10, epsilons).tolist()
    spent = []
    for seed in range(REPEATS):
        utilities = np.random.default_rng(seed).normal(size=(records, actions))
        start = time.perf_counter()
        problem = ps.DecisionProblem(utilities, np.full(records, 1 / records), ps.AnyRecord())
        ps.compare(problem, policies=POLICIES, epsilons=grid)
        spent.append(time.perf_counter() - start)
    return statistics.median(spent)


def planned(days):
    """Seconds in which covid is planned over days, with one epsilon for each."""
    study = ps.load_study("covid")
    start = time.perf_counter()
    ps.plan(ps.build_course(study, horizon=days), policy=ps.make_policy("exponential", epsilon=1.0))
    return time.perf_counter() - start


def tables():
    """A row for each size: what grows, to what, the seconds, and times the row before."""
    told = []
    for name, sizes, work in (
        ("records", RECORDS, lambda size: compare(records=size)),
        ("treatments", ACTIONS, lambda size: compare(actions=size)),
        ("epsilons", EPSILONS, lambda size: compare(epsilons=size)),
        ("days of covid", DAYS, planned),
    ):
        before = None
        for size in sizes:
            spent = work(size)
            times = "" if before is None else f"{spent / before[1]:.2g}× for {size / before[0]:.3g}×"
            told.append(
                {"what grows": name, "to": f"{size:,}", "seconds": f"{spent:.3g}", "beside the row before": times}
            )
            before = size, spent
    return [f"Each a comparison of {len(POLICIES)} policies unless it says days.", markdown(told)]


def main():
    """Print the table."""
    print(machine(), *tables(), sep="\n\n")


if __name__ == "__main__":
    main()
