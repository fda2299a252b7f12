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


def test_a_text_has_its_heading_and_its_first_sentence(tmp_path):
    folder = tmp_path / "lesson"
    folder.mkdir()
    (folder / "README.md").write_text("# Is it so?\n\n- At ε = 0.5 it\n  is. More.\n", encoding="utf-8")
    line = runpy.run_path(str(REPORTS / "index.py"))["line"]
    assert line(folder) == "- [Is it so?](lesson/README.md): At ε = 0.5 it is."


def test_a_page_has_its_title_and_its_advice(tmp_path):
    head = '<meta name="description" content="Choose A if so. Else B.">\n<meta name="x">\n<title>A &amp; B</title>'
    (tmp_path / "report.html").write_text(head, encoding="utf-8")
    line = runpy.run_path(str(REPORTS / "index.py"))["line"]
    assert line(tmp_path) == f"- [A & B]({tmp_path.name}/report.html): Choose A if so. Else B."
