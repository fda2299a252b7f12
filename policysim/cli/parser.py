"""The parser of the command line: argparse, whose refusals are one line like all others here, with exit code 2."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, TypeAlias

from policysim.files.terminal import complain, say
from policysim.question import EXIT_USAGE

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
# Adds a command and its options.
Add: TypeAlias = Callable[[Commands], object]

# What argparse says of an option, and what is said here.
OWN_WORDS = {
    "expected one argument": "needs a value",
    "ignored explicit argument": "takes no value, got",
}


class Parser(argparse.ArgumentParser):
    """Refuses in one line: the option, what is wanted and what was given."""

    def error(self, message: str) -> NoReturn:
        """Print one line and exit; argparse calls it with "argument --option: what is wrong"."""
        name, colon, what = message.partition(": ")
        if name.startswith("argument ") and colon:
            for words, ours in OWN_WORDS.items():
                what = what.replace(words, ours)
            between = ": " if what.startswith("unknown ") else " "
            message = f"{name.removeprefix('argument ')}{between}{what}"
        complain(message)
        sys.exit(EXIT_USAGE)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help, for which argparse knows no closed stream."""
        say(message)

    def refuse_unknown(self, argument: str) -> NoReturn:
        """Refuse an argument that this command does not take."""
        name = argument.partition("=")[0]
        near = get_close_matches(name, self._option_string_actions, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        what = "option" if name.startswith("-") else "argument"
        self.error(f"unknown {what} {name!r}; {hint}{self.prog} --help lists all")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        if action.option_strings:
            raise argparse.ArgumentError(action, f"must be one of {', '.join(choices)}, got {value!r}")
        near = get_close_matches(str(value), choices, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        self.error(f"unknown command {value!r}; {hint}known: {', '.join(choices)}")


def build_parser(add: Sequence[Add]) -> tuple[Parser, Commands]:
    """The parser of some commands, in the order in which --help shows them."""
    parser = Parser(prog="policysim", description="What does choosing treatments privately cost the patients?")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for one in add:
        one(commands)
    return parser, commands


def parse(arguments: Sequence[str], add: Sequence[Add]) -> argparse.Namespace:
    """What a command line asks of some commands; SystemExit, after one line on stderr, if it is not understood."""
    parser, commands = build_parser(add)
    chosen, rest = parser.parse_known_args(arguments)
    if rest:
        first = next((argument for argument in rest if argument.startswith("-")), rest[0])
        (commands.choices[chosen.command] if chosen.command else parser).refuse_unknown(first)
    return chosen


class _Version(argparse.Action):
    """Look the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        say(f"policysim {version('policysim')}\n")
        parser.exit()
