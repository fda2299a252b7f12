"""What is printed of the built-in studies, of an example and of a problem of one's own: kept, and short."""

import pytest
import snapshots
from snapshots import SCREENS, report_of, texts

MAKE = "the screen changed: if it should, run `make snapshots` and read the change"


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_the_one_that_is_kept(name):
    for file, text in texts(name).items():
        assert text == (snapshots.FOLDER / file).read_text(encoding="utf-8"), MAKE


def test_every_snapshot_is_of_a_screen():
    kept = {path.name for path in snapshots.FOLDER.iterdir()}
    assert kept == {file for name in SCREENS for file in texts(name)}


def test_snapshots_are_not_written_where_changes_are_checked(monkeypatch, capsys):
    """Otherwise every change would pass: it would be compared with itself."""
    monkeypatch.setenv(snapshots.CHECKED, "1")
    assert snapshots.main() == 2
    assert "not written where changes are checked" in capsys.readouterr().err
    assert f"export {snapshots.CHECKED}=1" in (snapshots.ROOT / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_at_most_45_lines_of_100_columns(name):
    screen = report_of(name).screen
    lines = screen.text().splitlines()
    assert len(lines) <= 45 + len(screen.warnings)
    assert max(map(len, lines)) <= 100
    # Nor is "ε = 1" ever in two lines.
    assert not any(line.endswith("ε") for line in lines)


@pytest.mark.parametrize("name", SCREENS)
def test_what_is_called_better_has_that_verdict(name):
    findings = report_of(name).findings
    assert set(findings.differences["verdict"]) <= {"better", "worse", "equal", "not shown", ""}
    assert findings.options["option"].iloc[0] == "A"
