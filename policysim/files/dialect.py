"""How a table is written as text: its encoding, separator and decimal sign, and the lines before its header.

What the beginning of a file shows beyond doubt is recognised. What could be read in two ways, of which one would turn
an answer round, is refused in one line that names the key to state it.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from policysim.errors import optional
from policysim.files.bad_rows import DataError
from policysim.files.csv_format import COMMA, SEMICOLON, SEPARATORS, SPACE, TAB, CsvFormat, to_state
from policysim.files.many_files import PACKED, text_ending

with optional():
    import pyarrow as pa

UTF8 = "utf-8-sig"
# The longest line, and what is read of a file at a time.
BLOCK = 1 << 22
# So many bytes of a file are looked at for its encoding, and so many characters for the rest.
LOOKED_AT, SAMPLE = 1 << 24, 1 << 18
# Lines of a title, and the share of rows behind it that have the usual number of columns.
MOST_TITLES, USUAL = 5, 0.9
# A file that is unpacked to so many bytes, and to so many times its size, was made to fill a disk or a memory.
MOST_UNPACKED, MOST_TIMES = 1 << 30, 200

_MARKS = {
    codecs.BOM_UTF8: UTF8,
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
# What is no text, by its first bytes.
_NO_TEXT = {
    b"PK\x03\x04": "is a zip archive or a workbook, and no text: save the table as CSV",
    b"\xd0\xcf\x11\xe0": "is a workbook, and no text: save the table as CSV",
    b"\x1f\x8b": "is packed by gzip: its name must end in .gz",
    b"\x28\xb5\x2f\xfd": "is packed by zstd: its name must end in .zst",
    b"PAR1": "is Parquet, and no text: its name must end in .parquet",
    b"SQLite format 3": "is a database, and no text: save the table as CSV",
}
_UTF8_SIGN = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_SEP_LINE = re.compile(r'\s*"?sep=(.)"?\s*', re.IGNORECASE)
# A cell between spaces: all of it within quotes, or none.
_QUOTED_CELL = re.compile(r'"(?:[^"]|"")*"')
_SPACED_CELL = re.compile(rf"{_QUOTED_CELL.pattern}(?=[ \t]|$)|[^ \t]+")

# Numbers as RE2 and Python read them: with a decimal comma, with thousands between commas, and with points likewise.
_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
DECIMAL_COMMA = rf"^(\s*[+-]?[0-9]*),([0-9]+{_EXPONENT}\s*)$"
_DECIMAL_POINT = rf"^\s*[+-]?(?:[0-9]+\.[0-9]*|\.[0-9]+){_EXPONENT}\s*$"
_THOUSANDS = r"^\s*[+-]?[1-9][0-9]{0,2}(?:%s[0-9]{3})+(?:%s[0-9]*)?\s*$"
COMMAS = f"{DECIMAL_COMMA}|{_THOUSANDS % (',', '[.]')}"
POINTS = f"{_DECIMAL_POINT}|{_THOUSANDS % ('[.]', ',')}"
# A number with one sign, as the decimal sign and nothing else; and one with the sign between thousands.
_CERTAIN = {",": re.compile(DECIMAL_COMMA), ".": re.compile(_DECIMAL_POINT)}
_MAY_BE_THOUSANDS = {",": re.compile(_THOUSANDS % (",", "[.]")), ".": re.compile(_THOUSANDS % ("[.]", ","))}
_WITH_SIGN = {",": re.compile(COMMAS), ".": re.compile(POINTS)}
_BELOW_THOUSAND = re.compile(r"\s*[+-]?[0-9]{1,3}\s*")
_NUMBER = re.compile(rf"\s*[+-]?(?:[0-9]+[.,]?[0-9]*|[.,][0-9]+){_EXPONENT}\s*")

SIGNS = {",": "comma", ".": "point"}

# Rows of a sample: the line on which each begins, and its cells.
Rows: TypeAlias = list[tuple[int, list[str]]]


@dataclass(frozen=True)
class Dialect:
    """How a file is written.

    Attributes
    ----------
    encoding, separator, decimal : str
        As in `CsvFormat`.
    skipped, offset : int
        How many characters stand before the header (marks, comments, Excel's line `sep=`), and how many bytes in UTF-8.
    first_line : int
        The number of the line behind them.
    strict : bool
        Whether the decimal sign was recognised, so that numbers with another are refused.
    """

    encoding: str = UTF8
    separator: str = COMMA
    decimal: str = "."
    skipped: int = 0
    offset: int = 0
    first_line: int = 1
    strict: bool = True

    @property
    def delimiter(self) -> str:
        """What stands between cells once runs of spaces are tabs."""
        return TAB if self.separator == SPACE else self.separator

    @property
    def refused(self) -> str:
        """The regular expression of numbers that may be others than they seem; "" if none can be.

        These are all with another decimal sign, if it was recognised; and points between thousands, which would be
        read as decimal ones. With commas between them a number is none.
        """
        if self.decimal == ",":
            return POINTS if self.strict else _THOUSANDS % ("[.]", ",")
        return COMMAS if self.strict else ""


PLAIN = Dialect()


@contextmanager
def open_bytes(path: Path) -> Iterator[Any]:
    """The bytes of a file, unpacked as they are read: a pyarrow.NativeFile, which no thread needs Python for."""
    packed = PACKED.get(path.suffix.lower())
    with pa.OSFile(path.as_posix()) as raw:
        if packed is None:
            yield raw
        else:
            with pa.CompressedInputStream(raw, packed) as stream:
                yield stream


def check_unpacked(path: Path, n_bytes: int) -> None:
    """DataError for a small file that has been unpacked to very many bytes."""
    if n_bytes > max(MOST_UNPACKED, MOST_TIMES * path.stat().st_size):
        raise DataError(
            f"{path.as_posix()}: unpacks to more than {MOST_TIMES} times its size: unpack it by hand, if that is right"
        )


@contextmanager
def open_text(path: Path, dialect: Dialect) -> Iterator[io.TextIOWrapper]:
    """The text of a file behind its comments, line ends as they are."""
    with open_bytes(path) as stream, io.TextIOWrapper(stream, dialect.encoding, newline="") as text:
        if dialect.skipped:
            text.read(dialect.skipped)
        yield text


def text_lines(path: Path, dialect: Dialect) -> Iterator[str]:
    """The lines of a file, at most `BLOCK` characters at a time; runs of spaces that separate columns are tabs."""
    with open_text(path, dialect) as text:
        for number, line in enumerate(iter(lambda: text.readline(BLOCK), ""), dialect.first_line):
            yield line if dialect.separator != SPACE else _tabbed(path, number, line)


def _tabbed(path: Path, number: int, line: str) -> str:
    cells = spaced_cells(line)
    if len(line) == BLOCK or any(cell.startswith('"') and not _QUOTED_CELL.fullmatch(cell) for cell in cells):
        reason = f"a row is longer than {BLOCK >> 20} MiB, or a quote is opened and not closed on its line"
        raise DataError(f"{path.as_posix()}:{number}: {reason}")
    return "\t".join(cells) + "\n"


def spaced_cells(line: str) -> list[str]:
    """The cells of a line between runs of spaces, with their quotes.

    Examples
    --------
    >>> spaced_cells('  1  "a b"   2 ')
    ['1', '"a b"', '2']
    """
    return _SPACED_CELL.findall(line.strip(" \t\r\n"))


def recognise(path: Path, stated: CsvFormat) -> Dialect:
    """How a file is written, by its beginning and by what is stated.

    Raises
    ------
    DataError
        For what is no text, and for what can be read in two ways.
    """
    name = path.as_posix()
    with open_bytes(path) as stream:
        start = stream.read(LOOKED_AT)
    encoding = _encoding(name, start, stated.encoding)
    decoded = codecs.getincrementaldecoder(encoding)().decode(start)
    # Of two marks, too, none is part of the first name.
    mark, text = int(decoded.startswith("\ufeff")), decoded[:SAMPLE].removeprefix("\ufeff")
    skipped, n_lines, said = _before_header(text)
    separator = _stated_separator(name, n_lines, said, stated.separator)
    sample = Sample(name, text[skipped:], 1 + n_lines, stated.header, cut=len(decoded) > SAMPLE)
    if not separator and text_ending(path) == ".tsv" and len(next(iter(sample.rows(TAB)), (1, []))[1]) > 1:
        separator = TAB
    separator = separator or sample.separator()
    rows = sample.rows(separator)
    sample.check_first(rows)
    if n_lines and stated.header:
        _refuse_commented_header(name, text[:skipped], separator, rows)
    decimal = stated.decimal or sample.decimal(rows, separator)
    before = decoded[: mark + skipped].encode() if mark + skipped else b""
    offset = len(before) + (3 if before and start.startswith(codecs.BOM_UTF8) else 0)
    return Dialect(encoding, separator, decimal, mark + skipped, offset, 1 + n_lines, not stated.decimal)


def _encoding(name: str, start: bytes, stated: str) -> str:
    """That of the text which begins so; DataError for what is no text, or cannot be told."""
    for magic, reason in _NO_TEXT.items():
        if start.startswith(magic):
            raise DataError(f"{name}: {reason}")
    encoding = stated or next((known for mark, known in _MARKS.items() if start.startswith(mark)), "")
    if encoding.lower().replace("_", "-") in ("utf8", "utf-8"):
        encoding = UTF8
    if not encoding and b"\0" in start:
        encoding = _wide(start)
        if not encoding:
            raise DataError(f"{name}: is no text, or in an encoding to state: {to_state('encoding', 'utf-16-le')}")
    whole = len(start) < LOOKED_AT
    for known in (encoding,) if encoding else (UTF8, "cp1252"):
        try:
            codecs.getincrementaldecoder(known)().decode(start, whole)
        except UnicodeError as error:
            if encoding or known != UTF8:
                line = _line_of(start, error, known)
                tried = known if encoding else "UTF-8 or Windows-1252"
                raise DataError(f"{name}:{line}: is no text in {tried}: {to_state('encoding', 'latin-1')}") from None
            if _UTF8_SIGN.search(start):
                said = f"is not UTF-8, which others are: {to_state('encoding', 'cp1252')}, or mend it"
                raise DataError(f"{name}:{_line_of(start, error, known)}: {said}") from None
        else:
            return known
    raise AssertionError("each encoding is returned, or refused")


def _wide(start: bytes) -> str:
    """UTF-16 without a mark, beyond doubt: each other byte of all ASCII signs is 0, and no sign is a control."""
    for encoding, zero in (("utf-16-le", 1), ("utf-16-be", 0)):
        zeros = start[zero::2].count(0)
        if 2 * zeros > len(start) // 2 and not start[1 - zero :: 2].count(0):
            text = codecs.getincrementaldecoder(encoding)("replace").decode(start, len(start) < LOOKED_AT)
            if not re.search("[\x00-\x08\x0e-\x1f\ufffd]", text):
                return encoding
    return ""


def _line_of(start: bytes, error: UnicodeError, encoding: str) -> int:
    """The line of a byte that cannot be decoded."""
    before = start[: error.start] if isinstance(error, UnicodeDecodeError) else b""
    return 1 + len(re.findall("\r\n|\r|\n", before.decode(encoding, "ignore")))


def line_not_text(path: Path, encoding: str) -> int:
    """The first line of a file that is not text in this encoding; 1 if all are."""
    decoder, line = codecs.getincrementaldecoder(encoding)(), 1
    with open_bytes(path) as stream:
        while block := stream.read(BLOCK):
            try:
                line += decoder.decode(block).count("\n")
            except UnicodeDecodeError as error:
                return line + error.object[: error.start].decode(encoding, "ignore").count("\n")
    return line


def _before_header(text: str) -> tuple[int, int, str]:
    """How many characters and lines stand before the header: comments, and Excel's sep=; and what that one says."""
    skipped, n_lines, separator = 0, 0, ""
    for n_passed, line in enumerate(_LINE.finditer(text), 1):
        found = _SEP_LINE.fullmatch(line[0].rstrip("\r\n"))
        if line[0].strip() and not line[0].startswith("#") and not found:
            break
        if line[0].strip():
            skipped, n_lines = line.end(), n_passed
        if found:
            separator = found[1]
        if line.end() == len(text):
            break
    return skipped, n_lines, separator


def _stated_separator(name: str, n_lines: int, said: str, stated: str) -> str:
    """What a line sep=, or the user states; "" for none."""
    if said and said not in SEPARATORS:
        raise DataError(f"{name}:{n_lines}: sep={said} is none of , ; | and tab")
    if said and stated and said != stated:
        raise DataError(f"{name}:{n_lines}: says sep={said}, but separator = {stated!r} is stated: remove one of them")
    return said or stated


def _refuse_commented_header(name: str, before: str, separator: str, rows: Rows) -> None:
    """DataError for a comment that has as many columns as the line behind it: it may be the header."""
    last = [line for line in before.splitlines() if line.strip()][-1]
    cells = _rows_of(last, separator, 1)
    if rows and last.startswith("#") and len(cells[0][1]) == len(rows[0][1]) > 1:
        raise DataError(
            f"{name}:{rows[0][0] - 1}: begins with # and has as many columns as the next line: if it is the header, "
            "remove the #; if it is a comment, remove it"
        )


def _rows_of(text: str, separator: str, first_line: int) -> Rows:
    """The rows of a text that are not blank."""
    if separator == SPACE:
        lines = enumerate(map(spaced_cells, io.StringIO(text, newline="")), first_line)
        return [(number, [cell.strip('"') for cell in cells]) for number, cells in lines if cells]
    reader, start, rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator), first_line, []
    try:
        for cells in reader:
            if cells:
                rows.append((start, cells))
            start = first_line + reader.line_num
    except csv.Error:  # a very long cell: what stands before it is enough
        pass
    return rows


