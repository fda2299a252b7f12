"""What is drawn is what the table holds, and every policy and action has a look of its own."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import FillBetweenPolyCollection, LineCollection
from matplotlib.colors import to_hex
from matplotlib.text import Text

import policysim as ps
from policies.catalogue import CATALOGUE
from policysim import figures
from policysim.figures.benefit import BAND, SHADED
from policysim.figures.looks import COLOURS, LEAD, POLICY_LOOKS, as_dot, label, look_of_action, looks
from policysim.figures.patients import flat_features
from policysim.words import ACHIEVABLE, UNBEATABLE, level_name

pytestmark = pytest.mark.usefixtures("without_layout")


def lines_of(axes):
    return {line.get_label(): line for line in axes.get_lines() if not line.get_label().startswith("_")}


def everyone(table, policy):
    return table[(table["policy"] == policy) & (table["group"] == "all")].sort_values("epsilon")


def test_curves_are_the_columns_of_the_table(comparison):
    names = ["greedy", "best-fixed", "exponential", "randomized-response"]
    lost, deaths = figures.frontier(comparison, policies=names, titles={"death": "deaths"}).axes
    assert deaths.get_title(loc="left") == "Deaths per 100,000 patients"
    for policy in ("exponential", "randomized-response"):
        rows = everyone(comparison, policy)
        assert list(lines_of(lost)[policy].get_xdata()) == list(rows["epsilon"])
        assert list(lines_of(lost)[policy].get_ydata()) == list(rows["loss"])
        assert lines_of(deaths)[policy].get_ydata() == pytest.approx(rows["expected_death"] * 100_000)


def test_what_others_are_read_against_is_drawn_strongly_and_named_first(comparison):
    names = ["randomized-response", "exponential", "best-fixed", "optimal", "optimal-safe"]
    figure = figures.frontier(comparison, policies=names)
    strong = [label(name) for name in ("best-fixed", "exponential")] + ["optimal (the limit)"]
    for axes in figure.axes:
        widths = {line.get_label(): line.get_linewidth() for line in axes.get_lines()}
        frame = {name: width for name, width in widths.items() if name.split(" (the")[0] in [*strong, "optimal"]}
        assert len(frame) == 3
        assert min(frame.values()) > 2 * max(width for name, width in widths.items() if name not in frame)
    (legend,) = figure.legends
    assert {text.get_text() for text in legend.get_texts()[:3]} == set(strong)


def test_the_axis_at_the_right_says_the_benefit_of_each_loss(comparison):
    lost, _ = figures.frontier(comparison).axes
    (benefit,) = [axis for axis in lost.child_axes if axis.get_ylabel() == "benefit kept"]
    kept, _ = benefit._functions
    rows = comparison[comparison["group"] == "all"]
    assert kept(rows["loss"].to_numpy()) == pytest.approx(rows["benefit_kept"].to_numpy(), abs=1e-9)
    # Where no share is said, there is none to read.
    unsaid, _ = figures.frontier(comparison.assign(benefit_kept=np.nan)).axes
    assert "benefit kept" not in [axis.get_ylabel() for axis in unsaid.child_axes]


def test_the_lead_has_one_colour_that_no_policy_has(comparison, parts):
    _, deaths = figures.frontier(comparison, lead="death").axes
    assert deaths._left_title.get_color() == LEAD
    (bars,) = figures.benefit_parts(parts, lead="death").axes
    handles, names = bars.get_legend_handles_labels()
    assert to_hex(handles[names.index("death")][0].get_facecolor()).upper() == LEAD
    assert LEAD not in {look.colour for look in POLICY_LOOKS.values()} | set(COLOURS)


def test_a_refused_percentage_gives_way_to_the_difference_with_its_interval(logged):
    figure = figures.frontier(logged)
    (axes,) = figure.axes
    rows = everyone(logged, "optimal")
    # The limit of a model is none for a trial.
    assert list(lines_of(axes)["optimal"].get_ydata()) == list(rows["difference"])
    bands = [shape for shape in axes.collections if isinstance(shape, FillBetweenPolyCollection)]
    corners = [{(x, round(y, 9)) for x, y in band.get_paths()[0].vertices} for band in bands]
    low, high = (rows[["epsilon", f"difference_{end}"]].to_numpy() for end in ("low", "high"))
    ends = {(x, round(y, 9)) for x, y in np.vstack([low, high])}
    assert any(ends <= found for found in corners)
    assert BAND in axes.get_xlabel().replace("\n", " ")


def region_of(axes):
    (region,) = axes.collections
    return region.get_paths()[0]


def test_what_no_mechanism_can_is_shaded_below_what_is_unbeatable(comparison):
    optimal = comparison[comparison["policy"] == "optimal"]
    bounds = [
        optimal.assign(policy=ACHIEVABLE, least_loss=0.1),
        optimal.assign(policy=UNBEATABLE, loss=0.1, least_loss=0.1),
    ]
    table = pd.concat([comparison[comparison["policy"] != "optimal"], *bounds])
    axes = figures.frontier(table).axes[0]
    assert region_of(axes).vertices[:, 1].max() == 0.1
    assert {"achievable (the limit is below)", "unbeatable (the limit is above)"} <= set(lines_of(axes))


def test_the_region_is_nowhere_above_what_is_proven(comparison):
    """Between two epsilons what is proven at the larger holds; of a line between the two nothing is known."""
    rows = everyone(comparison, "optimal")
    axes = figures.frontier(comparison).axes[0]
    assert "optimal (the limit)" in lines_of(axes)
    epsilons, least = rows["epsilon"].to_numpy(), rows["least_loss"].to_numpy()
    assert (np.diff(least) < -1e-4).any()
    region, room = region_of(axes), 1e-3 * least.max()
    for x in np.geomspace(epsilons[0] * 1.001, epsilons[-1] * 0.999, 400):
        proven = least[np.searchsorted(epsilons, x)]
        assert not region.contains_point((x, proven + room))
        assert region.contains_point((x, proven - room)) == (proven - room > 0)


@pytest.mark.parametrize("unproven", ["everywhere", "but at one", "no such column"])
def test_without_proofs_nothing_is_shaded_and_the_optimum_is_the_best_found(comparison, unproven):
    table = comparison.assign(
        least_loss=comparison["least_loss"].where((comparison["epsilon"] == 1) & (unproven == "but at one"))
    )
    table = table.drop(columns="least_loss") if unproven == "no such column" else table
    axes = figures.frontier(table).axes[0]
    assert not axes.collections
    assert SHADED not in axes.get_xlabel().replace("\n", " ")
    assert "optimal (the best found)" in lines_of(axes)


def test_probabilities_are_those_of_the_table_a_panel_for_each_patient(choices):
    figure = figures.action_probabilities(choices)
    patients = list(dict.fromkeys(choices["patient"]))
    assert [axes.get_title(loc="left").replace("\n", " ") for axes in figure.axes] == patients
    for axes, patient in zip(figure.axes, patients, strict=True):
        for action, line in lines_of(axes).items():
            rows = choices[(choices["patient"] == patient) & (choices["action"] == action)]
            assert list(line.get_ydata()) == list(rows["probability"])
    assert "exponential" in figure.get_suptitle()


def words_of(texts):
    return [text.get_text().replace("\n", " ") for text in texts]


def test_dots_of_groups_are_the_losses_of_the_table_a_panel_for_each_policy(at_one):
    names = [name for name in dict.fromkeys(at_one["policy"]) if name != "greedy"]
    panels = figures.loss_by_group(at_one, policies=names).axes
    assert len(panels) == len(names)
    rows = words_of(panels[0].get_yticklabels())
    for axes, policy in zip(panels, names, strict=True):
        of = at_one[(at_one["policy"] == policy) & (at_one["group"] != "all")]
        dots = lines_of(axes)[policy]
        named = {level_name(group, level): loss for group, level, loss in of[["group", "level", "loss"]].to_numpy()}
        assert all(x == named[rows[round(y)].split(" (")[0]] for x, y in dots.get_xydata())
        assert len(dots.get_xdata()) == len(rows) == len(of)


def test_the_group_that_loses_most_has_a_large_dot_and_everyone_a_line(at_one):
    rows = at_one[at_one["policy"] == "exponential"]
    (axes,) = figures.loss_by_group(rows).axes
    dashed = [line for line in axes.get_lines() if line.get_linestyle() == "--"]
    assert [line.get_xdata()[0] for line in dashed] == rows.loc[rows["group"] == "all", "loss"].tolist()
    (large,) = [line for line in axes.get_lines() if line.get_label().startswith("_worst")]
    grouped = rows[rows["group"] != "all"]
    assert large.get_xdata() == grouped["loss"].max()
    (axes,) = figures.loss_by_group(rows.assign(loss=0.0)).axes
    assert not any(line.get_label().startswith("_worst") for line in axes.get_lines())


def test_features_that_make_no_difference_are_folded_into_a_sentence(at_one):
    everyone = at_one[at_one["group"] == "all"]
    sizes = [everyone.assign(group="shoe_size", level=level) for level in ("old", "new")]
    same = pd.concat(sizes, ignore_index=True)
    figure = figures.loss_by_group(pd.concat([at_one, same]))
    assert flat_features(pd.concat([at_one, same])) == ["shoe_size"]
    assert not any("shoe" in label for label in words_of(figure.axes[0].get_yticklabels()))
    (said,) = words_of([figure._supxlabel])
    assert "because all levels lose the same, to within 2\u00a0% of the largest loss: shoe size." in said
    # Where no feature makes a difference, none is left out.
    assert flat_features(pd.concat([everyone, same])) == []
    room = 0.02 * at_one["loss"].abs().max()
    more = same.assign(loss=same["loss"] + 1.01 * room * (same["level"] == "old"))
    assert flat_features(pd.concat([at_one, more])) == []


def test_a_forest_has_a_bar_for_each_interval_against_one_reference(logged):
    rows = logged[(logged["epsilon"] == 1) & logged["policy"].isin(["exponential", "optimal"])]
    panels = figures.forest(rows).axes
    for axes, policy in zip(panels, ("exponential", "optimal"), strict=True):
        of = rows[rows["policy"] == policy]
        (bars,) = (shape for shape in axes.collections if isinstance(shape, LineCollection))
        ends = [(segment[0, 0], segment[1, 0]) for segment in bars.get_segments()]
        assert ends == list(zip(of["difference_low"], of["difference_high"], strict=True))
        assert list(lines_of(axes)[policy].get_xdata()) == list(of["difference"])
        assert any(list(line.get_xdata()) == [0, 0] for line in axes.get_lines())
    assert words_of(panels[0].get_yticklabels())[0] == "everyone"


def test_an_interval_that_is_far_wider_than_most_ends_in_an_arrow_and_does_not_set_the_scale():
    half = [0.02, 0.03, 0.025, 0.3]
    rows = pd.DataFrame({"level": ["a", "b", "c", "d"], "difference": [0.0, -0.01, 0.01, -0.05], "half": half})
    rows = rows.assign(policy="optimal", epsilon=1.0, group="part", share=[0.5, 0.3, 0.197, 0.003])
    rows = rows.assign(difference_low=rows["difference"] - half, difference_high=rows["difference"] + half)
    (axes,) = figures.forest(rows).axes
    left, right = axes.get_xlim()
    assert -0.06 < left < -0.05 and 0.035 < right < 0.04  # estimates and all other intervals are seen whole
    arrows = [line for line in axes.get_lines() if line.get_label() == "_goes on"]
    assert [(list(line.get_xdata()), list(line.get_ydata())) for line in arrows] == [([left], [3]), ([right], [3])]
    words = "".join(text.get_text() for text in axes.figure.findobj(Text))
    assert "the interval goes on" in words and "(<\u00a01\u00a0%)" in words
    (whole,) = figures.forest(rows[:3]).axes
    assert not [line for line in whole.get_lines() if line.get_label() == "_goes on"]


def test_parts_of_the_benefit_sum_to_what_a_policy_is_worth_beyond_one_for_all(parts, problem):
    gained = figures.gained_by_outcome(parts).groupby("policy")["gained"].sum()
    names = ["optimal", "exponential", "greedy", "best-fixed"]
    everyone = ps.compare(problem, policies=names, epsilons=[1.0]).set_index("policy")["value"]
    for name in ("optimal", "exponential", "greedy"):
        assert gained[name] == pytest.approx(everyone[name] - everyone["best-fixed"], abs=1e-12)
    (axes,) = figures.benefit_parts(parts).axes
    for policy in ("exponential", "greedy"):
        bars = [bar for bar in axes.patches if bar.get_gid() == f"policy.{policy}"]
        right = sum(bar.get_width() for bar in bars if bar.get_x() >= -1e-12)
        left = sum(bar.get_width() for bar in bars if bar.get_x() < -1e-12)
        # Parts that cannot be seen are not drawn.
        assert right - left == pytest.approx(gained[policy], abs=0.01 * (right + left))


def test_several_epsilons_in_one_figure_of_groups_are_refused(comparison):
    with pytest.raises(ValueError, match=r"draws one epsilon, its table has several: 0.1, 1, 5, 20\."):
        figures.loss_by_group(comparison)


def test_bars_of_prices_are_the_losses_dearest_first_and_what_is_cheap_is_told(prices):
    (axes,) = figures.price_bars(prices.sample(frac=1, random_state=0)).axes
    dear = prices[prices["loss"] >= 0.01 * prices["loss"].max()]
    assert [bar.get_width() for bar in axes.patches] == list(dear["loss"])
    shown = [name.replace("_", " ") for name in dear["hides"]]
    assert words_of(axes.get_yticklabels()) == shown
    cheap = prices[prices["loss"].notna() & ~prices["hides"].isin(dear["hides"])]
    assert all(name.replace("_", " ") in axes.get_xlabel().replace("\n", " ") for name in cheap["hides"])
    with pytest.raises(ValueError, match=r"^price_bars has nothing to draw: its table has no rows with a price"):
        figures.price_bars(prices.assign(loss=np.nan))


def test_errors_are_those_of_the_table_beside_a_coin_and_the_dot_is_the_rate_of_guesses(errors, problem):
    (axes,) = figures.trade_off(errors).axes
    coin, curve, dot = (line.get_xydata() for line in axes.get_lines())
    assert coin.sum(axis=1).tolist() == [1, 1]
    assert curve.tolist() == errors.to_numpy().tolist()
    table = ps.make_policy("randomized-response", epsilon=1.0).probabilities(problem)
    rate = ps.guess_rate(table, problem.adjacency).rate
    assert dot.tolist() == [pytest.approx([1 - rate] * 2)]
    assert any(f"{100 * rate:.1f} times of 100" in text.get_text() for text in axes.texts)


def test_every_quantile_of_the_losses_is_on_the_line_at_its_value(losses):
    for size in figures.SIZES:
        (axes,) = figures.patient_losses(losses, size=size).axes
        drawn = lines_of(axes)
        for name, rows in losses[losses["policy"] != "greedy"].groupby("policy", sort=False):
            xs, ys = drawn[label(name)].get_data()
            values = np.sort(rows["loss"].to_numpy())
            assert len(values) == 50
            for place, value in enumerate(values):
                # The middle of the two patients that a quantile stands for.
                shown = ys[np.searchsorted(xs, 2 * place + 1) - 1]
                assert shown == value if value > 1e-12 else shown < losses.loc[losses["loss"] > 1e-12, "loss"].min()
        assert "(log scale)" in axes.get_ylabel().replace("\n", " ")


def test_patients_who_lose_the_same_are_one_level_piece():
    losses = [0.0] * 4 + [0.1] * 42 + [2.0] * 4
    table = pd.DataFrame({"policy": "optimal", "quantile": (np.arange(50) + 0.5) / 50, "loss": losses})
    (axes,) = figures.patient_losses(table).axes
    assert lines_of(axes)["optimal"].get_xydata().tolist() == [
        [0, 0.05], [8, 0.05], [8, 0.1], [92, 0.1], [92, 2], [100, 2],
    ]  # fmt: skip
    assert words_of(axes.get_yticklabels())[0] == "none"


def test_the_course_is_drawn_at_the_longest_horizon_and_over_horizons(course):
    first, *others = figures.value_over_days(course, policies=["best-schedule", "exponential"]).axes
    rows = course[(course["policy"] == "exponential") & (course["total_epsilon"] > 0)]
    assert list(lines_of(first)["exponential"].get_ydata()) == list(rows[rows["horizon"] == 14]["benefit_kept"])
    assert len(others) == 3
    for axes, total in zip(others, (1.0, 5.0, 10.0), strict=True):
        assert list(lines_of(axes)["exponential"].get_ydata()) == list(
            rows[rows["total_epsilon"] == total]["benefit_kept"]
        )
    assert len(figures.value_over_days(course[course["horizon"] == 14]).axes) == 1


def test_every_policy_and_every_action_has_its_own_colour_and_its_own_marker():
    found = looks([*CATALOGUE.built_in, UNBEATABLE])
    for part in ("color", "marker"):
        assert len({look_of_action(place)[part] for place in range(10)}) == 10
    assert len({str(look_of_action(place)) for place in range(40)}) == 40
    dots = [as_dot(name, look) for name, look in found.items()]
    assert len({(dot["marker"], dot.get("markerfacecolor")) for dot in dots}) == len(dots)
    assert found["optimal"].colour == looks([ACHIEVABLE])[ACHIEVABLE].colour


def test_a_problem_in_which_one_treatment_is_best_for_all_can_be_drawn():
    problem = ps.DecisionProblem([[1, 0], [2, 0]], [0.5, 0.5], ps.AnyRecord())
    table = ps.compare(problem, policies=["optimal", "exponential"], epsilons=[0.5, 1.0])
    assert table["benefit_kept"].isna().all()
    # There is no benefit to keep a share of: what is lost is drawn, and the optimum loses nothing.
    (axes,) = figures.frontier(table).axes
    assert axes.get_title(loc="left") == "Utility lost per patient"
    drawn = lines_of(axes)
    assert drawn["optimal (the limit)"].get_ydata() == pytest.approx([0.0, 0.0], abs=1e-12)
    assert min(drawn["exponential"].get_ydata()) > 0.1


def test_on_logged_data_the_line_at_zero_is_the_best_arm_and_best_fixed_another(logged):
    table = logged.assign(best_arm="syrup")
    fixed = table["policy"] == "best-fixed"
    elsewhere = table.assign(difference=table["difference"].where(~fixed, -0.04))
    (axes,) = figures.frontier(elsewhere).axes
    assert axes.get_title(loc="left") == "Against one treatment for all"
    assert axes.get_ylabel().replace("\n", " ") == "mean outcome, minus that of one treatment for all"
    lines = lines_of(axes)
    assert list(lines["syrup for all"].get_ydata()) == [0, 0]
    assert list(lines["best single arm, chosen on other patients (best-fixed)"].get_ydata()) == [-0.04, -0.04]
    same = table.assign(difference=table["difference"].where(~fixed, 1e-9))
    lines = lines_of(figures.frontier(same).axes[0])
    assert not any("best-fixed" in name for name in lines)
    lines = lines_of(figures.frontier(same.drop(columns="best_arm")).axes[0])
    assert list(lines["the best single arm"].get_ydata()) == [0, 0]


def test_the_lead_is_drawn_only_where_it_differs_and_else_another_harm(comparison):
    """A panel that shows a constant tells nothing."""
    for deaths in (0.0, 0.01):
        none = comparison.assign(expected_death=deaths)
        harm = figures.frontier(none).axes[1]
        assert harm.get_title(loc="left").startswith("Symptoms per ")
        harmless = none.assign(**{name: 0.0 for name in none if name.startswith("expected_")})
        assert len(figures.frontier(harmless).axes) == 1
        some = harmless.assign(expected_stroke=none["loss"])
        assert figures.harm_of(some) == "expected_stroke"
        assert figures.harm_of(some.assign(expected_pain=some["loss"]), "pain") == "expected_pain"
