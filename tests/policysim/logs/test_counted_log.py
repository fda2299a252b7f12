"""Logs in many files, counted: the same numbers whatever the files, those of the rows, and what cannot be counted."""

import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts_work import bits, log_rows, write_parts

from policysim.cli.main import main
from policysim.errors import UsageError
from policysim.files import columns_file
from policysim.files.bad_rows import DataError
from policysim.files.dialect import BLOCK
from policysim.files.many_files import files_of, is_many
from policysim.logs import counted_log, kinds
from policysim.logs.counted_log import count_log, open_log, require_countable, require_countable_model
from policysim.logs.kinds import MOST_CELLS, Counted, DistinctRows, Kinds, each_once
from policysim.logs.load_log import load_log
from policysim.logs.log_source import OUTCOME_MODELS, TABLE
from policysim.logs.outcome_models import FEW_TREES, fit_to_log
from policysim.logs.treatments import CLASSIFYING_TREES
from policysim.study.study_problem import indicators
from policysim.study.study_reader import load_study
from policysim.trials.arms import arms_of

FRAME = log_rows()


def counted(tmp_path, frame, n_parts, ending="csv", **options):
    return count_log(load_study(write_parts(tmp_path, frame, n_parts, ending, **options)).log)


@pytest.fixture
def refused(tmp_path, capsys):
    """What `compare` says of a study that it refuses, and its exit code."""

    def said(study):
        code = main(["compare", str(study), "--out", str(tmp_path / "out")])
        assert not (tmp_path / "out").exists()
        return code, capsys.readouterr().err

    return said


@pytest.fixture(scope="module")
def in_one_file(tmp_path_factory):
    return counted(tmp_path_factory.mktemp("one"), FRAME, 1)


@pytest.mark.parametrize(("n_parts", "ending"), [(1, "parquet"), (3, "csv"), (16, "parquet")])
def test_the_same_rows_in_other_files_are_the_same_log_bit_for_bit(tmp_path, in_one_file, n_parts, ending):
    assert bits(counted(tmp_path, FRAME, n_parts, ending)) == bits(in_one_file)


def test_neither_the_order_of_the_rows_nor_the_size_of_batches_matters(tmp_path, in_one_file, monkeypatch):
    monkeypatch.setattr(Kinds, "FEW", 10)
    mixed = FRAME.sample(frac=1, random_state=1)
    assert bits(counted(tmp_path, mixed, 5)) == bits(in_one_file)


def test_counts_are_those_of_the_rows(tmp_path, in_one_file):
    source = load_study(write_parts(tmp_path, FRAME, 1)).log
    log = load_log(source)

    def rows(log):
        """What is known of each row; what is modelled of a missing outcome depends on who shares a part."""
        data, known = log.data, log.data.known.weights > 0
        table = [log.records, data.actions, data.propensities, known, np.where(known, data.known.rewards, 0)]
        return np.column_stack(table).round(12)

    kinds, counts = np.unique(rows(log), axis=0, return_counts=True)
    mine, places = np.unique(rows(in_one_file), axis=0, return_inverse=True)
    assert np.array_equal(mine, kinds)
    assert np.bincount(places, in_one_file.data.counts).tolist() == counts.tolist()
    # Folds are others, so that they differ by a few parts in a hundred of a standard error.
    apart = [arms_of(each, source)["mean"].to_numpy() for each in (log, in_one_file)]
    assert apart[0] == pytest.approx(apart[1], abs=0.005)
    for name in ("missing", "n_read", "n_untreated"):
        assert getattr(log, name) == getattr(in_one_file, name)
    assert log.data.n_patients == in_one_file.data.n_patients


def mixed_rows(n=500):
    """Texts with gaps, numbers, whole numbers, codes of one byte; in two chunks, whose dictionaries differ."""
    rng = np.random.default_rng(0)
    texts = pd.Series(rng.choice(["1", "1.0", "", "a,b", "x\ny"], n)).where(rng.random(n) < 0.8, None)
    numbers = pd.Series(rng.choice([0.0, -0.0, 1.5, np.nan], n))
    whole = pd.Series(rng.integers(-(2**62), 2**62, 3)[rng.integers(3, size=n)])
    codes = pd.Series(rng.choice(list("017x"), n))
    frame = pd.DataFrame({"t": texts, "n": numbers, "w": whole, "c": codes})
    chunks = [pa.Table.from_pandas(part, preserve_index=False) for part in (frame[:200], frame[200:])]
    return [chunk.set_column(0, "t", chunk["t"].dictionary_encode()) for chunk in chunks]


