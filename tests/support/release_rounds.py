"""Rounds in which several processes release the same rows at once: `python tests/support/release_rounds.py 200`.

In each round one of them may release, once, and all others must be refused. The kinds of rounds take turns: all to one
private file, each to one of its own, and a private choice.
"""

import contextlib
import io
import json
import multiprocessing
import sys
import tempfile
from collections import Counter
from pathlib import Path

from private_files import COLUMNS, DECLARED, write_people

from policysim.cli.main import main
from policysim.release.ledger import ledger_path
from policysim.release.privatize import read_private

PROCESSES = 8


def arguments(folder, number, process):
    """What a process asks in a round."""
    data = folder / str(number) / "data.csv"
    if number % 3 == 2:
        return ["select", data, "--column", "sex", "--candidates", "0,1", "--epsilon", 1]
    out = data.with_name("out.csv" if number % 3 == 0 else f"out-{process}.csv")
    return ["privatize", data, *COLUMNS, *DECLARED, "--epsilon", 1, "--out", out]


def take_part(folder, n_rounds, process, barrier, codes):
    """One process in all rounds."""
    for number in range(n_rounds):
        asked = [str(argument) for argument in arguments(folder, number, process)]
        barrier.wait(60)
        with io.StringIO() as said, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            codes.put((number, main(asked)))


def play(folder, n_rounds, n_processes=PROCESSES):
    """Play so many rounds below a folder; returns, for each, (exit codes and how often, what it left)."""
    for number in range(n_rounds):
        (folder / str(number)).mkdir()
        write_people(folder / str(number) / "data.csv", 20)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["policysim.release.privatize", "policysim.release.select_private"])
    barrier, queue = context.Barrier(n_processes), context.Queue()
    processes = [
        context.Process(target=take_part, args=(folder, n_rounds, process, barrier, queue), daemon=True)
        for process in range(n_processes)
    ]
    for process in processes:
        process.start()
    codes = [Counter() for _ in range(n_rounds)]
    for _ in range(n_rounds * n_processes):
        number, code = queue.get(timeout=120)
        codes[number][code] += 1
    for process in processes:
        process.join()
    return list(zip(codes, (left(folder / str(number)) for number in range(n_rounds)), strict=True))


def left(folder):
    """The names of private files and their rows, what the ledger lists, and the names of whatever else is there."""
    private = {path.name: read_private(path)[0].n_rows for path in folder.glob("out*.csv")}
    entries = [entry["released"] for entry in json.loads(ledger_path(folder).read_text())["releases"]]
    known = {"data.csv", ledger_path(folder).name, *private, *(f"{name}.privacy.json" for name in private)}
    return private, entries, {path.name for path in folder.iterdir()} - known


def wrong(rounds, n_processes=PROCESSES):
    """The rounds, by number, that did not end as they must."""
    found = []
    for number, (codes, (private, entries, others)) in enumerate(rounds):
        once = codes == {0: 1, 4: n_processes - 1} and len(entries) == 1 and not others
        if not once or private != ({} if number % 3 == 2 else {entries[0]: 20}):
            found.append((number, dict(codes), private, entries, others))
    return found


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        found = wrong(play(Path(name), int(sys.argv[1])))
    lines = [f"{sys.argv[1]} rounds of {PROCESSES}, {len(found)} wrong", *map(str, found)]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.exit(bool(found))
