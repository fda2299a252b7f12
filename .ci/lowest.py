"""Print constraints for pip: the lowest versions that pyproject.toml allows, and all else as in constraints.txt."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def name_of(line: str) -> str:
    """The package that a line is about, as pip compares names."""
    return re.sub(r"[-_.]+", "-", re.split(r"[=><\[]", line)[0].strip().lower())


project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
optional = project["optional-dependencies"]
extras = ("files", "trials", "days", "fast", "cluster")
asked = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
lowest = {name_of(line): line.replace(">=", "==") for line in asked if ">=" in line}
pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
rest = [line for line in pinned if not line.startswith("#") and name_of(line) not in lowest]
sys.stdout.writelines(f"{line}\n" for line in (*lowest.values(), *rest))
