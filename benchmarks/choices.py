"""Private choices a second: python benchmarks/choices.py.

Like against like: tables drawn from in bulk for simulations; single choices released with secure randomness; and
randomised response.
"""

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numba import njit
from side_by_side import Peer, compared, machine, markdown, paired

import policysim as ps
from policies.distinct import distinct_rows
from policies.sampler import draw_actions
from policysim.release.exact import response_draw

EPSILON = 1.0
PEERS = ("opendp==0.16.0", "diffprivlib==0.6.6", "scikit-learn<1.6")
# What they are asked, by the names in choices_peers.py: choices, and randomised response.
PEER_CHOICES = (
    "OpenDP, noisy max, exact, built before",
    "diffprivlib, floating point, built before",
    "diffprivlib, floating point, built and drawn",
)
PEER_RESPONSES = ("OpenDP, randomised response",)
# Choices of a measure: enough for a tenth of a second or so.
COMPILED, ARRAYS, SINGLE = 1 << 24, 1 << 22, 1000
BLOCK = 1 << 16


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


def bulk():
    """Choices for covid under the exponential mechanism at epsilon 1: (choices, work) of each way by name."""
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
    return {
        "**ps.Sampler**, records drawn evenly": (COMPILED, partial(ours, of_records, records, True)),
        "**ps.Sampler**, records drawn from the prior": (COMPILED, partial(ours, of_records, usual, True)),
        "**ps.Sampler**, distinct rows": (COMPILED, partial(ours, of_rows, rows, True)),
        "**ps.Sampler** of the optimum's table": (COMPILED, partial(ours, of_optimum, records, True)),
        "**ps.Sampler** without numba, records": (ARRAYS, partial(ours, of_records, some, False)),
        "NumPy, cumulative sums made before, in blocks": (ARRAYS, partial(by_cumulative_sums, sums, some, out, 2)),
        "NumPy, cumulative sums of each choice (`draw_actions`)": (
            ARRAYS // 4,
            lambda: draw_actions(by_rows[some[: ARRAYS // 4]], rng),
        ),
        "NumPy, Gumbel noise": (ARRAYS // 16, partial(by_gumbel, scores, some[: ARRAYS // 16], rng)),
        "the source report's loop": (SINGLE, partial(by_source_loop, shuffled, sensitivity, SINGLE)),
        "bound: looking up 8 bytes of the record": (COMPILED, look_up),
        "bound: moving 17 bytes a choice": (COMPILED, move),
        "bound: four exponentials a choice": (ARRAYS, exponentiate),
    }


def releases(peers):
    """Choices that may be published, one call each, with the operating system's randomness; ours, and those of peers.

    Parameters
    ----------
    peers : mapping of str to callable
        Each does SINGLE choices, and returns the seconds that they took.
    """
    scores = [-1.0, -2.0, -3.0, -4.0]

    def release(built_before):
        built = ps.select(scores, epsilon=EPSILON, sensitivity=102.5)
        for _ in range(SINGLE):
            (built if built_before else ps.select(scores, epsilon=EPSILON, sensitivity=102.5)).release()

    ours = {
        "**ps.select**, whole numbers, constant work, built before": partial(release, True),
        "**ps.select**, whole numbers, constant work, built and drawn": partial(release, False),
    }
    return {name: (SINGLE, work) for name, work in {**ours, **peers}.items()}


def responses(peers):
    """Randomised response with secure randomness: ours a column of reports at once, those of peers one by one."""
    values = np.zeros(1 << 20, dtype=np.intp)
    ours = {"**policysim privatize**": (len(values), partial(response_draw, values, 4, EPSILON))}
    return ours | {name: (SINGLE, work) for name, work in peers.items()}


def table(measures):
    """Measure in turn, as Markdown: of each way the ratio to the first, and choices a second."""
    taken = paired({name: work for name, (_, work) in measures.items()})
    return markdown(compared(taken, {name: choices for name, (choices, _) in measures.items()}, rate=True))


def tables(folder):
    """Three tables in Markdown, each after a line that says what it is; ours alone where no peer can be installed."""
    told = [
        "Drawn from a table of covid's 1,310,720 records and four treatments, choices a second, for simulation:",
        table(bulk()),
    ]
    peer = None
    try:
        peer = Peer(folder, PEERS, Path(__file__).with_name("choices_peers.py").read_text(encoding="utf-8"))
    except RuntimeError as error:
        told.append(f"Without OpenDP and diffprivlib: {error}")

    def asked(names):
        return {name: partial(peer.ask, name=name, choices=SINGLE) for name in names} if peer else {}

    told += [
        "Released one by one with secure randomness, choices a second:",
        table(releases(asked(PEER_CHOICES))),
        "Randomised response with secure randomness, reports a second:",
        table(responses(asked(PEER_RESPONSES))),
    ]
    if peer:
        peer.close()
    return told


def main():
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        print(machine(), *tables(Path(folder)), sep="\n\n")


if __name__ == "__main__":
    main()
