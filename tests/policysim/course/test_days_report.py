"""The report over days: facts by independent formulas, and words that are true of the tables."""

import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from printed_numbers import unknown_numbers

import policysim as ps
from policysim import numbers
from policysim.course.days import compare_days, stated_total, ways
from policysim.course.days_findings import A, B, C, find, guess_rate, private_ways
from policysim.course.days_report import report
from policysim.course.days_words import words_of_days
from policysim.report.findings import BETTER, EQUAL, UTILITY, WORSE
from policysim.report.weighed import REST

STUDY = ps.load_study("covid")
SCHEDULE, ONCE, TREE = "best-schedule", "plan-once", "plan-tree"
# Value and deaths of a patient, and the share of the total that is spent.
USUAL = {
    SCHEDULE: (-1.0, 0.003, 0.0),
    ONCE: (-0.6, 0.002, 1.0),
    "exponential-fitted": (-0.9, 0.0028, 1.0),
    "randomized-response": (-0.8, 0.0027, 1.0),
    "best-fixed": (-1.2, 0.004, 0.0),
    "greedy": (0.0, 0.001, math.inf),
}
# Who there is, and how many times as many of them die as of all.
GROUPS = [("all", "all", 1.0, 1.0), ("covid_positive", "0", 0.9, 0.5), ("covid_positive", "1", 0.1, 5.5)]
PAIRS = [(A, C), (B, A), (B, C)]


def planted(*, totals=(1.0, 5.0), unbeatable=-0.4, deaths=True, **changes):
    """What `compare_days` would return of policies that are worth this."""
    numbers_of = {**USUAL, **{name.replace("_", "-"): each for name, each in changes.items()}}
    numbers_of.setdefault(TREE, numbers_of[ONCE])
    rows = [
        (name, total, *group, value, died, spent * total if spent else 0.0)
        for name, (value, died, spent) in numbers_of.items()
        for total in totals
        for group in GROUPS
    ]
    names = ["policy", "total_epsilon", "group", "level", "share", "times", "value", "died", "total_spent"]
    table = pd.DataFrame(rows, columns=names)
    if deaths:
        table["expected_death"] = table["died"] * table["times"]
    best = numbers_of["greedy"][0]
    table = table.drop(columns=["times", "died"]).assign(
        horizon=7,
        composition="exact-losses",
        epsilon=table["total_spent"],
        epsilon_spent=table["total_spent"],
        loss=best - table["value"],
        benefit_kept=1 + (table["value"] - best) / 1.2,
        hides=np.where(table["total_spent"] < math.inf, "course", "nothing"),
        unbeatable=unbeatable,
        most_kept=0.8,
        most_kept_hides="first state",
        most_kept_proof="rationals",
    )
    spent = [(total, "randomized-response", day, total / 7, "exact-losses") for total in totals for day in range(1, 8)]
    return {
        "comparison": table,
        "courses": pd.DataFrame(
            [(7, 1.0, 0, "a0 > a3", 0.3, 1.0)],
            columns=["horizon", "total_epsilon", "class", "course", "least", "parts"],
        ),
        "published": pd.DataFrame(),
        "schedule": pd.DataFrame([(0, day, "a3") for day in range(1, 8)], columns=["class", "day", "treatment"]),
        "spent": pd.DataFrame(spent, columns=["total_epsilon", "policy", "day", "epsilon_spent", "composition"]),
    }


@pytest.fixture(scope="module")
def compared(study):
    """A small study over two days, within three totals and a delta: the comparison, and what was found."""
    names = ("best-fixed", "randomized-response", "optimal", "exponential-fitted", "greedy")
    tables = compare_days(replace(study, policies=names), horizon=2, totals=(0.5, 1.0, 6.0), delta=1e-3)
    found = find(study, tables, delta=1e-3, named=["optimal-daily"])
    table = numbers.written(tables["comparison"])
    table = table[table["horizon"] == 2].set_index(["policy", "total_epsilon", "group", "level"]).sort_index()
    return table, found


