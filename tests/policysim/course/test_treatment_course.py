"""Treatment over days as a process: against one decision, against a dense matrix, and why only any-record composes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from small_studies import DEPENDENT, write_small_study

import policysim as ps
from envs import load_scenario
from envs.treatment_response import ResponseModel
from policysim.course.treatment_course import ABSORBED, build_course

FILE = "scenario.toml"


def dense(study, horizon):
    """P(next record | record, action) and expected deaths, record by record and flag by flag from the definitions.

    Returns transitions (n, k, n) without what ends, and P(death), (n, k). Deliberately slow and plain.
    """
    scenario = study.scenario
    space = scenario.space
    records = list(product(*(range(length) for length in space.shape)))
    flags = ["infected", "fever", "cough"]
    kappa = {"fever": 0.8, "cough": 0.4}
    severity = np.broadcast_to(ResponseModel(scenario).severity, space.shape)
    n, k = len(records), len(scenario.actions)
    move, death = np.zeros((n, k, n)), np.zeros((n, k))
    for x, morning in enumerate(records):
        now = dict(zip(space.names, morning, strict=True))
        for a, treatment in enumerate(scenario.treatments.values()):
            for evening in product((0, 1), repeat=3):
                chance = 1.0
                for flag, present in zip(flags, evening, strict=True):
                    stays = (1 - scenario.natural_clearing[flag]) * (1 - treatment.clears.get(flag, 0.0))
                    p = stays if now[flag] else treatment.side_effects.get(flag, 0.0)
                    chance *= p if present else 1 - p
                left = dict(zip(flags, evening, strict=True))
                hazard = severity[morning] / horizon
                hazard *= 0.2 + sum(kappa.get(flag, 0.0) * left[flag] for flag in flags) if now["infected"] else 1.0
                dies = 1 - np.exp(-hazard)
                death[x, a] += chance * dies
                if not any(evening):
                    continue
                for night in product((0, 1), repeat=3):
                    appears = 1.0
                    for flag, present in zip(flags, night, strict=True):
                        admission = {"fever": 0.6, "cough": 0.5} if left["infected"] else {"fever": 0.05, "cough": 0.1}
                        onset = {"infected": 0.0, "fever": 0.5, "cough": 0.3}[flag] * admission.get(flag, 0.0)
                        p = 1.0 if left[flag] else onset
                        appears *= p if present else 1 - p
                    after = {**now, **dict(zip(flags, night, strict=True))}
                    y = space.indices([[after[name] for name in space.names]])[0]
                    move[x, a, y] += chance * (1 - dies) * appears
    return move, death


@pytest.mark.parametrize("horizon", [1, 3])
def test_a_day_is_what_its_definition_says(study, horizon):
    course = build_course(study, horizon, length_public=True)
    move, death = dense(study, horizon)
    values = np.random.default_rng(0).normal(size=len(death))
    assert course.continuation(values) == pytest.approx(move @ values, abs=1e-12)
    assert course.outcomes["death"] == pytest.approx(death, abs=1e-12)
    chosen = np.random.default_rng(1).dirichlet(np.ones(3), size=len(death))
    expected = np.einsum("x,xa,xay->y", course.initial, chosen, move)
    assert course.push(course.initial, chosen) == pytest.approx(expected, abs=1e-14)


def test_the_rewards_of_a_day_are_its_expected_utility(study):
    course = build_course(study, 3)
    _, death = dense(study, 3)
    response = ResponseModel(study.scenario)
    weights = {"infected": 0.1, "fever": 0.2, "cough": 0.3}
    costs = np.array([0.0, 0.02, 0.05])
    expected = -10 * death - costs - sum(w * response.probability(name) for name, w in weights.items())
    assert course.rewards[:-1] == pytest.approx(expected, abs=1e-12)


def test_one_day_is_the_one_decision(study):
    course, problem = build_course(study, 1), ps.build_problem(study)
    assert np.array_equal(course.rewards[:-1], problem.utilities)
    assert np.array_equal(course.initial[:-1], problem.prior)
    assert np.array_equal(course.outcomes["death"][:-1], problem.outcomes["death"])


def test_who_is_no_longer_treated_is_one_more_record(study):
    course, public = build_course(study, 3), build_course(study, 3, length_public=True)
    n = study.scenario.space.size
    assert len(course.initial) == n + 1 and len(public.initial) == n
    assert course.records.describe(n) == ABSORBED
    assert not course.rewards[n].any() and course.initial[n] == 0
    # Nothing is lost: what leaves the records arrives there, and stays.
    chosen = np.full((n + 1, 3), 1 / 3)
    first = course.push(course.initial, chosen)
    second = course.push(first, chosen)
    assert first.sum() == pytest.approx(1, abs=1e-12) and second.sum() == pytest.approx(1, abs=1e-12)
    assert 0 < first[n] < second[n]
    assert first[:n] == pytest.approx(public.push(public.initial, chosen[:n]), abs=1e-15)
    # A value of having ended is counted where the stay ends.
    values = np.random.default_rng(2).normal(size=n + 1)
    ends = 1 - public.continuation(np.ones(n))
    expected = public.continuation(values[:n]) + ends * values[n]
    assert course.continuation(values)[:n] == pytest.approx(expected, abs=1e-12)
    assert course.continuation(values)[n] == pytest.approx(np.full(3, values[n]))


@pytest.mark.parametrize("horizon", [0, -1, 1.5, True, "2"])
def test_a_horizon_that_is_no_number_of_days_is_refused(study, horizon):
    with pytest.raises(ValueError, match=f"horizon must be a whole number of days >= 1, got horizon={horizon!r}"):
        build_course(study, horizon)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"adjacency": "one-feature"}, r"over days one-feature does not compose: .*set adjacency = \"any-record\", or"),
        (
            {"sensitive": ["age"]},
            r"must never change, and infected, fever, cough may: .*set \[privacy\] public = \[\"smoker\"\]",
        ),
        ({"sensitive": ["age", "smoker", "fever"]}, r"and infected, cough may: .*set adjacency = \"any-record\""),
    ],
)
def test_what_does_not_compose_over_days_is_refused(study, choice, message):
    narrower = study.with_choices(**choice)
    for horizon in (1, 2):
        with pytest.raises(ValueError, match=message):
            build_course(narrower, horizon)


@pytest.fixture(scope="module")
def within_age(study):
    return study.with_choices(sensitive=["infected", "fever", "cough", "smoker"])


def test_each_public_class_has_a_record_of_its_own_for_who_is_no_longer_treated(study, within_age):
    course, whole, n = build_course(within_age, 3), build_course(study, 3), study.scenario.space.size
    assert len(course.initial) == n + 2 and course.n_absorbed == 2
    assert [course.records.describe(n + place) for place in (0, 1)] == [
        f"{ABSORBED}, age young",
        f"{ABSORBED}, age old",
    ]
    assert np.array_equal(course.records.groups("age")[0], course.classes)
    assert course.records.groups("smoker")[0][n:].tolist() == [0, 0]
    # It is the same course, but that those who leave stay in their class.
    chosen = np.random.default_rng(0).dirichlet(np.ones(3), size=n + 2)
    mass, of_whole = course.initial, whole.initial
    for _ in range(2):
        of_class = np.bincount(course.classes, weights=mass)
        mass, of_whole = course.push(mass, chosen), whole.push(of_whole, np.vstack([chosen[:n], chosen[:1]]))
        assert mass[:n] == pytest.approx(of_whole[:n], abs=1e-15)
        assert np.bincount(course.classes, weights=mass) == pytest.approx(of_class, abs=1e-15)
    assert (mass[n:] > 0.01).all()
    # A value of having left is that of the own class.
    values = np.random.default_rng(1).normal(size=n + 2)
    for place in (0, 1):
        inside = np.flatnonzero(course.classes == place)
        alone = np.append(values[:n], values[n + place])
        expected = whole.continuation(alone)[np.minimum(inside, n)]
        assert course.continuation(values)[inside] == pytest.approx(expected, abs=1e-12)
        assert course.continuation(values, [1])[inside, 0] == pytest.approx(expected[:, 1], abs=1e-12)
    # Where the length is public, nobody is no longer treated.
    public = build_course(within_age, 3, length_public=True)
    assert len(public.initial) == n and public.n_absorbed == 0
    assert np.array_equal(public.classes, course.classes[:n])


@pytest.mark.parametrize("length_public", [False, True])
def test_the_course_of_a_class_is_that_of_its_patients(within_age, length_public):
    course = build_course(within_age, 3, length_public=length_public)
    for whole in (course, course.merged()):
        parts = whole.by_class()
        assert np.array_equal(np.sort(np.concatenate([rows for rows, _ in parts])), np.arange(len(whole.initial)))
        values = np.random.default_rng(2).normal(size=len(whole.initial))
        for place, (rows, part) in enumerate(parts):
            assert (whole.classes[rows] == place).all() and part.classes is None
            assert part.initial.sum() == pytest.approx(1.0)
            assert part.continuation(values[rows]) == pytest.approx(whole.continuation(values)[rows], abs=1e-14)
            chosen = np.random.default_rng(3).dirichlet(np.ones(3), size=len(values))
            mass = np.zeros(len(values))
            mass[rows] = part.initial
            assert part.push(part.initial, chosen[rows]) == pytest.approx(whole.push(mass, chosen)[rows], abs=1e-14)


def test_merged_and_sketched_courses_keep_classes_apart(study, within_age):
    # Nothing but the class tells the patients apart: age counts for nothing, or only as a public feature.
    death = replace(study.scenario.death, relative_risk={"age": (1.0, 1.0), "smoker": (1.0, 1.0)})
    alike = replace(study.scenario, death=death)
    for whole, n_states in (
        (replace(study, scenario=alike), 2**3 + 1),
        (replace(within_age, scenario=alike), 2**4 + 2),
    ):
        course = build_course(whole, 3)
        merged = course.merged()
        assert len(merged.initial) == n_states
        state = merged.first_records.state
        if course.classes is not None:
            assert np.array_equal(merged.classes[state], course.classes)
        values = np.random.default_rng(4).normal(size=n_states)
        assert merged.continuation(values)[state] == pytest.approx(course.continuation(values[state]), abs=1e-14)
    course = build_course(within_age, 3)
    small = course.sketch(1)
    # One fixed part for each class is the smallest sketch: that of a sketch is itself.
    assert small.sketch(1) is small and len(small.initial) == 2 * (2**3 + 1)
    assert set(small.classes.tolist()) == {0, 1} and small.n_absorbed == 2
    by_class = np.bincount(small.classes, weights=small.initial)
    assert by_class == pytest.approx(np.bincount(course.classes, weights=course.initial))


def test_one_feature_does_not_compose_over_days():
    """The counter-example: a fixed feature f that differs makes a symptom s differ tomorrow.

    Each day's policy is one-feature private at epsilon 1, exactly. Yet what two days publish about f has a loss of
    2.98, not of 2: tomorrow's records differ in two features.
    """
    epsilon, certain = 1.0, 0.99
    # P(the treatment is given | f, s): a step of epsilon for each feature.
    given = 0.05 * np.exp(epsilon * np.array([[0, 1], [1, 2]]))
    table = np.stack([1 - given, given], axis=-1).reshape(4, 2)
    assert ps.privacy_loss(table, ps.OneFeature((2, 2))).epsilon == pytest.approx(epsilon, abs=1e-12)
    sick = np.array([1 - certain, certain])  # P(s tomorrow | f), whatever the treatment; nobody has s today
    course = np.array(
        [
            [
                table[2 * f, first] * sum(p * table[2 * f + s, second] for s, p in enumerate((1 - sick[f], sick[f])))
                for first, second in product((0, 1), repeat=2)
            ]
            for f in (0, 1)
        ]
    )
    assert course.sum(axis=1) == pytest.approx([1, 1])
    loss = np.abs(np.log(course[0] / course[1])).max()
    assert loss == pytest.approx(2.98, abs=0.005)
    # Any-record composes: the same policy has a daily loss of 2 there, and two days stay within 4.
    assert loss <= 2 * ps.privacy_loss(table, ps.AnyRecord()).epsilon


def test_a_merged_course_keeps_apart_who_is_treated_otherwise(study, tmp_path):
    def over(name, text):
        return replace(study, scenario=load_scenario(write_small_study(tmp_path / name, scenario=text).parent / FILE))

    # Smokers and others differ in nothing but what they may get, or what the pill does to them.
    ruled = DEPENDENT.replace("age = [1, 4]\nsmoker = [1, 1.5]\n", "").replace('age = "old"', "smoker = 1")
    plain = ruled[: ruled.index("[[treatments.pill.rules]]")] + ruled[ruled.index("[events.stroke]") :]
    masked = replace(
        over("mask", plain.replace('title = "pill"', 'title = "pill"\ncontraindicated = [{ smoker = 1 }]')),
        adjacency="sensitive",
        sensitive=("infected", "fever", "cough", "age"),
    )
    same, alike = over("same", plain), over("rule", ruled)
    counts = [len(build_course(each, 3).merged().rewards) for each in (same, alike, masked)]
    # Eight states of the three flags for each fixed part that is told apart, and one for who is no longer treated, of
    # each public class.
    assert counts == [8 + 1, 2 * 8 + 1, 2 * (8 + 1)]
    course = build_course(masked, 3)
    smoker = np.append(study.scenario.space.groups("smoker")[0], [0, 1]) == 1
    assert np.array_equal(course.admissible, ~np.outer(smoker, [False, False, True]))
    assert not course.rewards[~course.admissible].any()
    merged = course.merged()
    assert np.array_equal(merged.admissible[merged.first_records.state], course.admissible)
    values = np.random.default_rng(3).normal(size=len(merged.rewards))
    whole = course.continuation(values[merged.first_records.state])
    assert merged.continuation(values)[merged.first_records.state] == pytest.approx(whole, abs=1e-13)