def counted_by_hand(tables):
    return Counter(tuple(map(repr, row.values())) for table in tables for row in table.to_pylist())


def by_row(found, counts):
    return dict(zip((tuple(map(repr, row.values())) for row in found.to_pylist()), counts.tolist(), strict=True))


def test_each_row_is_counted_once_whatever_its_columns_hold():
    chunks = mixed_rows()
    assert by_row(*each_once(pa.concat_tables(chunks))) == counted_by_hand(chunks)


@given(cuts=st.sets(st.integers(1, 499), max_size=4))
def test_rows_of_few_values_are_counted_in_any_batches(cuts):
    rows = pa.concat_tables(mixed_rows()).combine_chunks()
    few = DistinctRows()
    for first, end in pairwise([0, *sorted(cuts), len(rows)]):
        assert few.add(rows.slice(first, end - first))
    ((found, counts),) = few.found()
    assert by_row(found, counts) == counted_by_hand([rows])


@given(order=st.permutations(["short", "long", "gaps"]))
def test_codes_of_one_byte_are_counted_with_any_other_values(order):
    """A column has more values than a byte has numbers, and each is counted whichever came first."""
    signs = [chr(number) for number in range(32, 127)]
    batches = {"short": signs * 2, "long": [f"{number:03}" for number in range(200)] + signs, "gaps": [*signs, None]}
    tables = [pa.table({"sign": pa.array(batches[name], pa.string())}) for name in order]
    few = DistinctRows()
    assert all(map(few.add, tables))
    ((found, counts),) = few.found()
    assert by_row(found, counts) == counted_by_hand(tables)


def test_rows_of_too_many_combinations_are_left_to_others(monkeypatch):
    monkeypatch.setattr(kinds, "MOST_CELLS", 20)
    few = DistinctRows()
    assert few.add(pa.table({"a": ["x", "y", "x"], "b": ["0", "1", "1"]}))
    assert not few.add(pa.table({"a": [f"x{number}" for number in range(11)], "b": ["0"] * 11}))
    assert few.add(pa.table({"a": ["z"], "b": ["0"]}))
    assert not few.add(pa.table({"a": ["x"], "b": [[0]]}))
    ((found, counts),) = few.found()
    assert by_row(found, counts) == {("'x'", "'0'"): 1, ("'y'", "'1'"): 1, ("'x'", "'1'"): 1, ("'z'", "'0'"): 1}


@pytest.mark.parametrize(("column", "value"), [("cured", [0, 1]), ("ill", {"no": 1})])
def test_a_column_of_lists_is_refused_as_among_rows(tmp_path, column, value):
    frame = FRAME.copy()
    frame[column] = [value] * len(frame)
    source = load_study(write_parts(tmp_path, frame, 1, "parquet")).log
    said = []
    for read in (load_log, count_log):
        with pytest.raises(DataError) as refused:
            read(source)
        said.append(str(refused.value))
    assert said[0] == said[1]
    assert "must hold one number, text, truth value or time in each row" in said[0]


def test_a_folder_a_pattern_and_a_list_are_the_same_log(tmp_path, in_one_file):
    study = write_parts(tmp_path, FRAME, 3)
    (tmp_path / "parts" / "_SUCCESS").touch()
    (tmp_path / "parts" / ".hidden.csv").write_text("left by another tool")
    names = ["parts/0000.csv", "parts/0001.csv", "parts/0002.csv"]
    text = study.read_text()
    for said in ('"parts"', '"parts/*.csv"', str(names).replace("'", '"')):
        study.write_text(text.replace('"parts"', said))
        source = load_study(study).log
        assert [part.as_posix() for part in source.parts] == [(tmp_path / name).as_posix() for name in names]
        assert bits(open_log(source)) == bits(in_one_file)


def test_a_file_whose_name_has_the_signs_of_a_pattern_is_a_file(tmp_path):
    odd = tmp_path / "trial[1].csv"
    assert is_many(odd)
    odd.touch()
    assert not is_many(odd)
    assert files_of(odd) == (odd,)


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ('"empty"', ": {0}/empty: there is no file in this folder that ends in .csv, .tsv, .parquet"),
        ('"parts/*.parquet"', ": {0}/parts/*.parquet: there is no file of this pattern"),
        ('["parts/0000.csv", "parts/0000.csv"]', "[1]: names 'parts/0000.csv' twice"),
        ('["parts/0000.csv", "parts/../parts/0000.csv"]', "[1]: names 'parts/../parts/0000.csv' twice"),
        ('["parts/0000.csv", "parts/0007.csv"]', "[1]: there is no file {0}/parts/0007.csv"),
        ("[]", ": must not be empty"),
    ],
)
def test_a_folder_without_files_and_a_file_named_twice_are_refused(tmp_path, refused, file, said):
    study = write_parts(tmp_path, FRAME, 2)
    (tmp_path / "empty").mkdir()
    study.write_text(study.read_text().replace('"parts"', file))
    code, err = refused(study)
    assert code == 2 and f"study.toml:3: data.file{said.format(tmp_path.as_posix())}" in err


