"""Tables of one's own: what becomes of them, against plain sums, and every bad row named by file and line."""

import math
import re
import tomllib
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from policysim.course.days_report import report as report_over_days
from policysim.decision.redraws import redrawn
from policysim.decision.report import report
from policysim.files.bad_rows import DataError
from policysim.study.study_problem import build_problem
from policysim.utility import Utility

COLUMNS = {"features": ["gene", "age"], "treatment": "dose", "patients": "patients"}
WEIGHTS = {"wrong": 1.0, "bleeds": 10.0}
STUDY = """
[cohort]
file = "cohort.csv"
features = ["gene", "age"]
treatment = "dose"
patients = "patients"

[utility]
weights = { wrong = 1, bleeds = 10 }
costs = { high = 0.25 }

[privacy]
sensitive = ["gene"]
epsilons = [0.5, 1, 2]
"""
DOSES = ("low", "middle", "high")


def cohort(seed=1):
    """Three genotypes, two ages, three doses."""
    rng = np.random.default_rng(seed)
    rows = [
        (gene, age, dose, 10 * place + 5, round(rng.random(), 3), round(rng.random() / 10, 3))
        for place, (gene, age) in enumerate(product("ABC", ("young", "old")))
        for dose in DOSES
    ]
    return pd.DataFrame(rows, columns=["gene", "age", "dose", "patients", "wrong", "bleeds"])


def write(folder, frame, study=STUDY, **files):
    """A study of a table, and its file."""
    frame.to_csv(folder / "cohort.csv", index=False)
    for name, other in files.items():
        other.to_parquet(folder / f"{name}.parquet", index=False)
    (folder / "study.toml").write_text(study, encoding="utf-8")
    return folder / "study.toml"


def test_a_table_becomes_utilities_shares_and_outcomes_by_plain_sums():
    frame = cohort()
    problem = ps.problem_from_frame(frame, **COLUMNS, weights=WEIGHTS, sensitive=["gene"], costs={"high": 0.25})
    assert problem.actions == DOSES
    assert problem.adjacency == ps.Sensitive((3, 2), (0,))
    for record in range(problem.n_records):
        kind = problem.records.decode([record])
        for place, row in enumerate(frame.merge(kind).itertuples()):
            cost = 0.25 if row.dose == "high" else 0.0
            assert problem.utilities[record, place] == pytest.approx(-row.wrong - 10 * row.bleeds - cost, abs=1e-15)
            assert problem.outcomes["bleeds"][record, place] == row.bleeds
            assert problem.prior[record] == pytest.approx(row.patients / (frame["patients"].sum() / 3), abs=1e-15)


def test_the_order_of_the_rows_changes_no_number():
    frame = cohort()
    mixed = pd.concat([frame[:3], frame[3:].sample(frac=1, random_state=2)])
    found = [ps.problem_from_frame(each, **COLUMNS, weights=WEIGHTS, sensitive=["gene"]) for each in (frame, mixed)]
    values = [ps.make_policy("optimal", epsilon=1.0).probabilities(each) for each in found]
    assert found[0].value(values[0]) == pytest.approx(found[1].value(values[1]), abs=1e-12)
    assert found[0].sensitivity.value == found[1].sensitivity.value


def test_without_hidden_features_all_is_hidden_and_an_adjacency_stands_in_their_place():
    frame = cohort()
    assert ps.problem_from_frame(frame, **COLUMNS, weights=WEIGHTS).adjacency == ps.AnyRecord()
    of_one = ps.problem_from_frame(frame, **COLUMNS, weights=WEIGHTS, adjacency=ps.OneFeature((3, 2)))
    assert of_one.adjacency.name == "one-feature"
    with pytest.raises(ValueError, match="not both"):
        ps.problem_from_frame(frame, **COLUMNS, weights=WEIGHTS, sensitive=["gene"], adjacency=ps.AnyRecord())
    with pytest.raises(ValueError, match="unknown feature 'gen'; did you mean 'gene'"):
        ps.problem_from_frame(frame, **COLUMNS, weights=WEIGHTS, sensitive=["gen"])


