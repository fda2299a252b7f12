"""Every committed report, on a telephone and on a wide screen: it opens in peace and can be read."""

from itertools import pairwise

import pytest

MOST_BYTES = 400_000
# Sheets of A4 that a report takes at most: 5, and that of covid one less.
MOST_SHEETS = {"covid": 4}


def nothing(found):
    """What was found is what is wrong; the first of it is said."""
    found = list(dict.fromkeys(found))
    assert len(found) == 0, "\n".join(["", *found[:10], f"{len(found)} in all"])


def test_a_page_is_small(report):
    assert report.stat().st_size <= MOST_BYTES


@pytest.mark.usefixtures("of_each_kind")
def test_a_report_is_short_on_paper(open_page, report):
    with open_page(report, 1000) as visit:
        assert 1 <= visit.sheets() <= MOST_SHEETS.get(report.parent.name, 5)


def test_a_page_opens_without_an_error_and_asks_for_nothing_but_itself(visit, report):
    nothing(visit.errors)
    assert visit.requests == [report.as_uri()]


def test_a_page_names_no_address_but_its_own_parts_and_files_beside_it(visit, report):
    addresses = visit.page.evaluate(
        """() => [...document.querySelectorAll("*")].flatMap(element =>
             ["href", "src", "srcset", "action", "poster", "data", "xlink:href"]
               .map(name => element.getAttribute(name)).filter(value => value !== null))"""
    )
    # Other reports of the same patients are beside its folder.
    pages = (*report.parents[1].glob("*/report.html"), *report.parents[1].glob("*/README.md"))
    related = {f"../{page.parent.name}/{page.name}" for page in pages}
    beside = [address for address in addresses if not address.startswith("#") and address not in related]
    nothing([address for address in beside if "/" in address or not (report.parent / address).is_file()])
    addresses = [address for address in addresses if address.startswith("#")]
    nothing(visit.page.evaluate("links => links.filter(link => !document.getElementById(link.slice(1)))", addresses))


def test_a_page_does_not_scroll_sideways_cuts_no_text_and_has_none_too_small_to_read(layout):
    nothing(f"{fault}: {what}" for fault in ("wide", "cut", "small") for what in layout[fault])


def test_figures_have_real_text_within_them_large_enough_and_none_on_another(labels):
    assert labels["texts"] > 0
    nothing(f"{fault}: {what}" for fault in ("overlapping", "outside", "small") for what in labels[fault])


@pytest.mark.usefixtures("of_each_kind")
# At one width: of what axe looks at, only the boxes that scroll depend on it, and the narrow page has more of them.
@pytest.mark.parametrize("width", [400], scope="module")
def test_axe_finds_nothing_serious(visit):
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415 - absent where playwright is

    violations = Axe().run(visit.page).response["violations"]
    nothing(
        f"{violation['id']}: {node['target']}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    )


def test_a_page_has_one_main_part_and_headings_in_order(visit):
    assert visit.page.evaluate("document.documentElement.lang") == "en"
    parts = visit.page.locator("main").count()
    assert parts == 1
    levels = visit.page.evaluate("[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(h => +h.localName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
