"""Numbers by their keys, and what a template may not print."""

import math

import pandas as pd
import pytest

from policysim.output.screen import TEMPLATES, lines
from policysim.study.cells import COLUMNS, Cells, Label, Shown, environment, faults_of, only_text

# The templates, which print cells; and the filters that lay out.
OF_CELLS = sorted(path.name for ending in ("html", "txt") for path in TEMPLATES.glob(f"*.{ending}"))
FILTERS = ("lines", "grid")


@pytest.fixture
def tables():
    rows = [
        ("death", "one", 1.0, 0.003, math.nan, math.nan, "counted 100000 1"),
        ("death", "one", 2.0, 0.004, math.nan, math.nan, "counted 100000 1"),
        ("belief", "one", 1.0, math.nan, 0.04, 0.23, "span 0"),
        ("twice", "one", 1.0, 1.0, math.nan, math.nan, "plain"),
        ("twice", "one", 1.0, 2.0, math.nan, math.nan, "plain"),
    ]
    return {"options": pd.DataFrame(rows, columns=COLUMNS), "names": pd.DataFrame({"key": ["a"], "text": ["b"]})}


def test_a_number_is_looked_up_by_its_key_formatted_and_marked(tables):
    cell = Cells(tables)
    deaths = cell("options", "death", "one", 1.0)
    assert deaths == "300.0"
    assert deaths.html == '<data data-cell="options/death/one/1/value" value="0.003">300.0</data>'
    assert cell("options", "belief", "one", 1.0) == "4 to 23"
    assert 'value="0.04 0.23"' in cell("options", "belief", "one", 1.0).html


@pytest.mark.parametrize(
    "key",
    [
        ("options", "death", "other", 1.0),
        ("options", "death", "one", 3.0),
        ("options", "death", "one"),
        ("names", "a", "", math.nan),
        ("options", "twice", "one", 1.0),
    ],
)
def test_none_and_several_are_refused(tables, key):
    with pytest.raises(KeyError):
        Cells(tables)(*key)


def test_a_screen_without_cells_prints_texts_each_within_its_line_and_no_number():
    engine = environment(html=False, finalize=only_text)
    assert engine.from_string("{{ text }}").render(text="2\n! no\tε\u2028") == "2 ! no ε\\u2028"
    with pytest.raises(ValueError, match=r"a template prints 2, which is no text\."):
        engine.from_string("{{ text }}").render(text=2)


def test_a_line_goes_on_under_its_beginning_or_beside_its_name(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    said = "each word of it " * 3
    assert lines(f"  {said}", "  ").splitlines() == ["  each word of it each word of it each", "    word of it"]
    assert lines(f"Gain\t{said}").splitlines() == [
        "Gain       each word of it each word of",
        f"{'':11}it each word of it",
    ]


@pytest.mark.parametrize("html", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "{{ cell('options', 'death', 'one', 1) + cell('options', 'death', 'one', 2) }}",  # a sum of two cells
        "{{ cell('options', 'death', 'one', 1) ~ cell('options', 'death', 'one', 2) }}",
        "{{ cell('options', 'death', 'one', 1)|float }}",
        "{{ cell('options', 'death', 'one', 1)[1:] }}",
        "{{ title }}",  # a number in a title
        "{{ 5 }}",
        "{{ '½' }}",
        "{{ loop_count }}",
    ],
)
def test_what_is_no_cell_and_no_name_prints_no_digit(tables, text, html):
    slots = {"cell": Cells(tables), "title": "30 more deaths", "loop_count": 3}
    with pytest.raises(ValueError, match="neither a cell nor a name"):
        environment(html=html).from_string(text).render(slots)


def test_names_may_have_digits_and_are_escaped_on_a_page(tables):
    slots = {"cell": Cells(tables), "name": Label("a <60")}
    text = "{{ name }}: {{ cell('options', 'death', 'one', 1) }}"
    assert environment(html=False).from_string(text).render(slots) == "a <60: 300.0"
    page = environment(html=True).from_string(text).render(slots)
    assert page.startswith("a &lt;60: <data data-cell=")
    assert isinstance(Cells(tables)("options", "death", "one", 1.0), Shown)


def test_a_stale_epsilon_is_no_cell(tables):
    # The study is at another epsilon than the table that was kept.
    with pytest.raises(KeyError, match="death/one/5: 0 cells"):
        environment(html=False).from_string("{{ cell('options', 'death', 'one', epsilon) }}").render(
            cell=Cells(tables), epsilon=5.0
        )


@pytest.mark.parametrize("name", OF_CELLS)
def test_no_template_has_a_digit_or_decides(name):
    assert faults_of((TEMPLATES / name).read_text(encoding="utf-8"), FILTERS) == []


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        ("of 200 redraws", "digit"),
        ("<p>{{ a }} of 200</p>", "digit"),
        ("two&#50;", "digit"),
        ("½ of them", "digit"),
        ("{% if a %}both{% endif %}", "decides"),
        ("{{ 'both' if a else 'neither' }}", "decides"),
        ("{{ a + b }}", "decides"),
        ("{{ a == b }}", "decides"),
        ("{{ a is defined }}", "decides"),
        ("{% for a in b if a %}{% endfor %}", "decides"),
        ("{{ a|round }}", "filter"),
    ],
)
def test_planted_defects_of_a_template_are_found(planted, fault):
    assert fault in " ".join(faults_of(planted, FILTERS))


def test_digits_in_tags_and_keys_are_not_seen():
    assert faults_of('<h2 id="x2">{{ cell("a1", "b") }}</h2><style>p { margin: 2px }</style>') == []