def by_letter(findings, total):
    options = findings.options
    return options[(options["section"] == "option") & (options["epsilon"] == total)].set_index("option")


def difference(findings, total, option, than):
    table = findings.differences
    rows = table[(table["epsilon"] == total) & (table["option"] == option) & (table["than"] == than)]
    return rows.set_index("outcome")


def test_each_option_has_the_numbers_of_its_policy(compared):
    table, findings = compared
    columns = ["value", "loss", "benefit_kept", "expected_death", "total_spent", "epsilon_spent"]
    for row in findings.options.to_dict("records"):
        numbers_of = table.loc[(row["policy"], row["epsilon"], "all", "all")]
        assert [row[name] for name in columns] == [numbers_of[name] for name in columns]
        delta = 0.0 if row["composition"] in ("exact-losses", "one-choice", "tree") else 1e-3
        assert row["guess_rate"] == guess_rate(row["total_spent"], delta)
        spent = row["total_spent"]
        assert row["hides"] == ("nothing" if spent == math.inf else "up to ε" if spent > 0 else "everything")
    letters = by_letter(findings, 6.0)
    assert letters["policy"].drop(B).to_dict() == {A: SCHEDULE, C: "greedy", "D": "optimal-daily"}
    for total in (0.5, 1.0, 6.0):
        within = table.xs((total, "all", "all"), level=[1, 2, 3])
        within = within[within["total_spent"] <= total]["value"]
        # B is the best of all that keep within the total, and so never worth less than A, which spends nothing.
        assert by_letter(findings, total).loc[B, "value"] >= within.max() - 1e-9
        assert by_letter(findings, total).loc[A, "value"] == within[SCHEDULE]


def test_differences_add_up_and_have_the_verdicts_of_their_signs(compared, study):
    findings = compared[1]
    weights = {**study.utility.weights, "costs": 1.0}
    for total in (0.5, 1.0, 6.0):
        letters = by_letter(findings, total)
        parts = {pair: difference(findings, total, *pair)["value"] for pair in PAIRS}
        for pair, part in parts.items():
            one, other = (letters.loc[letter] for letter in pair)
            assert set(part.index) == {*weights, UTILITY}
            for name in weights:
                assert part[name] == pytest.approx(one[f"expected_{name}"] - other[f"expected_{name}"], abs=1e-15)
            assert part[UTILITY] == pytest.approx(one["value"] - other["value"], abs=1e-15)
            # To the digits of files.
            assert part[UTILITY] == pytest.approx(-sum(weights[name] * part[name] for name in weights), abs=1e-6)
            verdicts = difference(findings, total, *pair)["verdict"]
            for outcome, sign in ((UTILITY, 1), *((name, -1) for name in weights)):
                expected = BETTER if sign * part[outcome] > 1e-6 else WORSE if sign * part[outcome] < -1e-6 else EQUAL
                assert verdicts[outcome] == expected
        assert np.allclose(parts[B, A] + parts[A, C], parts[B, C], rtol=0, atol=1e-12)
        # The printed numbers add up as they stand: what a reader multiplies, subtracts and sums.
        rows = findings.details.rows
        rows = rows[rows["epsilon"] == total].set_index("outcome")
        for one, other in ((A, C), (B, A)):
            moved = rows[one] - rows[other]
            printed = rows[f"{one} − {other}"]
            assert np.allclose(moved.drop(REST), printed.drop(REST), rtol=0, atol=1e-9)
            weighed = (rows["weight"] * printed).sum() + printed[REST]
            assert weighed == pytest.approx(printed[UTILITY], abs=0.5 * 10.0 ** -rows["decimals"][UTILITY] + 1e-9)
            assert abs(printed[REST]) <= 0.02 * abs(rows["weight"] * printed).sum() + 5


