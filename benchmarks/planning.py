"""Seconds and memory of exact planning over 14 days on all 1.3 million records, and of one policy's value.

python benchmarks/planning.py
"""

import resource
import time
from collections.abc import Callable
from typing import TypeVar

import policysim as ps
from policies import make_policy
from policysim.course.course_evaluation import ProcessEvaluator
from policysim.course.planning import optimal_course
from policysim.course.treatment_course import build_course

T = TypeVar("T")
DAYS = 14


def timed(label: str, work: Callable[[], T]) -> T:
    """Print how long some work takes, and return what it returns."""
    start = time.perf_counter()
    result = work()
    print(f"{label:58} {time.perf_counter() - start:6.2f} s")
    return result


def main() -> None:
    """Print a line for each part."""
    study = ps.load_study("covid")
    process = timed("the course: rewards and tables of a day", lambda: build_course(study, DAYS))
    course = timed("Q-values under optimal continuation", lambda: optimal_course(process))
    evaluator = ProcessEvaluator(process, course)
    for name in ("exponential", "randomized-response"):
        policy = make_policy(name, epsilon=1.0)
        tables = course.decisions(policy)
        timed(f"value, deaths and exact loss of {name}", lambda: evaluator.evaluate(lambda d: tables[d].tables(policy)))  # noqa: B023
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{'peak memory':58} {peak:6.2f} GiB")
    timed("the same Q-values kept as one array: ps.plan", lambda: ps.plan(process))


if __name__ == "__main__":
    main()
