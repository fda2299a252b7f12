"""A file of what a peer finds: the command and the versions that wrote it, what was given, and what was found."""

import json
import platform
from importlib.metadata import version
from pathlib import Path

COMMAND = "make oracles"
# The arrays of examples/offline_data.py: one environment writes them, and another, with d3rlpy, reads them.
STAYS = Path(__file__).parents[2] / ".oracles" / "stays"


def write(name, packages, given, found):
    """One file, the same bytes for the same numbers."""
    versions = {"python": platform.python_version(), **{package: version(package) for package in packages}}
    document = {"command": COMMAND, "versions": versions, "given": given, "found": found}
    Path(__file__).with_name(f"{name}.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
