"""Private choices a second, side by side in one run: python benchmarks/choices.py [--peers FOLDER | --no-peers].

Like against like: tables drawn from in bulk for simulations; single choices released with secure randomness; and
randomised response. All measures take turns, several times over, so that whatever else the machine does falls on all of
them; shown are medians, and of the ratios the medians of those within one turn.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit

import policysim as ps
from policies.distinct import distinct_rows
from policies.policy import draw_actions

TURNS = 7
EPSILON = 1.0
PEERS = ("opendp==0.16.0", "diffprivlib==0.6.6", "scikit-learn<1.6")
BULK, RELEASED, RESPONSE = "drawn from a table", "released one by one, secure", "randomised response, secure"
# Choices of a measure: enough for a tenth of a second or so.
COMPILED, ARRAYS, SINGLE = 1 << 24, 1 << 22, 1000
BLOCK = 1 << 16


@dataclass
class Measure:
    """So many choices, made in one way; `run` may return its own seconds."""

    group: str
    name: str
    choices: int
    run: Callable[[], object]

    def seconds(self) -> float:
        """How long one run takes."""
        start = time.perf_counter()
        found = self.run()
        return found if isinstance(found, float) else time.perf_counter() - start


def in_threads(work, size):
    """Call `work` with a slice for each processor at once."""
    count = os.cpu_count() or 1
    edges = [size * part // count for part in range(count + 1)]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda part: work(slice(edges[part], edges[part + 1])), range(count)))


def by_cumulative_sums(sums, records, out, seed):
    """NumPy at its best: uniform numbers against cumulative sums made before, block by block, on all processors."""

    def share(part):
        rng = np.random.default_rng([seed, part.start])
        for start in range(part.start, part.stop, BLOCK):
            rows = records[start : min(start + BLOCK, part.stop)]
            found, draws = np.zeros(len(rows), dtype=np.uint8), rng.random(len(rows))
            for column in sums:
                found += draws >= column[rows]
            out[start : start + len(rows)] = found

    in_threads(share, len(records))


def by_gumbel(scores, records, rng):
    """The largest sum of score and Gumbel noise, block by block."""
    for start in range(0, len(records), BLOCK):
        some = scores[records[start : start + BLOCK]]
        (some + rng.gumbel(size=some.shape)).argmax(axis=1)


def by_source_loop(scores, sensitivity, choices):
    """The source report's way: weights of one person, divided by their sum, and one draw."""
    candidates = np.arange(scores.shape[1])
    for row in scores[:choices]:
        weights = [np.exp(EPSILON * score / (2 * sensitivity)) for score in row]
        weights = weights / np.linalg.norm(weights, ord=1)
        np.random.choice(candidates, 1, p=weights)[0]


