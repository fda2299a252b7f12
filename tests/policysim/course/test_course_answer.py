"""The answer over days: planted courses of each verdict, and cells that are those of the comparison."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import policysim as ps
from policysim.course.course_question import CourseQuestion, answer_over_days, course_tables, right_guesses
from policysim.course.days import DaysQuestion, compare_days, ways
from policysim.numbers import table_text, written
from policysim.output.report import Report
from policysim.output.screen import TEMPLATES, screen
from policysim.study.cells import COLUMNS, Cells, faults_of, words_of
from policysim.study.certainty import course_verdict, recommended, restated

SIX = ["Safest", "Gain", "Cost", "Who pays", "Observer", "Certain?"]
ONE, PRIVATE, DAILY, EXPONENTIAL, EACH = (
    "one for all",
    "private choice",
    "drawn daily",
    "exponential mechanism",
    "each's best",
)
STUDY = ps.load_study("covid")
SCHEDULE, ONCE, TREE = "best-schedule", "plan-once", "plan-tree"
# Value and deaths of a patient, and the share of the total that is spent.
USUAL = {
    SCHEDULE: (-1.0, 0.003, 0.0),
    ONCE: (-0.6, 0.002, 1.0),
    "exponential": (-0.9, 0.0028, 1.0),
    "randomized-response": (-0.8, 0.0027, 1.0),
    "best-fixed": (-1.2, 0.004, 0.0),
    "greedy": (0.0, 0.001, math.inf),
}
# Who there is, and how many times as many of them die as of all.
GROUPS = [("all", "all", 1.0, 1.0), ("covid_positive", "0", 0.9, 0.5), ("covid_positive", "1", 0.1, 5.5)]


def planted(*, totals=(1.0, 5.0), hides=None, most=0.8, deaths=True, **changes):
    """What `compare_days` would return of policies that are worth this."""
    numbers = {**USUAL, **{name.replace("_", "-"): each for name, each in changes.items()}}
    numbers.setdefault(TREE, numbers[ONCE])
    rows = [
        (name, total, *group, value, died, spent * total)
        for name, (value, died, spent) in numbers.items()
        for total in totals
        for group in GROUPS
    ]
    names = ["policy", "total_epsilon", "group", "level", "share", "times", "value", "died", "total_spent"]
    found = pd.DataFrame(rows, columns=names)
    pairs = zip(found["policy"], found["total_spent"], strict=True)
    found["hides"] = [(hides or {}).get(name, "course" if spent < math.inf else "nothing") for name, spent in pairs]
    if deaths:
        found["expected_death"] = found["died"] * found["times"]
    return found.assign(
        horizon=7,
        composition="exact-losses",
        epsilon=found["total_spent"],
        epsilon_spent=found["total_spent"],
        loss=-found["value"],
        benefit_kept=1 + found["value"] / 1.2,
        most_kept=most,
        most_kept_hides="first state",
        most_kept_proof="rationals",
    )


def question(totals=(1.0, 5.0), horizon=7, delta=0.0):
    return DaysQuestion(horizon, totals, delta, length_public=False)


def tables_of(table, asked=None, **options):
    return course_tables(STUDY, asked or question(), table, **options)


def checked(tables):
    """The screen of tables, as every screen must be."""
    text = screen(tables, "course")
    lines = text.splitlines()
    assert [line.split("  ")[0] for line in lines if line.split("  ")[0] in SIX] == SIX
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 100
    return text


def test_a_larger_total_may_do_what_a_smaller_one_allows():
    table = planted(exponential=(-0.61, 0.0028, 1.0))
    table.loc[(table["policy"] == ONCE) & (table["total_epsilon"] == 5), "value"] = -0.7
    found = ways(table).set_index(["total_epsilon", "way"])
    assert found["value"].to_dict() == {
        (1.0, SCHEDULE): -1.0,
        (1.0, ONCE): -0.6,
        (1.0, TREE): -0.6,
        (1.0, "day by day"): -0.61,
        (5.0, SCHEDULE): -1.0,
        (5.0, ONCE): -0.6,  # what it keeps with 1 of the 5
        (5.0, TREE): -0.6,
        (5.0, "day by day"): -0.61,
    }
    assert found.loc[found["best"], "policy"].tolist() == [ONCE, ONCE]
    # greedy spends more than any total, and is no mechanism within it.
    assert "greedy" not in set(found["policy"])


def test_of_equal_ways_the_plainest_is_the_best():
    equal = planted(exponential=(-0.6, 0.002, 1.0), plan_once=(-0.6 - 1e-12, 0.002, 1.0))
    assert set(ways(equal).query("best")["policy"]) == {ONCE}
    columns = tables_of(equal)["columns"].set_index(["option", "epsilon"])["policy"]
    assert columns[PRIVATE].tolist() == [ONCE, ONCE]
    reacting = tables_of(planted(exponential=(-0.5, 0.002, 1.0)))["columns"]
    assert set(reacting.loc[reacting["option"] == PRIVATE, "policy"]) == {"exponential"}
    # What stands in one column has no other.
    assert reacting["option"].unique().tolist() == [ONE, PRIVATE, EACH]


@pytest.mark.parametrize(
    ("changes", "private", "holds"),
    [
        ({}, True, {"gain": True, "cost": False, "safest": True, "observer": True, "bounded": True}),
        ({"plan_once": (-0.6, 0.0035, 1.0)}, True, {"gain": True, "cost": True, "who": True}),
        (
            dict.fromkeys(("plan_once", "exponential", "randomized_response"), (-1.0, 0.003, 0.0)),
            False,
            {"gain": False, "cost": False, "who": False, "observer": False},
        ),
        (
            {
                "plan_once": (-1.1, 0.0031, 1.0),
                "exponential": (-1.1, 0.004, 1.0),
                "randomized_response": (-2, 0.004, 1),
            },
            False,
            {"gain": False, "cost": True},
        ),
        ({"deaths": False, "most": math.nan}, True, {"safest": False, "bounded": False}),
    ],
    ids=["better", "more deaths", "equal", "worse", "nobody dies, no bound"],
)
def test_planted_courses_have_their_verdicts(changes, private, holds):
    tables = tables_of(planted(**changes))
    found = course_verdict(tables)
    assert {name: found[name] for name in holds} == holds
    assert all(found[f"no {name}"] != holds[name] for name in holds)
    assert recommended(found) == (PRIVATE if private else ONE)
    checked(tables)
    for total in (1.0, 5.0):
        checked(restated(tables, total))


def test_a_way_that_hides_less_than_the_course_says_so():
    hides = tables_of(planted(hides={ONCE: "first state"}))["columns"].query("stated").set_index("option")["hides"]
    assert hides.to_dict() == {
        ONE: "fully",
        PRIVATE: "first state only",
        DAILY: "partly",
        EXPONENTIAL: "partly",
        EACH: "no",
    }


def test_the_answer_is_stated_at_the_epsilon_of_the_study_or_near_it():
    assert question((0.5, 1.0, 2.0)).stated(1.0) == 1.0
    assert question((0.5, 2.0, 5.0)).stated(4.0) == 5.0
    assert question((1.0, 2.0, math.inf)).stated(9.0) == 2.0


@pytest.mark.parametrize(
    ("hides", "proof", "said"),
    [
        ("first state", "rationals", ("the first day", "Proven in rational arithmetic")),
        ("course", "rationals", ("the first two days", "Proven in rational arithmetic")),
        (
            "course",
            "directed rounding",
            ("the first two days", "Proven in rational arithmetic; of two days by sums that are rounded up"),
        ),
    ],
)
def test_the_page_says_what_the_bound_is_of_and_how_it_was_proved(hides, proof, said):
    table = planted()
    table.loc[table["total_epsilon"] == 1, ["most_kept_hides", "most_kept_proof"]] = hides, proof
    names = tables_of(table)["names"].set_index("key")["text"]
    assert (names["bounded"], names["proof"]) == said


@pytest.fixture(scope="module")
def answered(study):
    asked = question((0.5, 1.0, 6.0), horizon=2, delta=1e-3)
    compared = replace(study, policies=("best-fixed", "randomized-response", "optimal", "exponential", "greedy"))
    tables = {name: written(table) for name, table in compare_days(compared, asked).items()}
    table = tables["comparison"]
    return table, asked, answer_over_days(study, asked, tables, left_out=("another, which is slow",))


def test_every_cell_is_a_number_of_the_comparison(answered):
    table, asked, answer = answered
    tables = answer.options
    assert list(tables["options"].columns) == list(COLUMNS)
    assert not tables["options"].duplicated(["row", "option", "epsilon"]).any()
    rows = table[(table["group"] == "all") & (table["horizon"] == 2)].set_index(["policy", "total_epsilon"])
    assert rows["expected_death"].notna().all()
    columns = {
        "death": "expected_death",
        "loss": "loss",
        "epsilon spent": "epsilon_spent",
        "benefit kept": "benefit_kept",
    }
    policy = tables["columns"].set_index(["option", "epsilon"])["policy"]
    seen = set()
    for cell in tables["options"].to_dict("records"):
        key = (cell["option"], cell["epsilon"])
        if cell["option"] == "bound":
            assert set(rows.xs(cell["epsilon"], level=1)["most_kept"]) == {cell["value"]}
        elif cell["row"] == "right guesses":
            row = rows.loc[(policy[key], cell["epsilon"])]
            delta = 0.0 if row["composition"] in ("exact-losses", "one-choice", "tree") else asked.delta
            assert cell["value"] == right_guesses(row["total_spent"], delta)
        elif cell["row"] in columns:
            assert cell["value"] == rows.loc[(policy[key], cell["epsilon"]), columns[cell["row"]]]
        seen.add((cell["row"], cell["option"]))
    assert {(row, option) for row in columns for option in (ONE, PRIVATE, EACH)} <= seen
    assert ("benefit kept", "bound") in seen
    # The private way is the best of those that stay within the total.
    within = rows[(rows["total_spent"] <= rows.index.get_level_values(1)) & (rows["epsilon"] > 0)]
    for total in asked.totals:
        best = within.xs(total, level=1)["value"].max()
        assert rows.loc[(policy[PRIVATE, total], total), "value"] >= best - 1e-12
        assert (policy[ONE, total], policy[EACH, total]) == (SCHEDULE, "greedy")


def test_differences_are_those_of_the_printed_numbers_and_against_the_best_schedule(answered):
    tables = answered[2].options
    cell = Cells(tables)
    for each in tables["differences"].query("row == 'death'").to_dict("records"):
        mine, free = (
            float(str(cell("options", "death", option, each["epsilon"])).replace(",", "")) for option in (PRIVATE, ONE)
        )
        count = int(cell("facts", "patients").replace(",", ""))
        assert each["value"] * count == pytest.approx(mine - free)


def test_the_screen_names_what_was_left_out_and_the_report_has_the_tables(answered):
    table, _, answer = answered
    report = Report(answer)
    assert str(report) == checked(answer.options)
    assert str(report).startswith("Beware: left out: another, which is slow\n")
    assert "ε (δ = 0.001) is of" in str(report)
    pd.testing.assert_frame_equal(report.tables["comparison"], table)
    assert {"options", "certainty", "differences", "ways", "policies"} <= set(report.tables)
    # What is shown only when it is asked for.
    every = screen(answer.options, "course", full=True)
    for each in answer.options["policies"].to_dict("records"):
        assert each["title"] in every
        assert table_text(each["format"], each["value"], math.nan, math.nan) in every
    assert {drawing.name for drawing in answer.drawings} == {each.name for each in words_of("course").figures}


@pytest.mark.parametrize("name", ["screen.txt", "options.html", "notes.html", "about.html"])
def test_templates_say_and_decide_nothing_of_their_own(name):
    assert faults_of((TEMPLATES / f"course-{name}").read_text(encoding="utf-8"), ("lines", "grid")) == []


@given(st.lists(st.tuples(st.floats(-2, 0), st.floats(0, 0.01), st.floats(0, 1)), min_size=4, max_size=4))
@settings(max_examples=6)
def test_no_way_is_recommended_against_its_verdict(numbers):
    names = ("best-schedule", "plan-once", "exponential", "randomized-response")
    made = dict(zip((name.replace("-", "_") for name in names), numbers, strict=True))
    made["best_schedule"] = (*made["best_schedule"][:2], 0.0)
    tables = tables_of(planted(**made))
    chosen = recommended(course_verdict(tables))
    policy = tables["columns"].query("stated").set_index("option")["policy"]
    said = tables["certainty"].query("measure == 'value'").set_index("policy")["verdict"]
    assert (chosen == PRIVATE) == (said[policy[PRIVATE]] == "better")


def test_right_guesses_are_bounded_by_the_most_that_total_variation_can_be():
    """Of all pairs of distributions on two courses and the four of (ε, δ), by brute force."""
    epsilon, delta = 0.7, 0.05
    grid = np.linspace(0, 1, 401)
    one, other = np.meshgrid(grid, grid)
    bound = np.exp(epsilon)
    allowed = (one <= bound * other + delta) & (other <= bound * one + delta)
    allowed &= (1 - one <= bound * (1 - other) + delta) & (1 - other <= bound * (1 - one) + delta)
    best = (1 + np.abs(one - other)[allowed].max()) / 2
    assert right_guesses(epsilon, delta) - 2 / 400 <= best <= right_guesses(epsilon, delta) + 1e-12
    assert right_guesses(epsilon, 0.0) == pytest.approx(1 / (1 + math.exp(-epsilon)))
    assert right_guesses(math.inf, delta) == 1.0


def test_what_is_public_is_named():
    hidden = [name for name in STUDY.space.names if name not in ("sex", "age")]
    names = tables_of(planted())["names"].set_index("key")["text"]
    assert names["hidden"] == "the patient's records"
    within = course_tables(STUDY.with_choices(sensitive=hidden), question(), planted())
    names = within["names"].set_index("key")["text"]
    assert (names["hidden"], names["alike"]) == (
        "all but age, sex",
        "any two courses of records that agree in age, sex",
    )
    # Of many public features none is named.
    many = course_tables(STUDY.with_choices(sensitive=STUDY.scenario.transient), question(), planted())
    assert many["names"].set_index("key")["text"]["hidden"] == "all but all that is public"
    checked(within)
    checked(many)


def test_totals_are_printed_whole():
    asked = CourseQuestion.of(STUDY, {"horizon": 2, "total_epsilons": [1 / 3, 1.0000001, 2]})
    assert asked.days.totals == (0.333333, 1.0, 2.0)
