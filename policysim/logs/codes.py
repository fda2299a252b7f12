"""What the words and codes of a log's columns mean, as a study says: the state at a time, the utility of an outcome."""

from __future__ import annotations

from collections.abc import Mapping

from envs.toml_reader import TomlTable, shown
from policies.levels import MISSING, level_key, level_of
from policysim.logs.binning import LEVEL_WANTED, is_level

# What may have happened at the end of a patient's follow-up; and what a column of 0 and 1 says of it.
CENSORED, EVENT, COMPETING = STATES = (0, 1, 2)
ZERO_ONE = {"1": EVENT, "0": CENSORED}


def read_event(table: TomlTable) -> tuple[str, dict[str, int]]:
    """The column that [data] names as `event`, and what each of its values means; "" if there is none."""
    if not isinstance(table.values.get("event"), dict):
        return table.column("event", ""), dict(ZERO_ONE)
    section = table.table("event")
    codes: dict[str, int] = {}
    for key, state in {"event": EVENT, "censored": CENSORED, "competing": COMPETING}.items():
        if key not in section and state == COMPETING:
            continue
        for value in _values(section, key):
            codes.setdefault(value, state)
            if codes[value] != state:
                section.fail(f"{value} is there already", key)
    column = section.column("column")
    section.close()
    return column, codes


def _values(table: TomlTable, key: str) -> list[str]:
    """The value, or the list of values, of a key, as text."""
    wanted = f"{LEVEL_WANTED}, or a list of such"
    if key not in table:
        table.fail(f"{key} is missing: it must be {wanted}")
        return []
    stated = table.values[key]
    if not isinstance(stated, list) and not is_level(stated):
        table.fail(f"must be {wanted}, got {shown(stated)}", key)
        return []
    values = table.list_of(key, is_level, LEVEL_WANTED) if isinstance(stated, list) else [stated]
    for value in values:
        if level_key(value) == MISSING:
            table.fail(f"{value!r} is how a missing value is written, and means nothing else", key)
    return [str(level_of(level_key(value))) for value in values]


def read_coded(table: TomlTable) -> tuple[float, dict[str, float]]:
    """An outcome of words or codes, of which a table of [data.outcome] has the utilities: see `coded_outcome`."""
    utilities = {value: table.number(value) for value in table}
    try:
        return coded_outcome(utilities)
    except ValueError as error:
        if not table.wrong():
            table.fail(str(error))
        return 1.0, utilities


def coded_outcome(utilities: Mapping[str, float]) -> tuple[float, dict[str, float]]:
    """The weight of an outcome of words or codes, and the number of each, which make these utilities.

    Where none is > 0 the column is harm: its numbers are positive, and its weight is -1, as that of a column of 0 and 1
    would be. ValueError for values that are missing, the same, or without a difference.

    Examples
    --------
    >>> coded_outcome({"Yes": -1, "No": 0}), coded_outcome({"well": 1, "ill": 0.5, "dead": -0.1})
    ((-1.0, {'Yes': 1.0, 'No': 0.0}), (1.0, {'well': 1.0, 'ill': 0.5, 'dead': -0.1}))
    """
    first: dict[object, str] = {}
    for value in utilities:
        key = level_key(value)
        if key == MISSING:
            raise ValueError(f"{value!r} is how a missing value is written, and has no utility")
        if key in first:
            raise ValueError(f"{value!r} is the same value as {first[key]!r}")
        first[key] = value
    if len(set(utilities.values())) < 2:
        raise ValueError("must give at least two values different utilities, such as { Yes = 1, No = 0 }")
    weight = -1.0 if max(utilities.values()) <= 0 else 1.0
    return weight, {value: weight * utility + 0.0 for value, utility in utilities.items()}
