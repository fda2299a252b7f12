"""The figures of a report: what they hold. The page itself: report/."""

import pytest
from small_studies import write_small_study

import policysim as ps
from policysim.figures import frontier, label, to_png, to_svg


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def problem(study):
    return ps.build_problem(study)


@pytest.fixture(scope="module")
def table(study, problem):
    return ps.compare(problem, policies=study.policies, epsilons=study.epsilons, by=study.by)


def test_every_policy_has_its_own_line_or_marker(table):
    figure = frontier(table)
    for axes in figure.axes:
        looks = {}
        for line in (line for line in axes.get_lines() if not line.get_label().startswith("_")):
            looks[line.get_label()] = (line.get_color(), line.get_marker(), str(line.get_linestyle()))
        expected = {label(name) for name in table["policy"].unique()}
        assert set(looks) == expected
        assert len(set(looks.values())) == len(looks)


def test_the_drawn_points_are_the_numbers_of_the_table(table):
    lost, deaths = frontier(table).axes
    rows = table[(table["policy"] == "exponential") & (table["group"] == "all")]
    drawn = {line.get_label(): line for line in lost.get_lines()}["exponential"]
    assert list(drawn.get_xdata()) == list(rows["epsilon"])
    assert list(drawn.get_ydata()) == list(rows["loss"])
    drawn = {line.get_label(): line for line in deaths.get_lines()}["exponential"]
    assert list(drawn.get_ydata()) == pytest.approx(list(rows["expected_deaths"] * 100_000))


def test_a_curve_of_one_epsilon_and_one_of_zero_can_be_drawn(problem):
    for epsilons in ([1.0], [0.0, 3.0]):
        table = ps.compare(problem, policies=["exponential", "greedy"], epsilons=epsilons)
        assert to_png(frontier(table)).startswith(b"\x89PNG")


def test_svg_has_real_text_and_the_same_bytes_each_time(table):
    one, other = (to_svg(frontier(table)) for _ in range(2))
    assert one == other
    assert "benefit kept" in one
