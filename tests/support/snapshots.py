"""What is printed of some studies, kept as one file a screen under tests/snapshots, so that a changed word is seen.

`make snapshots` writes the files, and names those that changed: read the change before it is committed. Where changes
are checked (`.ci/run`) it refuses, so that nothing is checked against itself.
"""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np

import policysim as ps
from envs import record_space
from policysim.decision import redraws
from policysim.decision.choose import Wish
from policysim.decision.choose_report import report as choose_report
from policysim.report.report import Report
from policysim.trials import trial_columns

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests" / "snapshots"
# Set by .ci/run, for all that it runs.
CHECKED = "POLICYSIM_BROWSER_REQUIRED"


def own_problem() -> ps.DecisionProblem:
    """A problem of one's own: three treatments, who dies of them and who has pain; the illness is hidden."""
    space = record_space({"age": ["young", "old"], "ill": ["no", "yes"]})
    utilities = [[0.0, -0.1, -0.3], [-1.0, -0.4, -0.2], [0.0, -0.2, -0.5], [-2.0, -1.5, -0.5]]
    deaths = [[0.0, 0.0, 0.001], [0.01, 0.004, 0.002], [0.0, 0.001, 0.004], [0.04, 0.03, 0.01]]
    pain = np.tile([0.05, 0.1, 0.4], (4, 1))
    return ps.DecisionProblem(
        utilities,
        [0.5, 0.2, 0.2, 0.1],
        ps.AnyRecord(),
        ["wait", "pills", "surgery"],
        records=space,
        outcomes={"deaths": deaths, "pain": pain},
        lead="deaths",
    )


# Those that a screen shows: at others nothing is computed, to save time.
EPSILONS = (0.5, 1.0, 2.0, 5.0, 10.0)
WARD = str(ROOT / "examples" / "ward" / "study.toml")


def ward(**changes) -> Report:
    """The example of a ward, with other choices."""
    return ps.report(replace(ps.load_study(WARD), epsilons=EPSILONS, **changes))


# A screen's name, and its report. That of covid, which takes longest, is README's first text: see .ci/run.
SCREENS: dict[str, Callable[[], Report]] = {
    "ward": ward,
    "published": lambda: ward(seen="publication"),
    "one-feature": lambda: ward(adjacency="one-feature"),
    "warfarin": lambda: ps.report("warfarin", epsilons=EPSILONS),
    "named": lambda: ps.report("warfarin", epsilons=EPSILONS, policies=["optimal", "permute-and-flip"]),
    "own-problem": lambda: ps.report(own_problem(), epsilons=EPSILONS),
    "choose": lambda: choose_report(ps.load_study(WARD), Wish(keep=0.8, max_guess=0.97)),
    "actg175": lambda: ps.report(ROOT / "reports" / "actg175" / "study.toml", epsilons=EPSILONS),
}


@cache
def report_of(name: str) -> Report:
    """The report that is printed, computed once in a process; of a trial with one split, to save time."""
    with mock.patch.object(trial_columns, "REPEATS", 1), mock.patch.object(redraws, "REDRAWS", 200):
        return SCREENS[name]()


def texts(name: str) -> dict[str, str]:
    """What each file of it holds: the screen, and of the ward all tables, too."""
    screen = report_of(name).screen
    full = {f"{name}-full.txt": screen.text(full=True)} if name == "ward" else {}
    return {f"{name}.txt": screen.text(), **full}


def main() -> int:
    """Write all; the exit code."""
    if CHECKED in os.environ:
        sys.stderr.write(f"snapshots are not written where changes are checked ({CHECKED} is set)\n")
        return 2
    FOLDER.mkdir(exist_ok=True)
    wanted = {file: text for name in SCREENS for file, text in texts(name).items()}
    for path in sorted(FOLDER.glob("*.txt")):
        if path.name not in wanted:
            path.unlink()
            sys.stdout.write(f"deleted: {path.name}\n")
    for file, text in wanted.items():
        path = FOLDER / file
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"written: {file}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