def test_bounds_are_what_every_mechanism_loses_at_least(compared):
    table, findings = compared
    bounds = findings.details.bounds.set_index("total_epsilon")["least_loss"]
    for total in (0.5, 1.0, 6.0):
        rows = table.xs((total, "all", "all"), level=[1, 2, 3])
        expected = max(0.0, rows.loc["greedy", "value"] - rows["unbeatable"].iloc[0])
        assert bounds[total] == pytest.approx(expected, abs=1e-12)
        assert (rows.drop("greedy")["loss"] >= bounds[total] - 1e-12).all()


def test_the_groups_that_are_harmed_are_all_of_those_and_in_order():
    table = planted(plan_once=(-0.6, 0.0035, 1.0))
    rows = find(STUDY, table).harmed
    assert list(zip(rows["epsilon"], rows["group"], strict=True)) == [
        (total, name) for total in (1.0, 5.0) for name in ("infected", "not infected")
    ]
    assert rows["value"].to_numpy() == pytest.approx([0.0005 * 5.5, 0.0005 * 0.5] * 2, abs=1e-9)
    assert find(STUDY, planted()).harmed.empty
    # Where nothing leads, it is utility that is lost: here of nobody.
    assert find(STUDY, planted(deaths=False)).harmed.empty


@pytest.mark.parametrize(("value", "died"), [(-0.9, 0.0035), (-0.95, 0.0031), (-0.99, 0.0020), (-0.5, 0.001)])
def test_at_the_exchange_both_are_worth_the_same(value, died):
    findings = find(STUDY, planted(plan_once=(value, died, 1.0)))
    letters = by_letter(findings, 1.0)
    exchange = findings.details.exchange
    exchange = exchange[exchange["epsilon"] == 1.0]
    equal_at = None if exchange.empty else float((exchange["equal_at"] * exchange["unit_weight"]).iloc[0])

    def gain(weight):
        worth = letters["value"] + (STUDY.lead_weight - weight) * letters["expected_death"]
        return worth[B] - worth[A]

    assert (equal_at is None) == (np.sign(gain(0.0)) == np.sign(gain(1e6)))
    assert equal_at is None or gain(equal_at) == pytest.approx(0.0, abs=1e-9)


def test_a_larger_total_may_do_what_a_smaller_one_allows():
    table = planted(exponential_fitted=(-0.61, 0.0028, 1.0))["comparison"]
    table.loc[(table["policy"] == ONCE) & (table["total_epsilon"] == 5), "value"] = -0.7
    rows = ways(table).set_index(["total_epsilon", "way"])
    by_way = {SCHEDULE: -1.0, ONCE: -0.6, TREE: -0.6, "day by day": -0.61}
    # At 5 what one choice keeps with 1 of them.
    assert rows["value"].to_dict() == {(total, way): value for total in (1.0, 5.0) for way, value in by_way.items()}
    assert rows.loc[rows["best"], "policy"].tolist() == [ONCE, ONCE]
    # greedy spends more than any total, and is no mechanism within it.
    assert "greedy" not in set(rows["policy"])


def test_of_equal_ways_the_plainest_is_the_best():
    equal = ways(planted(exponential_fitted=(-0.6, 0.002, 1.0), plan_once=(-0.6 - 1e-12, 0.002, 1.0))["comparison"])
    assert set(equal.query("best")["policy"]) == set(private_ways(equal).values()) == {ONCE}
    better = ways(planted(exponential_fitted=(-0.5, 0.002, 1.0))["comparison"])
    assert set(private_ways(better).values()) == {"exponential-fitted"}


def test_the_answer_is_stated_at_the_epsilon_of_the_study_or_near_it():
    assert stated_total((0.5, 1.0, 2.0), 1.0) == 1.0
    assert stated_total((0.5, 2.0, 5.0), 4.0) == 5.0
    assert stated_total((1.0, 2.0, math.inf), 9.0) == 2.0


