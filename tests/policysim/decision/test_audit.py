"""The audit of policies and of tables made elsewhere: what it finds, how it says so, and what it refuses."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from counted_progress import CountedProgress
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import CATALOGUE, AnyRecord, DecisionProblem, Policy, Sensitive, make_policy
from policies.policy import NotApplicableError
from policysim.decision.audit import Finding, audit, audit_table, exceeds, table_adjacency
from policysim.decision.audit_words import about_table, audit_screen
from policysim.files.bad_rows import DataError
from policysim.files.probability_table import read_probability_table

PROBLEM = DecisionProblem([[1.0, 0.0], [0.0, 1.0], [0.0, 0.5]], [0.25, 0.25, 0.5], AnyRecord(), ("wait", "treat"))

TABLE = """\
age,smoker,p_wait,p_treat
young,0,0.5,0.5
young,1,0.25,0.75
old,0,0.8,0.2
old,1,0.1,0.9
"""


@dataclass(frozen=True)
class Overspending(Policy):
    """Spends twice what it claims."""

    name = "overspending"

    def _log_probabilities(self, problem):
        return make_policy("randomized-response", epsilon=2 * self.epsilon).log_probabilities(problem)


@dataclass(frozen=True)
class Refusing(Policy):
    name = "refusing"

    def _log_probabilities(self, problem):
        raise NotApplicableError("the scores are odd")


@dataclass(frozen=True)
class Fixed(Policy):
    """Whatever table it is given."""

    table: tuple = ()
    name = "fixed"

    def _log_probabilities(self, problem):
        return np.array(self.table)


def read(tmp_path, text, actions=None):
    path = tmp_path / "probabilities.csv"
    path.write_text(text, encoding="utf-8")
    return read_probability_table(path, actions)


def screen_of(findings):
    """The findings as printed, in one line."""
    return " ".join(audit_screen(findings, "Title", []).text().split())


def screen_of_table(table, adjacency, claimed=None):
    findings = audit_table(table, adjacency, claimed)
    return audit_screen(findings, table.source, list(about_table(table, adjacency))).text()


def mistakes(tmp_path, text, actions=None):
    """The lines of the error, without the folder."""
    with pytest.raises(DataError) as caught:
        read(tmp_path, text, actions)
    return str(caught.value).replace(f"{tmp_path.as_posix()}/", "").splitlines()


def test_each_policy_is_found_to_spend_at_most_what_it_claims_and_the_claim_is_its_guarantee():
    findings = audit(PROBLEM, list(CATALOGUE), [0.1, 1.0, 20.0])
    assert not exceeds(findings)
    for finding in findings:
        if finding.epsilon is not None and not finding.refusal:
            assert finding.claimed == make_policy(finding.policy, epsilon=finding.epsilon).guarantee
            assert finding.exact <= finding.claimed * (1 + 1e-9)


def test_randomized_response_is_found_to_spend_exactly_its_claim_with_the_records_that_show_it():
    (finding,) = audit(PROBLEM, ["randomized-response"], [1.0])
    assert finding.exact == pytest.approx(1.0, rel=1e-12)
    assert {finding.record, finding.neighbour} == {"record 0", "record 1"}
    assert finding.log_chances[0] - finding.log_chances[1] == finding.exact


def test_a_policy_without_epsilon_is_audited_once_and_progress_counts_findings():
    progress = CountedProgress()
    findings = audit(PROBLEM, ["uniform", "exponential"], [2.0, 1.0], progress)
    assert [(finding.policy, finding.epsilon) for finding in findings] == [
        ("uniform", None),
        ("exponential", 1.0),
        ("exponential", 2.0),
    ]
    assert progress.done == progress.expected == 3


def test_a_policy_that_spends_more_than_it_claims_is_listed_first_and_marked():
    findings = audit(PROBLEM, ["exponential", Overspending()], [0.5, 1.0])
    assert [finding.holds for finding in findings] == [True, True, False, False]
    assert exceeds(findings)
    text = screen_of(findings)
    assert "Do the claims hold? No: 2 of 4." in text
    rows = ["overspending 0.5 0.5 1.00 200", "overspending 1 1 2.00 200", "exponential 0.5"]
    assert sorted(rows, key=text.index) == rows
    assert "200 % 2.72 no" in text
    assert "overspending at ε = 0.5: " in text


def test_a_policy_that_refuses_the_problem_is_no_failure():
    findings = audit(PROBLEM, [Refusing()], [1.0])
    assert findings == [Finding("refusing", 1.0, 1.0, refusal="the scores are odd")]
    assert not exceeds(findings)
    text = screen_of(findings)
    assert "refusing at ε = 1: refused: the scores are odd" in text
    assert "Nothing was claimed, so no claim was checked." in text


@pytest.mark.parametrize(
    ("table", "fault"),
    [
        (((math.nan, 0.0),) * 3, "its probabilities sum to nan for [record 0]"),
        (((0.0, -math.inf), (-1.0, -1.0), (0.0, -math.inf)), "its probabilities sum to 0.735758882 for [record 1]"),
        (((0.0, 0.0),) * 3, "its probabilities sum to 2 for [record 0]"),
        (((1e4, 0.0),) * 3, "its probabilities sum to inf for [record 0]"),
        (((0.0, -math.inf),), "its table has shape (1, 2) instead of (3, 2)"),
    ],
)
def test_a_table_that_holds_no_probabilities_is_a_failure_though_its_rows_are_all_alike(table, fault):
    findings = audit(PROBLEM, [Fixed(table=table)], [1.0])
    assert [(finding.fault, finding.exact) for finding in findings] == [(fault, None)]
    assert exceeds(findings)
    text = screen_of(findings)
    assert "no probabilities" in text
    assert f"fixed at ε = 1: {fault}" in text
    assert "No: 0 of 1." in text


@pytest.mark.parametrize(
    ("claimed", "exact", "holds"),
    [
        (1.0, 1 + 0.9e-9, True),
        (1.0, 1 + 1.1e-9, False),
        (0.0, 0.9e-12, True),
        (0.0, 1.1e-12, False),
        (math.inf, math.inf, True),
        (100.0, math.inf, False),
        (None, math.inf, True),
    ],
)
def test_a_claim_may_be_missed_by_rounding_only(claimed, exact, holds):
    assert Finding("any", claimed, claimed, exact).holds is holds


def test_a_policy_whose_probabilities_underflow_is_shown_by_its_logarithm():
    logs = tuple(tuple(row) for row in make_policy("randomized-response", epsilon=900.0).log_probabilities(PROBLEM))
    text = screen_of(audit(PROBLEM, [Fixed(table=logs)], [900.0]))
    assert "and e^−900 for [record " in text
    assert "by a factor of e^900." in text


@pytest.mark.parametrize("epsilons", [[], [-1.0], [math.nan]])
def test_an_epsilon_that_is_no_number_from_zero_is_refused(epsilons):
    with pytest.raises(ValueError, match="epsilon must be a number >= 0"):
        audit(PROBLEM, ["exponential"], epsilons)


def test_the_screen_stays_within_a_hundred_columns_whatever_the_names(tmp_path):
    columns = [f"feature_with_a_rather_long_name_{i}" for i in range(12)]
    rows = [",".join([*("level" * 12 for _ in columns), p, str(1 - float(p))]) for p in ("0.5", "0.25")]
    path = tmp_path / f"{'long' * 30}.csv"
    path.write_text("\n".join([",".join([*columns, "p_a", "p_b"]), *rows]), encoding="utf-8")
    table = read_probability_table(path)
    adjacency = table_adjacency(table, "any-record")
    text = screen_of_table(table, adjacency, 0.1)
    assert max(map(len, text.splitlines())) <= 100
    assert "No: 0 of 1." in text


# Tables made elsewhere.


def test_a_table_is_read_with_its_features_actions_and_line_numbers(tmp_path):
    table = read(tmp_path, TABLE)
    assert (table.features, table.actions) == (("age", "smoker"), ("wait", "treat"))
    np.testing.assert_array_equal(table.probabilities, [[0.5, 0.5], [0.25, 0.75], [0.8, 0.2], [0.1, 0.9]])
    assert table.codes.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert table.levels == (("young", "old"), ("0", "1"))
    assert table.describe(2) == "line 4: age old, smoker 0"


def test_actions_can_be_named_in_any_order_and_their_columns_be_anywhere(tmp_path):
    table = read(tmp_path, "treat,age,p_rest,wait\n0.25,young,1,0.75\n", ["wait", "treat"])
    assert table.actions == ("wait", "treat")
    assert table.features == ("age", "p_rest")
    assert table.probabilities.tolist() == [[0.75, 0.25]]


def test_marks_blank_lines_quotes_and_spaces_of_other_tools_are_understood(tmp_path):
    text = '\ufeffage, p_a, p_b\r\n\r\n"18,\n or so", 0.5, 0.5\r\nold, 5e-1, .5\r\n'
    table = read(tmp_path, text)
    assert table.features == ("age",)
    # The blank line and the line break inside quotes count as lines of the file.
    assert [table.describe(row) for row in (0, 1)] == ["line 3: age 18,\\n or so", "line 5: age old"]


def test_rows_that_were_rounded_when_written_are_rescaled_and_that_is_said(tmp_path):
    table = read(tmp_path, "x,p_a,p_b,p_c\n0,0.3333333,0.3333333,0.3333333\n1,0.2,0.3,0.5\n")
    assert table.n_rescaled == 1
    np.testing.assert_allclose(table.probabilities[0], 1 / 3, rtol=1e-15)
    assert table.probabilities[1].tolist() == [0.2, 0.3, 0.5]
    text = screen_of_table(table, table_adjacency(table, "any-record"))
    assert "1 row did not quite sum to one: each was divided by its sum." in text


def test_every_bad_row_is_a_line_that_names_its_line_and_column(tmp_path):
    bad = """\
