"""The same command on the same study, into another folder."""

from __future__ import annotations

import argparse
import contextlib
import io
import shlex
from collections.abc import Callable
from pathlib import Path

from envs.toml_reader import InputFileError
from policysim.parsers import build_parser
from policysim.reproduce.manifest import STUDY, digest, file_digest
from policysim.reproduce.named_files import copy_under_its_name, named_files
from policysim.reproduce.reading import Manifest
from policysim.study_file import study_names, study_path


def arguments_of(manifest: Manifest, study: Path | str, out: Path) -> list[str]:
    """The command line of a manifest, on a study that is found here and into a folder."""
    first, _, *options = manifest.command
    return [first, str(study), *options, "--out", str(out)]


def run_again(manifest: Manifest, folder: Path, run: Callable[[argparse.Namespace], int]) -> Path:
    """Run what a manifest describes; its progress is shown, what it prints is not.

    Parameters
    ----------
    manifest : Manifest
        Its study is the study.toml beside it, or else the built-in one of that name.
    folder : Path
        For the new files; must be empty.
    run : callable
        Runs a command line that is understood.

    Returns
    -------
    Path
        The folder below it that holds the new report.

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
    out = folder / "out"
    arguments = arguments_of(manifest, copy_under_its_name(path, manifest, folder), out)
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            with contextlib.redirect_stderr(io.StringIO()):
                chosen = build_parser().parse_args(arguments)
        except SystemExit:  # argparse's own way to refuse
            line = shlex.join(["policysim", *manifest.command])
            raise InputFileError(f"{manifest.path.as_posix()}: command cannot be run: {line}") from None
        run(chosen)
    return out


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
            f"SHA-256 {_short(found)}, there {_short(manifest.study_digest)}"
        )
    return path


def _check_data(manifest: Manifest, study: Path) -> None:
    """The data files are those of the manifest, which has them by name, wherever the study says that they are."""
    places = {path.name: path for path in named_files(study).values()}
    for name, wanted in manifest.data.items():
        path = places.get(name, manifest.folder / name)
        if not path.is_file():
            raise ValueError(f"{path.as_posix()}: the data file of {manifest.path.as_posix()} is missing")
        found = file_digest(path)
        if found != wanted:
            raise ValueError(
                f"{path.as_posix()}: is not the data of {manifest.path.as_posix()}: "
                f"SHA-256 {_short(found)}, there {_short(wanted)}"
            )


def _short(text: str) -> str:
    return f"{text[:12]}…"
