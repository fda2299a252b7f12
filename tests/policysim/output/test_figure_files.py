"""--format and --figure-size: which files appear, what they are, and what is refused."""

import re
import struct

import pytest
from policysim.output.deliver import FigureFiles
from policysim.output.manifest import read_manifest
from small_studies import STUDY, write_small_study

from policysim.cli.main import main
from policysim.figures import SIZES

DRAWN = "benefit-vs-lead"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return str(write_small_study(tmp_path_factory.mktemp("study"), STUDY.replace("[0.5, 1.0, 4.0]", "[0.5, 1.0]")))


@pytest.fixture(autouse=True)
def one_drawing(draw_only):
    """One figure is drawn and the others are blank: their files are made all the same."""
    draw_only(DRAWN)


def figures_of(folder):
    return {path.name: path.read_bytes() for path in (folder / "figures").iterdir()}


def test_only_the_kinds_asked_for_are_written(study, tmp_path, capsys):
    assert main(["compare", study, "--format", "pdf,svg", "--out", str(tmp_path)]) == 0
    found = figures_of(tmp_path)
    assert {name.rsplit(".")[-1] for name in found} == {"svg", "pdf"}
    assert all(content.startswith(b"%PDF") for name, content in found.items() if name.endswith("pdf"))
    assert (tmp_path / "report.html").exists()
    capsys.readouterr()


def test_a_column_is_narrower_than_a_slide_and_the_page_is_the_same(study, tmp_path, capsys):
    pages = set()
    widths = {}
    for size in ("column", "slide"):
        folder = tmp_path / size
        assert main(["compare", study, "--format", "png", "--figure-size", size, "--out", str(folder)]) == 0
        page = (folder / "report.html").read_text(encoding="utf-8")
        # The command that made it is all that differs.
        asked = f" --figure-size {size}"
        assert f"--format png{asked}</code>" in page
        pages.add(page.replace(asked, ""))
        image = (folder / "figures" / f"{DRAWN}.png").read_bytes()
        # The header of a PNG: width and height in dots; its dots per metre are in the pHYs chunk.
        (dots,) = struct.unpack(">I", image[16:20])
        (per_metre,) = struct.unpack(">I", image[image.index(b"pHYs") + 4 :][:4])
        widths[size] = dots / per_metre / 0.0254
    assert len(pages) == 1
    assert widths["column"] == pytest.approx(85 / 25.4, abs=0.02)
    assert widths["slide"] == pytest.approx(13.33, abs=0.02)
    capsys.readouterr()


def test_the_figures_named_are_drawn_and_no_others_and_the_manifest_keeps_their_names(study, tmp_path, capsys):
    wanted = ["compare", study, "--format", "svg", "--figures", f"{DRAWN},frontier"]
    assert main([*wanted, "--out", str(tmp_path / "some")]) == 0
    assert set(figures_of(tmp_path / "some")) == {f"{DRAWN}.svg", "frontier.svg"}
    page = (tmp_path / "some" / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<figure id="([^"]+)"', page) == ["frontier", DRAWN]
    assert f"--format svg --figures {DRAWN},frontier</code>" in page
    found = read_manifest(tmp_path / "some" / "manifest.json")
    assert found.figures == FigureFiles(("svg",), "page", (DRAWN, "frontier"))
    capsys.readouterr()
    assert main(["compare", study, "--figures", "histogram", "--out", str(tmp_path / "none")]) == 2
    assert re.search(
        rf"--figures: must be among frontier, .*{DRAWN}, .*, separated by commas, got 'histogram'",
        capsys.readouterr().err,
    )
    assert not (tmp_path / "none").exists() or not list((tmp_path / "none").iterdir())


ALLOWED = {"--format": "svg, png, pdf", "--figure-size": ", ".join(SIZES)}


@pytest.mark.parametrize(("option", "value"), [("--format", "jpg"), ("--format", ""), ("--figure-size", "a4")])
def test_what_does_not_exist_is_refused(study, tmp_path, capsys, option, value):
    assert main(["compare", study, option, value, "--out", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert option in error
    assert ALLOWED[option] in error
    assert repr(value) in error
    assert not (tmp_path / "out").exists()
