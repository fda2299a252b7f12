"""`policysim privatize --as table`: counts with noise, what is written, counted and refused, and their distribution."""

import csv
import json
import math
import random
from collections import Counter
from fractions import Fraction

import pytest
from private_files import people, run, write_part, write_parts, write_people
from scipy.stats import chisquare

from policysim.release.ledger import ADD_OR_REMOVE, REPLACE, Ledger
from policysim.release.noisy_table import TablePlan, noisy_counts

SEX = ("--column", "sex", "--levels", "sex=0,1")
BY_AGE = (*SEX, "--by", "age_band", "--levels", "age_band=young,old")


@pytest.fixture(params=[".csv", ".parquet"])
def data(request, tmp_path):
    return write_people(tmp_path / f"data{request.param}")


@pytest.fixture
def one(tmp_path):
    return write_people(tmp_path / "data.csv")


def table(capsys, data, *options, epsilon=1, out=None):
    out = out or data.parent / ("table.simulated.csv" if "--simulate" in options else "table.csv")
    return run(capsys, data, "--as", "table", "--epsilon", epsilon, "--out", out, *options)


def read(path):
    with path.open(newline="", encoding="utf-8") as stream:
        header, *rows = csv.reader(stream)
    return header, rows


def test_counts_with_noise_are_written_with_a_note_and_counted(capsys, data):
    ledger = data.with_name("ledger.sqlite")
    Ledger(ledger)
    code, printed, _ = table(capsys, data, *BY_AGE, "--ledger", ledger)
    assert code == 0
    header, rows = read(data.parent / "table.csv")
    assert header == ["age_band", "sex", "noisy_count"]
    assert [row[:2] for row in rows] == [["young", "0"], ["young", "1"], ["old", "0"], ["old", "1"]]
    true = Counter((row[1], row[2]) for row in people(60))
    # e^-20 is the chance that a noise of rate 1/2 exceeds 40.
    assert all(abs(int(count) - true[age, sex]) <= 40 for age, sex, count in rows)
    words = " ".join(printed.split())
    assert (
        "counts of sex by age_band, each with discrete Laplace noise of standard deviation 2.8. ε = 1 in all" in words
    )
    assert all(len(line) <= 100 for line in printed.splitlines() if str(data.parent) not in line)
    note = json.loads((data.parent / "table.csv.privacy.json").read_text())
    assert (note["epsilon"], note["adjacency"], note["noise"]["rate"]) == (1.0, REPLACE, "1/2")
    assert "rows" not in note
    assert note["ledger"] == {"entry": 1, "spent": "1", "budget": None}
    (entry,) = Ledger(ledger).releases().to_dict(orient="records")
    assert (entry["hides"], entry["publishes"], entry["cost"]) == (["age_band", "sex"], [], "1.0")


def test_what_one_patient_is_decides_the_noise(capsys, one):
    ledger = one.with_name("ledger.sqlite")
    Ledger(ledger)
    table(capsys, one, *SEX, "--adjacency", "add-or-remove-one", "--ledger", ledger, epsilon=0.1)
    note = json.loads((one.parent / "table.csv.privacy.json").read_text())
    # The decimal, and not the float, which is a little more.
    assert (note["adjacency"], note["noise"]["rate"]) == (ADD_OR_REMOVE, "1/10")
    assert "one row is there or not" in note["guarantee"]
    # Another value is a person less and a person more.
    assert str(Ledger(ledger).spent()) == "0.2"


def test_a_folder_is_one_table(capsys, tmp_path):
    folder = write_parts(tmp_path / "logs", 3)
    code, printed, _ = table(capsys, folder, *SEX, "--simulate", 5, "--json")
    assert code == 0
    true = Counter(row[2] for row in people(140))
    noise = [row["noisy_count"] - true[row["sex"]] for row in json.loads(printed)["counts"]]
    assert noise == noisy_counts([0, 0], TablePlan({"sex": ("0", "1")}, 1.0), random.Random(5).randrange)


