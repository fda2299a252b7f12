"""Runs of `policysim decide` that are killed: `python tests/support/killed_decisions.py random 200`.

Prints a JSON object: how many runs were killed in which state, and what was wrong, which must be nothing. One process
forks the runs, which have then imported all that they need.
"""

import contextlib
import csv
import gc
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from decimal import Decimal
from pathlib import Path

from small_studies import write_small_study
from tqdm import tqdm

from policysim.cli.main import main
from policysim.release.ledger import Ledger
from policysim.study.study_reader import load_study

EPSILON = "0.1"
ASKED = f"--study small.toml --epsilon {EPSILON} --id patient --event day --ledger ledger.sqlite".split()
# Whatever changes the ledger, a file or a folder.
STEPS = {"execute", "executemany", "mkdir", "chmod", "replace", "rename", "unlink", "rmdir", "fsync", "link"}
WATCHED = ("release/decide.py", "release/ledger.py", "files/whole_files.py", "pathlib.py", "shutil.py")


def write_patients(path, rows):
    """Rows of patient, day and record number, of the small study."""
    space = load_study(path.with_name("small.toml")).space
    frame = space.decode([record for _, _, record in rows])
    frame.insert(0, "patient", [patient for patient, _, _ in rows])
    frame.insert(1, "day", [day for _, day, _ in rows])
    frame.to_csv(path, index=False)


def make(folder, n_patients, budget="0.3"):
    """A study, patients, a ledger."""
    write_small_study(folder)
    write_patients(folder / "today.csv", [(f"P{number}", 1, number % 32) for number in range(n_patients)])
    with quiet():
        Ledger(folder / "ledger.sqlite", budget)


@contextlib.contextmanager
def quiet():
    with Path(os.devnull).open("w") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        yield


def start(folder, step=None, patients="today.csv", out="drawn.csv"):
    """Fork a run in a folder, which kills itself before a step of this number; its process."""
    child = os.fork()
    if child:
        return child
    reached = 0

    def count(frame, event, function):
        nonlocal reached
        if event == "c_call" and function.__name__ in STEPS and frame.f_code.co_filename.endswith(WATCHED):
            # What only reads the ledger is no step.
            reached += not str(frame.f_locals.get("query")).startswith(("SELECT", "PRAGMA"))
            if reached == step:
                os.kill(os.getpid(), signal.SIGKILL)

    os.chdir(folder)
    with quiet():
        if step:
            sys.setprofile(count)
        os._exit(main(["decide", patients, *ASKED, "--out", out]))


def ended(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def stored(folder):
    """The decisions of a ledger, by digests, once it is sound and each has cost its patient what it must."""
    sql = sqlite3.connect(folder / "ledger.sqlite")
    assert sql.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    decisions = {
        row[:2]: row[2:] for row in sql.execute("SELECT patient, event, treatment, length(record) FROM decision")
    }
    drawn = Counter(patient for (patient, _), (_, record) in decisions.items() if record)
    assert {patient: Decimal(spent) for patient, spent in sql.execute("SELECT patient, spent FROM patient")} == {
        patient: times * Decimal(EPSILON) for patient, times in drawn.items()
    }
    assert bool(decisions) == bool(sql.execute("SELECT count(*) FROM entry").fetchone()[0])
    return decisions


def rows_of(path):
    with path.open(newline="") as stream:
        return dict(list(csv.reader(stream))[1:])


def left(folder, n_patients):
    """The state that a killed run has left, when the next run has completed it and nothing was wrong."""
    out, before = folder / "drawn.csv", stored(folder)
    text = out.read_bytes() if out.exists() else None
    assert len(before) in (0, n_patients), "half a transaction"
    assert text is None or before, "drawn and not counted"
    assert ended(start(folder)) == 0
    after = stored(folder)
    assert len(after) == n_patients
    assert not before or after == before, "drawn again"
    assert text is None or out.read_bytes() == text
    ledger = Ledger(folder / "ledger.sqlite")
    given = {(ledger.digest("patient", each), ledger.digest("event", "1")): name for each, name in rows_of(out).items()}
    assert given == {key: treatment for key, (treatment, _) in after.items()}
    names = {path.name for path in folder.iterdir()}
    assert not [name for name in names if "part" in name or "journal" in name], names
    return "written" if text is not None else "counted" if before else "nothing"


def kill(folder, n_patients, times=0):
    """Kill runs, each in a folder of its own: before every step, or so many times at moments uniform over a run."""
    template = folder / "template"
    template.mkdir()
    make(template, n_patients)
    first = shutil.copytree(template, folder / "first")
    begun = time.perf_counter()
    assert ended(start(first)) == 0
    seconds, moments = time.perf_counter() - begun, random.Random(1)
    states, wrong = Counter(), []
    for number in range(1, 10_000):
        place = shutil.copytree(template, folder / str(number))
        child = start(place, step=None if times else number)
        if times:
            time.sleep(moments.uniform(0, 1) * seconds)
            os.kill(child, signal.SIGKILL)
        killed = ended(child) != 0  # else it had ended before
        if killed:
            try:
                states[left(place, n_patients)] += 1
            except AssertionError as error:
                wrong.append(f"{number}: {error}")
        if states.total() + len(wrong) == times or not (killed or times):
            break
    return {"states": states, "wrong": wrong}


def share(folder, n_patients, processes=8):
    """Processes that decide at once on one ledger, of the same patients but for other events: what was wrong."""
    make(folder, 1)
    for process in range(processes):
        chosen = random.Random(process).sample(range(2 * n_patients), n_patients)
        write_patients(folder / f"{process}.csv", [(f"P{number}", process, number % 32) for number in chosen])
    children = [start(folder, patients=f"{process}.csv", out=f"drawn-{process}.csv") for process in range(processes)]
    codes = [ended(child) for child in children]
    assert codes == [0] * processes, codes
    decisions = stored(folder)
    drawn = Counter(patient for (patient, _), (_, record) in decisions.items() if record)
    asked = Counter(patient for patient, _ in decisions)
    assert {patient: min(3, times) for patient, times in asked.items()} == drawn
    assert len(decisions) == processes * n_patients
    return {"codes": codes, "wrong": [], "over budget": len(decisions) - drawn.total()}


if __name__ == "__main__":
    what, number = sys.argv[1], int(sys.argv[2])
    # In memory, if that has files: a kill loses nothing that a process has written.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        (Path(name) / "once").mkdir()
        make(Path(name) / "once", 3)
        os.chdir(Path(name) / "once")
        with quiet():
            main(["decide", "today.csv", *ASKED, "--out", "drawn.csv"])
        gc.freeze()
        tqdm.set_lock(threading.RLock())  # that of all processes would be held for ever by one that was killed
        if what == "together":
            result = share(Path(name), number)
        else:
            result = kill(Path(name), 300, number) if what == "random" else kill(Path(name), number)
        sys.stdout.write(json.dumps(result) + "\n")