def test_courses_are_told_apart_by_the_most_that_total_variation_can_be():
    """Of all pairs of distributions on two courses and the four of (ε, δ), by brute force."""
    epsilon, delta = 0.7, 0.05
    grid = np.linspace(0, 1, 401)
    one, other = np.meshgrid(grid, grid)
    bound = np.exp(epsilon)
    allowed = (one <= bound * other + delta) & (other <= bound * one + delta)
    allowed &= (1 - one <= bound * (1 - other) + delta) & (1 - other <= bound * (1 - one) + delta)
    best = (1 + np.abs(one - other)[allowed].max()) / 2
    assert guess_rate(epsilon, delta) - 2 / 400 <= best <= guess_rate(epsilon, delta) + 1e-12
    assert guess_rate(epsilon, 0.0) == pytest.approx(1 / (1 + math.exp(-epsilon)))
    assert guess_rate(math.inf, delta) == 1.0


VALUES = st.tuples(st.floats(-2, 0), st.floats(0, 0.01), st.floats(0, 1))
RANDOM = (SCHEDULE, ONCE, TREE, "exponential-fitted", "randomized-response")


def random_comparison(worths, total, deaths):
    made = dict(zip((name.replace("-", "_") for name in RANDOM), worths, strict=True))
    made["best_schedule"] = (*made["best_schedule"][:2], 0.0)
    return planted(totals=(total,), deaths=deaths, unbeatable=math.nan if deaths else 0.0, **made)


