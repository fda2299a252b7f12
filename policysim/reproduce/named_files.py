"""The files that a study names, and a copy of them all under the study's old name."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import Any

from envs.toml_reader import InputFileError
from policysim.reproduce.manifest import STUDY
from policysim.reproduce.reading import Manifest


def named_files(study: Path) -> dict[str, Path]:
    """What a study file names, a scenario of its own or data: as it is written there, and where it is."""
    try:
        document = tomllib.loads(study.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError:
        return {}  # reading the study says what is wrong
    data = document.get("data")
    file = data.get("file") if isinstance(data, dict) else None
    scenario = document.get("scenario")
    names: list[Any] = [
        *([scenario] if str(scenario).endswith(".toml") else []),
        *(file.values() if isinstance(file, dict) else [file]),
    ]
    return {name: study.parent / name for name in names if isinstance(name, str)}


def copy_under_its_name(study: Path, manifest: Manifest, folder: Path) -> Path:
    """Copy a study, with the files that it names, to where it is called what it was called: its report shows that.

    Raises
    ------
    InputFileError
        If a file that it names is missing.
    """
    files = named_files(study)
    # As deep as "../" in a name may climb.
    climbs = max((Path(name).parts.count("..") for name in files), default=0)
    copy = folder.joinpath(*["study"] * (climbs + 1), manifest.name, _file_name(manifest))
    _copy(study, copy)
    for name, source in files.items():
        if not source.is_file():
            raise InputFileError(f"{source.as_posix()}: is missing; {study.as_posix()} names it")
        if not Path(name).is_absolute():
            _copy(source, copy.parent / name)
    return copy


def _file_name(manifest: Manifest) -> str:
    """A file's name under which the study has its old name, and without a title of its own its old title."""
    return STUDY if manifest.document["study"].get("title") == Path(STUDY).stem else f"{manifest.name}.toml"


def _copy(source: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, copy)
