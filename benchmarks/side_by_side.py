"""What all benchmarks share: the machine in words, paired repeats, peers in environments of their own, and tables.

Two programs are compared within one run, in turn (A B A B …), so that a machine whose speed drifts treats both alike;
what is quoted is the median of the ratios, pair by pair.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

LIBRARIES = ("numpy", "scipy", "pandas", "gymnasium", "pyarrow", "numba")


def machine():
    """The machine, its load, and the versions that matter, as one sentence."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    versions = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return (
        f"{os.cpu_count()} processors ({names[0] if names else platform.machine()}), {memory:.0f} GiB of memory, "
        f"Python {platform.python_version()}, {versions}; load at the start {os.getloadavg()[0]:.1f}."
    )


def seconds(work):
    """Seconds that some work takes; a peer's work returns its own."""
    start = time.perf_counter()
    told = work()
    return told if isinstance(told, float) else time.perf_counter() - start


def paired(works, repeats=7):
    """Seconds of each work in each repeat, in turn, after one round that is not counted.

    Parameters
    ----------
    works : mapping of str to callable
        The first is ours. A callable that returns a float has timed itself.
    repeats : int, optional
        Rounds that count.

    Returns
    -------
    dict of str to list of float
    """
    taken = {name: [] for name in works}
    for place in range(repeats + 1):
        for name, work in works.items():
            spent = seconds(work)
            if place:
                taken[name].append(spent)
    return taken


def compared(taken, units=1.0, rate=False):
    """Rows of a table: of each work the ratio to the first, and the median of its seconds, or of its units a second.

    Parameters
    ----------
    taken : mapping of str to list of float
        From `paired`.
    units : float or mapping of str to float, optional
        What one call does; a peer may be given less to do.
    rate : bool, optional
        Whether to tell units a second; otherwise seconds.
    """
    done = {name: units[name] if isinstance(units, dict) else units for name in taken}
    first = next(iter(taken))
    rows = []
    for name, spent in taken.items():
        pairs = zip(taken[first], spent, strict=True)
        times = statistics.median((theirs / done[name]) / (ours / done[first]) for ours, theirs in pairs)
        median = statistics.median(spent)
        figure = f"{_short(done[name] / median)}/s" if rate else f"{median:.3g} s"
        rows.append({"": name, "ours is faster by": f"{times:.3g}×" if name != first else "", "median": figure})
    return rows


def _short(number):
    """12,300,000 -> "12.3 M"."""
    for size, letter in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def markdown(rows):
    """A table of rows with the same columns; "" if there is none."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *[[str(row[name]) for name in names] for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


class Peer:
    """Another package, in a virtual environment of its own, that answers requests one at a time.

    Parameters
    ----------
    folder : Path
        Where its environment is made.
    requirements : sequence of str
        What is installed there.
    program : str
        Python: defines `work(**request)`, which returns a JSON value. It imports and prepares before it is first asked.

    Raises
    ------
    RuntimeError
        If it cannot be installed or started; the benchmark says so and goes on without it.
    """

    def __init__(self, folder, requirements, program):
        """Install and start."""
        python = folder / "bin" / "python"
        try:
            subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True)
            install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements]
            subprocess.run(install, check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            raise RuntimeError(f"{', '.join(requirements)} cannot be installed here.") from error
        answering = (
            "\nimport json, sys\nfor line in sys.stdin:\n    print(json.dumps(work(**json.loads(line))), flush=True)\n"
        )
        self.process = subprocess.Popen(
            [python, "-W", "ignore", "-c", program + answering],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def ask(self, **request):
        """What `work` returns."""
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError("the peer has stopped.")
        return json.loads(answer)

    def close(self):
        """End the process."""
        self.process.stdin.close()
        self.process.wait()