@given(
    st.lists(st.tuples(VALUES, VALUES, VALUES, VALUES, VALUES), min_size=3, max_size=3),
    st.permutations([0.0, 0.3, 1.0, 5.0, 30.0, math.inf]),
    st.booleans(),
    st.sampled_from([(), ("randomized-response",)]),
)
# To shrink a failure takes minutes.
@settings(max_examples=20, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
def test_every_line_is_true_of_the_tables(worths, totals, deaths, named):
    """Of 60 random comparisons, three at a time: each total has values of its own."""
    parts = [random_comparison(worth, total, deaths) for worth, total in zip(worths, sorted(totals[:3]), strict=True)]
    tables = {name: pd.concat([part[name] for part in parts], ignore_index=True) for name in ("comparison", "spent")}
    findings = find(STUDY, {**parts[0], **tables}, named=named)
    for total in totals[:3]:
        assert_true_of_the_tables(findings, total)


def assert_true_of_the_tables(findings, total):
    screen = words_of_days(findings, STUDY, total)
    text, lines = screen.text(), {line.label: line for line in screen.lines}
    assert len(text.splitlines()) <= 45 and max(map(len, text.splitlines())) <= 100
    verdict = difference(findings, total, B, A).loc[UTILITY, "verdict"]
    # No option is called better whose verdict is not.
    assert screen.advice.startswith("Choose A: ") == (verdict != BETTER)
    assert ("Is that worth it?" in lines) == (verdict != EQUAL)
    if "Is that worth it?" in lines:
        said = {BETTER: "B is better than A", WORSE: "B is worse than A"}[verdict]
        worth = lines["Is that worth it?"]
        assert (
            (worth.rows[0][1] if worth.rows else worth.text).replace("Under this study's weights ", "").startswith(said)
        )
        # Of what one of the lead counts, this study's worth lies on the side of the better option.
        exchange = findings.details.exchange.set_index("epsilon")
        equal_at = exchange.loc[total, "equal_at"] if worth.rows else None
        assert not worth.rows or exchange.loc[total, "unit"] in worth.text
        for (size, better), above in zip(worth.rows[1:], (False, True), strict=bool(worth.rows)):
            assert size.endswith(numbers.rounded(equal_at))
            right_side = (exchange.loc[total, "stated"] > equal_at) == above
            assert (better == "B is better") == ((verdict == BETTER) == right_side)
    # What is bought, and what it costs, in the sizes of the table.
    for label, pair in (("Hiding everything", (A, C)), (f"Leaking up to ε = {numbers.plain(total)}", (B, A))):
        for size, word in re.findall(r"([\d.,]+|≈ 0) (more|fewer) deaths", lines[label].text):
            rows = findings.details.rows
            value = rows[(rows["epsilon"] == total) & (rows["outcome"] == "death")][" − ".join(pair)].item()
            assert (size, word) == (numbers.about(value), "more" if value > 0 else "fewer")
    harmed = findings.harmed[findings.harmed["epsilon"] == total]
    if "Who is harmed" in lines:
        assert lines["Who is harmed"].text.startswith("No group") == harmed.empty
    else:
        assert harmed.empty or verdict == EQUAL
    assert lines["What leaks"].text.startswith("Nothing") == (
        by_letter(findings, total).loc[B, "hides"] == "everything"
    )


def test_what_b_gives_to_everyone_is_said_to_hide_everything():
    same = dict.fromkeys(("plan_once", "exponential_fitted", "randomized_response"), (-1.0, 0.003, 0.0))
    text = " ".join(words_of_days(find(STUDY, planted(**same)), STUDY, 1.0).text().split())
    assert "Choose A: within a total ε = 1" in text and "buys nothing: B and A are worth the same." in text
    assert "at ε = 1 it gives everyone the same on each day, and hides everything, too" in text


def test_the_words_name_the_days_on_which_a_daily_draw_spends():
    daily = find(STUDY, planted(randomized_response=(-0.3, 0.002, 1.0)))
    (line,) = [each for each in words_of_days(daily, STUDY, 1.0).lines if each.label == "How ε is spent"]
    days = ", ".join(f"0.14 on day {day}" for day in range(1, 5))
    assert line.text.startswith(f"{days} and no more on each of 3 further days; what the days spend adds up.")
    lost = "loses 30,000 units of utility per 100,000, choosing once 60,000."
    assert line.text.endswith(f"Reacting to later days {lost}")


@pytest.fixture(scope="module")
def ward():
    return report(ps.load_study("examples/ward/study.toml"), horizon=3, total_epsilons=[1, 5])


def test_the_screen_of_the_ward_is_that_of_the_docs(ward):
    page = Path("docs/days.md").read_text(encoding="utf-8")
    printed = page.split("--total-epsilon 1,5\n", 1)[1].split("```", 1)[0]
    assert printed.rpartition("Report: ")[0].split() == str(ward).split()
    assert sorted(ward.screens) == [1.0, 5.0] and ward.screens[1.0] == ward.screen
    assert list(ward.figures) == ["course", "published", "ways"]
    assert all(each.title and each.caption and each.alternative for each in ward.drawings)
    # The document has each table once, by its name, and the rows of lines.
    document = ward.document()
    assert document["ways"] == numbers.written(ward.findings.details.ways).to_dict("records")
    assert document["bounds"] and not any(isinstance(value, list) for value in document["details"].values())
    assert document["answer"]["Is that worth it?"].endswith(
        "How many days with cough count as much as a death? 67 (this study): B is better than A, as stated "
        "(no other numbers were tried); up to 42: A is better; from 42: B is better"
    )


def test_every_computed_number_of_a_screen_is_one_of_the_findings(compared, study, ward):
    of_ward = ps.load_study("examples/ward/study.toml")
    # How many of its numbers are assumed stands in the study.
    for of, findings, assumed in ((of_ward, ward.findings, [21, 24]), (study, compared[1], [26])):
        details = replace(findings.details, published=pd.DataFrame())  # its groups are called 0 and 1
        limits = np.floor(details.bounds["least_loss"] * details.patients).tolist()  # rounded down
        for total in details.odds:
            screen, without = words_of_days(findings, of, total), replace(findings, details=details)
            assert unknown_numbers(screen, without, total, of.weights, limits, assumed) == []
