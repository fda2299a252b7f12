"""Which policies a panel shows where there are many, and that any two shown together are told apart."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.catalogue import CATALOGUE
from policysim import figures
from policysim.figures.curves import MOST_CURVES, telling
from policysim.figures.looks import COLOURS, ORDER, POLICY_LOOKS, as_dot, as_line, is_level, label, looks

BUILT_IN = list(CATALOGUE.built_in)
OWN = [f"own-{letter}" for letter in "abcdef"]


def made(values, epsilons=(0.5, 1.0, 2.0)):
    """A comparison with values that are made up, by policy and epsilon."""
    rows = [
        (name, epsilon, "all", value[place], value[place])
        for name, value in values.items()
        for place, epsilon in enumerate(epsilons)
    ]
    return pd.DataFrame(rows, columns=["policy", "epsilon", "group", "value", "benefit_kept"])


def named(axes):
    return {line.get_label() for line in axes.get_lines() if not line.get_label().startswith("_")}


def test_first_what_frames_the_others_then_the_best_at_the_study_s_epsilon_then_other_references():
    ranks = {"uniform": 9, "own-a": 1, "own-b": 2, "own-c": 3, "own-d": 4, "own-e": 5}
    values = {name: (-rank, rank, 0) for name, rank in ranks.items()} | dict.fromkeys(
        ("greedy", "optimal", "best-fixed"), (0, -5, 0)
    )
    table = made(values)
    assert telling(table) == ["own-b", "own-c", "own-d", "own-e", "greedy", "optimal", "best-fixed"]
    assert telling(table, epsilon=0.4) == ["own-a", "own-b", "own-c", "own-d", "greedy", "optimal", "best-fixed"]
    assert telling(table, most=3) == ["greedy", "optimal", "best-fixed"]
    assert telling(table, most=9) == list(values)
    # Where there is room, references that were asked for are drawn, too; of as much worth, the first of the table.
    assert "uniform" in telling(table[table["policy"].isin(["uniform", "greedy", "own-a"])])
    assert telling(table.assign(value=0.0))[:3] == ["own-a", "own-b", "own-c"]


def test_losses_rank_from_below_and_everyone_decides():
    rows = [(f"own-{i}", 1.0, group, level, i) for i in range(8) for group, level in (("all", "all"), ("age", "old"))]
    table = pd.DataFrame(rows, columns=["policy", "epsilon", "group", "level", "loss"])
    misleading = table.assign(loss=table["loss"].where(table["group"] == "all", -100.0 * table["loss"]))
    assert telling(misleading) == [f"own-{i}" for i in range(MOST_CURVES)]


def test_what_is_asked_for_is_drawn_however_much_it_is_and_what_there_is_not_is_named(comparison):
    policies = list(dict.fromkeys(comparison["policy"]))
    assert telling(comparison, policies=policies[::-1]) == policies
    with pytest.raises(ValueError, match="no policy 'nothing' in the table; it has greedy, "):
        figures.frontier(comparison, policies=["exponential", "nothing"])


@pytest.mark.usefixtures("without_layout")
def test_no_panel_has_more_than_seven_named_curves_and_each_says_what_it_leaves_out(comparison, at_one, logged, course):
    many = comparison["policy"].nunique()
    assert many > MOST_CURVES
    drawings = {
        figures.frontier: (comparison, f"Drawn: 7 of {many} policies."),
        figures.value_over_days: (course, "Not drawn: "),
    }
    for draw, (table, said) in drawings.items():
        for place, axes in enumerate(draw(table).axes):
            assert len(named(axes)) <= MOST_CURVES
            assert place or said in axes.get_xlabel().replace("\n", " ")
    groups = figures.loss_by_group(at_one)
    assert len(groups.axes) == MOST_CURVES
    assert f"Drawn: 7 of {many - 1} policies." in groups._supxlabel.get_text().replace("\n", " ")
    (axes,) = figures.frontier(logged).axes
    assert len(named(axes)) == MOST_CURVES
    few = comparison[comparison["policy"].isin(["greedy", "best-fixed", "exponential"])]
    assert "rawn" not in figures.frontier(few).axes[0].get_xlabel()


def distinct(found):
    """Whether lines and dots of all these policies are told apart, and not by colour alone."""
    curves = [look for name, look in found.items() if not is_level(name)]
    levels = [look for name, look in found.items() if is_level(name)]
    return len({look.marker for look in curves}) == len({look.colour for look in curves}) == len(curves) and len(
        {look.dashes for look in levels}
    ) == len({look.marker for look in levels}) == len(levels)


@given(st.lists(st.sampled_from([*BUILT_IN, *OWN]), unique=True, min_size=1, max_size=10))
def test_policies_that_are_shown_together_are_told_apart_and_the_built_in_ones_never_change(names):
    found = looks(names)
    assert distinct(found)
    assert looks(names[::-1]) == found
    for name in set(names) & set(BUILT_IN):
        assert found[name] == POLICY_LOOKS[name]


def test_every_built_in_policy_has_a_style_of_its_own():
    assert set(POLICY_LOOKS) == set(BUILT_IN)
    assert distinct(POLICY_LOOKS)
    assert (label("best-fixed"), label("optimal"), label("own-a")) == (
        "same for all (best-fixed)",
        "optimal",
        "own-a",
    )


def test_a_reference_of_another_package_is_a_level_line_with_hollow_dots(monkeypatch):
    mine = type("Mine", (CATALOGUE["uniform"],), {"name": "by-guideline"})
    monkeypatch.setattr(CATALOGUE, "_plugins", {"by-guideline": type("P", (), {"kind": mine})})
    found = looks(["by-guideline", "greedy", "best-fixed", "uniform"])
    assert distinct(found)
    assert as_dot("by-guideline", found["by-guideline"])["markerfacecolor"] == "white"
    assert "marker" not in as_line("by-guideline", found["by-guideline"], level=True)


def test_the_first_eight_colours_differ_for_readers_who_do_not_see_all_of_them():
    """Machado, Oliveira & Fernandes 2009, table 1: no red and no green cones, on linear RGB."""
    codes = np.array([[int(COLOURS[place][i : i + 2], 16) for i in (1, 3, 5)] for place in ORDER[:8]]) / 255
    linear = np.where(codes <= 0.04045, codes / 12.92, ((codes + 0.055) / 1.055) ** 2.4)
    protan = [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    deutan = [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    for seen in (np.eye(3), np.array(protan), np.array(deutan)):
        found = np.clip(linear @ seen.T, 0, 1)
        shown = np.where(found <= 0.0031308, 12.92 * found, 1.055 * found ** (1 / 2.4) - 0.055)
        assert min(np.linalg.norm(one - other) for one, other in combinations(shown, 2)) > 0.15


@pytest.mark.usefixtures("without_layout")
def test_of_many_treatments_those_that_somebody_gets_are_drawn_with_the_looks_that_they_have_among_all():
    chances = {f"t{i}": (9 - i) / 45 for i in range(10)}
    rows = [("mine", e, "healthy", name, chance) for e in (0.5, 1.0, 2.0) for name, chance in chances.items()]
    table = pd.DataFrame(rows, columns=["policy", "epsilon", "patient", "action", "probability"])
    backwards = table.iloc[::-1]
    (axes,) = figures.action_probabilities(backwards).axes
    assert named(axes) == {"t0", "t1", "t2", "t3", "t4", "t5", "t6"}
    assert "Drawn: 7 of 10 actions." in axes.get_xlabel()
    (every,) = figures.action_probabilities(backwards, actions=list(chances)).axes
    colours = [{line.get_label(): line.get_color() for line in part.get_lines()} for part in (axes, every)]
    assert all(colours[0][name] == colours[1][name] for name in named(axes))
    assert len(named(every)) == 10 and "rawn" not in every.get_xlabel()
    with pytest.raises(ValueError, match="no action 'x' in the table; it has t9, t8"):
        figures.action_probabilities(backwards, actions=["x"])
