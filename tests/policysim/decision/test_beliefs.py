"""What an observer learns, against Bayes' rule summed record by record, and in words that are true of any study."""

import math
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from envs.records import Feature, RecordSpace, record_space
from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive
from policies.adjacency import Listed, public_classes
from policysim.decision.beliefs import among, hidden_beliefs, moved_beliefs, strongest_belief
from policysim.decision.report import report
from policysim.study.labels import level_in_words


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    words = SCENARIO.replace("smoker = {}", 'smoker = { levels = [0, 1], words = ["never smoked", "smoker"] }').replace(
        "smoker = 0.2, ", ""
    )
    words = words.replace('words = ["never', 'shares = [0.8, 0.2], words = ["never')
    return ps.load_study(write_small_study(folder, STUDY, words))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


def hidden_axes(adjacency, n_features):
    """The features in which records of one class may differ, by what each adjacency means."""
    return set(adjacency.axes) if isinstance(adjacency, Sensitive) else set(range(n_features))


def classes_by_hand(problem):
    """The possible records of each class, by the public levels."""
    rows = problem.records.decode(np.arange(problem.n_records))
    hidden = hidden_axes(problem.adjacency, len(rows.columns))
    public = [name for axis, name in enumerate(rows.columns) if axis not in hidden]
    members = defaultdict(list)
    for record in np.flatnonzero(problem.prior > 0).tolist():
        members[tuple(str(rows[name].iloc[record]) for name in public)].append(record)
    return public, members


def loss_by_hand(table, records):
    """The largest log ratio of what any two of some records get."""
    loss = 0.0
    for x in records:
        for y in records:
            for p, q in zip(table[x], table[y], strict=True):
                if p > 0:
                    loss = max(loss, math.inf if q == 0 else math.log(p / q))
    return loss


def largest_move(rows):
    """The largest change of log-odds in rows of beliefs; certainty before stays what it is."""
    found = rows.dropna()
    found = found[(found["before"] > 0) & (found["before"] < 1)]
    with np.errstate(divide="ignore"):
        odds = [np.log(found[column]) - np.log1p(-found[column]) for column in ("before", "after")]
    return float((odds[1] - odds[0]).abs().max()) if len(found) else 0.0


def by_class(problem, table, feature):
    """Beliefs of each class of patients, after the public levels that stand in the words of the class."""
    found, (public, members) = ps.beliefs(problem, table, feature), classes_by_hand(problem)
    if not public:
        assert "class" not in found
        return [(found, *members.values())]
    each = len(found) // len(members)
    starts = zip(range(0, len(found), each), sorted(members), strict=True)
    pairs = [(found.iloc[start : start + each], key) for start, key in starts]
    for rows, key in pairs:
        assert rows["class"].unique().tolist() == [", ".join(f"{n} {k}" for n, k in zip(public, key, strict=True))]
    return [(rows, members[key]) for rows, key in pairs]


