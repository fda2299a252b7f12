"""Commands that a signal ends at one of their steps, or to which the system refuses it, each in a process of its own.

A step is whatever makes, renames or removes a file or folder, or waits until it is on the disk, and each statement that
writes to SQLite. Each commit and each new name is tried, and of every other kind of step one. A number below 0 is an
error of the system, with which the step fails (but for SQLite's); then the command goes on.
"""

import contextlib
import gc
import json
import multiprocessing
import os
import shutil
import signal
import sqlite3
import threading
from functools import partial

from tqdm import tqdm

from policysim.cli.main import main

# The process that forks the others has imported what they need.
FORKING = multiprocessing.get_context("forkserver")
IMPORTED = "output.screen logs.column_summary release.privatize release.select_private release.counts_file"
FORKING.set_forkserver_preload([f"policysim.{name}" for name in IMPORTED.split()])
STEPS = ("mkdir", "fsync", "replace", "rename", "unlink", "rmdir")
EACH = {"replace", "COMMIT"}


def run_to(folder, said, arguments, step, number):
    """Run a command in a folder until it comes to a step; then this process gets a signal, or the step fails."""
    gc.freeze()  # else what is shared with the process that forked this one is copied
    tqdm.set_lock(threading.RLock())  # its own one, of the system, would outlive a process that is killed
    steps = []

    def before(name):
        steps.append(name)
        if len(steps) == step and number < 0:
            raise OSError(-number, os.strerror(-number))
        if len(steps) == step:
            os.kill(os.getpid(), number)

    def counting(name, function):
        def counted(*arguments, **options):
            before(name)
            return function(*arguments, **options)

        return counted

    class Counting(sqlite3.Connection):
        def execute(self, statement, values=()):
            if not statement.startswith(("SELECT", "PRAGMA")):
                before(" ".join(statement.split()[:2]))
            return super().execute(statement, values)

    for name in STEPS:
        setattr(os, name, counting(name, getattr(os, name)))
    sqlite3.connect = partial(sqlite3.connect, factory=Counting)
    os.chdir(folder)
    with said.open("w") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(arguments)
    said.with_suffix(".steps").write_text(json.dumps(steps))
    os._exit(code)


def status_of(folder, said, arguments, step=None, number=signal.SIGKILL):
    """The exit status of a process that `run_to` runs; negative for a signal."""
    process = FORKING.Process(target=run_to, args=(folder, said, arguments, step, number))
    process.start()
    process.join()
    return process.exitcode


def ends(template, folder, number, arguments):
    """End one run after another, each at another step.

    Each runs in a copy of a folder, of the name of its step; "whole" is that of a run that nothing ends. After a kill
    what it left is copied to "killed" and the step, and another run follows that nothing ends. What they print is in
    files beside the folder, "said" and "said then" with the step. Returns the exit statuses of both by step.
    """
    whole, statuses = folder / "said whole", {}
    assert status_of(shutil.copytree(template, folder / "whole"), whole, arguments, number=number) == 0
    kinds = {}
    for step, name in enumerate(json.loads(whole.with_suffix(".steps").read_text()), start=1):
        if number > 0 or name in STEPS:
            kinds.setdefault((name, step if name in EACH else None), step)
    for step in kinds.values():
        place = shutil.copytree(template, folder / str(step))
        status, then = status_of(place, folder / f"said {step}", arguments, step, number), None
        if number > 0:
            shutil.copytree(place, folder / f"killed {step}")
            then = status_of(place, folder / f"said then {step}", arguments)
        statuses[step] = status, then
    return statuses