@dataclass
class Sample:
    """The beginning of a text, from its header on; messages name the file and its lines."""

    name: str
    text: str
    first_line: int
    header: bool
    cut: bool
    by_separator: dict[str, Rows] = field(default_factory=dict)

    def rows(self, separator: str) -> Rows:
        """The rows, if this stands between columns; without the last, if the text may be cut in it."""
        if separator not in self.by_separator:
            rows = _rows_of(self.text, separator, self.first_line)
            self.by_separator[separator] = rows[:-1] if self.cut and len(rows) > 1 else rows
        return self.by_separator[separator]

    def separator(self) -> str:
        """What stands between columns: what gives all rows the same number of them, at least two.

        DataError if several do.
        """
        sizes = {sign: [len(cells) for _, cells in self.rows(sign)] for sign in SEPARATORS if sign in self.text}
        fits = [sign for sign, counts in sizes.items() if counts and min(counts) == max(counts) > 1]
        rivals = [sign for sign in fits if sign != SPACE or self._all_numbers(fits)]
        # Quotes speak for what they are next to.
        rivals = [sign for sign in rivals if len(rivals) == 1 or self._is_strict(sign)]
        if len(rivals) > 1:
            signs = " or ".join("a tab" if sign == TAB else "a space" if sign == SPACE else sign for sign in rivals)
            first, states = self.rows(rivals[0])[0][0], to_state("separator", *rivals)
            raise DataError(f"{self.name}:{first}: {signs} may stand between columns: {states}")
        if rivals:
            return rivals[0]
        headed = [sign for sign, counts in sizes.items() if sign != SPACE and counts and counts[0] > 1]
        usual = [sign for sign, counts in sizes.items() if sign != SPACE and _usual(counts) > 1]
        if headed and (set(headed) & set(usual) or len(usual) != 1):  # some rows are longer or shorter
            return max(headed, key=lambda sign: sizes[sign].count(sizes[sign][0]))
        if not usual and _alike(sizes.get(SPACE, [])[1:]):
            return self._spaces(in_all=SPACE in fits)
        return usual[0] if len(usual) == 1 else COMMA

    def _is_strict(self, separator: str) -> bool:
        """Whether nothing stands behind a closing quote but this."""
        lines = self.text.splitlines(keepends=True)
        try:
            for _ in csv.reader(lines[:-1] if self.cut else lines, delimiter=separator, strict=True):
                pass
        except csv.Error as error:
            return "expected after" not in str(error)
        return True

    def _all_numbers(self, fits: Sequence[str]) -> bool:
        """Whether all cells between spaces are numbers, but not all of those between something else that fits."""
        others = [sign for sign in fits if sign != SPACE]
        return self._are_numbers(SPACE) and not any(map(self._are_numbers, others))

    def _are_numbers(self, separator: str) -> bool:
        return all(_NUMBER.fullmatch(cell) for _, cells in self._below(self.rows(separator)) for cell in cells)

    def _spaces(self, *, in_all: bool) -> str:
        """Spaces, if they make a column of numbers; DataError for words, which may as well be one column.

        They may be in all rows, or in all but the first, which is then one column's name if it has none.
        """
        first, *rows = (cells for _, cells in self.rows(SPACE))
        columns = zip(*(rows if self.header or not in_all else [first, *rows]), strict=True)
        if any(all(map(_NUMBER.fullmatch, column)) for column in columns) and len(first) > 1:
            return SPACE
        if not in_all:
            return COMMA
        states = to_state("separator", SPACE, COMMA)
        raise DataError(f"{self.name}:{self.first_line}: is it one column of words, or are there more?: {states}")

    def _below(self, rows: Rows) -> Rows:
        return rows[int(self.header) :]

    def check_first(self, rows: Rows) -> None:
        """DataError for first rows that are a title, or that have no name for the numbers of rows."""
        sizes = [len(cells) for _, cells in rows]
        usual = _usual(sizes)
        before = list(takewhile(lambda size: size != usual, sizes))
        if usual < 2 or not before:
            return
        below = f"{'all' if _alike(sizes[len(before) :]) else 'most'} rows below have {usual}"
        if len(before) > 1:
            title = f"a title of {len(before)} lines? remove them: they have {', '.join(map(str, before))} columns"
            raise DataError(f"{self.name}:{rows[0][0]}: {title}, and {below}")
        columns = f"has {sizes[0]} column{'s' if sizes[0] > 1 else ''}, and {below}"
        instead = "a title? remove it"
        if sizes[0] == 1 and usual == 2:
            instead = "a title, which to remove, or is the first column without a name?"
        elif sizes[0] == usual - 1:
            instead = "name the first column, too (R: row.names = FALSE)"
        elif sizes[0] > usual:
            instead = "a name too many?"
        raise DataError(f"{self.name}:{rows[0][0]}: {columns}: {instead}")

    def decimal(self, rows: Rows, separator: str) -> str:
        """The decimal sign; DataError if commas, or points, may be that, or stand between thousands.

        Between commas, a comma within quotes is no decimal sign, and points are: unless they must be something else.
        """
        signs = "." if separator == COMMA else ",."
        found = {sign: first for sign in signs if (first := self._first_of(rows, _WITH_SIGN[sign]))}
        if len(found) > 1:
            states = to_state("decimal", ",", ".")
            both = f"has a number with a comma, and line {found['.'][0]} one with a point"
            raise DataError(f"{self.name}:{found[','][0]}: {both}: {states}")
        for sign, (line, _) in found.items():
            if self._first_of(rows, _CERTAIN[sign], but=_MAY_BE_THOUSANDS[sign]):
                return sign
            if sign == "," or separator == SEMICOLON or self._has_thousands(rows):
                word = SIGNS[sign]
                states = f"remove them, or, if they are decimal signs, {to_state('decimal', sign)}"
                between = f"all such may have {word}s between thousands"
                raise DataError(f"{self.name}:{line}: has a number with a {word}, and {between}: {states}")
        return "."

    def _has_thousands(self, rows: Rows) -> bool:
        """Whether a column has both 850 and 1.210: as a decimal, a program that writes 850 would write it 1.21."""
        for column in zip_longest(*(cells for _, cells in self._below(rows)), fillvalue=""):
            padded = any(cell.rstrip().endswith("0") and _MAY_BE_THOUSANDS["."].search(cell) for cell in column)
            if padded and any(map(_BELOW_THOUSAND.fullmatch, column)):
                return True
        return False

    def _first_of(self, rows: Rows, number: re.Pattern[str], but: re.Pattern[str] | None = None) -> tuple[Any, ...]:
        """The line and the cell of the first such number below the header; () without any."""
        cells = ((line, cell) for line, row in self._below(rows) for cell in row if "," in cell or "." in cell)
        return next((hit for hit in cells if number.search(hit[1]) and not (but and but.search(hit[1]))), ())


def _usual(sizes: Sequence[int]) -> int:
    """The number of columns that nearly all rows have, but for a few lines before them; 0 if there is none."""
    size = Counter(sizes).most_common(1)[0][0] if sizes else 0
    n_before = len(list(takewhile(lambda other: other != size, sizes)))
    rows = sizes[n_before:]
    return size if n_before <= MOST_TITLES and len(rows) > 1 and rows.count(size) >= USUAL * len(rows) else 0


def _alike(counts: Iterable[int]) -> bool:
    """Whether all rows have the same number of columns, at least two."""
    found = set(counts)
    return len(found) == 1 and min(found) > 1
