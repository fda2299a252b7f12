"""What the words about a choice name: single numbers, as cells, and names, each a text by its key."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from policies.problem import DecisionProblem
from policies.reference import Greedy
from policysim.decision.choose import Choices
from policysim.decision.demands import SCANNED
from policysim.decision.prices import uses_hidden
from policysim.numbers import DIGITS, NEGLIGIBLE, digits_of, not_above, population
from policysim.study.cells import as_cells
from policysim.study.certainty import verdict_on
from policysim.study.declared import Study
from policysim.study.labels import Labels, counted_illustrative
from policysim.study.options_table import FOR_ALL, ONE
from policysim.words import capital, unused

# What is allowed of the lead is counted per so many patients.
LEAD_PER = 100_000
# Digits of a bound and of what is allowed: two could be equal.
MOST_DIGITS = 6

Fact = tuple[str, str, float, str]


def choice_facts(
    choices: Choices,
    chosen: Mapping[str, Any] | None,
    holds: Mapping[str, bool],
    *,
    study: Study | None,
    draws: int,
    patients: int,
    options: pd.DataFrame,
) -> pd.DataFrame:
    """Single numbers that words need, as cells; of what does not apply there is none.

    Parameters
    ----------
    choices : Choices
        What was found.
    chosen : dict or None
        Its row that is chosen.
    holds : mapping of str to bool
        From `choice_verdict`.
    study : Study or None
        What the problem was made from.
    draws : int
        How many redraws there are.
    patients : int
        Among how many outcomes are counted.
    options : DataFrame of cells
        Those of the table: a difference in words is that of the numbers that stand there.
    """
    rows: list[Fact] = [
        ("hundred", "", 100, "plain"),
        ("patients", "", patients, "counted 1 0"),
        ("lead per", "", LEAD_PER, "plain"),
        ("draws", "", draws, "plain"),
    ]
    illustrative, total = counted_illustrative(study)
    rows += [("illustrative", "", illustrative, "plain"), ("numbers", "", total, "plain")]
    # What there is none of is not said.
    rows = [row for row in rows if row[2]] + [*_asked_facts(choices), *_limit_facts(choices, holds)]
    rows += _chosen_facts(choices, chosen)
    if holds["costs lead"] and chosen is not None:
        rows += _cost_facts(choices, chosen, options, patients)
    if holds["published"] and study is not None:
        # As `compare` publishes it: by randomised response, at the study's epsilon.
        rows.append(("copy epsilon", "", study.epsilon, "plain"))
    return as_cells(pd.DataFrame(rows, columns=["row", "option", "value", "format"]))


def _asked_facts(choices: Choices) -> Iterator[Fact]:
    """The demands of a wish."""
    wish, least = choices.wish, choices.least
    asked = {
        "keep": (wish.keep, 100),
        "max loss": (wish.max_loss, 1),
        "max extra lead": (wish.max_extra_lead, LEAD_PER),
        "max guess": (wish.max_guess, 100),
        "max guess rate": (wish.max_guess_rate, 100),
    }
    for name, (most, scale) in asked.items():
        if most is not None:
            yield name, "", scale * most, "plain"
    for name, bound in wish.at_most.items():
        if not isinstance(bound, str):
            yield "at most", name, bound, "plain"
    if wish.max_epsilon < math.inf:
        yield "allowed", "", wish.max_epsilon, f"down {max(3, digits_of(least['epsilon']) if least else 0)}"
    if wish.scanned and len(choices.needs):
        yield "step", "", SCANNED - 1, "percent"


def _limit_facts(choices: Choices, holds: Mapping[str, bool]) -> Iterator[Fact]:
    """What is proven of all mechanisms."""
    allowed = choices.wish.max_epsilon
    for each in choices.least_possible:
        yield "least possible", each.outcome, each.alone, f"down {MOST_DIGITS}"
    if holds["limit"]:
        yield "limit", "", choices.limit, f"down {min(digits_of(float(choices.needs['epsilon'].min())), MOST_DIGITS)}"
    if holds["cannot"] and choices.limit_proven and allowed < choices.limit < math.inf:
        # In as many digits as tell it from what is allowed.
        told = (digits for digits in range(DIGITS, MOST_DIGITS) if not_above(choices.limit, digits) > allowed)
        yield "takes more", "", choices.limit, f"down {next(told, MOST_DIGITS)}"


def _chosen_facts(choices: Choices, chosen: Mapping[str, Any] | None) -> Iterator[Fact]:
    """What is chosen, and what needs least."""
    if chosen is None or chosen["policy"] == Greedy.name or choices.least is None:
        return
    yield "least epsilon", "", choices.least["epsilon"], "least"
    yield "epsilon", "", chosen["epsilon"], "least"


def _cost_facts(choices: Choices, chosen: Mapping[str, Any], options: pd.DataFrame, patients: int) -> Iterator[Fact]:
    """What is chosen costs in the lead, against the safest for all: of the numbers as the table prints them."""
    exact = choices.more_of_lead(chosen)
    expected = options[options["row"] == choices.lead].set_index("option")
    places = int(str(expected["format"].iloc[0]).split()[-1])
    shown = (expected["value"] * patients).round(places)
    more = float(shown[chosen["policy"]] - shown[_safest_for_all(options, choices.lead)]) / patients
    among, style = patients, f"counted {patients} {places}"
    if more <= NEGLIGIBLE:
        # Too little for the table: it is said among more patients.
        more, among = exact, population([exact])
        style = f"about {among}"
    yield "more of the lead", "", more, style
    yield "among", "", among, "counted 1 0"


def _safest_for_all(options: pd.DataFrame, lead: str | None) -> str:
    """The treatment for all with the least of the lead, of those in the table; the first where no outcome leads."""
    of_all = options["option"].eq(ONE) | options["option"].str.startswith(FOR_ALL)
    expected = options[of_all & (options["row"] == lead)].sort_values("value", kind="stable")
    return ONE if expected.empty else str(expected["option"].iloc[0])


def choice_names(
    problem: DecisionProblem, choices: Choices, tables: Mapping[str, pd.DataFrame], labels: Labels
) -> pd.DataFrame:
    """What words name: each a text by its key."""
    lines, wish = tables["lines"], choices.wish
    of_all = lines[lines["section"] == "all"]
    safest = _safest_for_all(tables["options"], choices.lead)
    bounded = [*wish.at_most, *(each.outcome for each in choices.least_possible)]
    names = {
        "title": labels.title,
        "model": labels.disclaimer,
        "hidden": labels.hidden,
        "one": of_all["title"].iloc[0],
        "safest": of_all.loc[of_all["option"] == safest, "title"].iloc[0],
        "lead": "" if problem.lead is None else labels.outcomes[problem.lead],
        **({"never": "never"} if choices.limit_proven and choices.limit == math.inf else {}),
        **{f"outcome {name}": labels.outcomes[name] for name in bounded},
        **{f"as for all {name}": labels.outcomes[name] for name, most in wish.at_most.items() if isinstance(most, str)},
    }
    if lines["chosen"].any():
        name = str(lines.loc[lines["chosen"], "title"].iloc[0])
        names |= {"chosen": name, "Chosen": capital(name, list(labels.actions.values()))}
    if choices.least is not None and choices.least["policy"] in choices.mechanisms:
        verdict = verdict_on(choices.least["policy"], tables["certainty"])
        names |= {"least": choices.least["policy"], "verdict": capital(verdict)}
    if not uses_hidden(problem):
        names["unused"] = unused()
    return pd.DataFrame(names.items(), columns=["key", "text"])