def test_rows_in_compressed_files_are_not_left_out_in_silence(tmp_path, refused):
    study = write_parts(tmp_path, FRAME, 2)
    for packed in ("0002.csv.zip", "0002.PARQUET.zst"):
        (tmp_path / "parts" / packed).touch()
        said = f"parts/{packed}: is packed in a way that is not read: unpack it, or move it elsewhere"
        code, err = refused(study)
        assert code == 2 and said in err
        (tmp_path / "parts" / packed).unlink()
    for other in ("notes.txt.gz", ".0002.csv.zip"):
        (tmp_path / "parts" / other).touch()
    assert [part.name for part in files_of(tmp_path / "parts")] == ["0000.csv", "0001.csv"]


def test_bad_rows_of_all_files_are_told_together_with_their_lines(tmp_path):
    frame = FRAME.copy()
    frame["old"] = frame["old"].astype(object)
    frame.loc[[3, 700], "old"] = "ancient"
    frame.loc[900:930, "chance"] = 1.5
    source = load_study(write_parts(tmp_path, frame, 3)).log
    with pytest.raises(DataError) as refused:
        count_log(source)
    lines = str(refused.value).splitlines()
    parts = (tmp_path / "parts").as_posix()
    assert lines[0].startswith(f"{parts}/0000.csv:5: row 4: old: must be one of 0, 1; a value that means unknown is ")
    assert lines[1].startswith(f"{parts}/0001.csv:302: row 301: old: must be one of 0, 1; ")
    assert lines[2].startswith(f"{parts}/0002.csv:102: row 101: chance: must be a probability > 0 and <= 1")
    assert len(lines) == 21
    assert lines[-1] == "... and 13 more"


def test_a_row_in_a_later_batch_is_named_by_its_place_in_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr("policysim.files.columns_file.BATCH_ROWS", 100)
    frame = FRAME.copy()
    frame.loc[1100, "chance"] = 0.0
    with pytest.raises(DataError, match=r"0000\.parquet: row 1101: chance: "):
        counted(tmp_path, frame, 1, "parquet")


@pytest.mark.parametrize(("block", "cells"), [(BLOCK, MOST_CELLS), (2_000, 1)])
def test_a_row_of_totals_at_the_end_of_a_file_is_no_patient(tmp_path, monkeypatch, block, cells):
    """Whether rows are counted in an array or batch by batch."""
    monkeypatch.setattr(columns_file, "BLOCK", block)
    monkeypatch.setattr(kinds, "MOST_CELLS", cells)
    frame = FRAME.drop(columns="cured").assign(cost=100.0 + np.arange(len(FRAME)) % 13)
    study = write_parts(tmp_path, frame, 3)
    text = study.read_text().replace("{ cured = 1.0 }", "{ cost = -1 }\nrange = [-1e6, 0]")
    study.write_text(text)
    assert count_log(load_study(study).log).n_read == len(FRAME)
    part = tmp_path / "parts" / "0001.csv"
    rows = pd.read_csv(part)

    def write(total):
        pd.concat([rows, rows.tail(1).assign(cost=total)]).to_csv(part, index=False)

    write(rows["cost"].sum())
    where = f"{part.as_posix()}:402: row 401: cost: is the sum of the rows above: a row of totals is no patient: "
    with pytest.raises(DataError, match=re.escape(where)):
        count_log(load_study(study).log)
    study.with_name("one.toml").write_text(text.replace('"parts"', '"parts/0001.csv"'))
    with pytest.raises(DataError, match=re.escape(where)):
        load_log(load_study(study.with_name("one.toml")).log)
    study.write_text(text.replace("range =", 'outcome_checked = ["cost"]\nrange ='))
    assert count_log(load_study(study).log).n_read == len(FRAME) + 1
    study.write_text(text)
    write(rows["cost"].sum() - 1)
    assert count_log(load_study(study).log).n_read == len(FRAME) + 1
    pd.concat([rows, rows.tail(1).assign(ill="Total")]).to_csv(part, index=False)
    with pytest.raises(DataError, match=re.escape(f"{part.as_posix()}:402: row 401: ill: 'Total': a row of totals")):
        count_log(load_study(study).log)


