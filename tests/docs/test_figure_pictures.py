"""docs/figures.md has a picture for each figure, docs/exponential.md two of its own, and a script draws them all."""

import importlib.util
import inspect
import re
from io import BytesIO
from pathlib import Path

import pytest
from matplotlib.image import imread

from policysim import figures

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "figures.md").read_text()


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("draw_figures", DOCS / "figures" / "draw.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_function_that_draws_has_a_picture_and_a_call_on_the_page(script):
    drawing = {
        name for name in figures.__all__
        if callable(drawn := getattr(figures, name)) and "paper" in inspect.signature(drawn).parameters
    }  # fmt: skip
    assert drawing == set(script.FIGURES)
    assert re.findall(r"!\[[^\]]{40,}\]\(figures/(\w+)\.png\)", PAGE).__len__() == len(drawing)
    for name in drawing:
        assert f"`figures.{name}(" in PAGE
        assert f"(figures/{name}.png)" in PAGE


def test_pictures_are_small_and_there_are_no_others(script):
    pictures = {path.stem: path.stat().st_size for path in (DOCS / "figures").glob("*.png")}
    assert set(pictures) == set(script.FIGURES | script.EXPLANATIONS)
    assert max(pictures.values()) <= 40_000


def test_each_explaining_picture_stands_on_its_page(script):
    page = (DOCS / "exponential.md").read_text()
    assert set(re.findall(r"!\[[^\]]{40,}\]\(figures/(\w+)\.png\)", page)) == set(script.EXPLANATIONS)


def test_the_script_draws_what_it_is_asked_for(script, tmp_path):
    script.draw(tmp_path, ["price_bars", "ways_over_days"])
    for path in tmp_path.iterdir():
        assert imread(BytesIO(path.read_bytes())).shape[1] > 400
    assert {path.stem for path in tmp_path.iterdir()} == {"price_bars", "ways_over_days"}


def test_the_lines_of_python_on_the_page_run(monkeypatch):
    monkeypatch.chdir(DOCS.parent)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    assert str(names["svg"]).startswith("<?xml")
