"""Write requirements/*.txt: what CI installs, each package in one version and with the hashes of the files that may be.

`lowest.txt` is of the lowest versions that pyproject.toml allows (lowest.py), for the first interpreter; all others of
those in constraints.txt.
`python .ci/hashes.py python3.11 python3.12 python3.13` asks pip, for each of these interpreters, which files it would
install; nothing is installed. Hashes are of files for the system on which this runs.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
# By file: which extra, which files it adds to, and what else; the backend of the build and its needs come first.
SETS = {
    "build": ("", (), ("hatchling", "editables")),
    "report": ("", (), ()),
    "all": ("all", ("report",), ()),
    "test": ("test", ("all",), ()),
    "docs": ("all,docs", ("all",), ()),
    "dev": ("dev", ("test", "docs"), ()),
    "lowest": ("all", (), ("pytest", "pytest-xdist", "hypothesis")),
}
HEAD = "# Made by .ci/hashes.py of pyproject.toml and constraints.txt: make it again when one of them changes.\n"


def resolved(python: str, wanted: list[str], constraints: Path) -> dict[str, tuple[str, str]]:
    """What pip would install with an interpreter: by name, the version and the SHA-256 of the file."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        report, pip = Path(folder) / "report.json", [f"{folder}/bin/python", "-m", "pip", "install", "--quiet"]
        options = ["--disable-pip-version-check", "--dry-run", "--ignore-installed", "--report", str(report)]
        environment = {**os.environ, "PIP_CONSTRAINT": str(constraints)}
        subprocess.run([*pip, *options, *wanted], check=True, cwd=ROOT, env=environment)
        found = json.loads(report.read_text(encoding="utf-8"))["install"]
    files = {each["metadata"]["name"]: (each["metadata"]["version"], each["download_info"]) for each in found}
    return {
        name: (version, info["archive_info"]["hashes"]["sha256"])
        for name, (version, info) in files.items()
        if "archive_info" in info
    }


def lines(found: dict[str, dict[str, tuple[str, str]]]) -> list[str]:
    """A line for each package, of what each Python installs."""
    packages: defaultdict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for python, installed in found.items():
        for name, each in installed.items():
            packages[name][python] = each
    told = []
    for name, of in sorted(packages.items(), key=lambda item: item[0].lower()):
        versions = {version for version, _ in of.values()}
        if len(versions) > 1:
            raise SystemExit(f"{name}: {', '.join(sorted(versions))}: constraints must name one version")
        marker = "" if len(of) == len(found) else " or ".join(f'python_version == "{python}"' for python in of)
        hashes = " ".join(f"--hash=sha256:{digest}" for digest in sorted({digest for _, digest in of.values()}))
        told.append(f"{name}=={versions.pop()}{f' ; {marker}' if marker else ''} {hashes}\n")
    return told


def main(pythons: list[str]) -> None:
    """Ask pip for each set, and write the files."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    told = {
        subprocess.run([python, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout.strip(): python
        for python in pythons
    }
    written: dict[str, list[str]] = {}
    (ROOT / "requirements").mkdir(exist_ok=True)
    for name, (extras, bases, others) in SETS.items():
        wanted = [*others] if name == "build" else [f".[{extras}]" if extras else ".", *others]
        constraints = ROOT / "constraints.txt"
        with tempfile.NamedTemporaryFile("w") as lowest:
            asked = told
            if name == "lowest":  # for which later interpreters have no files yet
                subprocess.run([sys.executable, ROOT / ".ci" / "lowest.py"], check=True, stdout=lowest)
                constraints, asked = Path(lowest.name), dict([next(iter(told.items()))])
            everything = lines({version: resolved(python, wanted, constraints) for version, python in asked.items()})
        known = {line for base in bases for line in written[base]}
        written[name] = [*known, *(line for line in everything if line not in known)]
        own = [line for line in everything if line not in known]
        text = HEAD + "".join(f"-r {base}.txt\n" for base in bases) + "".join(own)
        (ROOT / "requirements" / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:] or [sys.executable])