age,p_a,p_b
1,,0.5
2,half,0.5
3,0.5,nan
4,-0.1,1.1
5,0.5,1.5
6,0.5,0.6
7,0.5,0.500002
8,0.5
9,0.5,0.5
10,0_5,0.5
11,inf,0.5
12,0.5,0.5,0.5
"""
    # Rows of another length first: nothing else can be said of them.
    assert mistakes(tmp_path, bad) == [
        "probabilities.csv:9: row 8: must have 3 columns as the header has, got 2",
        "probabilities.csv:13: row 12: must have 3 columns as the header has, got 4",
    ]
    of_one_length = bad.replace("8,0.5\n", "\n").replace("12,0.5,0.5,0.5\n", "")
    assert mistakes(tmp_path, of_one_length) == [
        "probabilities.csv:2: row 1: p_a: must be a probability in [0, 1], is missing",
        "probabilities.csv:3: row 2: p_a: must be a probability in [0, 1], got 'half'",
        "probabilities.csv:4: row 3: p_b: must be a probability in [0, 1], got 'nan'",
        "probabilities.csv:5: row 4: p_a: must be a probability in [0, 1], got '-0.1'",
        "probabilities.csv:5: row 4: p_b: must be a probability in [0, 1], got '1.1'",
        "probabilities.csv:6: row 5: p_b: must be a probability in [0, 1], got '1.5'",
        "probabilities.csv:7: row 6: p_a, p_b: must sum to 1 within 1e-06, got a sum of 1.1",
        "probabilities.csv:8: row 7: p_a, p_b: must sum to 1 within 1e-06, got a sum of 1.000002",
        # Line 9 is blank.
        "probabilities.csv:11: row 9: p_a: must be a probability in [0, 1], got '0_5'",
        "probabilities.csv:12: row 10: p_a: must be a probability in [0, 1], got 'inf'",
    ]


@pytest.mark.parametrize(
    ("text", "actions", "message"),
    [
        (
            "age,a,b\n1,0.5,0.5\n",
            None,
            "probabilities.csv: needs a column p_<action> for each action; no column is named so",
        ),
        ("age,p_a\n1,1\n", None, "probabilities.csv: needs a column p_<action> for each action; only p_a is named so"),
        (
            "age,wait,treat\n1,0.5,0.5\n",
            ["wait", "treet"],
            "probabilities.csv: unknown column 'treet'; did you mean 'treat'? known: age, wait, treat",
        ),
        ("age,a,b\n1,0.5,0.5\n", ["a", "a"], "probabilities.csv: a: named twice as an action"),
        (
            ",p_a,p_b\n0,0.5,0.5\n",
            None,
            "probabilities.csv: column 1 has no name; if it only numbers the rows, leave it out",
        ),
        ('age,p_a,p_b\n1,0.5,0.5\n"1,0.5,0.5\n', None, "probabilities.csv:3: not valid CSV: unexpected end of data"),
    ],
)
def test_a_file_without_a_table_is_one_clear_line(tmp_path, text, actions, message):
    assert mistakes(tmp_path, text, actions) == [message]


def test_a_table_is_the_same_in_parquet_where_rows_have_no_lines(tmp_path):
    text = read(tmp_path, TABLE)
    path = tmp_path / "probabilities.parquet"
    pd.read_csv(tmp_path / "probabilities.csv").to_parquet(path)
    table = read_probability_table(path)
    assert (table.features, table.actions, table.levels) == (text.features, text.actions, text.levels)
    np.testing.assert_array_equal(table.probabilities, text.probabilities)
    np.testing.assert_array_equal(table.codes, text.codes)
    assert table.describe(2) == "row 3: age old, smoker 0"


@pytest.mark.parametrize(
    ("name", "sensitive", "expected"),
    [
        # Lines 4 and 5 (0.8 : 0.1) differ in smoking; lines 3 and 5 (0.25 : 0.1) in age.
        ("any-record", (), math.log(8)),
        ("one-feature", (), math.log(8)),
        ("sensitive", ("smoker",), math.log(8)),
        ("sensitive", ("age",), math.log(2.5)),
    ],
)
def test_the_loss_of_a_table_is_that_of_its_worst_neighbours(tmp_path, name, sensitive, expected):
    table = read(tmp_path, TABLE)
    (finding,) = audit_table(table, table_adjacency(table, name, sensitive), expected * 1.001)
    assert finding.exact == pytest.approx(expected, rel=1e-12)
    assert finding.holds
    (finding,) = audit_table(table, table_adjacency(table, name, sensitive), expected * 0.999)
    assert not finding.holds


def test_the_screen_of_a_table_names_the_lines_of_the_file(tmp_path):
    table = read(tmp_path, TABLE)
    adjacency = table_adjacency(table, "sensitive", ["smoker"])
    text = screen_of_table(table, adjacency, 1.0)
    assert (
        text.replace("\u00a0", " ")
        == """\
