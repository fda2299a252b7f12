"""What nobody sees, or what steers a terminal, is refused in files of ours, with its line."""

import unicodedata

import pytest

from envs.toml_reader import UNSEEN, InputFileError, one_line, open_toml, unseen

# A sign of each kind: a terminal's, of C1, a line end, direction, no width, within words, before a file, a tag.
SIGNS = "\x1b\x00\x7f\x9b\n\t\u2028\u202e\u2066\u200f\u061c\u200b\u2060\xad\ufeff\u3164\U000e0041"


def read(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(text, encoding="utf-8")
    with open_toml(path) as table:
        return table.values


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("line", ['title = "ab{}c"', '[treatments."ab{}c"]', '[f]\nlevels = ["x", "ab{}c"]'])
def test_a_sign_that_is_not_seen_is_refused_with_its_line_and_number(tmp_path, sign, line):
    number = ord(sign)
    escape = f"\\U{number:08x}"
    with pytest.raises(InputFileError) as error:
        read(tmp_path, f"seed = 1\n{line.format(escape)}\n")
    (first, *_) = said = str(error.value).splitlines()
    assert f"study.toml:{1 + len(line.splitlines())}: " in first
    assert f"holds U+{number:04X}, which is not seen" in first
    assert not any(UNSEEN.search(text) for text in said)


def test_a_sign_itself_is_refused_as_its_escape_is(tmp_path):
    with pytest.raises(InputFileError, match=r"study.toml:1: title: holds U\+202E"):
        read(tmp_path, 'title = "gpj\u202eexe"\n')


def test_prose_has_lines_and_nothing_else_unseen(tmp_path):
    assert read(tmp_path, 'source = """two\nlines"""\n') == {"source": "two\nlines"}
    with pytest.raises(InputFileError, match=r"U\+001B"):
        read(tmp_path, 'source = """two\nlines\\u001b"""\n')


def test_a_tab_may_separate_columns_and_stands_nowhere_else(tmp_path):
    assert read(tmp_path, 'separator = "\\t"\n') == {"separator": "\t"}
    for key, sign in (("separator", "\\n"), ("source", "\\t"), ("title", "\\t")):
        with pytest.raises(InputFileError, match=rf"{key}: holds U\+000"):
            read(tmp_path, f'{key} = "{sign}"\n')


@pytest.mark.parametrize("text", ["می\u200cخواهم", "क्\u200dष", "👩\u200d🔬", "❤\ufe0f", "Zürich 北京", "a\u00a0b"])
def test_words_of_all_scripts_stay_as_they_are(tmp_path, text):
    assert read(tmp_path, f'title = "{text}"\n') == {"title": text}
    assert one_line(text) == text


def test_a_joiner_makes_no_second_name_of_letters_that_it_does_not_join():
    assert [one_line(text) for text in ("a\u200d", "\u200ca", "a\u200db")] == [r"a\u200d", r"\u200ca", r"a\u200db"]


def test_no_control_and_no_sign_of_direction_is_left_out():
    everything = [chr(code) for code in range(0x110000)]
    must = {sign for sign in everything if unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")}
    must |= {sign for sign in everything if unicodedata.bidirectional(sign) in DIRECTIONS}
    assert [hex(ord(sign)) for sign in sorted(must) if not UNSEEN.fullmatch(sign)] == []
    # Nothing that prints a mark of its own, but for letters that are blank.
    letters = [sign for sign in everything if UNSEEN.fullmatch(sign) and unicodedata.category(sign)[0] in "LNPS"]
    assert {unicodedata.name(sign) for sign in letters} <= {
        "HANGUL CHOSEONG FILLER", "HANGUL JUNGSEONG FILLER", "HANGUL FILLER", "HALFWIDTH HANGUL FILLER",
    }  # fmt: skip


DIRECTIONS = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")


def test_what_is_not_seen_is_found_in_names_and_values_at_any_depth():
    document = {"a": [{"b\x1b": 1}, "c\u202e"], "source": "x\ny"}
    assert list(unseen(document)) == [(("a", 0, "b\x1b"), "\x1b"), (("a", 1), "\u202e")]
