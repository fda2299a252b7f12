"""Which columns may measure the same thing again: as the definitions say, which look at every pair of names."""

import re

from hypothesis import given
from hypothesis import strategies as st

from policysim.logs.column_summary import DIGITS, words
from policysim.logs.outcomes import NumberedNames, measured_again

STEMS = st.sampled_from(["cd4", "cd", "bp_", "x", "score", "death", "pain_week", "9", "a b", "größe"])
NUMBERS = st.sampled_from(["", "0", "1", "2", "7", "00", "01", "10", "12", "20", "28", "90", "420", "1234567890"])
NAMES = st.lists(st.builds("".join, st.tuples(STEMS, NUMBERS)), unique=True, max_size=9)


def start_of(name, names):
    for length in range(1, len(name) - len(name.rstrip(DIGITS)) + 1):
        stem, number = name[:-length], name[-length:]
        if int(number) > 0 and f"{stem}0" in names and len("".join(words(stem))) > 1:
            return f"{stem}0"
    return None


def earlier(name, names):
    stem = name.rstrip(DIGITS)
    followers = [other for other in names if re.fullmatch(re.escape(name[:-1]) + "[0-9]{1,9}", other) and other != name]
    if start_of(name, names) or stem == name:
        return start_of(name, names)
    if len("".join(words(stem))) < 2 or (name.endswith("0") and followers):
        return None
    series = {int(o[len(stem) :]): o for o in names if re.fullmatch(re.escape(stem) + "[0-9]{1,9}", o)}
    return series[min(series)] if series and min(series) < int(name[len(stem) :]) else None


@given(NAMES)
def test_each_name_has_the_earlier_measurement_of_the_definition(names):
    numbered = NumberedNames(names)
    assert [numbered.start_of(name) for name in names] == [start_of(name, names) for name in names]
    assert [numbered.earlier_measurement(name) for name in names] == [earlier(name, names) for name in names]


@given(NAMES, NAMES)
def test_names_of_other_stems_say_nothing_about_a_name(names, others):
    found = measured_again([*names, *others])
    for stem in {name.rstrip(DIGITS) for name in (*names, *others)}:
        own = [name for name in dict.fromkeys((*names, *others)) if name.rstrip(DIGITS) == stem]
        of_stem = {first: then for first, then in found.items() if first.rstrip(DIGITS) == stem}
        assert measured_again(own) == of_stem
