"""A report of each kind without a script and on paper: all of it is still there."""

import pytest

# A4 (210 mm) less margins of 10 mm at 96 px an inch.
PAPER = 718
WIDE = 1400
pytestmark = pytest.mark.usefixtures("of_each_kind")


@pytest.fixture(scope="module")
def opened(open_page, report):
    with open_page(report, WIDE) as visit:
        yield visit


@pytest.fixture(scope="module")
def on_screen(opened):
    return opened.measure("outline")


def lost(before, after):
    """What could be read before and cannot any more."""
    return [words for part in ("headings", "rows", "paragraphs") for words in before[part] if words not in after[part]]


def test_a_page_reads_in_full_without_a_script(open_page, report, on_screen):
    with open_page(report, WIDE, script=False) as visit:
        outline = visit.measure("outline")
    assert outline["empty"] == []
    assert lost(on_screen, outline) == []
    assert outline["figures"] == on_screen["figures"]


def test_a_page_reads_in_full_in_print(opened, on_screen):
    opened.resize(PAPER)
    opened.page.emulate_media(media="print")
    outline = opened.measure("outline")
    layout = opened.layout()
    assert lost(on_screen, outline) == []
    assert outline["figures"] == on_screen["figures"]
    # Paper cannot be scrolled: what a box holds beyond its edge would be missing.
    beyond = layout["wide"] + layout["cut"] + layout["scrolled"]
    assert not beyond, "\n".join(["", *beyond])
