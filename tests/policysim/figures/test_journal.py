"""Figures for journals, and of hard data: widths, heights, fonts, words of at least 6 points, none cut off."""

import re
from io import BytesIO
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
from figure_cases import every_figure, wrong
from matplotlib.figure import Figure
from matplotlib.text import Text
from svg_boxes import text_sizes

from policysim import figures

LONG = "a name of sixty letters, such as those of trials sometimes are"
EPSILONS = np.geomspace(0.05, 20, 12)
NAMES = [LONG, "日本語の名前", "שם בעברית", "اسم عربي", "<b>markup</b> & $x_1$", "best-fixed", "greedy", "optimal"]


def fonts(figure):
    """The kinds of fonts in a PDF as a user saves it, outside any style."""
    file = BytesIO()
    figure.savefig(file, format="pdf")
    return set(re.findall(rb"/Subtype /(Type\d|TrueType|CIDFontType\d)", file.getvalue()))


@every_figure
def test_in_the_style_of_nature_each_figure_has_its_width_height_and_letters(request, draw, name):
    # One column or two.
    width = 183 if draw is figures.frontier else 89
    figure = draw(request.getfixturevalue(name), style="nature", width_mm=width)
    wide, high = 25.4 * figure.get_size_inches()
    assert wide == pytest.approx(width) and high <= 170 + 1e-9
    svg = figures.to_svg(figure)
    assert wrong(figure, svg) == ([], [], [])
    assert max(size for _, size in text_sizes(svg)) <= 7
    words = [text for text in figure.findobj(Text) if text.get_text()]
    assert {text.get_fontweight() for text in words} <= {"normal", 400}
    assert figure.get_suptitle() == ""
    assert not any("rawn" in text.get_text() or "ands:" in text.get_text() for text in words)
    letters = [axes.get_title(loc="left")[:1] for axes in figure.axes]
    assert letters == (list("abcdefghij")[: len(letters)] if len(letters) > 1 else [""])


@pytest.mark.usefixtures("without_layout")
def test_a_pdf_that_a_user_saves_has_truetype_fonts_alone(comparison):
    figure = figures.frontier(comparison, policies=["exponential"], width_mm=120)
    assert fonts(figure) == {b"Type0", b"CIDFontType2"} or fonts(figure) == {b"Type42"}
    own = Figure(figsize=(7, 5), layout="constrained")
    assert figures.frontier(comparison, policies=["exponential"], ax=(axes := own.subplots())) is axes
    assert b"Type3" not in fonts(own)


def test_on_axes_that_are_given_nothing_overlaps_and_others_stay_as_they_are(comparison, losses):
    figure = Figure(figsize=(183 / 25.4, 170 / 25.4), layout="constrained")
    loss, deaths, others, untouched = figure.subplots(2, 2).flat
    untouched.axis("off")  # its own numbers would touch at the corner
    names = ["best-fixed", "exponential", "optimal"]
    drawn = figures.frontier(comparison, policies=names, ax=[loss, deaths], style="nature")
    assert list(drawn) == [loss, deaths]
    assert figures.patient_losses(losses, ax=others, style="nature") is others
    assert wrong(figure) == ([], [], [])
    assert not untouched.get_lines() and figure.get_layout_engine() is not None
    assert [line.get_label() for line in deaths.get_lines() if line.get_label()[0] != "_"] != []
    alone = Figure().subplots()
    assert figures.frontier(comparison, policies=names, ax=alone) is alone
    assert len(alone.get_figure().axes) == 1


@pytest.mark.parametrize(
    ("paper", "message"),
    [
        ({"width_mm": 30}, "width_mm must be from 60 to 210 in style 'report', got 30"),
        ({"width_mm": 200, "style": "nature"}, "width_mm must be from 60 to 183 in style 'nature', got 200"),
        ({"style": "science"}, "style must be one of report, nature, got style='science'"),
        ({"size": "slide", "style": "nature"}, "is for a paper: give ax or width_mm with it, not size='slide'"),
        ({"size": "slide", "width_mm": 89}, "give one of size, ax and width_mm"),
        ({"ax": list(Figure().subplots(1, 3))}, "ax must hold 2 axes, one for each panel, got 3"),
    ],
)
def test_what_no_figure_can_be_is_refused_in_one_line(comparison, paper, message):
    with pytest.raises(ValueError, match=message):
        figures.frontier(comparison, **paper)


@pytest.mark.usefixtures("without_layout")
def test_what_was_asked_for_is_all_that_is_drawn_without_remarks(at_one, parts, course):
    for draw, table in (
        (figures.loss_by_group, at_one),
        (figures.benefit_parts, parts),
        (figures.value_over_days, course),
    ):
        figure = draw(table, policies=["exponential"])
        assert not any("rawn:" in text.get_text() for text in figure.findobj(Text))


def test_words_that_are_too_small_would_be_found(comparison):
    """The planted mistake."""
    figure = figures.frontier(comparison, policies=["exponential"], size="column")
    figure.axes[0].title.set_text("")
    figure.axes[0].xaxis.label.set_fontsize(5.9)
    assert wrong(figure)[0] != []


