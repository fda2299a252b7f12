"""Commands that a signal ends at one of their steps, or to which the system refuses it, each in a process of its own.

One process forks them. A number below 0 is an error of the system, with which the step fails; then it goes on.

A step is whatever makes, locks, renames, links or removes a file or folder, or waits until it is on the disk, and each
statement to SQLite (which does not fail with an error of ours). Before each is after the one before it. Before the
forks the command runs once in a copy: what it imports is there. Another process, which only imports, forks the one for
each command.
"""

import atexit
import contextlib
import fcntl
import gc
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from functools import cache, partial
from pathlib import Path

from policysim.cli.main import main

STEPS = [(os, name) for name in ("mkdir", "fsync", "replace", "rename", "link", "unlink", "rmdir")] + [(fcntl, "flock")]


def end_at(step, number, reached):
    """From now on, this process gets a signal just before the step of this number; or it fails, as a file tells."""
    count = 0

    def before():
        nonlocal count
        count += 1
        if count == step and number < 0:
            reached.touch()
            raise OSError(-number, os.strerror(-number))
        if count == step:
            os.kill(os.getpid(), number)

    def counting(function):
        def counted(*arguments, **options):
            before()
            return function(*arguments, **options)

        return counted

    class Counting(sqlite3.Connection):
        def execute(self, statement, values=()):
            if not statement.startswith(("SELECT", "PRAGMA")):
                before()
            return super().execute(statement, values)

    for module, name in STEPS:
        setattr(module, name, counting(getattr(module, name)))
    if number > 0:
        sqlite3.connect = partial(sqlite3.connect, factory=Counting)


def ends(template, folder, number, arguments):
    """End one run after another at its first step, its second and so on, until one comes to its end.

    Each runs in a copy of a folder, of the name of its step. After a kill what it left is copied to "killed" and the
    step, and another run follows that nothing ends. What they print is in files beside the folder, "said" and "said
    then" with the step. Returns the exit statuses of both, (n_steps, 2), negative for a signal.
    """
    asked = [str(template), str(folder), int(number), *map(str, arguments)]
    process = forking_process()
    process.stdin.write(f"{json.dumps(asked)}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


@cache
def forking_process():
    """The process that forks one for each line of its input, until that ends."""
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


def fork_to(folder, said, arguments, step, number):
    """The exit status of a forked process that asks this in a folder, and that a signal may end at a step."""
    child = os.fork()
    if not child:
        os.chdir(folder)
        with (
            said.open("w") as out,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            end_at(step, number, said.with_suffix(".reached"))
            os._exit(main(arguments))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def run_once(folder, arguments):
    """Run a command in a folder, to its end and without a word."""
    os.chdir(folder)
    with Path(os.devnull).open("w") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(arguments)


def end_all(template, folder, number, arguments):
    """As `ends` says, in the process that forks the others."""
    statuses = []
    run_once(shutil.copytree(template, template.with_name("once")), arguments)
    gc.freeze()
    while True:
        step = len(statuses) + 1
        place, said = shutil.copytree(template, folder / str(step)), folder / f"said {step}"
        status, then = fork_to(place, said, arguments, step, number), None
        if number == signal.SIGKILL:
            shutil.copytree(place, folder / f"killed {step}")
            then = fork_to(place, folder / f"said then {step}", arguments, None, number)
        statuses.append((status, then))
        reached = said.with_suffix(".reached").exists() if number < 0 else status in (-number, 130)
        if not reached:
            return statuses


if __name__ == "__main__":
    gc.freeze()  # else each fork copies what it looks through for garbage
    for line in sys.stdin:
        place, target, which, *asked = json.loads(line)
        if not (child := os.fork()):
            sys.stdout.write(f"{json.dumps(end_all(Path(place), Path(target), which, asked))}\n")
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit("the process that forks the others failed")
