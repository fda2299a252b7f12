"""Our doubly robust contrasts of arms beside econml's and a plain AIPW: python benchmarks/contrasts.py.

All three see the same rows and columns: a column of 0 and 1 for each level of each declared feature. Each is cross-
fitted in five folds, over ten random splits: the mean of the estimates, and of their standard errors. Propensities of
the trials are known; those of NHEFS are estimated by logistic regression. --coverage LOGS draws logs with a known
truth, and counts how often intervals hold it.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from side_by_side import Peer, markdown

import policysim as ps
from policysim.logs.load_log import load_log
from policysim.logs.log_frame import LoggedData
from policysim.study.checks import Z
from policysim.study.study_problem import indicators
from policysim.trials.estimate_value import cross_fit, mean_of

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
from planted_logs import WORLDS, planted_log

SPLITS = 10
ALIKE = 1e-12  # propensities that differ by less are those of a randomised trial
NHEFS = """
[data]
file = "nhefs.csv"
id = "seqn"
treatment = "qsmk"
propensity = "estimate"
outcome = {{ {outcome} = 1.0 }}
outcome_checked = ["{outcome}"]
range = {range}
missing = "exclude"
[data.treatments]
0 = "smokes on"
1 = "stopped"
[data.features]
sex = {{ levels = [0, 1] }}
race = {{ levels = [0, 1] }}
age = {{ cuts = [35, 45, 55] }}
education = {{ levels = [1, 2, 3, 4, 5] }}
smokeintensity = {{ cuts = [10, 20, 30] }}
smokeyrs = {{ cuts = [15, 25, 35] }}
active = {{ levels = [0, 1, 2] }}
exercise = {{ levels = [0, 1, 2] }}
wt71 = {{ cuts = [60, 70, 80] }}
"""


def ours(data, x, seed):
    """Contrasts of each arm with the first, and their standard errors."""
    fitted = cross_fit(data, x, outcome_model="linear", folds=5, seed=seed)
    everyone = np.eye(data.n_actions)
    tables = [np.broadcast_to(row, (data.n_rows, data.n_actions)) for row in everyone]
    found = [mean_of("dr", data, [table, tables[0]], fitted) for table in tables[1:]]
    return [[each.mean, each.standard_error] for each in found]


def three_ways(peer, path, data, x, *, known, splits=SPLITS):
    """(3, n_contrasts, 2): mean estimate and mean standard error over random splits of ours, econml's, and AIPW's."""
    path = str(path)
    np.savez(path, x=x, arms=data.actions, y=data.rewards)
    said = [
        [ours(data, x, seed) for seed in range(splits)],
        *(
            [peer.ask(path=path, seed=seed, known=known, way=way) for seed in range(splits)]
            for way in ("econml", "AIPW")
        ),
    ]
    return np.mean(said, axis=1)


def studies(folder):
    """Each log: its name, its data, its covariates, whether its propensities are known."""
    for name in ("actg175", "ist"):
        log = load_log(ps.load_study(f"reports/{name}/study.toml").log)
        x = indicators(log.space, log.records)
        yield name, log.data, x, True
        if name == "actg175":
            higher = log.outcomes["cd4_higher"]
            data = LoggedData(log.data.actions, higher, log.data.propensities, log.data.names)
            yield "actg175, cd4_higher", data, x, True
    for outcome, span in (("death", "[0, 1]"), ("wt82_71", "[-50, 50]")):
        (folder / "study.toml").write_text(NHEFS.format(outcome=outcome, range=span), encoding="utf-8")
        log = load_log(ps.load_study(folder / "study.toml").log)
        yield f"nhefs, {outcome}", log.data, indicators(log.space, log.records), False


def contrasts(peer, folder):
    """A row for each contrast: what is estimated, and how far the others are from ours."""
    rows = []
    for name, data, x, known in studies(folder):
        found = three_ways(peer, folder / "log.npz", data, x, known=known)
        for arm, (own, econml, plain) in enumerate(found.transpose(1, 0, 2), 1):
            rows.append(
                {
                    "log": name,
                    "contrast": f"{data.names[arm]} − {data.names[0]}",
                    "patients": f"{data.n_rows:,}",
                    "ours": f"{own[0]:+.4f} ± {Z * own[1]:.4f}",
                    "econml": f"{econml[0]:+.4f} ± {Z * econml[1]:.4f}",
                    "AIPW": f"{plain[0]:+.4f} ± {Z * plain[1]:.4f}",
                    "econml − ours": f"{econml[0] - own[0]:+.4f}",
                    "AIPW − ours": f"{plain[0] - own[0]:+.4f}",
                    "width, econml / ours": f"{econml[1] / own[1]:.3f}",
                    "width, AIPW / ours": f"{plain[1] / own[1]:.3f}",
                }
            )
    return rows


def coverage(peer, folder, logs):
    """How often 95 % intervals of the last arm minus the first hold the truth, in worlds where it is known."""
    rows = []
    for name, world in WORLDS.items():
        rng, held, widths, errors = np.random.default_rng(7), [], [], []
        truth = float((world.success[:, -1] - world.success[:, 0]).mean())
        for _ in range(logs):
            _, log = planted_log(world, rng)
            known = not world.estimated and bool(np.ptp(world.propensities) < ALIKE)
            x = indicators(log.space, log.records)
            found = three_ways(peer, folder / "log.npz", log.data, x, known=known, splits=1)
            value, error = found[:, -1].T
            held.append(np.abs(value - truth) <= Z * error)
            widths.append(2 * Z * error)
            errors.append(value - truth)
        rows.append(
            {"world": name, "patients": world.patients}
            | {
                way: f"{100 * np.mean(held, axis=0)[place]:.1f} %, {np.mean(widths, axis=0)[place]:.3f}, "
                f"{np.mean(errors, axis=0)[place]:+.4f}"
                for place, way in enumerate(("ours", "econml", "AIPW"))
            }
        )
    return rows


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--coverage", type=int, default=0, metavar="LOGS")
    parser.add_argument("--peer", type=Path, help="the folder of the peers' environment, to keep it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = Path(__file__).with_name("contrasts_peers.py").read_text(encoding="utf-8")
        peer = Peer(chosen.peer or folder / "peer", ("econml==0.17.0", "causaldata==0.1.5"), program)
        peer.ask(path=str(folder / "nhefs.csv"))
        print(markdown(coverage(peer, folder, chosen.coverage) if chosen.coverage else contrasts(peer, folder)))
        peer.close()


if __name__ == "__main__":
    main()
