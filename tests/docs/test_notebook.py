"""The notebook: each cell runs, and prints what the file shows."""

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = runpy.run_path(str(ROOT / "docs" / "notebook_run.py"))


def test_every_cell_prints_what_the_notebook_shows():
    notebook = json.loads(SCRIPT["NOTEBOOK"].read_text(encoding="utf-8"))
    again = SCRIPT["run"](notebook)
    for cell, made in zip(notebook["cells"], again["cells"], strict=True):
        assert made.get("outputs") == cell.get("outputs"), "".join(cell["source"])
    assert sum(cell["cell_type"] == "code" and bool(cell["outputs"]) for cell in again["cells"]) >= 6


def test_a_cell_that_prints_something_else_would_be_found():
    names = {}
    assert SCRIPT["printed"]("x = 2\nx + 1", names)[0]["data"] == {"text/plain": ["3"]}
    assert SCRIPT["printed"]("print(x)", names)[0]["text"] == ["2\n"]
    assert SCRIPT["printed"]("y = x", names) == []