def test_a_file_with_other_columns_is_named_with_the_column(tmp_path, refused):
    study = write_parts(tmp_path, FRAME, 3)
    part = tmp_path / "parts" / "0001.csv"
    pd.read_csv(part).rename(columns={"age": "years"}).to_csv(part, index=False)
    needed = "has no column 'age', which each file of the log needs; it has old, ill, years, arm, chance, cured"
    assert refused(study) == (3, f"policysim: {part.as_posix()}: {needed}\n")


def test_a_file_that_vanishes_changes_or_cannot_be_read_is_named(tmp_path, monkeypatch):
    source = load_study(write_parts(tmp_path, FRAME, 3)).log
    part = source.parts[1]
    real = DistinctRows.add

    def change(self, rows):
        with part.open("a") as stream:
            stream.write("\n")
        return real(self, rows)

    monkeypatch.setattr(DistinctRows, "add", change)
    with pytest.raises(DataError, match=r"0001\.csv: was changed while it was read"):
        count_log(source)
    monkeypatch.undo()
    part.write_bytes(b"\x81\xfe\x00")
    with pytest.raises(DataError, match=r"0001\.csv: is no text, or in an encoding to state"):
        count_log(source)
    part.unlink()
    with pytest.raises(DataError, match=r"0001\.csv: cannot be read: No such file or directory"):
        count_log(source)


def test_too_many_kinds_of_patients_are_refused(tmp_path, monkeypatch):
    for name in ("MOST_KINDS", "WHOLE_KINDS", "FEW_KINDS"):
        monkeypatch.setattr(kinds, name, 20)
    with pytest.raises(
        DataError, match=r"more than 20 kinds of patients; .*: record \d+, treatment 3, propensity 4, utility"
    ):
        counted(tmp_path, FRAME, 2)


def test_a_log_of_few_rows_is_not_counted(tmp_path):
    with pytest.raises(DataError, match="a log of fewer than 100 rows is not counted, got 99"):
        counted(tmp_path, FRAME[:99], 2)


def test_what_needs_rows_is_refused_before_anything_is_read(tmp_path):
    source = load_study(write_parts(tmp_path, FRAME, 2)).log
    require_countable(source)
    for other, reason in (
        (replace(source, files={"features": Path("a"), "actions": Path("b"), "outcomes": Path("c")}), "three files"),
        (replace(source, treatments=()), r"\[data.treatments\] must declare"),
    ):
        with pytest.raises(UsageError, match=f"this log cannot be counted .*{reason}"):
            require_countable(other)
    for model in OUTCOME_MODELS:
        if model in counted_log.COUNTED_MODELS:
            require_countable_model(model)
        else:
            with pytest.raises(UsageError, match=f"model = '{model}' is not possible: .*linear, logistic or constant"):
                require_countable_model(model)


def test_an_outcome_that_cannot_be_one_is_refused_as_among_rows(tmp_path, refused):
    code, err = refused(write_parts(tmp_path, FRAME.assign(cured=FRAME["old"].astype(float)), 3))
    assert code == 2 and "the feature old decides it, so treatment cannot change it" in err


def with_rows(tmp_path, frame, text, n_parts=3):
    """A study of rows in one file, the log of these rows, and their counts from so many files."""
    study = write_parts(tmp_path, frame, n_parts)
    study.write_text(
        study.read_text().replace("outcome = { cured = 1.0 }\n", "").replace('propensity = "chance"', text)
    )
    source = load_study(study).log
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return source, load_log(replace(source, files={TABLE: tmp_path / "rows.csv"})), count_log(source)