probabilities.csv
4 rows; treatments wait, treat; features age, smoker.
Adjacency: sensitive (smoker), among the rows of the file. Records that are not in it are not
covered.

Do the claims hold?  No: 0 of 1. The most that one treatment lets an observer change the odds
                     between two neighbours: factor 8.00 (ε = 2.08).

                   ε  claimed  exact  share of claim  odds change by at most  claim holds
probabilities.csv  1        1   2.08           208 %                    8.00           no
probabilities.csv at ε = 1: wait has probability 0.8 for [line 4: age old, smoker 0] and 0.1 for
[line 5: age old, smoker 1]: it changes the odds by a factor of 8.00.
"""
    )


@settings(max_examples=100, deadline=None)
@given(exact=st.floats(1e-6, 50), spare=st.sampled_from([0.0, 1e-13, 1e-3]))
def test_a_printed_loss_is_never_below_the_exact_one_and_never_above_a_claim_that_holds(exact, spare):
    finding = Finding("any", 1.0, exact * (1 + spare), exact * (1 + 1e-13), "x", "y", "a", (0.0, -exact))
    ((*_, loss, _, factor, holds),) = audit_screen([finding], "", []).tables[0].rows
    assert holds == "yes"
    assert float(loss.replace("−", "-")) >= exact * (1 - 1e-10)
    assert float(factor.replace(",", "")) >= math.exp(exact) * (1 - 1e-10)


def test_without_a_claim_the_loss_of_a_table_is_told_and_nothing_is_checked(tmp_path):
    table = read(tmp_path, TABLE.replace("0.1,0.9", "0,1"))
    findings = audit_table(table, table_adjacency(table, "any-record"))
    assert findings[0].exact == math.inf
    assert not exceeds(findings)
    text = screen_of(findings)
    assert "and 0 (never) for [line 5: age old, smoker 1]" in text
    assert "Nothing was claimed, so no claim was checked. The most" in text


def test_rows_of_one_record_with_different_probabilities_count_as_neighbours(tmp_path):
    table = read(tmp_path, "x,y,p_a,p_b\n0,0,0.5,0.5\n0,0,0.2,0.8\n1,1,0.1,0.9\n")
    for name, sensitive in (("one-feature", ()), ("sensitive", ("x",))):
        adjacency = table_adjacency(table, name, sensitive)
        (finding,) = audit_table(table, adjacency)
        assert finding.exact == pytest.approx(math.log(2.5), rel=1e-12)
        assert "1 of 3 rows have no neighbour in the file" in screen_of_table(table, adjacency)


def test_a_table_in_which_nobody_has_a_neighbour_is_refused_and_not_passed(tmp_path):
    table = read(tmp_path, "x,y,p_a,p_b\n0,0,1,0\n1,1,0,1\n")
    with pytest.raises(DataError, match="no two of its rows are neighbours under one-feature: nothing to audit"):
        audit_table(table, table_adjacency(table, "one-feature"), 1.0)


def test_a_table_without_features_can_be_audited_under_any_record(tmp_path):
    table = read(tmp_path, "p_a,p_b\n0.5,0.5\n0.25,0.75\n")
    (finding,) = audit_table(table, table_adjacency(table, "any-record"))
    assert (finding.exact, finding.record) == (pytest.approx(math.log(2), rel=1e-12), "line 2")
    with pytest.raises(DataError, match="no two of its rows are neighbours"):
        audit_table(table, table_adjacency(table, "one-feature"))


@pytest.mark.parametrize(
    ("name", "sensitive", "message"),
    [
        ("any", (), "unknown adjacency 'any'"),
        ("sensitive", ("smoke",), "unknown feature 'smoke'; did you mean 'smoker'"),
        ("sensitive", (), "the adjacency sensitive needs at least one hidden feature"),
        ("one-feature", ("age",), "hidden features only go with the adjacency sensitive, not with one-feature"),
    ],
)
def test_an_adjacency_that_the_table_cannot_have_is_refused(tmp_path, name, sensitive, message):
    table = read(tmp_path, TABLE)
    with pytest.raises(ValueError, match=message):
        table_adjacency(table, name, sensitive)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), epsilon=st.sampled_from([0.1, 1.0, 5.0]))
def test_a_table_written_by_a_policy_is_found_to_spend_what_the_policy_spends(tmp_path_factory, seed, epsilon):
    rng = np.random.default_rng(seed)
    problem = DecisionProblem(rng.normal(size=(6, 3)), np.full(6, 1 / 6), Sensitive((2, 3), (1,)))
    (direct,) = audit(problem, ["exponential"], [epsilon])
    rows = make_policy("exponential", epsilon=epsilon).probabilities(problem)
    # The order of the rows does not matter.
    lines = [",".join(map(repr, [i // 3, i % 3, *map(float, rows[i])])) for i in rng.permutation(6).tolist()]
    path = tmp_path_factory.mktemp("tables") / "table.csv"
    path.write_text("\n".join(["x,y,p_a,p_b,p_c", *lines]), encoding="utf-8")
    table = read_probability_table(path)
    (whole,) = audit_table(table, table_adjacency(table, "sensitive", ["y"]), epsilon)
    assert whole.exact == pytest.approx(direct.exact, rel=1e-9)
    assert whole.holds
