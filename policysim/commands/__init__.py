"""What each command does once the command line is understood: one module a command, imported when it is run."""

from __future__ import annotations

import argparse
from importlib import import_module


def run(chosen: argparse.Namespace) -> int:
    """Run the command that was chosen; returns the exit code."""
    module = import_module(f"policysim.commands.{chosen.command}")
    code: int = module.run(chosen)
    return code
