"""`policysim reproduce`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from policysim import commands
from policysim.console import EXIT_CHECK, print_json
from policysim.reproduce.reproduction import reproduce
from policysim.reproduce.screen import reproduction_document, reproduction_screen


def run(chosen: argparse.Namespace) -> int:
    """`policysim reproduce`; exit code 4 if anything but the bytes of a page or figure does not agree."""
    found = reproduce(Path(chosen.manifest), commands.run)
    if chosen.json:
        print_json(reproduction_document(found))
    else:
        sys.stdout.write(reproduction_screen(found) + "\n")
    return 0 if found.agrees else EXIT_CHECK
