"""Write README.md beside this file: each report with a link and its first sentence. `python reports/index.py`."""

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
# The title of a page and the advice on it; the heading of a text and the first sentence below it.
FIRST = {
    "report.html": r'<meta name="description" content="(?P<says>.*?)">.*?<title>(?P<title>.*?)</title>',
    "README.md": r"^# (?P<title>[^\n]*)\n\n(?:- )?(?P<says>.*?[.?!])\s",
}


def line(folder: Path) -> str:
    """The line of a report, a page or a text."""
    name = next(name for name in FIRST if (folder / name).exists())
    found = re.search(FIRST[name], (folder / name).read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"{folder / name} has no title, or nothing below it"
    title, says = (" ".join(html.unescape(found[part]).split()) for part in ("title", "says"))
    return f"- [{title}]({folder.name}/{name}): {says}"


if __name__ == "__main__":
    lines = [line(folder) for folder in sorted(REPORTS.iterdir()) if folder.is_dir()]
    (REPORTS / "README.md").write_text("\n".join([HEAD, *lines, ""]), encoding="utf-8")
