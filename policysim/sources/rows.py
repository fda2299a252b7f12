"""From the quoted figures of a source to rows that hold ours beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from policysim.sources.model import Row
from policysim.sources.reading import Claim, Quote
from policysim.sources.single_runs import SingleRun, binomial_run

# From a quote to our figures, by name.
Compute = Callable[[Quote], Mapping[str, float]]


def figure_rows(quotes: Iterable[Quote], compute: Compute, what: str) -> list[Row]:
    """A row for each figure that is not random; `what` may name {name}, {data} and {epsilon}."""
    rows = []
    for quote in quotes:
        ours = compute(quote)
        rows += [Row(words(what, quote, name), quote.where, text, ours[name]) for name, text in quote.printed.items()]
    return rows


def draw_rows(quotes: Iterable[Quote], compute: Compute, what: str) -> list[Row]:
    """A row for each count of one run of independent draws; `compute` gives the probability of each name."""
    rows = []
    for quote in quotes:
        probabilities = compute(quote)
        for name, text in quote.printed.items():
            run = binomial_run(quote.runs, probabilities[name], int(text))
            rows.append(run_row(words(what, quote, name), quote.where, text, run))
    return rows


def run_row(what: str, where: str, printed: str, run: SingleRun) -> Row:
    """A row for a figure of a single run."""
    return Row(what, where, printed, run.expected, run.band, run.chance)


def claim_rows(claims: Iterable[Claim], found: Mapping[str, tuple[str, bool, str]]) -> list[Row]:
    """A row for each claim; `found` holds what is right, whether the claim holds, and why, by subject."""
    return [
        Row(claim.about, claim.where, claim.says, right, holds=holds, reason=reason)
        for claim in claims
        for right, holds, reason in [found[claim.about]]
    ]


def words(what: str, quote: Quote, name: str) -> str:
    """The text with the name, the data and epsilon put in."""
    return what.format(name=name, data=quote.data, epsilon=f"{quote.epsilon:g}", runs=quote.runs)
