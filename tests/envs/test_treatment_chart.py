"""A patient's chart."""

import gymnasium
import numpy as np
import pytest
from brute_force import scenario
from matplotlib.colors import to_rgb

import policysim  # noqa: F401 - registers the environments
from envs.chart import BAR, DAYS_SHOWN, History, as_image, as_text, wrapped_at_commas
from envs.treatment import TreatmentEnv
from envs.treatment_vector import TreatmentVectorEnv

ONE = np.array([0])


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    return scenario("chain", tmp_path_factory.mktemp("chain"))


def code(*, cough=0, old=0, fever=0, infected=0):
    return np.array([[cough, old, fever, infected]], dtype=np.int16)


def note(history, treatment, evening, morning, *, over=False):
    """A day: (cough, fever, infected, death) in the evening, and the record of the next morning."""
    history.note(ONE, np.array([treatment]), np.array([evening], dtype=bool), morning, np.array([over]))


def two_days(scenario, *, over):
    history = History(scenario, 4, 1)
    history.admit(ONE, code(fever=1, infected=1, old=1))
    note(history, 1, (1, 0, 1, 0), code(cough=1, infected=1, old=1))
    note(history, 2, (0, 0, 1, 0), code(infected=1, fever=1, old=1), over=over)
    return history.chart(0)


def test_the_text_shows_every_morning_and_evening(chain):
    assert as_text(two_days(chain, over=False)).splitlines() == [
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
    history = History(chain, 1, 1)
    history.admit(ONE, code(fever=1))
    assert history.chart(0).status == "admitted"
    note(history, 0, evening, code(), over=True)
    lines = as_text(history.chart(0)).splitlines()
    assert lines[-1] == status
    assert lines[1] == "day        1"


def test_an_event_has_a_row_of_its_own_and_belongs_to_no_morning(tmp_path):
    events = scenario("events", tmp_path)
    history = History(events, 3, 1)
    history.admit(ONE, np.array([[1, 0, 1]], dtype=np.int16))  # fever, not old, clots
    history.note(
        ONE, ONE, np.array([[1, 0, 1, 0]], dtype=bool), np.array([[1, 0, 1]], dtype=np.int16), np.array([False])
    )
    chart = history.chart(0)
    assert as_text(chart).splitlines() == [
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
    # Six halves of a day have a bar, of which a patient with fever alone has one.
    alone = History(events, 3, 1)
    alone.admit(ONE, np.array([[1, 0, 0]], dtype=np.int16))
    assert bar_pixels(as_image(chart)) == pytest.approx(6 * bar_pixels(as_image(alone.chart(0))), rel=0.1)


def test_recovery_counts_flags_only(tmp_path):
    history = History(scenario("events", tmp_path), 3, 1)
    history.admit(ONE, np.array([[1, 0, 0]], dtype=np.int16))
    history.note(
        ONE, ONE, np.array([[0, 0, 1, 0]], dtype=bool), np.array([[0, 0, 0]], dtype=np.int16), np.array([True])
    )
    assert history.chart(0).status == "recovered on day 1"


def test_a_new_patient_has_a_new_chart(chain):
    history = History(chain, 4, 2)
    history.admit(np.array([0, 1]), np.vstack([code(fever=1), code(cough=1)]))
    note(history, 0, (0, 1, 0, 0), code(fever=1), over=True)
    history.admit(ONE, code(infected=1))
    assert history.chart(0).status == history.chart(1).status == "admitted"
    assert history.chart(0).mornings.tolist() == [[False, False, True]]
    assert history.chart(1).patient == "cough, old no"


def test_of_a_long_stay_the_last_days_are_shown(chain):
    history = History(chain, 50, 1)
    history.admit(ONE, code(fever=1))
    for day in range(1, 31):
        # Present in the evening of every third day and in the morning of every fifth.
        note(history, day % 3, (0, 0, day % 3 == 0, 0), code(infected=int((day + 1) % 5 == 0)))
        chart = history.chart(0)
        days = np.arange(chart.first, day + 1)
        assert len(chart.mornings) == min(day + 1, DAYS_SHOWN)
        assert chart.treatments.tolist() == (days % 3).tolist()
        assert chart.evenings[:, 2].tolist() == (days % 3 == 0).tolist()
        assert chart.mornings[:, 2].tolist() == [number % 5 == 0 for number in range(chart.first, day + 2)]
    assert as_text(chart).splitlines()[1].split() == ["day", *(str(number) for number in range(12, 32))]
    assert as_image(chart).shape == as_image(History(chain, 50, 1).chart(0)).shape


def test_lines_are_broken_after_commas_only():
    assert wrapped_at_commas("one two, three four, five-six seven; eight", 20) == [
        "one two, three four,",
        "five-six seven;",
        "eight",
    ]


def bar_pixels(image):
    return int((np.abs(image.astype(int) - np.round(255 * np.array(to_rgb(BAR)))) <= 2).all(axis=2).sum())


def test_the_image_has_a_bar_for_each_half_of_a_day(chain):
    # 9 halves of two days and a morning, against 1: nothing else has that colour.
    image = as_image(two_days(chain, over=False))
    history = History(chain, 4, 1)
    history.admit(ONE, code(fever=1, old=1))
    assert bar_pixels(image) == pytest.approx(9 * bar_pixels(as_image(history.chart(0))), rel=0.1)
    assert image.dtype == np.uint8
    assert image.shape[2] == 3
    assert image.shape[0] % 2 == image.shape[1] % 2 == 0


def test_frames_of_one_environment_are_all_of_one_size():
    env = TreatmentEnv(horizon=5, render_mode="rgb_array")
    env.reset(seed=0, options={"record": {"covid_positive": 1, "fever": 1, "pneumonia": 1}})
    shapes, over = {env.render().shape}, False
    while not over:
        over = env.step(0)[2]
        shapes.add(env.render().shape)
    assert len(shapes) == 1


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


def test_images_of_many_are_frames():
    env = gymnasium.make_vec("policysim/Treatment-v1", num_envs=2, render_mode="rgb_array")
    env.reset(seed=0)
    assert [frame.shape[2] for frame in env.render()] == [3, 3]
    env = gymnasium.make_vec("policysim/Treatment-v1", num_envs=2)
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="draws nothing without a render_mode"):
        assert env.render() is None
