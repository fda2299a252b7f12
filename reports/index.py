"""Write README.md beside this file: a line for each report, with its title and a link. `python reports/index.py`."""

from __future__ import annotations

import html
import re
from pathlib import Path

REPORTS = Path(__file__).parent
HEAD = """\
# Reports

`make reports` makes all of them again, and this list.
`policysim reproduce FOLDER/manifest.json` says whether the numbers of a report come out again.
"""
# The title of a page, or the heading of a text.
TITLES = {"report.html": r"<title>(.*?)</title>", "README.md": r"^# (.*)$"}


def line(folder: Path) -> str:
    """The line of a report, a page or a text."""
    name = next(name for name in TITLES if (folder / name).exists())
    title = re.search(TITLES[name], (folder / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert title, f"{folder / name} has no title"
    return f"- [{html.unescape(title[1])}]({folder.name}/{name})"


if __name__ == "__main__":
    lines = [line(folder) for folder in sorted(REPORTS.iterdir()) if folder.is_dir()]
    (REPORTS / "README.md").write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")
