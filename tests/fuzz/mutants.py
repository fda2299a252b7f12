"""Changes of inputs that know their structure: of TOML and JSON the tree, of tables the rows, columns and types.

All draw from one `random.Random`, so that a seed gives the same input again.
"""

import copy
import datetime as dt
import decimal
import io
import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

# What a terminal, a path, a page or a parser could take for more than text.
TEXTS = (
    "", " ", "\x00", "\x1b[2J", "a\nb", "a\rb", "\u202eabc", "\u200b", "\ufeff", "é", "名", "ß" * 9, "'", '"', "\\",
    "$x_1$", "$", "<script>", "&amp;", "%s{0}", "NA", "nan", "inf", "-inf", "1e999", "1_000", "0x10", "٣", "true",
    "None", "..", "../..", "/", "/etc/passwd", "/dev/zero", "/dev/null", ".", "~", "*", "[", "a" * 300, "study.toml",
    "scenario.toml", "data.csv", "data.parquet", "all", "deaths", "death", "one for all", "equal", "estimate",
    "arm shares", "cost", "p_wait", "__class__", "0", "1", "-1", "0.5",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 0.5, -0.5, 0.0, -0.0, 1e-300, 5e-324, 1e-9, 1.0000001, 1e50, 1e51, 1e308, -1e308, math.inf,
    -math.inf, math.nan, 2**31, 2**53 + 1, 2**63, 2**64, 10**30, 100, 1000, 100_000,
)  # fmt: skip
ODD_VALUES = (
    True, False, [], {}, [[]], [{}], [1, "a"], {"a": {"b": 1}}, {"value": 0.5, "interval": [0.4, 0.6]}, {"value": 1},
    [None][:0], dt.date(2026, 1, 1), dt.time(1, 2), dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
)  # fmt: skip


def value(rng):
    """Any value of a tree."""
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(TEXTS)
    return rng.choice(NUMBERS) if kind < 0.8 else copy.deepcopy(rng.choice(ODD_VALUES))


