"""--format and --figure-size: which files appear, what they are, and what is refused."""

import re
import struct

import pytest
from small_studies import STUDY, write_small_study

from policysim.cli import compare_command
from policysim.cli.kinds import SCENARIO, figure_names
from policysim.cli.main import main
from policysim.report.reproduce import read_manifest

DRAWN = "frontier"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return str(write_small_study(tmp_path_factory.mktemp("study"), STUDY.replace("[0.5, 1.0, 4.0]", "[0.5, 1.0]")))


@pytest.fixture(autouse=True)
def one_drawing(draw_only, monkeypatch):
    """One figure is drawn and the others are blank: their files are made all the same. Few versions of the model."""
    draw_only(DRAWN)
    monkeypatch.setattr("policysim.decision.redraws.REDRAWS", 20)


def figures_of(folder):
    return {path.name: path.read_bytes() for path in (folder / "figures").iterdir()}


def test_only_the_kinds_asked_for_are_written(study, tmp_path, capsys):
    assert main(["compare", study, "--format", "pdf,svg", "--out", str(tmp_path)]) == 0
    found = figures_of(tmp_path)
    assert {name.rsplit(".")[-1] for name in found} == {"svg", "pdf"}
    assert all(content.startswith(b"%PDF") for name, content in found.items() if name.endswith("pdf"))
    assert (tmp_path / "report.html").exists()
    assert {name.rpartition(".")[0] for name in found} <= set(figure_names(SCENARIO))
    capsys.readouterr()


def test_a_column_is_narrower_than_a_slide_and_the_page_is_the_same(study, tmp_path, capsys):
    pages = set()
    widths = {}
    for size in ("column", "slide"):
        folder = tmp_path / size
        assert main(["compare", study, "--format", "png", "--figure-size", size, "--out", str(folder)]) == 0
        pages.add((folder / "report.html").read_text(encoding="utf-8"))
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
    wanted = ["--format", "svg", "--figures", f"loss-by-group,{DRAWN}"]
    assert main(["compare", study, *wanted, "--out", str(tmp_path / "some")]) == 0
    assert set(figures_of(tmp_path / "some")) == {f"{DRAWN}.svg", "loss-by-group.svg"}
    page = (tmp_path / "some" / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<figure id="([^"]+)"', page) == [DRAWN, "loss-by-group"]
    assert read_manifest(tmp_path / "some" / "manifest.json").arguments[2:] == tuple(wanted)
    capsys.readouterr()
    assert main(["reproduce", str(tmp_path / "some" / "manifest.json")]) == 0


@pytest.mark.parametrize("options", [[], ["--horizon", "2"]])
def test_an_unknown_figure_is_refused_before_anything_is_computed(study, tmp_path, capsys, monkeypatch, options):
    monkeypatch.setattr(compare_command, "report_of", None)
    assert main(["compare", study, *options, "--figures", "histogram", "--out", str(tmp_path / "none")]) == 2
    assert re.fullmatch(
        r"policysim: --figures: must be among \w.*, separated by commas, got 'histogram'\n", capsys.readouterr().err
    )
    assert not (tmp_path / "none").exists()


def test_a_report_replaces_no_file_that_no_report_wrote(study, tmp_path, capsys):
    own = tmp_path / "comparison.csv"
    own.write_text("my own table")
    assert main(["compare", study, "--format", "svg", "--out", str(tmp_path)]) == 2
    assert f"{own.as_posix()} is there already, and is not the one that" in capsys.readouterr().err
    assert (own.read_text(), [*tmp_path.iterdir()]) == ("my own table", [own])


def test_files_of_an_earlier_report_that_this_one_has_not_are_removed_unless_they_were_changed(study, tmp_path, capsys):
    asked = ["compare", study, "--out", str(tmp_path), "--format", "svg"]
    assert main([*asked, "--price-list", "--figures", f"loss-by-group,{DRAWN}"]) == 0
    (tmp_path / "notes.csv").write_text("my own notes")
    before = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
    changed = tmp_path / "figures" / "loss-by-group.svg"
    for edited in (False, True):
        if edited:
            assert main([*asked, "--price-list", "--figures", f"loss-by-group,{DRAWN}"]) == 0
            changed.write_text("<svg/>")
        assert main([*asked, "--figures", DRAWN]) == 0
        after = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
        gone = {"price-list.csv"} | (set() if edited else {"figures/loss-by-group.svg"})
        assert before - after == gone and after <= before
    assert main(["reproduce", str(tmp_path / "manifest.json")]) == 0
    capsys.readouterr()