def compared(names, *, epsilons=EPSILONS, deaths=True, groups=()):
    """A comparison by formulas: the names of its policies and groups are what is hard."""
    rows = []
    for place, name in enumerate(names):
        for epsilon in epsilons:
            for group, level in [("all", "all"), *groups]:
                kept = np.tanh(epsilon / (1 + place)) - 0.2 * place
                own = 0.0 if group == "all" else (hash_of(level) % 17) / 17
                row = {"policy": name, "epsilon": epsilon, "group": group, "level": level, "share": 0.1}
                row |= {"benefit_kept": kept, "loss": 1 - kept + own, "epsilon_spent": epsilon / (1 + place)}
                row |= {"most_kept": np.tanh(epsilon), "least_loss": 1 - np.tanh(epsilon)}
                row |= {"difference": kept / 9, "difference_low": kept / 9 - 0.1, "difference_high": kept / 9 + 0.1}
                rows.append(row | ({"expected_death": 0.01 + 1e-3 * (1 - kept)} if deaths else {}))
    return pd.DataFrame(rows)


def hash_of(word):
    return sum(map(ord, word))


def at_one(table):
    epsilons = table["epsilon"].unique()
    return table[table["epsilon"] == min(epsilons, key=lambda epsilon: abs(epsilon - 1))]


def given(actions, patients):
    """Probabilities, of which the last action's are 0: it is never given."""
    chances = np.r_[np.arange(1, len(actions)), 0] / np.arange(1, len(actions)).sum()
    rows = [
        ("optimal", epsilon, patient, action, chance)
        for epsilon in EPSILONS
        for patient in patients
        for action, chance in zip(actions, chances, strict=True)
    ]
    return pd.DataFrame(rows, columns=["policy", "epsilon", "patient", "action", "probability"])


def lost(names, outcomes):
    rows = [(name, one, hash_of(name + one) % 29 - 9) for name in names for one in outcomes]
    return pd.DataFrame(rows, columns=["policy", "outcome", "lost"])


def over_days(names):
    rows = [
        (name, "all", horizon, total, np.tanh(total / (1 + place)) - 0.1 * place, 1.0)
        for place, name in enumerate(names)
        for horizon in (1, 7, 30)
        for total in (1.0, 10.0)
    ]
    columns = ["policy", "group", "horizon", "total_epsilon", "benefit_kept", "most_kept"]
    return pd.DataFrame(rows, columns=columns)


def mapped(names):
    table = over_days(names).sample(frac=1, random_state=1)
    return table.assign(way="daily", best=~table.duplicated(["horizon", "total_epsilon"]))


def given_daily():
    rng = np.random.default_rng(2)
    rows = [
        (*group, 1 / 11, day, *shares)
        for group in [("all", "all"), *FORTY[:9], FORTY[-1]]
        for day, shares in enumerate(rng.dirichlet(np.ones(7), size=30), start=1)
    ]
    return pd.DataFrame(rows, columns=["group", "level", "share", "day", *(f"p_{name}" for name in MANY[:7])])


FORTY = [("ward", f"ward {place}") for place in range(30)] + [
    (LONG, "日本語"),
    *((LONG, f"{i} {LONG}") for i in range(9)),
]
MANY = [f"{place} {LONG}" for place in range(12)]
outcomes = [*NAMES, "death"]
HARD = {
    "names": lambda size: figures.frontier(compared(NAMES), size=size),
    "twelve policies": lambda size: figures.frontier(compared(MANY), size=size),
    "forty groups": lambda size: figures.loss_by_group(at_one(compared(NAMES[:3], groups=FORTY)), size=size),
    "one group": lambda size: figures.loss_by_group(at_one(compared(NAMES, groups=FORTY[-1:])), size=size),
    "forty groups of a trial": lambda size: figures.forest(at_one(compared(NAMES[:3], groups=FORTY)), size=size),
    "twelve actions": lambda size: figures.action_probabilities(given(MANY, [LONG, "日本語"]), size=size),
    "parts": lambda size: figures.benefit_parts(lost(NAMES, outcomes), size=size),
    "harm": lambda size: figures.benefit_vs_harm(*traded(NAMES), size=size),
    "days": lambda size: figures.value_over_days(over_days(NAMES), size=size),
    "map": lambda size: figures.ways_over_days(mapped(NAMES), size=size),
    "given daily": lambda size: figures.published_over_days(given_daily(), size=size),
    "losses": lambda size: figures.patient_losses(quantiles(NAMES), size=size),
    "prices": lambda size: figures.price_bars(priced(NAMES), size=size),
}


def quantiles(names):
    shares = (np.arange(50) + 0.5) / 50
    frames = [
        pd.DataFrame({"policy": name, "quantile": shares, "loss": np.maximum(0, shares - 0.1 * place) ** 3})
        for place, name in enumerate(names)
    ]
    return pd.concat(frames)


def traded(names):
    """Frontiers of two epsilons that end at the same place."""
    rows = [(epsilon, kept, 1e-3 * kept**2) for epsilon in (1.0, 5.0, 10.0) for kept in (0.0, min(epsilon, 2) / 2)]
    lines = pd.DataFrame(rows, columns=["epsilon", "benefit_kept", "expected_death"])
    return lines, compared(names, epsilons=[1.0, 5.0, 10.0])


def priced(names):
    rows = [(name, 1.0, 1.0 / (1 + place)) for place, name in enumerate(names)]
    return pd.DataFrame([*rows, ("unused", 1.0, np.nan)], columns=["hides", "epsilon", "loss"])


@pytest.mark.parametrize(("hard", "size"), [*zip(HARD, cycle(figures.SIZES))])
def test_of_hard_data_each_figure_stays_whole(hard, size):
    assert wrong(HARD[hard](size)) == ([], [], [])


def test_lines_that_end_at_the_same_place_share_a_name():
    (axes,) = figures.benefit_vs_harm(*traded(["exponential"])).axes
    assert [text.get_text() for text in axes.texts] == ["ε = 1", "ε = 5, 10"]
