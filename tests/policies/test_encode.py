"""Rows of a table as record numbers and back, for problems of every origin."""

import itertools
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policysim as ps
from envs import Feature, RecordSpace
from policies.adjacency import AnyRecord
from policies.problem import DecisionProblem
from policysim.logs.data_section import binned

TEXT = st.text(st.characters(min_codepoint=97, max_codepoint=0x2FF, exclude_categories=("C",)), min_size=1, max_size=6)
LEVELS = st.one_of(
    st.lists(TEXT, min_size=2, max_size=4, unique=True).filter(lambda levels: not {"na", "nan", "true"} & {*levels}),
    st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=4, unique=True),
    st.just(["none", 1, 2]),
)
NAMED = st.dictionaries(TEXT, LEVELS, min_size=1, max_size=4)
SEEDS = st.integers(0, 2**32 - 1)


def problem_of(records, n_records):
    """A problem with these records."""
    return DecisionProblem(np.eye(n_records, 2), np.full(n_records, 1 / n_records), AnyRecord(), records=records)


def ward():
    """Records of 2 × 3 × 2 levels, the second feature cut."""
    space = RecordSpace((Feature("fever", flag=True), binned("age", (40, 80)), Feature("sex", ("f", "m"))))
    return problem_of(space, space.size)


def slowly(value, levels, cuts=()):
    """The position of a value among levels, compared one by one as people would."""
    if cuts and isinstance(value, int | float) and math.isfinite(value):
        return sum(cut <= value for cut in cuts)
    for place, level in enumerate(levels):
        same_text = isinstance(value, str) and value.strip() == str(level)
        if same_text or (not isinstance(value, str) and not isinstance(level, str) and value == level):
            return place
    return None


@settings(deadline=None)
@given(NAMED, SEEDS)
def test_rows_of_a_record_space_come_back(levels, seed):
    space = RecordSpace(tuple(Feature(name, tuple(values)) for name, values in levels.items()))
    problem, rng = problem_of(space, space.size), np.random.default_rng(seed)
    records = rng.integers(space.size, size=30)
    rows = problem.decode(records)
    assert problem.encode(rows).tolist() == records.tolist()
    pd.testing.assert_frame_equal(problem.decode(problem.encode(rows)), rows)
    # An independent formula: the number of the combination in the product, the last feature fastest.
    everyone = list(itertools.product(*levels.values()))
    assert [everyone.index(row) for row in rows.itertuples(index=False, name=None)] == records.tolist()


