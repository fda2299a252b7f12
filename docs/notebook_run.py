"""Run the cells of docs/notebook.ipynb and keep what they print: `python docs/notebook_run.py` writes it anew."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).with_name("notebook.ipynb")


def printed(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of a cell: what it prints, and its last expression as text and, if it has one, as HTML."""
    *body, last = ast.parse(source).body
    stream, shown = io.StringIO(), None
    with contextlib.redirect_stdout(stream):
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(body, []), "cell", "exec"), names)
            shown = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
        else:
            exec(compile(ast.Module([*body, last], []), "cell", "exec"), names)
    outputs: list[dict[str, Any]] = []
    if stream.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": stream.getvalue().splitlines(keepends=True)})
    if shown is not None:
        text = {"text/plain": repr(shown).splitlines(keepends=True)}
        outputs.append({"data": text, "metadata": {}, "output_type": "execute_result"})
    return outputs


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of its cells, run from the first to the last."""
    names: dict[str, Any] = {}
    cells = []
    for count, cell in enumerate(notebook["cells"], start=1):
        if cell["cell_type"] != "code":
            cells.append(cell)
            continue
        outputs = printed("".join(cell["source"]), names)
        for output in outputs:
            if output["output_type"] == "execute_result":
                output["execution_count"] = count
        cells.append({**cell, "execution_count": count, "outputs": outputs})
    return {**notebook, "cells": cells}


if __name__ == "__main__":
    made = run(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    NOTEBOOK.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
