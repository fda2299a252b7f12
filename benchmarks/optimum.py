"""The optimal mechanism and the exact audit, beside libqif's: python benchmarks/optimum.py.

libqif (chatziko/libqif, `qif` on PyPI) solves the linear programme over all pairs of records; ours the one over orders
of preference. Both are told in seconds; where the values differ, the table says by how much.
"""

import tempfile
from pathlib import Path

import numpy as np
from side_by_side import Peer, compared, machine, markdown, paired

import policysim as ps

SIZES, AUDITED = (10, 30, 100), (300, 1_000, 3_000)
PROGRAM = """
import time, numpy as np, qif
from qif import measure, mechanism
def table(seed, n, k):
    return np.random.default_rng(seed).normal(size=(n, k))
def work(job, n, k, epsilon, seed, rows=None):
    if job == "audit":
        channel = np.array(rows)
        start = time.perf_counter()
        value = measure.d_privacy.smallest_epsilon(channel, lambda x, y: 1.0 if x != y else 0.0)
        return [time.perf_counter() - start, value]
    loss = -table(seed, n, k)
    start = time.perf_counter()
    found = mechanism.d_privacy.min_loss_given_d(
        np.full(n, 1 / n), k, lambda x, y: epsilon if x != y else 0.0, lambda x, y: float(loss[x, y]))
    return [time.perf_counter() - start, float((np.asarray(found) * loss).sum() / n)]
"""


def problem(seed, n, k=4):
    """The same table as the peer's."""
    return ps.DecisionProblem(np.random.default_rng(seed).normal(size=(n, k)), np.full(n, 1 / n), ps.AnyRecord())


def _beside(n, apart, told):
    column = "our value minus theirs"
    return [{"records": f"{n:,}", **row, column: apart if place else ""} for place, row in enumerate(told)]


def tables(folder, repeats=5):
    """Two tables in Markdown: the optimum, and the audit."""
    peer = Peer(folder, ["qif", "numpy"], PROGRAM)
    optima, audits = [], []
    for n in SIZES:
        values = {}

        def ours(n=n, values=values):
            made = problem(0, n)  # each time anew: a problem remembers what was computed from it
            values["ours"] = made.prior @ (
                ps.make_policy("optimal", epsilon=1.0).probabilities(made) * made.utilities
            ).sum(1)

        def theirs(n=n, values=values):
            spent, loss = peer.ask(job="optimum", n=n, k=4, epsilon=1.0, seed=0)
            values["qif"] = -loss
            return spent

        told = compared(paired({"policysim": ours, "libqif": theirs}, repeats if n < 100 else 3))
        apart = f"{values['ours'] - values['qif']:+.1e}"
        optima += _beside(n, apart, told)
    for n in AUDITED:
        made = problem(1, n)
        table = ps.make_policy("exponential", epsilon=1.0).probabilities(made)
        request = {"job": "audit", "n": n, "k": 4, "epsilon": 1.0, "seed": 1, "rows": table.tolist()}
        values = {}

        def ours(table=table, values=values):
            values["ours"] = ps.privacy_loss(table, ps.AnyRecord()).epsilon

        def theirs(request=request, values=values):
            spent, values["qif"] = peer.ask(**request)
            return spent

        told = compared(paired({"policysim": ours, "libqif": theirs}, 3))
        apart = f"{values['ours'] - values['qif']:+.1e}"
        audits += _beside(n, apart, told)
    peer.close()
    return [
        "The optimum of a random table with four treatments, ε 1:",
        markdown(optima),
        "The exact ε of a table:",
        markdown(audits),
    ]


def main():
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        print(machine(), *tables(Path(folder)), sep="\n\n")


if __name__ == "__main__":
    main()
