"""The list of all reports."""

import runpy
from pathlib import Path

REPORTS = Path(__file__).parents[2] / "reports"


def test_the_list_has_each_report_with_its_title_and_a_link_to_it():
    index = runpy.run_path(str(REPORTS / "index.py"))
    folders = [folder for folder in sorted(REPORTS.iterdir()) if folder.is_dir()]
    lines = (REPORTS / "README.md").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("- ")] == [index["line"](folder) for folder in folders]
    assert all(f"({folder.name}/" in line for folder, line in zip(folders, lines[-len(folders) :], strict=True))


def test_a_text_has_the_title_of_its_heading(tmp_path):
    folder = tmp_path / "lesson"
    folder.mkdir()
    (folder / "README.md").write_text("# What a lesson says\n\nMore.\n", encoding="utf-8")
    line = runpy.run_path(str(REPORTS / "index.py"))["line"]
    assert line(folder) == "- [What a lesson says](lesson/README.md)"
