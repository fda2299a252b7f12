"""The measures themselves: each finds the fault that it is for, and none where there is none."""

import pytest

SOUND = '<p>Words.</p><figure><svg width="300" height="200">{}</svg></figure>'


@pytest.fixture(scope="module")
def measured(open_page, tmp_path_factory):
    """What the measures find on a page with this body: the names of those that find something."""
    path = tmp_path_factory.mktemp("page") / "empty.html"
    path.touch()
    with open_page(path, 400) as visit:

        def measured(body):
            visit.page.set_content(f"<!doctype html><body>{body}</body>")
            found = {**visit.labels(), **visit.layout(), "small": visit.labels()["small"] + visit.layout()["small"]}
            return {name for name, faults in found.items() if name != "texts" and faults}

        yield measured


def label(words, x, y, extra=""):
    return f'<text x="{x}" y="{y}" style="font: 12px sans-serif" {extra}>{words}</text>'


def turned(degrees, x, y):
    return f'transform="rotate({degrees} {x} {y})"'


@pytest.mark.parametrize(
    "labels",
    [
        [label("one line", 10, 30), label("the next line", 10, 43)],
        [label("left", 10, 30), label("right", 60, 30)],
        # The upright boxes around these two share most of their area.
        [label("a slanted label", 20, 30, turned(45, 20, 30)), label("a slanted label", 50, 30, turned(45, 50, 30))],
        [label("upwards", 40, 150, turned(-90, 40, 150)), label("across", 50, 120)],
        [label("far", 10, 30), label("hidden", 10, 30, 'visibility="hidden"')],
    ],
)
def test_labels_that_are_apart_are_left_in_peace(measured, labels):
    assert measured(SOUND.format("".join(labels))) == set()


@pytest.mark.parametrize(
    "labels",
    [
        [label("one line", 10, 30), label("the next line", 10, 36)],
        [label("left and longer", 10, 30), label("right", 60, 30)],
        [label("a slanted label", 20, 30, turned(45, 20, 30)), label("a slanted label", 26, 30, turned(45, 26, 30))],
        [label("upwards", 60, 150, turned(-90, 60, 150)), label("across", 50, 130)],
        [label("the same", 10, 30), label("the same", 10, 30)],
    ],
)
def test_labels_on_one_another_are_found(measured, labels):
    assert measured(SOUND.format("".join(labels))) == {"overlapping"}


@pytest.mark.parametrize(
    "beyond",
    [
        label("beyond the right edge", 250, 100),
        label("above", 10, 5),
        label("a long label that runs off the top", 100, 150, turned(-90, 100, 150)),
        label("left", 4, 100, 'text-anchor="middle"'),
    ],
)
def test_a_label_outside_its_figure_is_found(measured, beyond):
    assert measured(SOUND.format(beyond)) == {"outside"}


def test_a_label_that_is_drawn_too_small_is_found(measured):
    small = '<svg width="300" height="200" viewBox="0 0 600 400">'
    assert measured(SOUND.replace('<svg width="300" height="200">', small).format(label("small", 10, 30))) == {"small"}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (f"<p>{'x' * 100}</p>", {"wide"}),
        ('<div style="width: 500px">wide</div>', {"wide"}),
        ('<p style="font-size: 13px">small</p>', {"small"}),
        ('<p style="width: 50px; overflow: hidden; white-space: nowrap">cut at the right</p>', {"cut"}),
        ('<p style="width: 50px; height: 20px; overflow: clip">cut below its first line</p>', {"cut"}),
        ('<div style="overflow-x: auto"><div style="width: 500px">held in a box</div></div>', {"scrolled"}),
        ("<p>H<sub style='font-size: 10px'>2</sub>O</p>", set()),
        (
            '<span style="position: absolute; width: 1px; height: 1px; overflow: hidden">for screen readers</span>',
            set(),
        ),
    ],
)
def test_faults_of_the_page_are_found(measured, body, fault):
    assert measured(body) == fault


def test_errors_and_requests_are_noticed(open_page, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(
        "<!doctype html><script>console.error('said'); fetch('other.json').catch(() => {}); missing()</script>"
        '<img src="http://127.0.0.1:9/picture.png">',
        encoding="utf-8",
    )
    with open_page(path, 400) as visit:
        for _ in range(600):
            if len(visit.requests) >= 3 and any("missing" in error for error in visit.errors):
                break
            visit.page.wait_for_timeout(50)
    assert any("said" in error for error in visit.errors)
    assert any("missing is not defined" in error for error in visit.errors)
    assert "http://127.0.0.1:9/picture.png" in visit.requests
    assert len(visit.requests) == 3


def test_without_a_script_what_waits_for_one_is_found(open_page, tmp_path):
    path = tmp_path / "page.html"
    script = "document.querySelector('[data-show]').textContent = '1'"
    path.write_text(
        f"<!doctype html><h1>ε</h1><p>is <b data-show='epsilon'></b><script>{script}</script>", encoding="utf-8"
    )
    with open_page(path, 400) as visit:
        assert visit.measure("outline")["empty"] == []
    with open_page(path, 400, script=False) as visit:
        assert visit.measure("outline")["empty"] == ['<b data-show="epsilon"></b>']