def nodes(tree, path=()):
    """The paths of all that stands in a tree."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from nodes(item, (*path, key))


def at(tree, path):
    """What stands at a path."""
    for key in path:
        tree = tree[key]
    return tree


def changed(rng, tree):
    """The tree with one change, made in place."""
    paths = list(nodes(tree))
    if not paths:
        return tree
    *above, key = path = rng.choice(paths)
    parent, what = at(tree, above), rng.randrange(9)
    old = parent[key]
    if what <= 1:
        parent[key] = value(rng)
    elif what == 2:
        del parent[key]
    elif what == 3:
        parent[key] = copy.deepcopy(at(tree, rng.choice(paths)))
    elif what == 4 and isinstance(parent, dict):
        parent[str(rng.choice((*TEXTS, str(rng.choice(paths)[-1]))))] = parent.pop(key)
    elif what == 5:
        parent[key] = [old] * rng.choice((1, 2, 50))
    elif what == 6 and isinstance(old, int | float) and not isinstance(old, bool):
        parent[key] = rng.choice((-old, old * 10, old / 3, old + 1, 1 - old, str(old)))
    elif what == 7 and isinstance(old, list | str) and old:
        parent[key] = rng.choice((old[:-1], old + old, old[::-1], old[:1]))
    elif isinstance(parent, list):
        parent.insert(rng.randrange(len(parent) + 1), value(rng))
    else:
        parent[rng.choice((*TEXTS, str(path[-1]) + "2"))] = value(rng)
    return tree


def toml_of(tree):
    """A tree as TOML: pairs, and tables inline but for those at the top."""
    lines = [f"{_key(name)} = {_toml(item)}" for name, item in tree.items() if not isinstance(item, dict)]
    for name, item in tree.items():
        if isinstance(item, dict):
            lines += [f"[{_key(name)}]", *(f"{_key(key)} = {_toml(inner)}" for key, inner in item.items())]
    return "\n".join(lines) + "\n"


def _key(text):
    return json.dumps(str(text)).replace("\x7f", "\\u007f")


def _toml(item):
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, dict):
        return "{ " + ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in item.items()) + " }"
    if isinstance(item, list):
        return "[" + ", ".join(map(_toml, item)) + "]"
    if isinstance(item, str):
        return _key(item)
    return item.isoformat() if isinstance(item, dt.date | dt.time) else repr(item)


def spoiled(rng, content):
    """Bytes with one change of their text, or of a byte."""
    lines, what, place = content.split(b"\n"), rng.randrange(10), rng.randrange(len(content) + 1)
    line, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    if what == 0:
        content = content[:place]
    elif what == 1:
        content = content[:place] + rng.choice(TEXTS).encode() + content[place:]
    elif what == 2:
        content = content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
    elif what == 3:
        content = b"\n".join(lines[:line] + lines[line + 1 :])
    elif what == 4:
        content = b"\n".join([*lines[:line], lines[line], *lines[line:]])
    elif what == 5:
        content = content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b" ")))
    elif what == 6:
        content = rng.choice((b"\xef\xbb\xbf" + content, content.decode(errors="replace").encode("utf-16")))
    elif what == 7:
        content += rng.choice((b"[" * 3000, b'"', b"\x00" * 9, content, b"{" * 90_000, b"9" * 5000))
    elif what == 8:
        lines[line], lines[other] = lines[other], lines[line]
        content = b"\n".join(lines)
    else:
        content = content.replace(rng.choice((b"1", b"0", b"=", b",", b".")), rng.choice(TEXTS).encode(), 1)
    return content


def tree_bytes(rng, tree, write):
    """A tree with some changes as bytes, of which some are spoiled afterwards."""
    for _ in range(rng.choice((0, 1, 1, 1, 1, 1, 2, 3, 6))):
        tree = changed(rng, tree)
    try:
        content = write(tree).encode("utf-8", "surrogatepass")
    except (ValueError, TypeError):  # a date in JSON
        content = repr(tree).encode()
    for _ in range(rng.choice(6 * (0,) + (1, 2))):
        content = spoiled(rng, content)
    return content


def toml_bytes(rng, tree):
    """A study or scenario, changed."""
    return tree_bytes(rng, copy.deepcopy(tree), toml_of)


def json_bytes(rng, tree):
    """A note, ledger or manifest, changed."""
    return tree_bytes(rng, copy.deepcopy(tree), lambda tree: json.dumps(tree, ensure_ascii=rng.random() < 0.5))


def csv_bytes(rng, rows):
    """A table of texts, header first, changed and written in some dialect."""
    rows = [list(row) for row in rows]
    for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
        _change_rows(rng, rows)
    sign = rng.choice((",", ",", ",", ",", ";", "\t", "|"))
    text = "\n".join(sign.join(_cell(rng, str(cell), sign) for cell in row) for row in rows)
    content = (text + rng.choice(("\n", "", "\n\n"))).encode("utf-8", "replace")
    if rng.random() < 0.05:
        content = text.encode(rng.choice(("utf-16", "cp1252", "utf-8-sig", "latin-1")), "replace")
    for _ in range(rng.choice(6 * (0,) + (1, 2))):
        content = spoiled(rng, content)
    return content


def _cell(rng, text, sign):
    quoted = any(special in text for special in (sign, '"', "\n", "\r")) and rng.random() < 0.9
    return '"' + text.replace('"', '""') + '"' if quoted else text


def _change_rows(rng, rows):
    if not rows or not rows[0]:
        return
    row, column, what = rng.randrange(len(rows)), rng.randrange(len(rows[0])), rng.randrange(10)
    if what <= 3 and column < len(rows[row]):
        rows[row][column] = str(rng.choice((*TEXTS, *NUMBERS)))
    elif what == 4:
        new = str(rng.choice((*TEXTS, *NUMBERS)))
        for each in rows[1:]:
            each[column : column + 1] = [new]
    elif what == 5:
        for each in rows:
            del each[column : column + 1]
    elif what == 6:
        for each in rows:
            each.insert(column, each[min(column, len(each) - 1)] if each else "")
    elif what == 7:
        rows[:] = rng.choice((rows[:1], rows + rows[1:], rows[1:], rows[:2], rows * 30, []))
    elif what == 8:
        rows[row] = rng.choice((rows[row][:-1], [*rows[row], "x"], [], rows[row] * 40))
    else:
        rows[0][column] = rng.choice((*TEXTS, *map(str, rows[0])))


def parquet_bytes(rng, frame):
    """A table as Parquet whose columns have other types, names or values, or whose bytes are spoiled."""
    table = pa.Table.from_pandas(frame, preserve_index=rng.random() < 0.1)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        table = _change_table(rng, table)
    stream = io.BytesIO()
    try:
        pq.write_table(table, stream)
    except (pa.ArrowException, ValueError, TypeError):
        return rng.randbytes(60)
    content = stream.getvalue()
    if rng.random() < 0.3:
        for _ in range(rng.choice((1, 1, 2, 8))):
            place = rng.randrange(len(content))
            content = content[:place] + bytes([rng.randrange(256)]) + content[place + 1 :]
    return content[: rng.randrange(len(content))] if rng.random() < 0.03 else content


TYPES = (
    pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(),
    pa.binary(), pa.date32(), pa.time64("us"), pa.timestamp("ns", "Europe/Berlin"), pa.duration("s"),
    pa.decimal128(20, 3), pa.null(), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.int64()),
    pa.struct([("a", pa.int64())]), pa.map_(pa.string(), pa.int64()), pa.binary(3), pa.decimal256(60, 2),
    pa.month_day_nano_interval(), pa.string_view(),
)  # fmt: skip


def _change_table(rng, table):
    if not table.num_columns:
        return table
    place, what = rng.randrange(table.num_columns), rng.randrange(6)
    name = table.column_names[place]
    if what <= 1:
        return table.set_column(place, name, _column(rng, table.column(place), table.num_rows))
    if what == 2:
        names = list(table.column_names)
        names[place] = rng.choice((*TEXTS, *names))
        return table.rename_columns(names)
    if what == 3:
        return rng.choice((table.slice(0, 0), table.slice(0, 1), table.remove_column(place), table.select([])))
    if what == 4:
        return table.replace_schema_metadata({b"pandas": rng.choice((b"", b"{", b"[]", b"{}", b'{"columns":[1]}'))})
    return table.append_column(rng.choice((*TEXTS, name)), table.column(place))


def _column(rng, column, n_rows):
    kind = rng.choice(TYPES)
    try:
        return column.cast(kind)
    except (pa.ArrowException, ValueError):
        pass
    odd = [rng.choice((None, math.nan, math.inf, -1.5, 2**62, 10**20, 0.25)) for _ in range(n_rows)]
    for values, type_ in (
        (odd, pa.float64()),
        ([[1]] * n_rows, None),
        ([{"a": 1}] * n_rows, None),
        ([b"\xff"] * n_rows, None),
    ):
        if rng.random() < 0.4:
            try:
                return pa.array(values, type_)
            except (pa.ArrowException, OverflowError, TypeError):
                continue
    return pa.nulls(n_rows, rng.choice((pa.null(), pa.string(), pa.float64())))


CELLS = (
    None, math.nan, pd.NA, pd.NaT, math.inf, -1, 0, 1, 2.5, True, "", "a", "1", b"a", 1 + 2j, [1], (), {}, {"a": 1},
    decimal.Decimal("1.5"), 10**400, dt.date(2026, 1, 1), pd.Timestamp("2026-01-01", tz="UTC"), pd.Timedelta(1),
    np.float32(0.1), np.array([1, 2]), object, "\x1b[2J",
)  # fmt: skip
DTYPES = (
    "int8", "uint64", "float16", "float32", "complex128", "bool", "str", "object", "category", "Int64", "Float64",
    "boolean", "string", "datetime64[ns]", "datetime64[ns, UTC]", "timedelta64[ns]", "Sparse[float]", "period[D]",
    "string[pyarrow]", "int64[pyarrow]",
)  # fmt: skip


def any_frame(rng, frame):
    """A data frame with other values, types, names or index."""
    frame = frame.copy()
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        if not len(frame.columns):
            break
        place, what = rng.randrange(len(frame.columns)), rng.randrange(8)
        column = frame.iloc[:, place]
        if what <= 1 and len(frame):
            values = list(column)
            values[rng.randrange(len(values))] = rng.choice(CELLS)
            column = pd.Series(values, index=frame.index, dtype=object)
            frame = pd.concat(
                [frame.iloc[:, :place], column.rename(frame.columns[place]), frame.iloc[:, place + 1 :]], axis=1
            )
        elif what == 2:
            try:
                column = column.astype(rng.choice(DTYPES))
            except Exception:
                continue
            frame = pd.concat([frame.iloc[:, :place], column, frame.iloc[:, place + 1 :]], axis=1)
        elif what == 3:
            names = list(frame.columns)
            names[place] = rng.choice((*TEXTS, *names, 0, 1.5, None, ("a", "b"), math.nan))
            frame.columns = pd.Index(names, dtype=object)
        elif what == 4:
            frame = rng.choice(
                (frame.iloc[:0], frame.iloc[:1], pd.concat([frame, frame]), frame.iloc[:, :0], frame.iloc[::-1])
            )
        elif what == 5:
            frame.index = pd.Index([rng.choice((0, "a", math.nan))] * len(frame))
        elif what == 6:
            frame = frame.iloc[:, [other for other in range(len(frame.columns)) if other != place]]
        else:
            frame.columns = rng.choice(
                (pd.MultiIndex.from_arrays([frame.columns, frame.columns]), pd.RangeIndex(len(frame.columns)))
            )
    return frame
