"""Commands that a signal ends at one of their steps, or to which the system refuses it, each in a process of its own.

One process forks them. A number below 0 is an error of the system, with which the step fails; then it goes on.

A step is whatever makes, locks, renames, links or removes a file or folder, or waits until it is on the disk. Before
each is after the one before it. Before the forks the command runs once in a copy: what it imports is there, and what a
report says is computed and drawn. Another process, which only imports, forks the one for each command.
"""

import atexit
import contextlib
import fcntl
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

from matplotlib.figure import Figure

from policysim.cli.main import main
from policysim.decision import decision_question, redraws
from policysim.output import deliver
from policysim.question.answer import Drawing

STEPS = [(os, name) for name in ("mkdir", "fsync", "replace", "rename", "link", "unlink", "rmdir")] + [(fcntl, "flock")]
# Of a report: files of each kind, and enough of them.
FEW = ("comparison.csv", "figures/frontier.svg", "manifest.json")


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
            os._exit(main(arguments))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def once(function):
    """A function that computes what it is asked first, and answers nothing else."""
    found = []

    def kept(*asked, **options):
        if not found:
            found.append(function(*asked, **options))
        return found[0]

    return kept


def once_computed():
    """From now on a report has some of the files that it gets first, whatever its folder."""
    Drawing.at = lambda *_: Figure(figsize=(10, 0.1))
    redraws.REDRAWS = 20
    whole = deliver.folder_files

    def few(*asked, **options):
        files = whole(*asked, **options)
        return {name: files[name] for name in FEW}

    deliver.folder_files = once(few)
    decision_question.DecisionQuestion.answer = once(decision_question.DecisionQuestion.answer)


def run_once(folder, arguments):
    """Run a command in a folder, to its end and without a word."""
    os.chdir(folder)
    with Path(os.devnull).open("w") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main(arguments)


def end_all(template, folder, number, arguments):
    """As `ends` says, in the process that forks the others."""
    statuses = []
    if arguments[0] == "compare":
        once_computed()
    run_once(shutil.copytree(template, template.with_name("once")), arguments)
    gc.freeze()
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
    gc.freeze()  # else each fork copies what it looks through for garbage
    for line in sys.stdin:
        place, target, which, *asked = json.loads(line)
        if not (child := os.fork()):
            sys.stdout.write(f"{json.dumps(end_all(Path(place), Path(target), which, asked))}\n")
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit("the process that forks the others failed")