@st.composite
def observed(draw):
    """A problem whose records have features, some of them impossible, and a table with or without zeros."""
    shape = tuple(draw(st.lists(st.integers(2, 3), min_size=2, max_size=3)))
    axes = draw(st.sets(st.integers(0, len(shape) - 1), min_size=1))
    adjacency = draw(st.sampled_from([AnyRecord(), OneFeature(shape), Sensitive(shape, tuple(axes))]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_records, n_actions = math.prod(shape), draw(st.integers(2, 4))
    prior = rng.random(n_records) * (rng.random(n_records) < 0.8)
    prior[0] += 0.1
    table = rng.dirichlet(np.full(n_actions, draw(st.sampled_from([0.3, 3.0]))), size=n_records)
    if draw(st.booleans()):  # what is public decides alone
        table = table[np.unique(public_classes(adjacency, n_records), return_index=True)[1]]
        table = table[public_classes(adjacency, n_records)]
    if draw(st.booleans()):
        table[:, 0] = 0.0
        table[:, 1] += 1e-3
    # Levels such that no word for them says more than the name and the number.
    space = record_space({f"f{axis}": range(2, 2 + levels) for axis, levels in enumerate(shape)})
    table /= table.sum(axis=1, keepdims=True)
    return DecisionProblem(np.zeros(table.shape), prior / prior.sum(), adjacency, records=space), table


@given(observed())
@settings(max_examples=30)
def test_no_belief_moves_by_more_than_the_exact_loss_of_its_class(case):
    problem, table = case
    public, _ = classes_by_hand(problem)
    for feature in (name for name in problem.records.names if name not in public):
        for rows, records in by_class(problem, table, feature):
            loss = loss_by_hand(table, records)
            assert largest_move(rows) <= loss * (1 + 1e-9) + 1e-12
            for row in rows.itertuples():
                weights = problem.prior[records]
                given_action = weights * table[records, problem.actions.index(row.action)]
                levels = problem.records.decode(records)[feature].astype(str).to_numpy() == row.level
                assert row.before == pytest.approx(weights[levels].sum() / weights.sum(), rel=1e-9)
                after = given_action[levels].sum() / given_action.sum() if given_action.sum() > 0 else math.nan
                assert row.after == pytest.approx(after, rel=1e-9, nan_ok=True)


@given(observed())
@settings(max_examples=30)
def test_under_one_feature_the_loss_bounds_whoever_knows_every_other_feature(case):
    problem, table = case
    shape = problem.records.shape
    exact = ps.privacy_loss(table, OneFeature(shape)).epsilon
    for axis, feature in enumerate(problem.records.names):
        informed = problem.with_adjacency(Sensitive(shape, (axis,)))
        assert largest_move(ps.beliefs(informed, table, feature)) <= exact * (1 + 1e-9) + 1e-12


def test_under_one_feature_whoever_knows_nothing_may_learn_more_than_the_loss():
    shape, names = (2, 2), {"ill": [2, 3], "pale": [2, 3]}
    table = np.array([[0.8, 0.2], [0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    # The two go together: who has one mostly has the other, so both say the same of either.
    problem = DecisionProblem(
        np.zeros((4, 2)), [0.49, 0.01, 0.01, 0.49], OneFeature(shape), records=record_space(names)
    )
    moved = largest_move(ps.beliefs(problem, table, "ill"))
    assert ps.privacy_loss(table, problem.adjacency).epsilon < moved <= ps.privacy_loss(table, AnyRecord()).epsilon


def test_what_is_public_is_known_before_any_treatment():
    """The young get one treatment and the old another: that tells nothing, although the ill are mostly old."""
    space = record_space({"age": [2, 3], "ill": [2, 3]})
    table = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    problem = DecisionProblem(
        np.zeros((4, 2)), [0.45, 0.05, 0.1, 0.4], Sensitive((2, 2), (1,)), ["a", "b"], records=space
    )
    assert ps.privacy_loss(table, problem.adjacency).epsilon == 0
    found = ps.beliefs(problem, table, "ill").set_index(["class", "level", "action"])
    assert found.loc[("age 2", "3", "a")].tolist() == pytest.approx([0.1, 0.1])
    assert found.loc[("age 3", "3", "b")].tolist() == pytest.approx([0.8, 0.8])
    assert math.isnan(found.loc[("age 2", "3", "b"), "after"])
    with pytest.raises(ValueError, match="feature 'age' is public: an observer knows it before the treatment"):
        ps.beliefs(problem, table, "age")


def test_classes_are_of_records_that_a_chain_of_neighbours_joins():
    codes = np.array([[0, 0], [0, 1], [1, 1], [2, 2], [2, 3]])
    assert public_classes(Listed.one_feature(codes), 5).tolist() == [0, 0, 0, 1, 1]
    assert public_classes(Listed.sensitive(codes, [1]), 5).tolist() == [0, 0, 1, 2, 2]
    assert public_classes(Sensitive((2, 2, 2), (1,)), 8).tolist() == [0, 1, 0, 1, 2, 3, 2, 3]


def test_an_action_that_nobody_gets_says_nothing(problem):
    table = np.zeros((problem.n_records, 3))
    table[:, 1] = 1.0
    found = ps.beliefs(problem, table, "age").set_index("action")
    assert found.loc[["none", "pill"], "after"].isna().all()
    assert found.loc["syrup", "after"].tolist() == pytest.approx([0.7, 0.3])


@pytest.mark.parametrize(
    ("shape", "feature", "message"),
    [
        ((32, 3), "fevr", "unknown feature 'fevr'; known: infected, fever, cough, smoker, age"),
        ((31, 3), "fever", r"probabilities must have shape \(32, 3\), got \(31, 3\)"),
        ((32, 2), "fever", r"probabilities must have shape \(32, 3\), got \(32, 2\)"),
    ],
)
def test_what_does_not_fit_is_refused(problem, shape, feature, message):
    with pytest.raises(ValueError, match=message):
        ps.beliefs(problem, np.full(shape, 1 / shape[1]), feature)


def test_a_problem_without_features_has_no_beliefs():
    plain = ps.DecisionProblem(np.eye(2), [0.5, 0.5], ps.AnyRecord())
    with pytest.raises(ValueError, match="the problem has no features"):
        ps.beliefs(plain, np.eye(2), "age")


def ranges_by_hand(study, problem, policy):
    """(before, least, most) of each level of each hidden feature, in the class where the change is largest."""
    table = ps.make_policy(policy, epsilon=study.epsilon).probabilities(problem)
    expected = {}
    for feature in study.sensitive or problem.records.names:
        rows = ps.beliefs(problem, table, feature)
        for (level, *_), of_class in rows.groupby(["level", *rows.columns[rows.columns == "class"]], sort=False):
            before, after = of_class["before"].iloc[0], of_class["after"]
            new = before, after.min(), after.max()
            old = expected.get((feature, level))
            if old is None or max(before - new[1], new[2] - before) > max(old[0] - old[1], old[2] - old[0]) + 1e-12:
                expected[feature, level] = new
    return expected


@pytest.mark.parametrize("sensitive", [(), ("infected", "smoker")])
def test_the_ranges_of_a_study_are_those_of_each_hidden_feature(study, sensitive):
    asked = study.with_choices(sensitive=sensitive) if sensitive else study
    problem = ps.build_problem(asked)
    policy = ps.make_policy("randomized-response", epsilon=study.epsilon)
    told = hidden_beliefs(problem, policy, asked.sensitive or asked.space.names)
    expected = ranges_by_hand(asked, problem, "randomized-response")
    assert list(zip(told["feature"], told["level"], strict=True)) == list(expected)
    for each in told.itertuples():
        assert (each.before, each.least, each.most) == pytest.approx(expected[each.feature, each.level], rel=1e-12)
    far = max(max(before - least, most - before) for before, least, most in expected.values())
    assert strongest_belief(told)["change"] == pytest.approx(far, abs=1e-9)
    words = [level_in_words(problem.records, *pair) for pair in (("infected", "0"), ("infected", "1"), ("smoker", "0"))]
    assert words == ["not infected", "infected", "never smoked"]
    assert told["policy"].unique().tolist() == ["randomized-response"]
    named = set(told["among"])
    assert told["among"].any() == bool(sensitive)
    assert all("age" in among and "fever" in among for among in named) if sensitive else named == {""}


def test_many_flags_that_a_class_lacks_are_counted():
    space = RecordSpace((*(Feature(name, flag=True) for name in "abcde"), Feature("age", ("young", "old"))))
    flags = dict.fromkeys("abcde", "0")
    assert among(space, {"a": "0", "age": "old"}) == "not a, age old"
    assert among(space, {**flags, "b": "1", "age": "old"}) == "b, age old, none of 4 other flags"


def test_of_two_levels_one_is_told_and_what_does_not_move_is_not():
    rows = [
        ("ill", "0", 0.9, 0.8, 0.95),
        ("ill", "1", 0.1, 0.05, 0.2),
        ("blood_type", "A", 0.5, 0.5, 0.5),
        ("blood_type", "B", 0.5, 0.5, 0.5),
        *(("age", level, 1 / 3, 0.3, 0.34) for level in ("1", "2", "3")),
    ]
    table = pd.DataFrame(rows, columns=["feature", "level", "before", "least", "most"])
    moved = moved_beliefs(table)
    expected = [("ill", "1"), ("age", "1"), ("age", "2"), ("age", "3")]
    assert list(zip(moved["feature"], moved["level"], strict=True)) == expected
    assert strongest_belief(table)[["feature", "level"]].tolist() == ["ill", "1"]


@pytest.mark.parametrize(
    ("changes", "policy"),
    [
        ({"epsilons": [5.0]}, "exponential-fitted"),
        ({"epsilons": [5.0], "adjacency": "one-feature"}, "optimal"),
        ({"sensitive": ["infected"]}, "exponential-fitted"),
    ],
    ids=str,
)
def test_the_observer_of_an_answer_sees_the_best_private_draw(study, changes, policy):
    made = report(study.with_choices(**changes))
    table = made.findings.details.tables["beliefs"]
    assert set(table["policy"]) == {policy}
    assert set(table["feature"]) == set(changes.get("sensitive", study.space.names))
    assert (table["least"] <= table["before"] + 1e-12).all()
    assert (table["before"] <= table["most"] + 1e-12).all()
    # Of two levels one is named, and nothing that moves by less than 2 of 100; what moves farthest is first.
    moves = pd.concat([table["most"] - table["before"], table["before"] - table["least"]], axis=1).max(axis=1)
    shown = moved_beliefs(table)
    assert (moves[shown.index] >= 0.02).all() and moves[shown.index].is_monotonic_decreasing
    assert set(shown["feature"]) == set(table["feature"][moves >= 0.02])
    grids = [grid for grid in made.screen.behind if grid.name == "beliefs"]
    assert sum(len(grid.rows) for grid in grids) == len(shown)


def test_a_belief_is_of_its_own_class_though_others_have_as_many_patients():
    # The gene matters for the old alone, and as many young have it as old.
    frame = pd.DataFrame(
        [
            (age, gene, dose, float(age == "old" and (gene == "g1") != (dose == "high")), 50)
            for age in ("young", "old")
            for gene in ("g0", "g1")
            for dose in ("low", "high")
        ],
        columns=["age", "gene", "dose", "harmed", "patients"],
    )
    problem = ps.problem_from_frame(
        frame,
        features=["age", "gene"],
        treatment="dose",
        patients="patients",
        weights={"harmed": 1.0},
        sensitive=["gene"],
    )
    made = report(problem, epsilons=[1.0], policies=["optimal"])
    beliefs = made.tables["beliefs"]
    (told,) = beliefs[beliefs["level"] == "g1"].itertuples()
    assert told.among == "age old"
    # Of two records, either dose is e times as likely for the one as for the other.
    assert (told.least, told.most) == pytest.approx((1 / (1 + math.e), math.e / (1 + math.e)), rel=1e-5)
    leaks = made.findings.leaks.set_index("option")
    assert leaks.loc["B", ["low", "high"]].tolist() == pytest.approx([told.least, told.most], rel=1e-5)
    assert leaks.loc["C", ["low", "high"]].tolist() == [0.0, 1.0]
