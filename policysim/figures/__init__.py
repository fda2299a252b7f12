"""Figures: each a function from a tidy table to a matplotlib Figure, for a page, a column of a journal, or a slide.

benefit     what is lost and what harm is done, over epsilon and against each other; what the benefit is made of, and
            what hiding each feature costs
acceptability   whether an option is better, against what one outcome weighs
patients    who bears the loss: groups, all patients in a row, single ones; forest plots of trials
over_days   courses of treatment
noised_copies   what a reader of a published list learns
trade_off   how well any test tells two patients apart
curves      what is asked of a table, what the figures over epsilon share, and what is seen in them, in words
layout, lettering   names beside their lines, words that fit in fonts that have them, and no two that touch
looks       colour, marker and dashes of each policy and action; the canvas of every figure (figures.mplstyle)
writing     SVG, PNG and PDF; an SVG as a part of a page, in its colours and few letters, with lines at epsilon

A new figure is a function here, from a table to a Figure, on a `looks.canvas`; and a `Drawing` (its words and
its file) in the drawings of the report that it belongs to.
"""

from policysim.figures.acceptability import acceptability
from policysim.figures.benefit import benefit_parts, benefit_vs_harm, frontier, gained_by_outcome, harm_of, price_bars
from policysim.figures.curves import over_epsilon, telling
from policysim.figures.lettering import set_epsilon_axis
from policysim.figures.looks import SIZES, label, looks
from policysim.figures.noised_copies import publishing
from policysim.figures.over_days import published_over_days, value_over_days, ways_over_days
from policysim.figures.patients import action_probabilities, flat_features, forest, loss_by_group, patient_losses
from policysim.figures.trade_off import trade_off
from policysim.figures.writing import to_pdf, to_png, to_svg

__all__ = [
    "SIZES",
    "acceptability",
    "action_probabilities",
    "benefit_parts",
    "benefit_vs_harm",
    "flat_features",
    "forest",
    "frontier",
    "gained_by_outcome",
    "harm_of",
    "label",
    "looks",
    "loss_by_group",
    "over_epsilon",
    "patient_losses",
    "price_bars",
    "published_over_days",
    "publishing",
    "set_epsilon_axis",
    "telling",
    "to_pdf",
    "to_png",
    "to_svg",
    "trade_off",
    "value_over_days",
    "ways_over_days",
]
