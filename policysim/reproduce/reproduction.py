"""A manifest run again and compared: what agrees and what differs."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policysim.reproduce.manifest import MANIFEST, file_digest
from policysim.reproduce.reading import Manifest, read_manifest
from policysim.reproduce.rerun import run_again
from policysim.reproduce.statements import Statement, statements
from policysim.reproduce.tables import Difference, Table, differences, read_table

SCENARIO = "scenario"


@dataclass(frozen=True)
class Reproduction:
    """What came of running a study again.

    Attributes
    ----------
    manifest : Manifest
        What was run again.
    n_numbers : mapping of str to int
        How many numbers were compared in each CSV file.
    differences : tuple of Difference
        The cells that differ.
    statements : tuple of Statement
        What the manifest itself says and the new one does not.
    same_bytes, other_bytes : tuple of str
        Pages and figures that came out, or did not, byte for byte as the manifest says; the same only if they are
        still there as well.
    edited, missing : tuple of str
        Files beside the manifest that are not what it says, as they were changed after the run, or are not there.
    inputs : mapping of str to tuple of str
        What the numbers depend on and is another than in the manifest: versions and the scenario, (then, now).
    """

    manifest: Manifest
    n_numbers: dict[str, int]
    differences: tuple[Difference, ...]
    statements: tuple[Statement, ...]
    same_bytes: tuple[str, ...]
    other_bytes: tuple[str, ...]
    edited: tuple[str, ...]
    missing: tuple[str, ...]
    inputs: dict[str, tuple[str, str]]

    @property
    def agrees(self) -> bool:
        """Whether the report is what the run makes; a table may be written in another way if its numbers agree."""
        spoiled = [name for name in self.edited if not name.endswith(".csv")]
        return not (self.differences or self.statements or spoiled or self.missing or SCENARIO in self.inputs)


def reproduce(path: Path, run: Callable[[argparse.Namespace], int]) -> Reproduction:
    """Run what a manifest describes again, into a temporary folder, and compare all of it.

    Parameters
    ----------
    path : Path
        The manifest.
    run : callable
        Runs a command line that is understood.

    Raises
    ------
    InputFileError
        If the manifest, its study or one of its CSV files is missing or another one.
    ValueError
        If its data is.
    """
    manifest = read_manifest(path)
    # Before anything is computed: a table that is missing makes all of it useless.
    old = {name: read_table(manifest.folder / name) for name in manifest.tables}
    with tempfile.TemporaryDirectory(prefix="policysim-") as temporary:
        folder = run_again(manifest, Path(temporary), run)
        return _compare(manifest, old, folder)


def _compare(manifest: Manifest, old: dict[str, Table], folder: Path) -> Reproduction:
    again = read_manifest(folder / MANIFEST)
    found: list[Difference] = []
    for name in dict.fromkeys([*old, *again.tables]):
        if name in old and name in again.tables:
            found += differences(name, old[name], read_table(folder / name))
        else:
            found.append(Difference(name, 0, {}, "file", *_there(name in old), *_there(name in again.tables)))
    others = [name for name in dict.fromkeys([*manifest.results, *again.results]) if not name.endswith(".csv")]
    as_said = [name for name in others if manifest.results.get(name) == again.results.get(name)]
    missing, edited = _spoiled(manifest)
    return Reproduction(
        manifest=manifest,
        n_numbers={name: table.n_numbers for name, table in old.items()},
        differences=tuple(found),
        statements=tuple(statements(manifest.document, again.document)),
        same_bytes=tuple(name for name in as_said if name not in (*missing, *edited)),
        other_bytes=tuple(name for name in others if name not in as_said),
        edited=tuple(edited),
        missing=tuple(missing),
        inputs={
            name: (then, now)
            for name, now in _inputs(again.document).items()
            if (then := _inputs(manifest.document).get(name, "not said")) != now
        },
    )


def _spoiled(manifest: Manifest) -> tuple[list[str], list[str]]:
    """The files that are missing, and those that are not what the manifest says."""
    missing = [name for name in manifest.results if not (manifest.folder / name).is_file()]
    there = [name for name in manifest.results if name not in missing]
    return missing, [name for name in there if file_digest(manifest.folder / name) != manifest.results[name]]


def _there(is_there: bool) -> tuple[str]:
    return ("there" if is_there else "missing",)


def _inputs(document: Any) -> dict[str, str]:
    """What else the numbers depend on: the libraries, and the scenario's file."""
    scenario = document.get("scenario_sha256")
    return {**document.get("versions", {}), **({SCENARIO: scenario} if scenario else {})}
