"""All benchmarks that compare, in one run, into RESULTS.md: make benchmark.

Each part is a process of its own, whose memory is not that of the parts before it, and is printed as it ends. A peer
that cannot be installed is named, and left out.
"""

import subprocess
import sys
import time
from pathlib import Path

from side_by_side import machine

HERE = Path(__file__).parent
# Each part's heading, and its program beside this one.
PARTS = {
    "Choosing for many patients": "choices.py",
    "Stepping environments": "environment.py",
    "Logs of simulated patients": "simulated_logs.py",
    "Logs in many files": "logs.py",
    "The optimum and the audit, beside libqif": "optimum.py",
    "What grows with what": "scaling.py",
    "Many actions": "many_actions.py",
}


def part(heading, program):
    """One part as Markdown: its tables without the machine, which is told once; or why there are none."""
    done = subprocess.run([sys.executable, HERE / program], capture_output=True, text=True, check=False)
    tables = done.stdout.partition("\n\n")[2].strip()
    if done.returncode:
        # A process that was killed, such as by a machine without memory, says nothing.
        tables = f"Not measured: {(done.stderr.strip() or f'it ended with {done.returncode}').splitlines()[-1]}"
    return "\n\n".join((f"## {heading}", f"`python benchmarks/{program}`", tables))


def main():
    """Measure all, and write the file when all is there."""
    start = time.perf_counter()
    told = [
        "# Results",
        "Written by `make benchmark`, in one run. Whatever is compared ran in turn (A B A B …); the ratios are medians "
        "of pairs, and larger than 1 where ours is faster.",
        f"The machine: {machine()}",
    ]
    for heading, program in PARTS.items():
        told.append(part(heading, program))
        print(told[-1], flush=True)
    told.append(f"This run took {(time.perf_counter() - start) / 60:.0f} minutes.")
    text = "\n\n".join(told).replace("\n\n\n", "\n\n")
    (HERE / "RESULTS.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
