"""Scenario files damaged at random: either a scenario that can be computed, or InputFileError with its lines."""

import re

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import envs

ODD = st.sampled_from(
    [
        "", "0", "-1", "1", "2", "0.5", "1.0000001", "1e308", "-1e308", "1e-320", "inf", "-inf", "nan", "true", "false",
        f"1{'0' * 400}", f"-1{'0' * 400}", f"0x{'f' * 5000}", "9" * 5000, "1979-05-27", "07:32:00", '""', '"x"',
        '"death"', '"age"', '"covid_positive"', '"v1"', "'''a\nb'''", '"\\u2028\\n"', "[]", "[0.5, 0.5]", "[[]]",
        "[{}]", '["none", "none"]', '["v1"]', "[1, 2, 3]", "[0, 1]", "[nan]", "{}", "{ a = 1 }", "{ fever = 1 }",
        "{ levels = [0, 1], shares = [0.5, 0.5] }", '"unclosed', "[1, 2", "{ a = 1", "=", "\x00", "# gone",
        "{ value = 0.5 }", "{ value = 0.5, interval = [0.4, 0.6] }", "{ value = 1e9, interval = [nan, 1] }",
        "{ clears.fever = 0.5 }", '["both"]', '["antiviral", "none"]', "[{ fever = 1 }, {}]", '[{ age = "old" }]',
    ]
)  # fmt: skip
LINES = st.sampled_from(
    [
        "[[rules]]", "[rules]", "[rules.when]", "[features]", "[features.death]", "[treatments.a9]", "[death.hazard]",
        "when = { fever = 1 }", "set = { fever = 1, death = 1 }", "add = { fever = -1 }", "per = {}", "x.y.z = 1",
        'combines = ["a9"]', '"\\n" = 1', "a = 1 # ]", "gamma = {}", "levels = [1]", "[[[", "]", "[death]", "[[death]]",
        'per = { feature = "age", unit = 1e-9 }', 'flags = ["death"]', "acute = {}", "baseline = 0", "fever = {}",
        "[[treatments.both.rules]]", "[events.x]", "[events.fever]", "contraindicated = [{ fever = 0 }, { fever = 1 }]",
        "multiply = { cost = 1e308, hazard_ratio.death = 1e6 }", "hazard_ratio = { death = 1e-6, stroke = 1e6 }",
    ]
)  # fmt: skip
VALUE = re.compile(r'(?<=[=\[, ])\s*(?:"[^"\n]*"|-?\d[\d.e]*|\{[^{}\n]*\}|\[[^\[\]\n]*\])')


def damage(data, text):
    """One random edit."""
    kind = data.draw(st.sampled_from(("value", "value", "value", "delete", "repeat", "insert", "swap", "cut")))
    if kind == "value":
        spots = list(VALUE.finditer(text))
        if not spots:
            return text
        spot = spots[data.draw(st.integers(0, len(spots) - 1))]
        return text[: spot.start()] + " " + data.draw(ODD) + text[spot.end() :]
    rows = text.split("\n")
    place = data.draw(st.integers(0, len(rows) - 1))
    if kind == "delete":
        del rows[place]
    elif kind == "repeat":
        rows.insert(place, rows[place])
    elif kind == "insert":
        rows.insert(place, data.draw(LINES))
    elif kind == "swap":
        other = data.draw(st.integers(0, len(rows) - 1))
        rows[place], rows[other] = rows[other], rows[place]
    else:
        rows = rows[:place]
    return "\n".join(rows)


def load(path, text):
    """The scenario, or the lines of its refusal; anything else that is raised fails the test."""
    path.write_text(text, encoding="utf-8")
    try:
        return envs.load_scenario(path)
    except envs.InputFileError as error:
        return str(error)


@settings(derandomize=True, deadline=None, database=None, max_examples=250)
@pytest.mark.parametrize("name", ["small", "language"])
@given(data=st.data())
def test_a_damaged_scenario_is_refused_by_lines_or_can_be_computed(small_path, tmp_path_factory, name, data):
    text = small_path.with_stem(name).read_text(encoding="utf-8")
    for _ in range(data.draw(st.integers(1, 3))):
        text = damage(data, text)
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    result = load(path, text)
    if isinstance(result, str):
        event("refused")
        rows = result.split("\n")
        for row in rows:
            line = re.match(re.escape(path.as_posix()) + r"(?::(\d+))?: \S", row)
            assert line, row
            # A file that cannot be read at all, say for a number of 5,000 digits, has one mistake and no line.
            assert line[1] or len(rows) == 1
            assert 1 <= int(line[1] or 1) <= text.count("\n") + 1
        return
    event("accepted")
    prior, response = envs.prior(result), envs.ResponseModel(result)
    assert abs(prior.sum() - 1) <= 1e-12
    assert prior.min() >= 0
    assert np.isfinite(response.death).all()
    assert response.death.min() >= 0
    assert response.death.max() <= 1
    for outcome in result.outcomes:
        assert ((response.probability(outcome) >= 0) & (response.probability(outcome) <= 1)).all()
    assert all(np.isfinite(cost).all() for cost in response.costs(envs.default_utility(result).costs))
    assert response.admissible is None or response.admissible.any(axis=1).all()
    utility = envs.default_utility(result)
    assert np.isfinite(utility.weight_vector(result.outcomes)).all()
    assert np.isfinite(utility.cost_vector(result.actions)).all()
