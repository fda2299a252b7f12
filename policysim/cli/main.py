"""The command line: its commands, and what happens with errors.

Imports nothing heavy until a command is run, so that --help is immediate.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import chdir, suppress
from importlib import import_module
from pathlib import Path

from policysim.cli import (
    audit_command,
    choose_command,
    compare_command,
    decide_command,
    evaluate_command,
    init_command,
    ledger_command,
    privatize_command,
    reproduce_command,
    select_command,
    sensitivity_command,
    simulate_command,
)
from policysim.cli.options import build_parser, parse
from policysim.errors import (
    EXIT_BUG,
    EXIT_CHECK,
    EXIT_DATA,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    MissingExtraError,
    OutputError,
    UsageError,
)
from policysim.files.terminal import complain, open_streams, say, warn

ABOUT = """\
policysim: what does choosing treatments privately cost the patients?

Observers of a treatment may learn the record. policysim computes the cost of hiding it, and draws privately.

Type next:
  policysim compare covid              compare policies on the built-in cohort; writes a report
  policysim init trial.csv             write a study.toml for your own patients
  policysim choose covid --keep 80%    find the ε and the mechanism for a demand
  policysim decide --help              draw a treatment for each of your patients, and count it
  policysim COMMAND --help             all options
"""
# In the order in which --help shows them.
COMMANDS = {
    "compare": compare_command,
    "choose": choose_command,
    "decide": decide_command,
    "init": init_command,
    "simulate": simulate_command,
    "audit": audit_command,
    "evaluate": evaluate_command,
    "ledger": ledger_command,
    "privatize": privatize_command,
    "reproduce": reproduce_command,
    "select": select_command,
    "sensitivity": sensitivity_command,
}
ADD = tuple(command.add for command in COMMANDS.values())
# What imports matplotlib; the others need not wait for it.
DRAWN = ("compare", "choose", "reproduce")
OURS = ("envs", "policies", "policysim")


def whole_parser() -> argparse.ArgumentParser:
    """The parser of all commands, for tools that write completions for a shell (docs/asking.md)."""
    return build_parser(ADD)[0]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (0, or see the README)."""
    open_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Of a command that is known the others are not asked for their options.
    named = COMMANDS.get(given[0]) if given else None
    try:
        chosen = parse(given, (named.add,) if named else ADD)
    except (UsageError, MissingExtraError, OutputError) as error:
        complain(str(error))
        return EXIT_USAGE
    try:
        if chosen.command is None:
            say(ABOUT)
            return 0
        # Several policies are computed at a time: threads within one product of matrices only get in their way. Read
        # when NumPy is imported, here or never.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if chosen.command in DRAWN:
            import_matplotlib()
        with warnings.catch_warnings():
            # A user of the command line need not see where a warning was raised.
            warnings.showwarning = lambda message, *_: complain(f"warning: {message}")
            return exit_code(lambda: COMMANDS[chosen.command].run(chosen))
    except KeyboardInterrupt as stop:
        complain(f"interrupted; {str(stop) or 'nothing was written'}")
        return EXIT_INTERRUPTED
    except OutputError as error:
        complain(str(error))
        return error.exit_code


def import_matplotlib() -> None:
    """Import matplotlib with our settings, which it reads then, and with no window: no other file or name is looked at.

    A matplotlibrc of the folder that one is in would come before all others, so it is imported in another one.
    """
    if "matplotlib" in sys.modules:
        return
    own = Path(__file__).parents[1] / "figures" / "figures.mplstyle"
    os.environ |= {"MATPLOTLIBRC": str(own), "MPLBACKEND": "Agg"}
    with suppress(FileNotFoundError), chdir(own.parent):  # a folder that was removed has no such file
        import_module("matplotlib")


def exit_code(run: Callable[[], int]) -> int:
    """The exit code of a run; prints what goes wrong, but raises for output that cannot be written."""
    from envs.toml_reader import InputFileError
    from policies.policy import ClaimError

    try:
        return run()
    except (InputFileError, MissingExtraError, UsageError, ClaimError) as error:
        complain(str(error))
        return EXIT_CHECK if isinstance(error, ClaimError) else EXIT_USAGE
    except OutputError:
        raise  # told in `main`
    except OSError as error:
        if error.filename is None:
            return bug(error)
        # A name that is too long, or a folder that may not be entered.
        complain(f"{os.fsdecode(error.filename)}: cannot be read: {error.strerror}")
        return EXIT_DATA
    except Exception as error:
        if isinstance(error, ValueError) and said_on_purpose(error):
            complain(str(error))
            return EXIT_DATA
        return bug(error)


def bug(error: Exception) -> int:
    """Show where an error of ours comes from."""
    import traceback

    warn("".join(traceback.format_exception(error)))
    what = "".join(traceback.format_exception_only(error)).strip()
    complain(f"this is a bug in policysim, please report it: {what}")
    return EXIT_BUG


def said_on_purpose(error: ValueError) -> bool:
    """Whether we say what is wrong with the data: an error class of ours, or a raise statement in our code.

    All other errors of the kind come out of Python or a library, as from `float("x")`, and nobody has thought of them.
    """
    if type(error).__module__.partition(".")[0] in OURS:
        return True
    import dis

    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or place.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in OURS:
        return False
    return dis.opname[place.tb_frame.f_code.co_code[place.tb_lasti]] == "RAISE_VARARGS"


if __name__ == "__main__":
    sys.exit(main())
