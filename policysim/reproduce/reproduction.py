"""A manifest run again and compared: what agrees and what differs."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policysim.reproduce.manifest import MANIFEST, file_digest
from policysim.reproduce.reading import Manifest, read_manifest
from policysim.reproduce.rerun import run_again
from policysim.reproduce.tables import Difference, Table, differences, read_table


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
    same_bytes, other_bytes : tuple of str
        Pages and figures that are, or are not, byte for byte what the manifest says.
    edited : tuple of str
        CSV files beside the manifest that are not what it says: they were changed after the run.
    inputs : mapping of str to tuple of str
        What the numbers depend on and is another than in the manifest: versions and the scenario, (then, now).
    """

    manifest: Manifest
    n_numbers: dict[str, int]
    differences: tuple[Difference, ...]
    same_bytes: tuple[str, ...]
    other_bytes: tuple[str, ...]
    edited: tuple[str, ...]
    inputs: dict[str, tuple[str, str]]


def reproduce(path: Path) -> Reproduction:
    """Run what a manifest describes again, into a temporary folder, and compare all of it.

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
        folder = run_again(manifest, Path(temporary))
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
    same = [name for name in others if manifest.results.get(name) == again.results.get(name)]
    return Reproduction(
        manifest=manifest,
        n_numbers={name: table.n_numbers for name, table in old.items()},
        differences=tuple(found),
        same_bytes=tuple(same),
        other_bytes=tuple(name for name in others if name not in same),
        edited=tuple(name for name in old if file_digest(manifest.folder / name) != manifest.results[name]),
        inputs={
            name: (then, now)
            for name, now in _inputs(again.document).items()
            if (then := _inputs(manifest.document).get(name, "not said")) != now
        },
    )


def _there(is_there: bool) -> tuple[str]:
    return ("there" if is_there else "missing",)


def _inputs(document: Any) -> dict[str, str]:
    """What else the numbers depend on: the libraries, and the scenario's file."""
    scenario = document.get("scenario_sha256")
    return {**document.get("versions", {}), **({"scenario": scenario} if scenario else {})}
