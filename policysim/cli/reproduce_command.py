"""`policysim reproduce`: the same numbers again."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from policysim.cli import choose_command, compare_command
from policysim.cli.kinds import NOT_OF_A_REPORT, arguments_again
from policysim.cli.options import Commands, add_json, build_parser, parse
from policysim.errors import EXIT_CHECK, UsageError
from policysim.files.terminal import print_json, progress_bar, say

if TYPE_CHECKING:
    from policysim.report.reproduce import Manifest

# The commands that a manifest may name.
AGAIN = {"compare": compare_command, "choose": choose_command}
REFUSED = {*NOT_OF_A_REPORT, "--cluster", "--help", "-h"}


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "reproduce",
        help="make the report of a manifest.json again and list which numbers differ",
        description="Make the report of a manifest.json again, in this process, and list which numbers differ. Of the "
        "manifest only compare and choose are run, by our own parser; nothing is written. Exit code 4 if anything "
        "differs.",
    )
    parser.add_argument("manifest", type=Path, metavar="MANIFEST", help="the manifest.json beside a report")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Make the report again; exit code 4 if a number, a page or a figure file does not agree."""
    from policysim.report.reproduce import compare_with, read_manifest

    manifest = read_manifest(chosen.manifest)
    # Before anything is computed: a table that is missing makes all of it useless.
    tables = manifest.tables()
    asked = understood(manifest)
    command = AGAIN[asked.command]
    study = command.as_asked(manifest.study(), asked)
    with progress_bar() as progress:
        report = command.report_of(asked, study, progress)
    found = compare_with(manifest, tables, report, command.figure_files(asked))
    if chosen.json:
        print_json(found.document())
    else:
        say(found.text())
    return EXIT_CHECK if found.differences else 0


def understood(manifest: Manifest) -> argparse.Namespace:
    """What the command line of a manifest asks; UsageError for one that `compare` or `choose` would not have written.

    Its study is the one that the manifest names, and the command line must be as `arguments_again` writes it: so it
    names no file, no folder and no machine.
    """
    from policysim.study.study_reader import STUDY

    words, where = manifest.arguments, f"{manifest.path.as_posix()}: command"
    if len(words) < 2 or words[0] not in AGAIN or words[1] not in (STUDY, manifest.name):
        wanted = f"{' or '.join(AGAIN)} and the study, {STUDY} or {manifest.name}"
        raise UsageError(f"{where}: must begin with {wanted}, got {' '.join(words)[:80]!r}")
    add_command = [AGAIN[words[0]].add]
    options = {*build_parser(add_command)[1].choices[words[0]].options} - REFUSED
    for word in words[2:]:
        if word.startswith("-") and word.partition("=")[0] not in options:
            raise UsageError(f"{where}: {word[:80]} is no option of {words[0]} that a manifest may have")
    try:
        asked = parse(words, add_command)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    if arguments_again(asked) != words:
        raise UsageError(f"{where}: must be written as {' '.join(arguments_again(asked))!r}")
    return asked
