"""`init`, `compare`, `privatize` and `select` agree on what a level is: floats as 0 and 1, numbers in bins."""

import csv
import json
import re

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from private_files import run
from small_trials import ASSIGNED

import policysim as ps
from policies.levels import Levels, codes_of_keys, level_key
from policysim.cli.main import main
from policysim.logs.load_log import load_log
from policysim.release.privatize import privatize_files, read_private
from policysim.release.privatize_note import Randomization
from policysim.release.privatize_source import open_source
from policysim.study.study_reader import load_study

# What NumPy writes of a column of whole numbers in which a value was missing once.
ROWS = [("AB"[i % 2], 20 + 37 * i % 53, float(i % 3 == 0), float(i % 5 < 2)) for i in range(120)]
BANDS = ("< 40", "40 to < 60", "≥ 60")


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("arm", "age", "sex", "cured"), *ROWS])
    assert main(["init", str(path), "--treatment", "arm", "--outcome", "cured", "--id", "none", *ASSIGNED]) == 0
    study = tmp_path / "people.toml"
    text, count = re.subn(r"cuts = \[[^]]*\]", "cuts = [40, 60]", study.read_text())
    study.write_text(text)
    assert count == 1 and "sex = { levels = [0, 1] }" in text
    return path


def options(people, name):
    out = people.with_name(f"{name}.simulated.csv")
    return ("--study", people.with_suffix(".toml"), "--epsilon", 30, "--simulate", 1, "--out", out)


def band(age):
    """The bin of a number, by comparisons."""
    return BANDS[(age >= 40) + (age >= 60)]


def columns(path):
    with path.open(newline="") as stream:
        return dict(zip(("arm", "age", "sex", "cured"), zip(*list(csv.reader(stream))[1:], strict=True), strict=True))


def test_privatize_writes_the_levels_of_the_study(capsys, people):
    assert run(capsys, people, "--column", "sex", "--column", "age", *options(people, "private"))[0] == 0
    private = columns(people.with_name("private.simulated.csv"))
    # At ε = 30 a report is another value with a probability below 1e-11.
    assert private["sex"] == tuple(str(int(sex)) for _, _, sex, _ in ROWS)
    assert private["age"] == tuple(band(age) for _, age, _, _ in ROWS)
    note = json.loads(people.with_name("private.simulated.csv.privacy.json").read_text())
    assert [(column["name"], column["levels"]) for column in note["columns"]] == [
        ("sex", ["0", "1"]),
        ("age", list(BANDS)),
    ]
    assert {column["levels_from"] for column in note["columns"]} == {"declared"}
    # The note suffices to estimate from the copy, and the study reads its bins by their names.
    assert run(capsys, people.with_name("private.simulated.csv"), "--estimate")[0] == 0
    age = load_study(people.with_suffix(".toml")).space.feature("age")
    codes = codes_of_keys(age, [level_key(name) for name in private["age"]])
    assert codes.tolist() == [BANDS.index(name) for name in private["age"]]


