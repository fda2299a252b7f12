"""Commands that a signal ends at one of their steps, or to which the system refuses it, each in a process of its own.

A quiet process forks them. A number below 0 is an error of the system, with which the step fails; then it goes on.

A step is whatever makes, locks, renames, links or removes a file or folder, or waits until it is on the disk. Before
each is after the one before it. What a report says is computed and drawn once, before the forks.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from matplotlib.figure import Figure

from policysim.cli import gallery
from policysim.cli.main import main
from policysim.course import simulated_log, simulation
from policysim.decision import decision_question
from policysim.output import deliver
from policysim.question.answer import Drawing
from policysim.release import privatize, select_private
from policysim.study import checks

# Loaded before the forks, once.
LOADED = (privatize, select_private, simulated_log, simulation, decision_question, checks)
STEPS = [(os, name) for name in ("mkdir", "fsync", "replace", "rename", "link", "unlink", "rmdir")] + [(fcntl, "flock")]
# Of a report: files of each kind, and enough of them.
FEW = ("comparison.csv", "figures/frontier.svg", "manifest.json")
COMMANDS = {"gallery": lambda arguments: gallery.main(arguments[1:])}


def end_at(step, number, reached):
    """From now on, this process gets a signal just before the step of this number; or it fails, as a file tells."""
    count = 0

    def counting(function):
        def counted(*arguments, **options):
            nonlocal count
            count += 1
            if count == step and number < 0:
                reached.touch()
                raise OSError(-number, os.strerror(-number))
            if count == step:
                os.kill(os.getpid(), number)
            return function(*arguments, **options)

        return counted

    for module, name in STEPS:
        setattr(module, name, counting(getattr(module, name)))


def ends(template, folder, number, arguments):
    """End one run after another at its first step, its second and so on, until one comes to its end.

    Each runs in a copy of a folder, of the name of its step. After a kill, in a copy of what it left, "then" and the
    step, another run follows that nothing ends. Returns the exit statuses of both, (n_steps, 2), negative for a signal.
    """
    command = [sys.executable, __file__, str(template), str(folder), str(int(number)), *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def fork_to(folder, arguments, step, number):
    """The exit status of a forked process that asks this in a folder, and that a signal may end at a step.

    What it prints is in a file beside the folder, "said" and its name.
    """
    child = os.fork()
    if not child:
        os.chdir(folder)
        with (
            (folder.parent / f"said {folder.name}").open("w") as out,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            end_at(step, number, folder.parent / f"said {folder.name}.reached")
            os._exit(COMMANDS.get(arguments[0], main)(arguments))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def once(function):
    """A function that computes what it is asked first, and answers nothing else."""
    found = []

    def kept(*asked, **options):
        if not found:
            found.append(function(*asked, **options))
        return found[0]

    return kept


def once_computed(template, arguments):
    """From now on a report has some of the files that it gets here, in a copy of the template, whatever its folder."""
    Drawing.at = lambda *_: Figure(figsize=(10, 0.1))
    whole = deliver.folder_files

    def few(*asked, **options):
        files = whole(*asked, **options)
        return {name: files[name] for name in FEW}

    deliver.folder_files = once(few)
    decision_question.DecisionQuestion.answer = once(decision_question.DecisionQuestion.answer)
    shutil.copytree(template, template.with_name("once"))
    os.chdir(template.with_name("once"))
    with Path(os.devnull).open("w") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(arguments)


def end_all(template, folder, number, arguments):
    """As `ends` says, in the process that forks the others: it reads and computes nothing itself."""
    statuses = []
    if arguments[0] == "compare":
        once_computed(template, arguments)
    while True:
        step = len(statuses) + 1
        first, then = folder / str(step), folder / f"then {step}"
        shutil.copytree(template, first)
        status = fork_to(first, arguments, step, number)
        if number == signal.SIGKILL:
            shutil.copytree(first, then)
        statuses.append((status, fork_to(then, arguments, None, number) if then.exists() else None))
        reached = (folder / f"said {step}").with_suffix(".reached").exists() if number < 0 else status in (-number, 130)
        if not reached:
            return statuses


if __name__ == "__main__":
    place, target, which, *asked = sys.argv[1:]
    json.dump(end_all(Path(place), Path(target), int(which), asked), sys.stdout)
