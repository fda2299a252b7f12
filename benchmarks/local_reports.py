"""How long it takes to simulate ten million reports: python benchmarks/local_reports.py."""

import os
import resource
import sys
import time

import numpy as np

from policies.local import Channel, KAry, TwoCoin, Unary, count_reports, privatize

PEOPLE = 10_000_000
BIT_REPORTS = 200_000


def report(channel: Channel, people: int, rng: np.random.Generator) -> None:
    """Privatise, count, and print the seconds of both."""
    values = rng.integers(channel.n_values, size=people)
    start = time.perf_counter()
    reports = privatize(values, channel, rng=rng)
    middle = time.perf_counter()
    count_reports(reports, channel)
    end = time.perf_counter()
    print(f"{people:>12,}  {channel!r:<52} privatize {middle - start:6.2f} s  count {end - middle:6.2f} s")


def main() -> None:
    """Print the table."""
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}, numpy {np.__version__}")
    rng = np.random.default_rng(0)
    for channel in (TwoCoin(), KAry(4, 1.0), KAry(10, 1.0), KAry(5000, 1.0)):
        report(channel, PEOPLE, rng)
    report(Unary(100, 1.0), BIT_REPORTS, rng)
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