@pytest.mark.parametrize("weight", ["0", "2.5", "1e50", "1e51", "-0.5", "-1e-300", "inf", "nan", "true", "'1'", "[1]"])
def test_python_takes_the_weights_that_a_file_takes_and_refuses_others_in_the_same_words(tmp_path, weight):
    path = write(tmp_path, cohort(), STUDY.replace("wrong = 1", f"wrong = {weight}"))
    value = tomllib.loads(f"weight = {weight}")["weight"]
    options = {**COLUMNS, "weights": {**WEIGHTS, "wrong": value}, "sensitive": ["gene"], "costs": {"high": 0.25}}
    if weight in {"0", "2.5", "1e50"}:
        assert build_problem(ps.load_study(path)).digest == ps.problem_from_frame(cohort(), **options).digest
        return
    with pytest.raises(ValueError, match=r"study\.toml:9: utility\.weights\.wrong: must be a number >= 0"):
        ps.load_study(path)
    with pytest.raises(
        ValueError, match=re.escape(f"weights['wrong'] must be a number >= 0 within ±1e+50, got {value!r}.")
    ):
        ps.problem_from_frame(cohort(), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"costs": {"none": 1.0}}, "unknown action 'none'; known: low, middle, high."),
        ({"costs": {"high": math.nan}}, "costs['high'] must be a number within ±1e+50, got nan."),
        ({"costs": 0.5}, "costs must be a mapping, got 0.5."),
        ({"weights": ["wrong"]}, "weights must be a mapping, got ['wrong']."),
        ({"weights": {}}, "weights must name the columns of outcomes, and the cost of one, got weights={}."),
    ],
)
def test_weights_and_costs_that_make_no_utility_are_refused(options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        ps.problem_from_frame(cohort(), **COLUMNS, **{"weights": WEIGHTS, **options})


def test_a_utility_of_other_outcomes_makes_no_problem_of_a_study(tmp_path):
    study = ps.load_study(write(tmp_path, cohort()))
    for utility, known in (
        (Utility({"wrongs": 1.0}, {}), "unknown outcome 'wrongs'; did you mean 'wrong'? known: wrong, bleeds."),
        (Utility({}, {"none": 1.0}), "unknown action 'none'; known: low, middle, high."),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(known)}$"):
            build_problem(replace(study, utility=utility))


def changed(row, **values):
    """The cohort with other values in a row."""
    frame = cohort().astype(object)
    for name, value in values.items():
        frame.loc[row, name] = value
    return frame


BAD = {
    "a kind that repeats": (
        pd.concat([cohort(), cohort()[:1]]),
        "cohort.csv:20: row 19: is of the same kind and treatment as line 2",
    ),
    "patients that differ within a kind": (
        changed(1, patients=6),
        "cohort.csv:3: row 2: patients: must be equal in all rows of a kind, got 6, and 5 in line 2",
    ),
    "a row that is missing": (cohort().drop(4), "cohort.csv:6: row 5: [gene A, age old] has no row for middle"),
    "a number that is negative": (
        changed(2, wrong=-0.5),
        "cohort.csv:4: row 3: wrong: must be a number >= 0, got '-0.5'",
    ),
    "a number that is missing": (
        changed(2, bleeds=""),
        "cohort.csv:4: row 3: bleeds: must be a number >= 0, is missing",
    ),
    "a level that is missing": (changed(5, gene=""), "cohort.csv:7: row 6: gene: must be one of A, B, C, is missing"),
    "hidden levels without rows": (
        cohort()[3:],
        "cohort.csv:5: row 4: [gene B, age young] has a row, and [gene A, age young], which must look alike, has none: "
        "hidden records need all levels of gene (patients may be 0)",
    ),
    "allowed by a hidden feature": (
        cohort().assign(allowed=[0, *[1] * 17]),
        "cohort.csv:8: row 7: allowed: low is allowed to only some of the kinds that agree in all but gene, "
        "which are hidden: it must depend on public features only",
    ),
    "allowed that is no flag": (cohort().assign(allowed=2), "cohort.csv:2: row 1: allowed: must be 0 or 1, got '2'"),
    "nothing allowed": (
        cohort().assign(allowed=0),
        "cohort.csv:2: row 1: allowed: no treatment is allowed to this kind",
    ),
    "no patients": (cohort().assign(patients=0), "cohort.csv: patients: there must be some, got 0 in every row"),
    "one treatment": (cohort()[::3], "cohort.csv: dose: needs at least two levels, got only 'low'"),
    "a column that is not there": (
        cohort().rename(columns={"age": "years"}),
        "cohort.csv: unknown column 'age'; known: gene, years, dose, patients, wrong, bleeds",
    ),
}


@pytest.mark.parametrize(("frame", "line"), BAD.values(), ids=BAD)
def test_a_bad_table_ends_with_a_line_that_names_file_and_row(tmp_path, frame, line):
    with pytest.raises(DataError) as error:
        ps.load_study(write(tmp_path, frame))
    assert str(error.value).splitlines()[0] == f"{tmp_path.as_posix()}/{line}"


STUDIES = {
    'file = "cohort.csv"': ("", "cohort: file is missing"),
    'features = ["gene", "age"]': ("features = []", "must name the columns that define a kind of patients"),
    "wrong = 1, bleeds = 10": ("wrongs = 1", "unknown outcome 'wrongs'; did you mean 'wrong'? known: wrong, bleeds"),
    "weights = { wrong = 1, bleeds = 10 }": ("", "must name the columns that are outcomes"),
    "costs = { high": ("costs = { none", "unknown action 'none'; known: low, middle, high"),
    'sensitive = ["gene"]': ('sensitive = ["genes"]', "unknown feature 'genes'; did you mean 'gene'?"),
}


@pytest.mark.parametrize(("was", "now"), [(was, now) for was, (now, _) in STUDIES.items()])
def test_a_bad_study_of_a_table_ends_with_a_line_that_names_it(tmp_path, was, now):
    assert STUDY.count(was) == 1
    with pytest.raises(ValueError, match=r"study\.toml:\d+: ") as error:
        ps.load_study(write(tmp_path, cohort(), STUDY.replace(was, now)))
    assert STUDIES[was][1] in str(error.value)


def test_a_study_of_a_table_is_the_problem_of_its_frame(tmp_path):
    study = ps.load_study(write(tmp_path, cohort()))
    problem = build_problem(study)
    same = ps.problem_from_frame(cohort(), **COLUMNS, weights=WEIGHTS, sensitive=["gene"], costs={"high": 0.25})
    assert problem.digest == same.digest
    assert study.data.names == ("cohort.csv",)
    assert study.files == {}


FORM = 'decimal = ","\nencoding = "latin-1"\nredraws = "redraws.csv"\nseparator = '


@pytest.mark.parametrize(("separator", "stated"), [(";", '";"'), (",", '","'), ("\t", r'"\t"')])
def test_a_table_of_decimal_commas_is_read_as_the_study_says_and_so_are_its_redraws(tmp_path, separator, stated):
    there, others = (frame.replace("middle", "mäßig") for frame in (cohort(), redraws()))
    for name, frame in (("cohort.csv", there), ("redraws.csv", others)):
        frame.to_csv(tmp_path / name, index=False, sep=separator, decimal=",", encoding="latin-1")
    (tmp_path / "study.toml").write_text(STUDY.replace('csv"\n', f'csv"\n{FORM}{stated}\n'))
    study = ps.load_study(tmp_path / "study.toml")
    same = ps.problem_from_frame(there, **COLUMNS, weights=WEIGHTS, sensitive=["gene"], costs={"high": 0.25})
    assert same.actions == ("low", "mäßig", "high")
    assert build_problem(study).digest == same.digest
    assert np.array_equal(study.cohort.redraws.outcomes["wrong"].ravel(), others["wrong"])


PLACES = """[cohort]
file = "cohort.csv"
header = false
features = ["0", "1"]
treatment = "2"
patients = "3"
[utility]
weights = { 4 = 1, 5 = 10 }
costs = { high = 0.25 }
[privacy]
sensitive = ["0"]
"""


def test_columns_of_a_table_without_a_header_are_named_by_their_places(tmp_path):
    cohort().to_csv(tmp_path / "cohort.csv", index=False, header=False)
    (tmp_path / "study.toml").write_text(PLACES)
    problem = build_problem(ps.load_study(tmp_path / "study.toml"))
    same = ps.problem_from_frame(cohort(), **COLUMNS, weights=WEIGHTS, sensitive=["gene"], costs={"high": 0.25})
    assert np.array_equal(problem.utilities, same.utilities)
    assert np.array_equal(problem.prior, same.prior)


def test_a_table_that_can_be_read_in_two_ways_is_refused_by_the_key_to_state(tmp_path):
    cohort().to_csv(tmp_path / "cohort.csv", index=False, decimal=",")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    with pytest.raises(DataError, match=r'state decimal = "," or "\." \(in \[data\] or \[cohort\] of the study, or as'):
        ps.load_study(tmp_path / "study.toml")
    (tmp_path / "study.toml").write_text(STUDY.replace('csv"\n', 'csv"\ndecimal = "."\n'), encoding="utf-8")
    with pytest.raises(DataError, match=r"cohort\.csv:2: row 1: wrong: must be a number >= 0, got '0,512'"):
        ps.load_study(tmp_path / "study.toml")


@pytest.mark.parametrize("line", ['separator = "."', 'decimal = ";"', 'encoding = "utf-99"', "header = 1"])
def test_a_form_that_is_none_is_a_mistake_of_its_line(tmp_path, line):
    key = line.split()[0]
    with pytest.raises(ValueError, match=rf"study\.toml:4: cohort\.{key}: must be "):
        ps.load_study(write(tmp_path, cohort(), STUDY.replace('csv"\n', f'csv"\n{line}\n')))


def test_of_what_is_public_a_class_may_be_missing_and_then_nobody_comes(tmp_path):
    frame = cohort().query("age != 'old'")
    wide = pd.concat([frame, frame.assign(age="old"), frame.assign(age="older")]).assign(ill="no")
    gaps = pd.concat([wide, frame.assign(ill="yes")])
    study = ps.load_study(write(tmp_path, gaps, STUDY.replace('"age"]', '"age", "ill"]')))
    problem = build_problem(study)
    assert problem.n_records == 3 * 3 * 2
    assert np.count_nonzero(problem.prior) == 3 * 4
    listed = ps.problem_from_frame(
        pd.concat([gaps.assign(kind=gaps["age"] + gaps["ill"])]),
        features=["gene", "kind"],
        treatment="dose",
        patients="patients",
        weights=WEIGHTS,
        sensitive=["gene"],
        costs={"high": 0.25},
    )
    best = ps.make_policy("optimal", epsilon=1.0)
    assert problem.value(best.probabilities(problem)) == pytest.approx(
        listed.value(best.probabilities(listed)), abs=1e-12
    )
    assert problem.sensitivity.value == listed.sensitivity.value
    with pytest.raises(DataError, match=r"\[gene A, age old, ill yes\], which must look alike, has none"):
        study.with_choices(adjacency="any-record")
    with pytest.raises(DataError, match="has none"):
        report(study, price_list=True)


def test_allowed_by_a_public_feature_is_kept_by_every_policy():
    frame = cohort()
    frame["allowed"] = 1 - ((frame["age"] == "old") & (frame["dose"] == "high")).astype(int)
    problem = ps.problem_from_frame(frame, **COLUMNS, weights=WEIGHTS, sensitive=["gene"])
    table = ps.make_policy("optimal", epsilon=1.0).probabilities(problem)
    old = problem.records.groups("age")[0] == 1
    assert (table[old, 2] == 0).all()
    assert np.array_equal(problem.admissible[:, 2], ~old)


def redraws(n=7):
    """The cohort with other numbers, and other patients, in each draw."""
    return pd.concat(
        [cohort(seed).assign(draw=f"d{seed}", patients=lambda each: each["patients"] + 1) for seed in range(n)]
    )


def test_options_are_worth_in_each_redraw_what_plain_sums_say(tmp_path):
    path = write(tmp_path, cohort(), STUDY.replace('csv"', 'csv"\nredraws = "redraws.parquet"'), redraws=redraws())
    study = ps.load_study(path)
    problem, policy = build_problem(study), ps.make_policy("optimal", epsilon=1.0)
    found = redrawn(study, problem, [policy]).options.set_index(["draw", "option"])
    table = policy.probabilities(problem)
    for draw in range(7):
        there = cohort(draw).assign(patients=lambda each: each["patients"] + 1)
        value = bleeds = 0.0
        for row in there.itertuples():
            record = problem.records.record({"gene": row.gene, "age": row.age})
            chance = table[record, DOSES.index(row.dose)] * row.patients / (there["patients"].sum() / 3)
            value -= chance * (row.wrong + 10 * row.bleeds + 0.25 * (row.dose == "high"))
            bleeds += chance * row.bleeds
        assert found.loc[(draw, "optimal"), "value"] == pytest.approx(value, abs=1e-12)
        assert found.loc[(draw, "optimal"), "expected_bleeds"] == pytest.approx(bleeds, abs=1e-12)
    assert study.data.names == ("cohort.csv", "redraws.parquet")


def test_without_redraws_nothing_is_redrawn(tmp_path):
    study = ps.load_study(write(tmp_path, cohort()))
    assert redrawn(study, build_problem(study), []) is None


@pytest.mark.parametrize(
    ("drawn", "line"),
    [
        (redraws().iloc[:-1], "row 125: [gene C, age old] has no row for high in draw d6"),
        (redraws().iloc[3:], "redraws.parquet: [gene A, age young] has no row for low in draw d0"),
        (redraws().assign(gene="D"), "row 1: gene: must be one of A, B, C, got 'D'"),
        (redraws().drop(columns="draw"), "redraws.parquet: unknown column 'draw'"),
        (redraws().drop(columns="wrong"), "redraws.parquet: unknown column 'wrong'"),
    ],
)
def test_bad_redraws_end_with_a_line_that_names_them(tmp_path, drawn, line):
    study = STUDY.replace('csv"', 'csv"\nredraws = "redraws.parquet"')
    with pytest.raises(DataError) as error:
        ps.load_study(write(tmp_path, cohort(), study, redraws=drawn))
    assert line in str(error.value).splitlines()[0]


def test_a_study_of_a_table_answers_as_that_of_a_scenario_does(tmp_path):
    path = write(tmp_path, cohort(), STUDY.replace('csv"', 'csv"\nredraws = "redraws.parquet"'), redraws=redraws())
    study = replace(ps.load_study(path), by=("age",), at_most={"bleeds": 0.06}, policies=("optimal", "optimal-safe"))
    answer = report(study, price_list=True)
    bounded = answer.tables["comparison"].query("policy == 'optimal-safe' and group == 'all'")
    assert (bounded["expected_bleeds"] <= 0.06 + 1e-9).all()
    assert set(answer.tables) >= {"beliefs", "price-list", "losses-by-outcome", "publishing"}
    lost = answer.tables["losses-by-outcome"].query("policy == 'optimal'")["lost"].sum()
    loss = answer.tables["comparison"].query("policy == 'optimal' and group == 'all' and epsilon == 1")["loss"].item()
    assert lost == pytest.approx(loss, abs=1e-9)
    assert answer.findings.details.versions == 7
    with pytest.raises(ValueError, match="is a study of a cohort: this needs the model of a scenario"):
        report_over_days(study, horizon=3)
