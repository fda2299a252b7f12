"""The line of every key in a TOML text, against documents whose lines are known because the test writes them."""

import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import envs
from envs.toml_lines import line_numbers

# Characters that mean something in TOML, and some that do not; quoted keys and strings may hold them all.
ODD = st.text(st.sampled_from("ab.#='[]{}, \\\té\u2028𝄞-_1"), max_size=4)
SCALARS = ("1", "-0.5", "1e3", "true", "inf", "1979-05-27", "07:32:00", "'#'", '"]"', '"=\\n"', '""')


class Writer:
    """A TOML text in the making, and the line on which each key and list entry first stands."""

    def __init__(self, data):
        self.draw, self.text, self.lines, self.count = data.draw, "", {}, 0

    def write(self, text):
        self.text += text

    def note(self, path):
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], self.text.count("\n") + 1)

    def maybe(self, text):
        if self.draw(st.booleans()):
            self.write(text)

    def key(self):
        """A key that nothing else has: as written, and as meant."""
        self.count += 1
        kind = self.draw(st.sampled_from(("bare", "basic", "literal")))
        if kind == "bare":
            name = f"{self.draw(st.sampled_from(('a', 'Z_', '-', '3')))}{self.count}"
            return name, name
        name = f"{self.draw(ODD)}{self.count}"
        if kind == "literal" and "'" not in name:
            return f"'{name}'", name
        return json.dumps(name, ensure_ascii=self.draw(st.booleans()) and "𝄞" not in name), name

    def pair(self, path, depth=0):
        parts = [self.key() for _ in range(self.draw(st.sampled_from((1, 1, 1, 2, 3))))]
        path = (*path, *(name for _, name in parts))
        self.note(path)
        self.write(" . ".join(text for text, _ in parts) + " = ")
        self.value(path, depth)

    def pairs(self, path):
        for _ in range(self.draw(st.integers(0, 3))):
            self.maybe("\n")
            self.maybe("# a comment, x = [1\n")
            self.maybe("  ")
            self.pair(path)
            self.maybe("  # after, with ] and }")
            self.write("\n")

    def value(self, path, depth):
        kinds = ("scalar", "scalar", "multiline", "array", "inline") if depth < 2 else ("scalar",)
        getattr(self, self.draw(st.sampled_from(kinds)))(path, depth)

    def scalar(self, _path, _depth):
        self.write(self.draw(st.sampled_from(SCALARS)))

    def multiline(self, _path, _depth):
        self.write('"""' + "\nx = 1" * self.draw(st.integers(0, 2)) + '"""')

    def array(self, path, depth):
        self.write("[")
        size = self.draw(st.integers(0, 3))
        for position in range(size):
            self.maybe("\n")
            self.maybe(" # [1, 2]\n")
            self.note((*path, position))
            self.value((*path, position), depth + 1)
            self.maybe("\n")
            if position < size - 1 or self.draw(st.booleans()):
                self.write(",")
        self.maybe("# the end\n")
        self.write("]")

    def inline(self, path, depth):
        self.write("{ ")
        for position in range(self.draw(st.integers(0, 2))):
            self.write(", " if position else "")
            self.pair(path, depth + 1)
        self.write(" }")

    def header(self, path, parts, brackets):
        self.note(path)
        opening, closing = brackets
        self.write(f"{opening}{' . '.join(parts)}{closing}")
        self.maybe(" # x")
        self.write("\n")

    def table(self):
        parts = [self.key() for _ in range(self.draw(st.integers(1, 3)))]
        path = tuple(name for _, name in parts)
        self.header(path, [text for text, _ in parts], ("[", "]"))
        self.pairs(path)

    def tables(self):
        """An array of tables, with sub-tables and arrays of tables of their own."""
        text, name = self.key()
        below, inner, twice = self.key(), self.key(), self.key()
        for position in range(self.draw(st.integers(1, 3))):
            path = (name, position)
            self.header(path, [text], ("[[", "]]"))
            self.pairs(path)
            if self.draw(st.booleans()):
                self.header((*path, below[1]), [text, below[0]], ("[", "]"))
                self.pairs((*path, below[1]))
            for place in range(self.draw(st.integers(0, 2))):
                self.header((*path, inner[1], place), [text, inner[0]], ("[[", "]]"))
                self.pairs((*path, inner[1], place))
                if self.draw(st.booleans()):
                    self.header((*path, inner[1], place, twice[1]), [text, inner[0], twice[0]], ("[", "]"))
                    self.pairs((*path, inner[1], place, twice[1]))


def paths(value, path=()):
    """Every key path of parsed TOML."""
    if path:
        yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from paths(entry, (*path, key))


@settings(derandomize=True, deadline=None, database=None, max_examples=150)
@given(st.data())
def test_every_key_and_entry_has_the_line_on_which_it_was_written(data):
    writer = Writer(data)
    writer.pairs(())
    for _ in range(data.draw(st.integers(0, 3))):
        data.draw(st.sampled_from((writer.table, writer.tables)))()
    assert set(paths(tomllib.loads(writer.text))) == set(writer.lines)  # the test knows what it wrote
    assert line_numbers(writer.text) == writer.lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", {}),
        ("a.b = 1\na.c = 2\n", {("a",): 1, ("a", "b"): 1, ("a", "c"): 2}),
        ("[a]\n[a.b]\nc = 1\n", {("a",): 1, ("a", "b"): 2, ("a", "b", "c"): 3}),
    ],
)
def test_keys_that_share_a_part_have_lines_of_their_own(text, lines):
    assert line_numbers(text) == lines


def test_every_key_of_the_covid_scenario_has_a_line_that_names_it():
    path = Path(envs.__file__).parent / "scenarios" / "covid.toml"
    text = path.read_text(encoding="utf-8")
    rows, lines = text.splitlines(), line_numbers(text)
    assert set(lines) == set(paths(tomllib.loads(text)))
    for key, line in lines.items():
        last = next(part for part in reversed(key) if isinstance(part, str))
        assert last in rows[line - 1], key
