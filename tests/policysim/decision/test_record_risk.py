"""How often an observer's best guess is right, record by record; its bound, where it holds; what reports say of it."""

import math
from collections import defaultdict

import numpy as np
import pytest
from random_tables import fitted, random_tables
from small_studies import STUDY, write_small_study

import policysim as ps
from policies import AnyRecord, OneFeature, Sensitive
from policysim.decision.record_risk import WHOLE
from policysim.decision.report import report
from policysim.numbers import rounded, rounded_up


def risk_by_hand(found, what):
    """Before and after by sums over single records, and the bound by its formula, for each public class."""
    problem, ages = found.problem, (0, 0, 0, 1, 1, 1)
    classes = ages if isinstance(problem.adjacency, Sensitive) else (0,) * 6
    values = {WHOLE: range(6), "age": ages, "gene": (0, 1, 2, 0, 1, 2)}[what]
    before = after = bound = 0.0
    for known in set(classes):
        alone, seen = defaultdict(float), [defaultdict(float) for _ in problem.actions]
        for record in (record for record in range(6) if classes[record] == known):
            alone[values[record]] += problem.prior[record]
            for action, row in enumerate(seen):
                row[values[record]] += problem.prior[record] * found.probabilities[record, action]
        best, m = max(alone.values()), min(sum(share > 0 for share in alone.values()), problem.n_actions)
        before += best
        after += sum(max(row.values()) for row in seen)
        if m:
            odds = math.exp(min(found.epsilon_spent, 700))
            bound += min(best * m * odds / (odds + m - 1), sum(alone.values()))
    return before, after, math.nan if isinstance(problem.adjacency, OneFeature) else bound


def test_risks_of_500_random_problems_are_those_record_by_record_and_within_their_bound():
    for found in random_tables():
        table = ps.record_risk(found)
        public = isinstance(found.problem.adjacency, Sensitive)
        assert table["what"].tolist() == [WHOLE, *([] if public else ["age"]), "gene"]
        for row in table.itertuples():
            by_hand = risk_by_hand(found, row.what)
            assert (row.before, row.after, row.bound) == pytest.approx(by_hand, abs=2e-12, nan_ok=True)
            assert row.before <= row.after + 1e-15
            assert not row.after > row.bound


@pytest.mark.parametrize(("n_records", "n_actions"), [(3, 3), (4, 4), (6, 4), (3, 5)])
def test_response_on_equally_likely_records_attains_the_bound(n_records, n_actions):
    m, odds = min(n_records, n_actions), math.exp(1.5)
    table = np.zeros((n_records, n_actions))
    for record, row in enumerate(table):
        row[:m] = 1 / (odds + m - 1)
        row[record % m] *= odds
    (after,), (bound,) = (ps.record_risk(fitted(table, AnyRecord()))[name] for name in ("after", "bound"))
    assert after == pytest.approx(m / n_records * odds / (odds + m - 1), rel=1e-12) == bound


def test_where_single_features_are_hidden_the_bound_would_not_hold_and_none_is_given():
    """Each of two features through response of its own: both are guessed more often than the bound would allow."""
    odds = math.exp(2.0)
    one = np.array([[odds, 1], [1, odds]]) / (1 + odds)
    found = fitted(np.kron(one, one), OneFeature((2, 2)))
    assert found.epsilon_spent == pytest.approx(2)
    (row,) = ps.record_risk(found).itertuples()
    assert row.after > row.before * 4 * odds / (odds + 3) and math.isnan(row.bound)
    assert not math.isnan(ps.record_risk(fitted(np.kron(one, one), AnyRecord()))["bound"][0])


def test_a_treatment_that_a_public_class_must_not_get_does_not_count():
    shape, table = (2, 3), [[0.9, 0.1, 0], [0.1, 0.9, 0], [0.5, 0.5, 0], *[[0.2, 0.3, 0.5]] * 3]
    found = fitted(table, Sensitive(shape, (1,)), admissible=np.array(table) > 0)
    (row,) = ps.record_risk(found).itertuples()
    # Of the first class, in which two treatments show three records, and of the second, in which three are given alike.
    assert (row.before, row.after) == pytest.approx((2 / 6, (0.9 + 0.9) / 6 + 1 / 6))
    assert row.bound == pytest.approx((2 * 9 / 10 + 3 * 9 / 11) / 6)


@pytest.fixture(scope="module", params=["any-record", "one-feature"])
def made(request, tmp_path_factory):
    text = STUDY.replace('adjacency = "any-record"', f'adjacency = "{request.param}"')
    study = ps.load_study(write_small_study(tmp_path_factory.mktemp("study"), text))
    return request.param, ps.build_problem(study), report(study, epsilons=[study.epsilon])


def test_the_page_and_full_say_how_often_the_guess_is_right_by_each_option(made):
    hides, problem, of = made
    (grid,) = (grid for grid in of.screen.behind if grid.name == "record-risk")
    epsilon, options = of.findings.details.epsilon, of.findings.lettered(of.findings.details.epsilon)
    bounded = ("most at this ε",) if hides == "any-record" else ()
    assert grid.head == ("Best guess of", "before", *options, *bounded)
    assert ("sets no limit" in grid.note) == (not bounded)
    risks = {
        letter: ps.record_risk(ps.make_policy(options[letter]["policy"], epsilon=epsilon).fit(problem))
        for letter in "BC"
    }
    cells = {row[0]: dict(zip(grid.head, row, strict=True)) for row in grid.rows}
    assert WHOLE in cells and len(cells) > 1
    for what, rows in cells.items():
        b, c = (risks[letter].set_index("what").loc[what] for letter in "BC")
        assert [rows[name] for name in ("before", "A", "B", "C")] == [
            rounded(100 * rate) for rate in (b["before"], b["before"], b["after"], c["after"])
        ]
        if bounded and what == WHOLE:
            m = min(problem.n_records, problem.n_actions)
            most = b["before"] * m * math.exp(epsilon) / (math.exp(epsilon) + m - 1)
            assert rows["most at this ε"] == rounded_up(100 * most * (1 + 1e-12))
    assert set(of.tables["record-risk"]["policy"]) >= {option["policy"] for option in options.values()}
