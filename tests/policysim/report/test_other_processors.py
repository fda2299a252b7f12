"""A report that is there already stays as it is where another processor's rounding is all that differs.

NumPy's exp and log differ in the last bit with and without AVX-512: simulated here, the same input always giving the
same output, so that what is equal stays equal.
"""

import io
import shutil

import numpy as np
import pandas as pd
import pytest
from drawings import draw_only
from small_studies import STUDY, write_small_study

import policysim as ps
from policysim.cli.main import main
from policysim.numbers import to_csv
from policysim.report.differences import same_numbers

ULP = 2.0**-52


def other_processor(function):
    """An elementary function whose last bit is another one for about two inputs of three."""

    def nudged(x, *arguments, **options):
        found = function(x, *arguments, **options)
        bits = np.asarray(x, dtype=float).view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        steps = (bits >> np.uint64(32)).astype(np.int64) % 3 - 1
        if isinstance(found, np.ndarray):
            found *= 1 + ULP * steps
            return found
        return found * (1 + ULP * float(steps))

    return nudged


def contents(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.*")}


def times(folder):
    return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in folder.rglob("*.*")}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    text = STUDY.replace('"randomized-response"]', '"randomized-response", "optimal"]')
    return write_small_study(tmp_path_factory.mktemp("study"), text)


@pytest.fixture(scope="module")
def blank(study, tmp_path_factory):
    """A report whose drawings are blank: which files are written again does not depend on what is drawn."""
    out = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        assert main(["compare", str(study), "--out", str(out)]) == 0
    return out


@pytest.fixture
def on_another_processor(monkeypatch):
    for name in ("exp", "log"):
        monkeypatch.setattr(np, name, other_processor(getattr(np, name)))


def test_the_files_of_another_processor_agree_with_those_that_are_there(study, tmp_path, request, draw_only):
    draw_only("frontier", "loss-by-group")
    here, there = tmp_path / "here", tmp_path / "there"
    asked = ["compare", str(study), "--format", "svg", "--out"]
    assert main([*asked, str(here)]) == 0
    utilities = ps.build_problem(ps.load_study(study)).utilities
    request.getfixturevalue("on_another_processor")
    # Its own numbers are others in their last digits, or nothing is tested.
    assert 0 < np.abs(ps.build_problem(ps.load_study(study)).utilities - utilities).max() < 1e-12
    assert main([*asked, str(there)]) == 0
    found = contents(there)
    assert set(found) == set(contents(here))
    tables = {name: content for name, content in contents(here).items() if name.endswith(".csv")}
    assert len(tables) > 3
    assert all(same_numbers(content, found[name]) for name, content in tables.items())
    # The rest is the same to the byte, but for the digests of tables.
    other = [name for name, content in contents(here).items() if found[name] != content and name not in tables]
    assert other == ["manifest.json"]


@pytest.mark.usefixtures("blank_drawings", "on_another_processor")
def test_another_processor_writes_no_file_again(study, blank):
    before, written = contents(blank), times(blank)
    assert main(["compare", str(study), "--out", str(blank)]) == 0
    assert contents(blank) == before
    assert times(blank) == written


@pytest.mark.usefixtures("blank_drawings")
def test_what_does_differ_is_written(study, blank, tmp_path):
    out = shutil.copytree(blank, tmp_path / "out")
    text = (out / "comparison.csv").read_text()
    table = pd.read_csv(io.StringIO(text))
    table.loc[3, "value"] *= 1 + 1e-6
    (out / "comparison.csv").write_bytes(to_csv(table))
    assert main(["compare", str(study), "--out", str(out)]) == 0
    assert (out / "comparison.csv").read_text() == text


def test_bounds_are_rounded_so_that_they_claim_less():
    rng = np.random.default_rng(1)
    values = 10.0 ** rng.uniform(-14, 3, 500)
    table = pd.DataFrame({"least_loss": values, "most_kept": values, "value": values})
    read = pd.read_csv(io.BytesIO(to_csv(table)))
    assert (read["least_loss"] <= values).all()
    assert (read["most_kept"] >= values).all()
    for name in ("least_loss", "most_kept", "value"):
        np.testing.assert_allclose(read[name], values, rtol=1.01e-7, atol=1.01e-12)