def test_a_table_counts_rows_by_bins(capsys, people):
    chosen = ("--as", "table", "--column", "age", "--by", "sex", *options(people, "table"))
    assert run(capsys, people, *chosen)[0] == 0
    with people.with_name("table.simulated.csv").open(newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["sex", "age", "noisy_count"]
    true = [sum((str(int(sex)), band(age)) == (row[0], row[1]) for _, age, sex, _ in ROWS) for row in rows]
    # e^-15 is the chance that noise of rate 15 is not 0.
    assert [int(row[2]) for row in rows] == true
    note = json.loads(people.with_name("table.simulated.csv.privacy.json").read_text())
    assert note["columns"] == [{"name": "age", "levels": list(BANDS)}]


def test_select_reads_candidates_and_bins_as_the_study_does(capsys, people):
    command = ["select", str(people), "--epsilon", "30", "--simulate", "1", "--json", "--analysis"]
    study = ["--study", str(people.with_suffix(".toml"))]
    for chosen, names, values in (
        (["--column", "sex", "--candidates", "0,1"], ("0", "1"), [str(int(sex)) for _, _, sex, _ in ROWS]),
        (["--column", "sex", *study], ("0", "1"), [str(int(sex)) for _, _, sex, _ in ROWS]),
        (["--column", "age", *study], BANDS, [band(age) for _, age, _, _ in ROWS]),
    ):
        capsys.readouterr()
        assert main(command + chosen) == 0
        printed, err = capsys.readouterr()
        (group,) = json.loads(printed)["analysis_not_private"]["groups"]
        assert {row["candidate"]: row["count"] for row in group["candidates"]} == {n: values.count(n) for n in names}
        assert "taken from the private rows" not in err


def test_a_copy_of_parquet_holds_bins_as_text_and_levels_in_their_type(tmp_path):
    data = tmp_path / "data.parquet"
    ages, groups = pa.array([39, 40, 75], pa.int8()), pa.array([1.0, None, 0.0])
    pq.write_table(pa.table({"age": ages, "sex": groups.fill_null(0), "known": groups}), data)
    out = tmp_path / "private.simulated.parquet"
    levels = {"age": BANDS, "sex": ("0", "1"), "known": ("0", "1", "NA")}
    privatize_files(open_source(data), out, Randomization(levels, 60.0, cuts={"age": (40, 60)}), seed=1)
    found = pq.read_table(out)
    assert found.column("age").to_pylist() == ["< 40", "40 to < 60", "≥ 60"]
    assert found.column("sex").to_pylist() == [1.0, 0.0, 0.0] and found.schema.field("sex").type == pa.float64()
    assert found.column("known").to_pylist() == ["1", "NA", "0"]
    assert read_private(out)[1][0].reports.sum() == 3
    assert Levels("age", BANDS, (40, 60)) in Randomization(levels, 60.0, cuts={"age": (40, 60)}).features


def test_missing_values_are_the_level_na_where_it_is_declared(capsys, tmp_path):
    data, out = tmp_path / "smokers.csv", tmp_path / "private.simulated.csv"
    smokers = ["yes", "", "no", "NA", "no", "null"] * 20
    data.write_text("id,smoker\n" + "".join(f"{row},{smoker}\n" for row, smoker in enumerate(smokers)))
    options = ("--column", "smoker", "--epsilon", "30", "--simulate", "1", "--out", out)
    assert run(capsys, data, *options, "--levels", "smoker=yes,no,NA")[0] == 0
    with out.open(newline="") as stream:
        private = [row["smoker"] for row in csv.DictReader(stream)]
    assert private == ["yes", "NA", "no", "NA", "no", "NA"] * 20
    code, _, err = run(capsys, data, *options, "--levels", "smoker=yes,no")
    assert code == 3
    assert err.splitlines()[0].endswith("row 2: smoker: must be one of yes, no; a level NA takes missing values")
    command = ["select", str(data), "--column", "smoker", "--epsilon", "30", "--simulate", "1", "--json", "--analysis"]
    assert main([*command, "--candidates", "yes,no,NA"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["analysis_not_private"]["groups"]
    assert {row["candidate"]: row["count"] for row in group["candidates"]} == {"yes": 20, "no": 40, "NA": 60}


@pytest.fixture
def with_unknown(people):
    """The study, in whose log an age of 999 means unknown."""
    study = people.with_suffix(".toml")
    study.write_text(study.read_text().replace("[data]", "[data]\nunknown = { age = [999] }"))
    assert load_study(study).log.unknown == {"age": ("999",)}
    return study


@pytest.fixture
def with_level(people, with_unknown):
    """The same study where missing ages are a level; and the people, of whom each third is 999 years old."""
    with_unknown.write_text(with_unknown.read_text().replace("cuts = [40, 60]", "cuts = [40, 60], missing = true"))
    ages = [999 if place % 3 == 0 else age for place, (_, age, _, _) in enumerate(ROWS)]
    table = pd.DataFrame(ROWS, columns=["arm", "age", "sex", "cured"]).assign(age=ages)
    table.to_csv(people, index=False)
    return ["NA" if age == 999 else band(age) for age in ages]


def test_a_number_that_means_unknown_is_no_number_where_a_treatment_is_drawn(tmp_path, with_unknown):
    patients = pd.DataFrame({"id": [1, 2], "event": ["visit"] * 2, "age": [999, 999.0], "sex": [0, 1]})
    ledger = ps.Ledger(tmp_path / "ledger.sqlite", budget=10)

    def decided(**options):
        return ps.decide(with_unknown, patients, epsilon=1, id="id", event="event", ledger=ledger, **options)

    with pytest.raises(ValueError, match=r"row 0: age: must be a finite number; --missing age=LEVEL says") as caught:
        decided()
    assert "999" not in str(caught.value)
    assert set(decided(missing="age=< 40")["status"]) == {"drawn"}


def test_an_age_of_999_is_missing_to_the_study_and_to_every_command_that_takes_its_levels(
    capsys, people, with_unknown, with_level
):
    log = load_log(load_study(with_unknown).log)
    assert [str(row["age"]) for _, row in log.space.decode(log.records).iterrows()] == with_level
    assert (log.unknown["age"], with_level.count("NA")) == (40, 40)
    problem = ps.build_problem(load_study(with_unknown))
    assert problem.decode(problem.encode(pd.read_csv(people)))["age"].astype(str).tolist() == with_level
    assert run(capsys, people, "--column", "age", *options(people, "private"))[0] == 0
    assert list(columns(people.with_name("private.simulated.csv"))["age"]) == with_level
    assert run(capsys, people, "--as", "table", "--column", "age", *options(people, "table"))[0] == 0
    counted = pd.read_csv(people.with_name("table.simulated.csv"), keep_default_na=False)
    counts = {name: with_level.count(name) for name in (*BANDS, "NA")}
    assert dict(zip(counted["age"], counted["noisy_count"], strict=True)) == counts
    command = ["select", str(people), "--epsilon", "30", "--simulate", "1", "--json", "--analysis", "--column", "age"]
    assert main([*command, "--study", str(with_unknown)]) == 0
    (group,) = json.loads(capsys.readouterr().out)["analysis_not_private"]["groups"]
    assert {row["candidate"]: row["count"] for row in group["candidates"]} == counts
    today, ledger = people.with_name("today.csv"), people.with_name("ledger.sqlite")
    pd.DataFrame({"id": range(4), "event": "visit", "age": [999, 30, "999.0", ""], "sex": 0}).to_csv(today, index=False)
    ps.Ledger(ledger, budget=3)
    command = ["decide", str(today), "--study", str(with_unknown), "--epsilon", "1", "--id", "id", "--event", "event"]
    assert main([*command, "--ledger", str(ledger), "--out", str(people.with_name("drawn.csv"))]) == 0
    assert "age is missing or unknown in 3 rows, which count as NA" in capsys.readouterr().err


def test_an_age_of_999_is_refused_where_a_study_has_no_level_for_missing_ones(capsys, people, with_unknown):
    rows = people.read_text().splitlines()
    people.write_text("\n".join([rows[0], rows[1].replace(",20,", ",999,"), *rows[2:], ""]))
    said = "age: must be a finite number; a level NA (missing = true beside the cuts of a study) takes missing values"
    for command in (
        ["privatize", str(people), "--column", "age", *map(str, options(people, "private"))],
        ["select", str(people), "--column", "age", "--study", str(with_unknown), "--epsilon", "1", "--simulate", "1"],
    ):
        assert main(command) == 3
        assert capsys.readouterr().err.splitlines()[0].endswith(f"people.csv:2: row 1: {said}")
    assert not people.with_name("private.simulated.csv").exists()
    # A column whose levels are listed needs nothing of the study.
    listed = f"age={','.join(sorted({str(age) for _, age, _, _ in ROWS}))},999"
    assert run(capsys, people, "--column", "age", "--levels", listed, *options(people, "listed"))[0] == 0


CODED = """[data]
file = "coded.csv"
treatment = "arm"
propensity = "equal"
missing = "exclude"
{outcome}
[data.treatments]
a = "A"
b = "B"
[data.features]
sex = {{ levels = [0, 1] }}
"""
SCALE = "unknown = { scale = [9] }\noutcome = { scale = { 0 = 1, 1 = 0.5, 2 = 0, 3 = -0.5 } }\nrange = [-0.5, 1]"
STATUS = 'time = "days"\nhorizon = 5\nevent = { column = "status", event = 2, censored = 1, competing = [3, 4] }'


@pytest.mark.parametrize(
    ("outcome", "column", "counts"),
    [
        # Nobody has 3, or 4; what is empty, or means unknown, is missing.
        (SCALE, "scale", {"0": 20, "1": 15, "2": 10, "3": 0, "NA": 15}),
        (STATUS, "status", {"1": 20, "2": 35, "3": 5, "4": 0, "NA": 0}),
        (SCALE, "arm", {"a": 30, "b": 30}),
    ],
)
def test_codes_of_outcomes_and_events_are_levels_also_those_that_nobody_has(capsys, tmp_path, outcome, column, counts):
    path, study = tmp_path / "coded.csv", tmp_path / "coded.toml"
    scales = [0] * 20 + [1] * 15 + [2] * 10 + [9] * 10 + [""] * 5
    statuses = [1] * 20 + [2] * 35 + [3] * 5
    rows = {"arm": ["a", "b"] * 30, "sex": [0, 1, 1] * 20, "scale": scales, "days": range(60), "status": statuses}
    pd.DataFrame(rows).to_csv(path, index=False)
    study.write_text(CODED.format(outcome=outcome))
    command = ["--column", column, "--study", str(study), "--epsilon", "30", "--simulate", "1"]
    assert main(["select", str(path), *command, "--json", "--analysis"]) == 0
    selected = capsys.readouterr()
    (group,) = json.loads(selected.out)["analysis_not_private"]["groups"]
    assert {row["candidate"]: row["count"] for row in group["candidates"]} == counts
    assert "taken from the private rows" not in selected.err
    copy = tmp_path / "copy.simulated.csv"
    assert run(capsys, path, *command, "--out", copy)[0] == 0
    (of_column,) = json.loads(copy.with_name(f"{copy.name}.privacy.json").read_text())["columns"]
    assert (set(of_column["levels"]), of_column["levels_from"]) == ({*counts}, "declared")
    # At ε = 30 a report is another value with a probability below 1e-11.
    assert pd.read_csv(copy, keep_default_na=False)[column].astype(str).value_counts().to_dict() == {
        level: count for level, count in counts.items() if count
    }


def test_a_missing_candidate_is_refused_with_what_takes_it(capsys, tmp_path):
    path = tmp_path / "wards.csv"
    path.write_text("ward,age\nnorth,1\n,2\nsouth,3\n")
    command = ["select", str(path), "--column", "ward", "--epsilon", "1", "--simulate", "1"]
    assert main(command) == 3
    said = "row 2: ward: is missing; list all possible values, with NA for missing ones (--candidates, --groups)"
    assert capsys.readouterr().err.splitlines() == [f"policysim: {path.as_posix()}:3: {said}"]
    assert main([*command, "--candidates", "north,south,NA"]) == 0
