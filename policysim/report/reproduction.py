"""A report made again from its manifest: what agrees, and what differs."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from envs.toml_reader import InputFileError
from policysim.files.many_files import file_digest, parts_digest
from policysim.question.protocol import SILENT, Progress, Question
from policysim.report.deliver import FigureFiles, digest, folder_files, manifest_of
from policysim.report.differences import (
    CellDifference,
    Statement,
    TextRows,
    as_written,
    differences,
    read_table,
    statements,
)
from policysim.report.manifest import Manifest, copy_under_its_name, named_files, read_manifest
from policysim.study.study_reader import STUDY, study_names, study_path

SCENARIO = "scenario"
# From a command line, without the program's name, to what it asks and which figures it wants.
Ask: TypeAlias = Callable[[Sequence[str]], tuple[Question, FigureFiles]]


@dataclass(frozen=True)
class Reproduction:
    """What came of running a study again.

    Attributes
    ----------
    manifest : Manifest
        What was run again.
    n_numbers : mapping of str to int
        How many numbers were compared in each CSV file.
    differences : tuple of CellDifference
        The cells that differ.
    statements : tuple of Statement
        What the manifest itself says and the new one does not.
    same_bytes, other_bytes : tuple of str
        Pages and figures that came out, or did not, as the manifest says: byte for byte, or as files beside it that
        have those bytes and that `differences.agree` with what came out. The same only if they are still there.
    edited, missing : tuple of str
        Files beside the manifest that are not what it says, as they were changed after the run, or are not there.
    inputs : mapping of str to tuple of str
        What the numbers depend on and is another than in the manifest: versions and the scenario, (then, now).
    """

    manifest: Manifest
    n_numbers: dict[str, int]
    differences: tuple[CellDifference, ...]
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


def reproduce(path: Path, ask: Ask, progress: Progress = SILENT) -> Reproduction:
    """Ask what a manifest describes again, and compare the answer with the report beside it.

    Parameters
    ----------
    path : Path
        The manifest.
    ask : callable
        Understands a command line.
    progress : Progress, optional
        Told of the steps of the answer.

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
    return _compare(manifest, old, *answered_again(manifest, ask, progress))


def answered_again(manifest: Manifest, ask: Ask, progress: Progress) -> tuple[dict[str, bytes], dict[str, Any]]:
    """The files that the same question leaves behind today, by relative path, and what its manifest says.

    Nothing is written.

    Raises
    ------
    InputFileError
        If the study or its scenario cannot be found, or is another study than that of the manifest.
    ValueError
        If a data file is missing or another one.
    """
    if manifest.script:
        line = shlex.join([*manifest.command, "--out", "FOLDER"])
        raise InputFileError(f"{manifest.path.as_posix()}: a script of the repository makes this report: run {line}")
    path = _find_study(manifest)
    _check_data(manifest, path)
    with tempfile.TemporaryDirectory(prefix="policysim-") as temporary:
        # A study is called what its file is called.
        study = copy_under_its_name(path, manifest, Path(temporary))
        first, _, *options = manifest.command
        try:
            question, wanted = ask([first, str(study), *options])
        except SystemExit:  # argparse's own way to refuse
            line = shlex.join(["policysim", *manifest.command])
            raise InputFileError(f"{manifest.path.as_posix()}: command cannot be run: {line}") from None
        answer = question.answer(progress)
        files = folder_files(answer, manifest.command, wanted, manifest.folder, progress)
        return files, manifest_of(answer, manifest.command, files)


def _find_study(manifest: Manifest) -> Path:
    """The file of the study, checked."""
    path = manifest.folder / STUDY
    if not path.exists():
        if manifest.name not in study_names():
            raise InputFileError(
                f"{manifest.path.as_posix()}: its study {manifest.name} is not built in, and there is no {STUDY} "
                "beside it; put the study there, with the files that it names"
            )
        path = study_path(manifest.name)
    try:
        found = digest(path.read_text(encoding="utf-8-sig").encode())
    except (OSError, UnicodeDecodeError):
        raise InputFileError(f"{path.as_posix()}: cannot be read") from None
    if found != manifest.study_digest:
        raise InputFileError(
            f"{path.as_posix()}: is not the study of {manifest.path.as_posix()}: "
            f"SHA-256 {short(found)}, there {short(manifest.study_digest)}"
        )
    return path


def _check_data(manifest: Manifest, study: Path) -> None:
    """The data files are those of the manifest, which has them by name, wherever the study says that they are."""
    files = named_files(study)
    places = {path.name: path for path in files.values()}
    many = dict([parts_digest(tuple(files.values()))]) if len(manifest.data) == 1 and len(files) > 1 else {}
    for name, wanted in manifest.data.items():
        path = places.get(name, manifest.folder / name)
        if name not in many and not path.is_file():
            raise ValueError(f"{path.as_posix()}: the data file of {manifest.path.as_posix()} is missing")
        found = many.get(name) or file_digest(path)
        if found != wanted:
            raise ValueError(
                f"{path.as_posix()}: is not the data of {manifest.path.as_posix()}: "
                f"SHA-256 {short(found)}, there {short(wanted)}"
            )


def short(text: str) -> str:
    """A version as it is, a digest by its beginning."""
    return text if len(text) <= 20 else f"{text[:12]}…"


def _compare(
    manifest: Manifest, old: Mapping[str, TextRows], files: Mapping[str, bytes], document: Mapping[str, Any]
) -> Reproduction:
    results = document["results"]
    tables = {name: as_written(content) for name, content in files.items() if name.endswith(".csv")}
    found: list[CellDifference] = []
    for name in dict.fromkeys([*old, *tables]):
        if name in old and name in tables:
            found += differences(name, old[name], tables[name])
        else:
            found.append(CellDifference(name, 0, {}, "file", *_there(name in old), *_there(name in tables)))
    others = [name for name in dict.fromkeys([*manifest.results, *results]) if not name.endswith(".csv")]
    as_said = [name for name in others if manifest.results.get(name) == results.get(name)]
    missing, edited = _spoiled(manifest)
    return Reproduction(
        manifest=manifest,
        n_numbers={name: table.n_numbers for name, table in old.items()},
        differences=tuple(found),
        statements=tuple(statements(manifest.document, document)),
        same_bytes=tuple(name for name in as_said if name not in (*missing, *edited)),
        other_bytes=tuple(name for name in others if name not in as_said),
        edited=tuple(edited),
        missing=tuple(missing),
        inputs={
            name: (then, now)
            for name, now in _inputs(document).items()
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
