"""A manifest.json read and checked, and the files that its study names."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from envs.toml_reader import InputFileError, dotted, one_line, peek, unseen
from policysim.files.many_files import is_many, parts_of
from policysim.report.deliver import MANIFEST
from policysim.study.study_file import STUDY

COMMAND = "compare"
# A report of an experiment names the script that makes it: a file of the repository, run from there.
SCRIPT_COMMAND, SCRIPT = "python", re.compile(r"examples/\w+\.py")


@dataclass(frozen=True)
class Manifest:
    """What a run wrote down about itself.

    Attributes
    ----------
    path : Path
        The file.
    document : mapping
        All of it.
    name, study_digest : str
        The study, and the SHA-256 of its file.
    command : tuple of str
        The command line, without the program's name and without --out.
    results : mapping of relative path to str
        The SHA-256 of each file that the run made, in the order of the page.
    data : mapping of path to str
        The SHA-256 of each data file that the study names.
    """

    path: Path
    document: Mapping[str, Any]
    name: str
    study_digest: str
    command: tuple[str, ...]
    results: Mapping[str, str]
    data: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """Where the report is."""
        return self.path.parent

    @property
    def script(self) -> str:
        """The script that makes it, "" if `policysim compare` does."""
        return self.command[1] if self.command[0] == SCRIPT_COMMAND else ""

    @property
    def tables(self) -> list[str]:
        """The CSV files among the results."""
        return [name for name in self.results if name.endswith(".csv")]


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; InputFileError, in one line, for anything that is not one."""
    document = _read_json(path)
    for key, sign in unseen(document):
        raise _no_manifest(path, one_line(f"{dotted(key)} holds U+{ord(sign):04X}, which is not seen"))
    study, command = document.get("study"), document.get("command")
    if not isinstance(study, dict) or not _is_name(study.get("name")) or not isinstance(study.get("sha256"), str):
        raise _no_manifest(path, "study must have a name and a sha256")
    if not isinstance(command, list) or len(command) < 2 or not _all_text(command) or not _is_known(command):
        raise _no_manifest(path, f'command must be a list like ["{COMMAND}", "{study["name"]}"]')
    results, data = _digests(document, "results", path), _digests(document, "data", path)
    found = Manifest(path, document, study["name"], study["sha256"], tuple(command), results, data)
    if not found.tables:
        raise _no_manifest(path, "results must name a CSV file")
    return found


def _read_json(path: Path) -> dict[str, Any]:
    if (path / MANIFEST).is_file():
        hint = (path / MANIFEST).as_posix()
        raise InputFileError(f"{path.as_posix()} is a folder: did you mean {hint}?", located=False)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputFileError(f"{path.as_posix()}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputFileError(f"{path.as_posix()}: must be UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise InputFileError(f"{path.as_posix()}: is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise _no_manifest(path, "it is not a table of names and values")
    return document


def _no_manifest(path: Path, why: str) -> InputFileError:
    return InputFileError(f"{path.as_posix()}: is not a manifest of policysim {COMMAND}: {why}")


def _is_name(value: object) -> bool:
    return isinstance(value, str) and value not in ("", "..") and PurePosixPath(value).name == value


def _is_known(command: list[str]) -> bool:
    return command[0] == COMMAND or (command[0] == SCRIPT_COMMAND and SCRIPT.fullmatch(command[1]) is not None)


def _all_text(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _digests(document: dict[str, Any], key: str, path: Path) -> dict[str, str]:
    """Digests by paths that stay below their folder; none if the key is absent."""
    values = document.get(key, {})
    if not isinstance(values, dict) or not all(
        isinstance(value, str) and _stays_below(name) for name, value in values.items()
    ):
        raise _no_manifest(path, f"{key} must be a table of relative paths and their SHA-256")
    return values


def _stays_below(name: str) -> bool:
    return not PurePosixPath(name).is_absolute() and ".." not in PurePosixPath(name).parts


def named_files(study: Path) -> dict[str, Path]:
    """What a study file names, a scenario of its own or data: as it is written there, and where it is.

    Of a folder or a pattern these are its files.
    """
    file, scenario = peek(study, "data", "file"), peek(study, "scenario")
    names: list[Any] = [
        *([scenario] if str(scenario).endswith(".toml") else []),
        *(file.values() if isinstance(file, dict) else file if isinstance(file, list) else [file]),
    ]
    found: dict[str, Path] = {}
    for name in names:
        if isinstance(name, str) and is_many(study.parent / name):
            folder = Path(name) if (study.parent / name).is_dir() else Path(name).parent
            found |= {(folder / part.name).as_posix(): part for part in parts_of(study.parent / name)}
        elif isinstance(name, str):
            found[name] = study.parent / name
    return found


def copy_under_its_name(study: Path, manifest: Manifest, folder: Path) -> Path:
    """Copy a study, with the files that it names, to where it is called what it was called: its report shows that.

    Of a log in many files, which may be large, there are links.

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
    file = peek(study, "data", "file")
    put = _link if isinstance(file, list) or (isinstance(file, str) and is_many(study.parent / file)) else _copy
    for name, source in files.items():
        if not source.is_file():
            raise InputFileError(f"{source.as_posix()}: is missing; {study.as_posix()} names it")
        if not Path(name).is_absolute():
            put(source, copy.parent / name)
    return copy


def _file_name(manifest: Manifest) -> str:
    """A file's name under which the study has its old name, and without a title of its own its old title."""
    return STUDY if manifest.document["study"].get("title") == Path(STUDY).stem else f"{manifest.name}.toml"


def _link(source: Path, link: Path) -> None:
    """A link to a file; a copy where the system has none."""
    link.parent.mkdir(parents=True, exist_ok=True)
    try:
        link.symlink_to(source.resolve())
    except OSError:
        shutil.copyfile(source, link)


def _copy(source: Path, copy: Path) -> None:
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, copy)
