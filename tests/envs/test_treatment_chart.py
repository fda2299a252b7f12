"""A patient's chart."""

import gymnasium
import numpy as np
import pytest
from brute_force import scenario

import policysim  # noqa: F401 - registers the environments
from envs.treatment import DAYS_SHOWN, Charts, wrapped_at_commas
from envs.treatment_vector import TreatmentVectorEnv

ONE = np.array([0])


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    return scenario("chain", tmp_path_factory.mktemp("chain"))


def code(*, cough=0, old=0, fever=0, infected=0):
    return np.array([[cough, old, fever, infected]], dtype=np.int16)


def note(charts, treatment, evening, morning, *, over=False):
    """A day: (cough, fever, infected, death) in the evening, and the record of the next morning."""
    charts.note(ONE, np.array([treatment]), np.array([evening], dtype=bool), morning, np.array([over]))


def test_the_text_shows_every_morning_and_evening(chain):
    charts = Charts(chain, 4, 1)
    charts.admit(ONE, code(fever=1, infected=1, old=1))
    note(charts, 1, (1, 0, 1, 0), code(cough=1, infected=1, old=1))
    note(charts, 2, (0, 0, 1, 0), code(infected=1, fever=1, old=1))
    assert charts.text(0).splitlines() == [
        "At admission: fever, infected, old yes",
        "day        1     2     3",
        "treatment  syrup pill",
        "cough      ·■    ■·    ·",
        "fever      ■·    ··    ■",
        "infected   ■■    ■■    ■",
        "■ present, · absent, in the morning and in the evening; none, syrup, pill",
        "day 2 of 4",
    ]


@pytest.mark.parametrize(
    ("evening", "status"),
    [
        ((0, 0, 0, 0), "recovered on day 1"),
        ((0, 1, 0, 0), "discharged on day 1"),
        ((0, 1, 0, 1), "died on day 1"),
        ((0, 0, 0, 1), "died on day 1"),
    ],
)
def test_the_end_is_in_words_and_no_morning_follows(chain, evening, status):
    charts = Charts(chain, 1, 1)
    charts.admit(ONE, code(fever=1))
    assert charts.text(0).splitlines()[-1] == "admitted"
    note(charts, 0, evening, code(), over=True)
    lines = charts.text(0).splitlines()
    assert lines[-1] == status
    assert lines[1] == "day        1"


def test_an_event_has_a_row_of_its_own_and_belongs_to_no_morning(tmp_path):
    events = scenario("events", tmp_path)
    charts = Charts(events, 3, 1)
    charts.admit(ONE, np.array([[1, 0, 1]], dtype=np.int16))  # fever, not old, clots
    charts.note(
        ONE, ONE, np.array([[1, 0, 1, 0]], dtype=bool), np.array([[1, 0, 1]], dtype=np.int16), np.array([False])
    )
    assert charts.text(0).splitlines() == [
        "At admission: fever, clots, old no",
        "day        1    2",
        "treatment  none",
        "fever      ■■   ■",
        "clots      ■·   ■",
        "stroke      ■",
        "■ present, · absent, in the morning and in the evening, or events of the day;",
        "none, pill",
        "day 1 of 3",
    ]


def test_recovery_counts_flags_only(tmp_path):
    charts = Charts(scenario("events", tmp_path), 3, 1)
    charts.admit(ONE, np.array([[1, 0, 0]], dtype=np.int16))
    charts.note(ONE, ONE, np.array([[0, 0, 1, 0]], dtype=bool), np.array([[0, 0, 0]], dtype=np.int16), np.array([True]))
    assert charts.text(0).splitlines()[-1] == "recovered on day 1"


def test_a_new_patient_has_a_new_chart(chain):
    charts = Charts(chain, 4, 2)
    charts.admit(np.array([0, 1]), np.vstack([code(fever=1), code(cough=1)]))
    note(charts, 0, (0, 1, 0, 0), code(fever=1), over=True)
    charts.admit(ONE, code(infected=1))
    first, second = (charts.text(patient).splitlines() for patient in range(2))
    assert first[-1] == second[-1] == "admitted"
    assert first[3:6] == ["cough      ·", "fever      ·", "infected   ■"]
    assert second[0] == "At admission: cough, old no"


def test_of_a_long_stay_the_last_days_are_shown(chain):
    charts = Charts(chain, 50, 1)
    charts.admit(ONE, code(fever=1))
    for day in range(1, 31):
        # Present in the evening of every third day and in the morning of every fifth.
        note(charts, day % 3, (0, 0, day % 3 == 0, 0), code(infected=int((day + 1) % 5 == 0)))
        head, given, _, _, infected = (line.split()[1:] for line in charts.text(0).splitlines()[1:6])
        mornings = range(max(1, day + 2 - DAYS_SHOWN), day + 2)
        assert head == [str(number) for number in mornings]
        assert given == [("none", "syrup", "pill")[number % 3] for number in mornings if number <= day]
        marks = [f"{'·■'[number % 5 == 0]}{'·■'[number % 3 == 0] if number <= day else ''}" for number in mornings]
        assert infected == marks
    assert head == [str(number) for number in range(12, 32)]


def test_lines_are_broken_after_commas_only():
    assert wrapped_at_commas("one two, three four, five-six seven; eight", 20) == [
        "one two, three four,",
        "five-six seven;",
        "eight",
    ]


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_the_charts_of_many_are_those_of_each(mode):
    many = TreatmentVectorEnv(6, horizon=3, render_mode="ansi", autoreset_mode=mode)
    many.reset(seed=1, options={"record": {"covid_positive": 1, "fever": 1}})
    last = None
    for _ in range(3):
        observations, _, over, _, infos = many.step(np.zeros(6, dtype=int))
        charts = many.render()
        assert len(charts) == 6
        for place, chart in enumerate(charts):
            status = chart.splitlines()[-1]
            if mode == "SameStep" and over[place]:
                assert status == "admitted"
            elif infos["_outcome"][place]:
                fate = "died" if infos["outcome"]["death"][place] else ("recovered", "discharged")
                assert status.startswith(fate if over[place] else f"day {observations[place, -1]} of 3")
            elif mode == "Disabled":
                assert chart == last[place]
            else:
                assert status == "admitted"
        last = charts


def test_without_a_render_mode_nothing_is_shown():
    env = gymnasium.make_vec("policysim/Treatment-v1", num_envs=2)
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="shows nothing without a render_mode"):
        assert env.render() is None
