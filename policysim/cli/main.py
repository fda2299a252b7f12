"""The command line. Imports nothing heavy until a command needs it, so that --help is immediate.

What each command does once the command line is understood: one module a command, imported when it is run.

The parser of all commands.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from policysim.cli.arguments import (
    add_audit,
    add_choose,
    add_compare,
    add_evaluate,
    add_init,
    add_privatize,
    add_reproduce,
    add_select,
    add_sensitivity,
    add_simulate,
)

ABOUT = """\
policysim: what does choosing treatments privately cost the patients?

Publishing who gets which treatment can reveal a patient's record. policysim hides the record up to ε,
and tells exactly what that costs: per mechanism, per ε, per group, beside no privacy and one treatment for all.

Type next:
  policysim compare covid              compare policies on the built-in cohort; writes a report
  policysim init trial.csv             a study.toml for your own patients, which compare runs
  policysim choose covid --keep 80%    which ε, which mechanism
  policysim COMMAND --help             all options
"""
EXIT_USAGE, EXIT_DATA, EXIT_CHECK, EXIT_INTERRUPTED, EXIT_BUG = 2, 3, 4, 130, 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (0, or see the README)."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal without Greek letters gets question marks and not an error.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    chosen = build_parser().parse_args(arguments)
    try:
        code = _run(chosen)
        sys.stdout.flush()
    except KeyboardInterrupt:
        sys.stderr.write("policysim: interrupted; nothing was written\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone; end quietly, as other tools do, and leave nothing to flush at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        sys.stderr.write(_prefixed(f"cannot write to standard output: {error.strerror}"))
        return EXIT_USAGE
    return code


def _run(chosen: argparse.Namespace) -> int:
    if chosen.command is None:
        sys.stdout.write(ABOUT)
        return 0
    from envs.toml_reader import InputFileError  # noqa: PLC0415
    from policysim.files.output import OutputError  # noqa: PLC0415
    from policysim.question.protocol import UsageError  # noqa: PLC0415
    from policysim.study.sweep import ClaimError  # noqa: PLC0415

    try:
        return run(chosen)
    except (InputFileError, OutputError, UsageError) as error:
        sys.stderr.write(_prefixed(str(error)))
        return EXIT_USAGE
    except ClaimError as error:
        sys.stderr.write(_prefixed(str(error)))
        return EXIT_CHECK
    except ValueError as error:
        sys.stderr.write(_prefixed(str(error)))
        return EXIT_DATA
    except (MemoryError, ArithmeticError, LookupError, TypeError) as error:
        sys.stderr.write(_prefixed(f"this is a bug in policysim, please report it: {type(error).__name__}: {error}"))
        return EXIT_BUG


def _prefixed(message: str) -> str:
    return "".join(f"policysim: {line}\n" for line in message.splitlines())


if __name__ == "__main__":
    sys.exit(main())


def run(chosen: argparse.Namespace) -> int:
    """Run the command that was chosen; returns the exit code."""
    module = import_module(f"policysim.cli.{chosen.command}_command")
    code: int = module.run(chosen)
    return code


# In the order in which --help shows them.
COMMANDS = (
    add_init,
    add_compare,
    add_choose,
    add_audit,
    add_simulate,
    add_reproduce,
    add_sensitivity,
    add_evaluate,
    add_privatize,
    add_select,
)


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="policysim", description="What does choosing treatments privately cost the patients?"
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for add in COMMANDS:
        add(commands)
    return parser


class _Version(argparse.Action):
    """Look the version up only when it is asked for."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="print the version")

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version  # noqa: PLC0415

        sys.stdout.write(f"policysim {version('policysim')}\n")
        parser.exit()