def bulk_measures():
    """Choices for covid's 1,310,720 records: exponential mechanism at epsilon 1."""
    problem = ps.build_problem(ps.load_study("covid"))
    table = ps.make_policy("exponential", epsilon=EPSILON).probabilities(problem)
    distinct = distinct_rows(problem)
    rng = np.random.default_rng(0)
    records = rng.integers(problem.n_records, size=COMPILED)
    rows = rng.integers(len(distinct.first), size=COMPILED)
    usual = np.tile(rng.choice(problem.n_records, size=1 << 20, p=problem.prior), COMPILED >> 20)
    of_records, of_rows = ps.Sampler(table), ps.Sampler(table[distinct.first])
    of_optimum = ps.Sampler(ps.make_policy("optimal", epsilon=EPSILON).probabilities(problem))
    by_rows = np.ascontiguousarray(table)
    sensitivity = problem.sensitivity.value
    scores = problem.utilities * (EPSILON / (2 * sensitivity))
    sums = [np.ascontiguousarray(column) for column in np.cumsum(table, axis=1).T[:-1]]
    some, out = records[:ARRAYS], np.empty(ARRAYS, dtype=np.uint8)
    # What a choice reads and writes at least: the number of its row, a word of the row, and the action in a byte.
    moved, there = np.ones(17 * COMPILED // 2, dtype=np.uint8), np.empty(17 * COMPILED // 2, dtype=np.uint8)
    terms = np.ascontiguousarray(scores[some % problem.n_records]).ravel()
    powers = np.empty_like(terms)
    words = rng.integers(1 << 63, size=problem.n_records, dtype=np.uint64)

    def ours(sampler, asked, compiled):
        sampler.draw(asked, np.random.default_rng(1), compiled=compiled)

    def move():
        in_threads(lambda part: np.copyto(there[part], moved[part]), len(moved))

    @njit(nogil=True)
    def gather(words, asked):
        total = np.uint64(0)
        for record in asked:
            total += words[record]
        return total

    def look_up():
        in_threads(lambda part: gather(words, records[part]), len(records))

    def exponentiate():
        in_threads(lambda part: np.exp(terms[part], out=powers[part]), len(terms))

    shuffled = scores[rng.permutation(problem.n_records)[:SINGLE]] * 2 * sensitivity / EPSILON
    return [
        Measure(BULK, "**ps.Sampler**, records drawn evenly", COMPILED, partial(ours, of_records, records, True)),
        Measure(BULK, "**ps.Sampler**, records drawn from the prior", COMPILED, partial(ours, of_records, usual, True)),
        Measure(BULK, "**ps.Sampler**, distinct rows", COMPILED, partial(ours, of_rows, rows, True)),
        Measure(BULK, "**ps.Sampler** of the optimum's table", COMPILED, partial(ours, of_optimum, records, True)),
        Measure(BULK, "**ps.Sampler** without numba, records", ARRAYS, partial(ours, of_records, some, False)),
        Measure(
            BULK,
            "NumPy, cumulative sums made before, in blocks",
            ARRAYS,
            partial(by_cumulative_sums, sums, some, out, 2),
        ),
        Measure(
            BULK,
            "NumPy, cumulative sums of each choice (`draw_actions`)",
            ARRAYS // 4,
            lambda: draw_actions(by_rows[some[: ARRAYS // 4]], rng),
        ),
        Measure(BULK, "NumPy, Gumbel noise", ARRAYS // 16, partial(by_gumbel, scores, some[: ARRAYS // 16], rng)),
        Measure(BULK, "the source report's loop", SINGLE, partial(by_source_loop, shuffled, sensitivity, SINGLE)),
        Measure(BULK, "bound: looking up 8 bytes of the record", COMPILED, look_up),
        Measure(BULK, "bound: moving 17 bytes a choice", COMPILED, move),
        Measure(BULK, "bound: four exponentials a choice", ARRAYS, exponentiate),
    ]


def single_measures():
    """Choices that may be published: one call each, with the operating system's randomness; and columns of reports."""
    scores = [-1.0, -2.0, -3.0, -4.0]
    values, channel = np.zeros(1 << 20, dtype=np.intp), ps.local.KAry(4, EPSILON)

    def release(choices):
        for _ in range(choices):
            ps.select(scores, epsilon=EPSILON, sensitivity=102.5).release()

    def release_built(choices):
        built = ps.select(scores, epsilon=EPSILON, sensitivity=102.5)
        for _ in range(choices):
            built.release()

    return [
        Measure(
            RELEASED, "**ps.select**, whole numbers, constant work, built and drawn", SINGLE, partial(release, SINGLE)
        ),
        Measure(
            RELEASED,
            "**ps.select**, whole numbers, constant work, built before",
            SINGLE,
            partial(release_built, SINGLE),
        ),
        Measure(RESPONSE, "**ps.local.privatize**", len(values), partial(ps.local.privatize, values, channel)),
    ]


def peer_measures(python):
    """What `benchmarks/choices_peers.py` measures, in its own process; the process too."""
    process = subprocess.Popen(
        [python, Path(__file__).with_name("choices_peers.py")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(name):
        process.stdin.write(f"{name}\t{SINGLE}\n")
        process.stdin.flush()
        return float(process.stdout.readline())

    single = (
        "diffprivlib, floating point, built before",
        "diffprivlib, floating point, built and drawn",
        "OpenDP, noisy max, exact",
    )
    measures = [Measure(RELEASED, name, SINGLE, partial(ask, name)) for name in single]
    name = "OpenDP, randomised response"
    return [*measures, Measure(RESPONSE, name, SINGLE, partial(ask, name))], process


def make_peers(folder):
    """An environment with the peers in a folder, if it is not there; its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PEERS], check=True)
    return python


def rows(peers: Path | None = None, turns: int = TURNS) -> list[dict[str, object]]:
    """Measure everything: group, name, choices per second, and how many times as fast ours is (the group's first).

    Parameters
    ----------
    peers : Path, optional
        The Python of an environment with OpenDP and diffprivlib; without it, these are left out.
    turns : int, optional
        How often each is measured, >= 1.
    """
    with ExitStack() as stack:
        measures = [*bulk_measures(), *single_measures()]
        if peers is not None:
            others, process = peer_measures(peers)
            measures += others
            stack.enter_context(process)
        for measure in measures:
            measure.seconds()  # nothing is compiled or imported while it is measured
        each = [[measure.seconds() / measure.choices for measure in measures] for _ in range(turns)]
        firsts: dict[str, int] = {}
        for place, measure in enumerate(measures):
            firsts.setdefault(measure.group, place)
        found = [
            {
                "group": measure.group,
                "name": measure.name,
                "per_second": statistics.median(1 / turn[place] for turn in each),
                "ratio": statistics.median(turn[place] / turn[firsts[measure.group]] for turn in each),
            }
            for place, measure in enumerate(measures)
        ]
    return sorted(found, key=lambda row: list(firsts).index(row["group"]))


def machine() -> str:
    """The machine in words."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    software = f"Python {sys.version.split()[0]}, NumPy {np.__version__}"
    return f"{os.cpu_count()} processors ({platform.machine()}), {software}{load}"


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, help="folder of the peers' environment, made where it is missing")
    parser.add_argument("--no-peers", action="store_true", help="without OpenDP and diffprivlib; nothing is installed")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        peers = None if asked.no_peers else make_peers(asked.peers or Path(temporary) / "peers")
        found = rows(peers)
    print(f"{machine()}; medians of {TURNS} turns.\n")
    print("| choices, four actions, ε = 1 | ours is so many times as fast | choices per second |")
    print("|---|--:|--:|")
    group = None
    for row in found:
        if row["group"] != group:
            group = row["group"]
            print(f"| *{group}* | | |")
        print(f"| {row['name']} | {row['ratio']:,.3g} | {row['per_second']:,.3g} |")


if __name__ == "__main__":
    main()
