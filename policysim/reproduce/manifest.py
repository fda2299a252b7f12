"""What every manifest.json says besides the study: the command, and the digest of each file that was made."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from envs.scenario_file import FOLDER as SCENARIOS
from policysim.study import ScenarioStudy
from policysim.study_file import study_names

MANIFEST, STUDY = "manifest.json", "study.toml"
# What to run, and what changes no number; everything else that a command was given belongs to it.
APART = ("command", "study", "out", "json")


def finished(files: Mapping[str, bytes], chosen: argparse.Namespace) -> dict[str, bytes]:
    """The files of a report, the manifest among them completed: `command`, and `results`, the SHA-256 of the others.

    Parameters
    ----------
    files : mapping of relative path to bytes
        All of a report, in the order of the page; the study itself has its digest elsewhere in the manifest.
    chosen : argparse.Namespace
        The command line that it was made with.
    """
    results = {name: digest(content) for name, content in files.items() if name not in (MANIFEST, STUDY)}
    manifest = {"command": study_command(chosen), **json.loads(files[MANIFEST]), "results": results}
    return {**files, MANIFEST: (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()}


def study_command(chosen: argparse.Namespace) -> list[str]:
    """The command line that means the same in any folder: without --out, own studies as the study.toml beside.

    Examples
    --------
    >>> study_command(argparse.Namespace(command="compare", study="covid", seed=0, by=["age", "sex"], price_list=True))
    ['compare', 'covid', '--seed', '0', '--by', 'age', '--by', 'sex', '--price-list']
    """
    words = [chosen.command, chosen.study if chosen.study in study_names() else STUDY]
    for name, value in vars(chosen).items():
        if name in APART or value is None or value is False:
            continue
        option = f"--{name.replace('_', '-')}"
        for item in value if isinstance(value, list) else [value]:
            words += [option] if item is True else [option, str(item)]
    return words


def digest(content: bytes) -> str:
    """SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file of any size."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def scenario_digest(study: ScenarioStudy) -> str:
    """SHA-256 of the scenario's file, which the study only names; of its text, as that of the study is."""
    source = study.scenario_source
    path = Path(source) if source.endswith(".toml") else SCENARIOS / f"{source}.toml"
    return digest(path.read_text(encoding="utf-8-sig").encode())