def test_negative_counts_are_cut_on_request_alone(capsys, tmp_path):
    data = tmp_path / "data.csv"
    write_part(data, people(1))
    many = ",".join(["0", "1", *map(str, range(10, 60))])
    for options, least in (((), -1), (("--no-negative",), 0)):
        _, printed, _ = table(
            capsys, data, "--column", "sex", "--levels", f"sex={many}", "--simulate", 1, *options, "--json", epsilon=0.5
        )
        counts = [row["noisy_count"] for row in json.loads(printed)["counts"]]
        assert (min(counts) >= 0) == (least == 0)
    assert json.loads(printed)["note"]["negative_counts"] == "published as 0"


def test_whether_there_are_rows_is_public_only_where_their_number_is(capsys, tmp_path):
    data = tmp_path / "data.csv"
    write_part(data, [])
    code, _, err = table(capsys, data, *SEX)
    assert (code, err) == (3, f"policysim: {data}: has no rows\n")
    assert table(capsys, data, *SEX, "--adjacency", "add-or-remove-one")[0] == 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--column", "sex"), "a table needs the levels of sex, which are public, declared: --levels sex=A,B"),
        ((*SEX, "--by", "sex"), "sex cannot both be counted and make the groups"),
        ((*SEX, "--separately"), "--separately does not go with --as table"),
        (("--column", "noisy_count", "--levels", "noisy_count=0,1"), "must be another than noisy_count"),
    ],
)
def test_wrong_questions_end_with_2_and_write_nothing(capsys, one, options, words):
    code, printed, err = table(capsys, one, *options)
    assert (code, printed) == (2, "")
    assert words in err
    assert [path.name for path in one.parent.iterdir()] == ["data.csv"]


def test_a_table_needs_no_estimate(capsys, one):
    table(capsys, one, *SEX)
    code, _, err = run(capsys, "--estimate", one.with_name("table.csv"))
    assert code == 3
    assert "it is the note of a noisy table, whose counts are estimates already" in err


def test_a_study_declares_its_treatments_and_features(capsys, tmp_path):
    data = tmp_path / "log.csv"
    write_part(data, [["a0", "0"], ["a3", "1"], ["a3", "0"]], names=["treatment", "sex"])
    code, printed, _ = table(capsys, data, "--column", "treatment", "--by", "sex", "--study", "covid", "--simulate", 1)
    assert code == 0
    header, rows = read(tmp_path / "table.simulated.csv")
    assert header == ["sex", "treatment", "noisy_count"]
    assert [row[:2] for row in rows] == [[sex, f"a{i}"] for sex in "01" for i in range(4)]
    assert "discrete Laplace" in printed


def outputs(counts, plan, runs, seed):
    """How often each table comes out."""
    below = random.Random(seed).randrange
    return Counter(tuple(noisy_counts(counts, plan, below)) for _ in range(runs))


def test_tables_fit_their_exact_distribution():
    plan, runs = TablePlan({"a": ("0", "1")}, 2.0), 10_000
    drawn = outputs((3, 5), plan, runs, 20261124)
    r = math.exp(-1)

    def chance(noise):
        return math.prod((1 - r) / (1 + r) * r ** abs(n) for n in noise)

    grid = [(a, b) for a in range(-4, 5) for b in range(-4, 5) if runs * chance((a, b)) >= 8]
    observed = [drawn[3 + a, 5 + b] for a, b in grid]
    expected = [runs * chance(noise) for noise in grid]
    rest = runs - sum(observed), runs - sum(expected)
    assert chisquare([*observed, rest[0]], [*expected, rest[1]]).pvalue > 1e-3


def test_the_rate_is_a_fraction_of_what_is_written():
    # The float 0.1 is a little more than the decimal, and 0.3 a little less: neither is exceeded.
    assert TablePlan({"a": ("0", "1")}, 0.1).rate == Fraction(1, 20)
    assert TablePlan({"a": ("0", "1")}, 0.3, adjacency=ADD_OR_REMOVE).rate == Fraction(0.3) < Fraction(3, 10)