def test_the_time_to_an_event_is_counted_as_it_is_of_rows(tmp_path):
    rng = np.random.default_rng(0)
    frame = FRAME.assign(days=rng.integers(1, 60, len(FRAME)), died=rng.integers(2, size=len(FRAME)))
    frame.loc[::50, "days"] = np.nan
    frame["died"] = frame["died"].map(["alive", "dead"].__getitem__)
    event = '{ column = "died", event = "dead", censored = "alive", competing = "other" }'
    text = f'propensity = "chance"\ntime = "days"\nevent = {event}\nhorizon = 45'
    source, rows, log = with_rows(tmp_path, frame, text)
    assert log.data.n_patients == rows.data.n_patients
    pd.testing.assert_frame_equal(log.censored, rows.censored)
    assert log.missing == rows.missing
    mine, theirs = arms_of(log, source), arms_of(rows, source)
    # Times that are missing are modelled, in folds that are others.
    assert mine[["rows", "missing"]].equals(theirs[["rows", "missing"]])
    for number in ("mean", "low", "high"):
        assert mine[number].to_numpy() == pytest.approx(theirs[number].to_numpy(), abs=0.005)
    # Outcome models see what is known of each patient, with its weight.
    for model in ("linear", "logistic"):
        everyone = indicators(rows.space, np.arange(rows.space.size))
        fitted = [
            fit_to_log(model, indicators(each.space, each.records), each.data).predict(everyone) for each in (log, rows)
        ]
        assert fitted[0] == pytest.approx(fitted[1], abs=0.03)


def test_propensities_are_estimated_from_counts_as_from_rows(tmp_path, monkeypatch):
    monkeypatch.setitem(FEW_TREES, "max_iter", 2)  # of outcome models, which are not looked at
    monkeypatch.setitem(CLASSIFYING_TREES, "max_iter", 10)
    frame = log_rows(4000, missing=0.005)
    text = 'propensity = "estimate"\noutcome = { cured = 1.0 }'
    _, rows, log = with_rows(tmp_path / "three", frame, text)
    seven = write_parts(tmp_path / "seven", frame, 7, propensity="estimate")
    assert bits(count_log(load_study(seven).log)) == bits(log)
    assert log.data.n_patients == rows.data.n_patients
    found = []
    for each in (log, rows):
        counts = np.ones(each.data.n_rows) if each.data.counts is None else each.data.counts
        cells = each.records * 3 + each.data.actions
        totals = np.bincount(cells, counts, 54)
        known = totals >= 20
        found.append((np.bincount(cells, counts * each.data.propensities, 54) / np.maximum(totals, 1))[known])
    # Both are means over the models of five parts, that others share by another draw: a fifth of the patients moves a
    # share p of n by about sqrt(p (1 - p) / n), here below 0.03.
    assert found[0] == pytest.approx(found[1], abs=0.03)


def test_a_treatment_of_one_patient_has_no_estimated_propensity(tmp_path):
    frame = FRAME.copy()
    frame.loc[frame["arm"] == "pill", "arm"] = "wait"
    frame.loc[frame.index[frame["cured"].notna()][0], "arm"] = "pill"
    study = write_parts(tmp_path, frame, 2, propensity="estimate")
    with pytest.raises(DataError, match="needs more patients of each treatment, pill has 1"):
        count_log(load_study(study).log)
    frame["arm"] = "wait"
    study = write_parts(tmp_path / "one", frame, 2, propensity="estimate")
    with pytest.raises(DataError, match="at least two treatments that occur"):
        count_log(load_study(study).log)


def test_sums_of_counts_do_not_overflow():
    total = Kinds([])
    row = np.zeros((1, 5), dtype=np.int64)
    for _ in range(3):
        total.add(Counted.of(row, np.array([2**61])))
    assert total.arrays()[1].tolist() == [3 * 2**61]


def with_ids(tmp_path, ids, n_parts):
    study = write_parts(tmp_path, FRAME.assign(pid=ids), n_parts)
    study.write_text(study.read_text().replace("[data]", '[data]\nid = "pid"', 1))
    return load_study(study).log


@pytest.mark.parametrize(
    ("n_parts", "row", "again", "where"),
    [(2, -1, 0, "stand there already, or in .*parts/0000.csv"), (1, 9, 5, "stand there already")],
)
def test_an_id_of_two_rows_is_refused_in_whichever_files_they_are(tmp_path, n_parts, row, again, where):
    ids = np.arange(len(FRAME))
    ids[row] = ids[again]
    last = f"parts/{n_parts - 1:04}.csv"
    with pytest.raises(DataError, match=f"{last}: pid: ids of 1 rows {where}: .*leave out the id$"):
        count_log(with_ids(tmp_path, ids, n_parts))


def test_ids_leave_the_counts_as_they_are_and_must_not_be_missing(tmp_path, in_one_file):
    ids = [f"P{row}" for row in range(len(FRAME))]
    assert bits(count_log(with_ids(tmp_path / "all", ids, 3))) == bits(in_one_file)
    with pytest.raises(DataError, match=r"parts/0000.csv:4: row 3: pid: is missing"):
        count_log(with_ids(tmp_path / "gap", [*ids[:2], "", *ids[3:]], 3))
