"""How a CSV file is written: its encoding, what separates its columns, and the sign of its decimals.

Spreadsheets of many countries write semicolons and decimal commas, and older ones Latin-1 or UTF-16.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

from policysim.question.extras import optional

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc

SEPARATORS = (";", "\t", "|")
# So much of a file is looked at: a text that is not UTF-8 must show before.
LOOKED_AT = 1 << 24
# A cell that is a number with a point, or with a comma.
_POINT = re.compile(r'(?:^|[;\t|])\s*"?[+-]?[0-9]*\.[0-9]+"?\s*(?=[;\t|]|$)', re.MULTILINE)
_COMMA = r"^(\s*[+-]?[0-9]*),([0-9]+(?:[eE][+-]?[0-9]+)?\s*)$"


class Dialect(NamedTuple):
    """How a file is written; as it stands, plain: UTF-8, commas between columns, points in numbers."""

    encoding: str = "utf-8-sig"
    separator: str = ","
    decimal_comma: bool = False

    def with_points(self, batch: pa.RecordBatch) -> Any:
        """The columns of text, numbers with points."""
        if not self.decimal_comma:
            return batch
        columns = [pc.replace_substring_regex(column, _COMMA, r"\1.\2") for column in batch.columns]
        return pa.record_batch(columns, schema=batch.schema)


PLAIN = Dialect()


def dialect_of(path: Path) -> Dialect:
    """The dialect of a CSV file, by its beginning.

    Text that is not UTF-8 is Latin-1, as Windows has it (cp1252); UTF-16 begins with its mark. Semicolons, tabs or bars
    separate columns if the first line has them and no commas do; numbers then have commas if none has a point.

    Raises
    ------
    UnicodeDecodeError
        For what is no text.
    """
    with path.open("rb") as stream:
        start = stream.read(LOOKED_AT)
    encoding = "utf-8-sig"
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        try:
            # Not told that this is the end: a sign may be cut.
            codecs.getincrementaldecoder("utf-8")().decode(start)
        except UnicodeDecodeError:
            encoding = "cp1252"
    text = codecs.getincrementaldecoder(encoding)().decode(start)
    first = next(filter(str.strip, io.StringIO(text)), "")
    separator = next(
        (sign for sign in SEPARATORS if sign in first and _size(first, sign) > _size(first, ",") == 1), ","
    )
    return Dialect(encoding, separator, decimal_comma=separator != "," and not _POINT.search(text))


def _size(line: str, separator: str) -> int:
    return len(next(csv.reader([line], delimiter=separator), []))