@settings(deadline=None)
@given(NAMED, SEEDS)
def test_rows_of_a_table_with_a_named_index_come_back(levels, seed):
    rng = np.random.default_rng(seed)
    everyone = list(itertools.product(*levels.values()))
    chosen = [everyone[place] for place in rng.permutation(len(everyone))[: max(2, len(everyone) // 2)]]
    index = pd.MultiIndex.from_tuples(chosen, names=list(levels))
    utilities = pd.DataFrame(rng.random((len(chosen), 2)), index, ["wait", "treat"])
    problem = DecisionProblem(utilities, np.full(len(chosen), 1 / len(chosen)), AnyRecord())
    records = rng.integers(len(chosen), size=30)
    rows = problem.decode(records)
    assert list(rows.itertuples(index=False, name=None)) == [chosen[record] for record in records]
    shuffled = rows[list(rng.permutation(list(levels)))].assign(**{"another column": "x"})
    assert problem.encode(shuffled).tolist() == records.tolist()
    pd.testing.assert_frame_equal(problem.decode(problem.encode(rows)), rows)


def test_rows_of_a_scenario_come_back():
    problem = ps.build_problem(ps.load_study(Path(__file__).parents[2] / "examples" / "ward" / "study.toml"))
    everyone = np.arange(problem.n_records)
    assert problem.encode(problem.decode(everyone)).tolist() == everyone.tolist()


def test_rows_of_a_table_of_ones_own_come_back():
    rows = [(gene, dose, 3, 0.1) for gene in (1.0, 2.0, 4.0) for dose in ("low", "high")]
    frame = pd.DataFrame(rows, columns=["gene", "dose", "patients", "wrong"])
    problem = ps.problem_from_frame(
        frame, features=["gene"], treatment="dose", patients="patients", weights={"wrong": 1.0}
    )
    assert problem.encode(frame).tolist() == [0, 0, 1, 1, 2, 2]
    assert problem.decode([2, 0])["gene"].tolist() == [4, 1]


def test_rows_of_numbered_records_have_a_column_of_numbers():
    unnamed = pd.DataFrame({"wait": [1.0, 0.0, 0.0], "treat": 0.5}, index=["01", "1", "b"])
    for utilities in (np.eye(3, 2), unnamed):
        problem = DecisionProblem(utilities, [0.5, 0.5, 0.0], AnyRecord())
        assert problem.decode([2, 0]).to_dict("list") == {"record": [2, 0]}
        assert problem.encode(pd.DataFrame({"record": ["2", 0, 1.0]})).tolist() == [2, 0, 1]
        must = "record: must be a whole number from 0 to 2"
        with pytest.raises(ValueError, match=rf"^row 1: {must}, got 3.0\nrow 2: {must}, got 0.5$"):
            problem.encode(pd.DataFrame({"record": [0, 3, 0.5]}))
        with pytest.raises(ValueError, match="frame has no column record: it needs one for each of record"):
            problem.encode(pd.DataFrame({"age": [1]}))


CELLS = {
    "fever": st.sampled_from([0, 1, 0.0, 1.0, True, "0", " 1 ", 2, "yes", 0.5]),
    "age": st.sampled_from([0, 39.9, 40, 79.5, 80, 1e6, "< 40", "≥ 80", "old", math.inf]),
    "sex": st.sampled_from(["f", " m", "m", "M", "x", 1]),
}


@settings(deadline=None)
@given(st.lists(st.fixed_dictionaries(CELLS), min_size=1, max_size=30))
def test_rows_are_what_a_slow_formula_says_or_refused_by_row_and_column(rows):
    problem, frame = ward(), pd.DataFrame(rows, dtype=object)
    features = problem.records.features
    codes = [[slowly(row[feature.name], feature.levels, feature.cuts) for feature in features] for row in rows]
    bad = [(row, axis) for row, known in enumerate(codes) for axis, code in enumerate(known) if code is None]
    if not bad:
        assert problem.encode(frame).tolist() == [(fever * 3 + age) * 2 + sex for fever, age, sex in codes]
        return
    with pytest.raises(ValueError, match="must be") as refused:
        problem.encode(frame)
    lines = str(refused.value).splitlines()
    for line, (row, axis) in zip(lines, bad[:20], strict=False):
        name = features[axis].name
        assert line.startswith(f"row {row}: {name}: must be ") and f", got {rows[row][name]!r}" in line
    assert lines[20:] == ([f"... and {len(bad) - 20} more"] if len(bad) > 20 else [])


def test_what_is_wrong_is_said_with_what_is_allowed_and_the_nearest_level():
    frame = ward().decode([0, 3, 11]).set_axis(["x", "y", "z"], axis=0)
    frame["sex"] = ["f", "mm", None]
    frame["age"] = [30, 50, "young"]
    with pytest.raises(ValueError, match="must be") as refused:
        ward().encode(frame)
    assert str(refused.value).splitlines() == [
        "row 1 (y): sex: must be one of f, m, got 'mm'; did you mean 'm'?",
        "row 2 (z): age: must be a finite number, got 'young'",
        "row 2 (z): sex: must be one of f, m, is missing",
    ]
    with pytest.raises(ValueError, match="frame has no column fever, sex: it needs one for each of fever, age, sex"):
        ward().encode(frame[["age"]])
    with pytest.raises(ValueError, match="frame has two columns age"):
        ward().encode(pd.concat([frame, frame[["age"]]], axis=1))
    with pytest.raises(ValueError, match="frame must be a pandas DataFrame, got list"):
        ward().encode([0, 1])


def test_a_combination_that_is_no_record_is_refused():
    index = pd.MultiIndex.from_tuples([("young", 0), ("old", 1)], names=["age", "ill"])
    problem = DecisionProblem(pd.DataFrame({"wait": [1.0, 0.0], "treat": 0.5}, index), [0.5, 0.5], AnyRecord())
    with pytest.raises(ValueError, match=r"^row 1: the problem has no record with age young, ill 1$"):
        problem.encode(pd.DataFrame({"ill": [1, 1], "age": ["old", "young"]}))
    with pytest.raises(ValueError, match=r"index without repetition, got young, 0\.0 twice"):
        twice = pd.MultiIndex.from_tuples([("young", "0"), ("young", 0.0)], names=["age", "ill"])
        DecisionProblem(pd.DataFrame({"wait": [1.0, 0.0], "treat": 0.5}, twice), [0.5, 0.5], AnyRecord())


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([0, 12], r"indices must be from 0 to 11, got indices\[1\]=12"),
        ([-1], r"indices must be from 0 to 11, got indices\[0\]=-1"),
        ([0.5], r"indices must be whole numbers, \(m,\), got float64"),
        ([[0, 1]], r"indices must be whole numbers, \(m,\), got int64 of shape \(1, 2\)"),
    ],
)
def test_what_is_no_record_number_is_refused(indices, message):
    with pytest.raises(ValueError, match=message):
        ward().decode(indices)


def test_no_rows_are_no_records():
    assert ward().encode(ward().decode([])).tolist() == []
    assert list(ward().decode([]).columns) == ["fever", "age", "sex"]
