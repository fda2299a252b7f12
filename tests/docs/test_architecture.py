"""docs/architecture.md: the ways of a number through the house lead through functions that exist."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text(encoding="utf-8")
STEP = re.compile(r"^\d+\. `(\w+)` in `([\w/]+)\.py`", flags=re.MULTILINE)


def steps(title):
    """The function and the module of each step of a section; modules of policysim may go without its name."""
    section = PAGE.split(f"## {title}\n")[1].split("\n## ")[0]
    return STEP.findall(section)


@pytest.mark.parametrize(
    ("title", "most"),
    [
        ("One number, from the scenario's file to comparison.csv", 9),
        ("One number, from its formula to the screen", 8),
    ],
)
def test_a_number_goes_through_few_functions_and_all_exist(title, most):
    found = steps(title)
    assert 5 <= len(found) <= most
    for function, path in found:
        package = path.split("/")[0]
        name = (
            path.replace("/", ".")
            if package in {"envs", "policies", "policysim"}
            else f"policysim.{path.replace('/', '.')}"
        )
        assert hasattr(import_module(name), function), (function, path)
