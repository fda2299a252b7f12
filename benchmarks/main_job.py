"""How long the main job takes, step by step, and what it needs: python benchmarks/main_job.py."""

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import policysim as ps
from policysim.decision.demands import least_epsilons


def timed(name, work):
    """Do some work, print how long it took, and return its result."""
    start = time.perf_counter()
    result = work()
    print(f"{name:<40}{time.perf_counter() - start:8.2f} s")
    return result


def command(*arguments):
    """Run the installed command line as a whole process."""
    subprocess.run([Path(sys.executable).parent / "policysim", *arguments], check=True, capture_output=True)


def main():
    """Print the table."""
    print(f"{os.cpu_count()} processors, Python {sys.version.split()[0]}")
    study = timed("load study", lambda: ps.load_study("covid"))
    problem = timed("build problem (1,310,720 records)", lambda: ps.build_problem(study))
    timed("sensitivity", lambda: problem.sensitivity)
    table = timed(
        f"compare ({len(study.policies)} policies x {len(study.epsilons)} epsilons, {len(study.by)} groupings)",
        lambda: ps.compare(problem, policies=study.policies, epsilons=study.epsilons, by=study.by),
    )
    private = [policy for policy in map(study.policy, study.policies) if policy.uses_epsilon]
    timed("searches for epsilon", lambda: least_epsilons(problem, private, table))
    print(f"{'peak memory of these steps':<40}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:8.2f} GB")
    command("--help")
    timed("policysim --help, a whole process", lambda: command("--help"))
    with tempfile.TemporaryDirectory() as folder:
        timed("policysim compare covid, a whole process", lambda: command("compare", "covid", "--out", folder))


if __name__ == "__main__":
    main()
