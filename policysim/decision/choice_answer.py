"""The answer of `policysim choose`, as tables: what needs which ε, what is chosen, and how sure that is.

The tables of cells (row, option, epsilon, value, low, high, format) are "options" and "facts"; "columns" and "lines"
give their order, "certainty" the verdicts, "verdict" which finding holds, and "names" what has words and no number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.decision.choice_facts import MOST_DIGITS, choice_facts, choice_names
from policysim.decision.choose import Choices, Verdict, row_of, rows_of
from policysim.numbers import LEAST_EVENTS, MOST_COUNTED, apart, decimals, digits_of, population
from policysim.study.cells import as_cells
from policysim.study.certainty import BETTER, certainty, on_held_out, verdict_on
from policysim.study.checks import LEVEL
from policysim.study.declared import Study
from policysim.study.gain import gain_of
from policysim.study.labels import Labels
from policysim.study.options_table import BENEFIT, BETTER_IN, EACH, LOSS, ONE, RIGHT, decimals_of

LIMIT = "any private choice"
EPSILON, MORE = "epsilon", "more of the lead"
# Why an option is what is chosen, or is not.
CHOSEN, NOT_ENOUGH, TOO_MUCH, NOWHERE = "chosen", "not enough", "more than allowed", "none found"
LARGER, SEEN, UNPROVEN = "larger ε", "hides nothing", "not proven"
# So many policies are shown, those that need least.
MOST_POLICIES = 6


def choice_tables(
    problem: DecisionProblem,
    choices: Choices,
    labels: Labels,
    redrawn: pd.DataFrame | None = None,
    *,
    held_out: pd.DataFrame | None = None,
    study: Study | None = None,
    published: bool = False,
) -> dict[str, pd.DataFrame]:
    """Judge what was found by redraws, decide, and lay out what is printed.

    Parameters
    ----------
    problem : DecisionProblem
        What is to be decided.
    choices : Choices
        From `policysim.decision.choose.choose`.
    labels : Labels
        What people call its parts.
    redrawn : DataFrame, optional
        draw, option, value, expected_OUTCOME: of `judged` and of each treatment for all; None if nothing is redrawn.
    held_out : DataFrame, optional
        Of a log: policy, value, low, high and verdict on patients held out, of `to_judge`. These then decide.
    study : Study, optional
        What the problem was made from: how many of its numbers are illustrative is then counted.
    published : bool, optional
        Whether an observer sees a publication alone, which may be another than what is given.
    """
    table = Greedy().probabilities(problem)
    each = row_of(problem, Greedy.name, table, math.inf, math.inf)
    each["allowed"] = choices.wish.demand(problem).margin(problem, table) >= 0
    if held_out is not None:
        sure = on_held_out(held_out)
    elif redrawn is None:
        found = choices.needs[choices.needs["epsilon"] < math.inf]
        stated = pd.concat([choices.for_all[:1], pd.DataFrame([each]), found], ignore_index=True)
        stated = stated.rename(columns={"policy": "option"}).assign(draw=0)
        sure = certainty(stated, BestFixed.name, choices.lead, stated=True)
    else:
        sure = certainty(redrawn, BestFixed.name, choices.lead)
    instead = each if published else None
    chosen = decided(choices, sure, instead)
    holds = choice_verdict(choices, sure, instead)
    lines = _lines(choices, labels, each)
    lines["chosen"] = lines["policy"] == ("" if chosen is None else chosen["policy"])
    lines["remark"] = [_remark(line, choices, chosen, sure) for line in rows_of(lines)]
    tables = {
        "certainty": sure,
        "verdict": pd.DataFrame(holds.items(), columns=["key", "holds"]),
        "lines": lines[["option", "title", "section", "epsilon", "chosen", "remark"]],
    }
    tables["options"], tables["columns"], count = _options(problem, choices, lines, sure, labels)
    draws = int(sure["draws"].max())
    tables["facts"] = choice_facts(
        choices, chosen, holds, study=study, draws=draws, patients=count, options=tables["options"]
    )
    if held_out is not None:
        tables["held out"] = _held_out_cells(held_out)
    tables["names"] = choice_names(problem, choices, tables, labels)
    return tables


def to_judge(choices: Choices) -> list[Policy]:
    """Of a log, whose value is judged on patients held out: the best for each, and what would be chosen.

    That is the mechanism that needs least, if no treatment for all does what was asked for. It is not picked by the
    estimates that judge it: of several, the one that looks best would look better than it is.
    """
    least = choices.least
    private = [] if least is None or least["policy"] not in choices.mechanisms else [least["policy"]]
    return [Greedy(), *(choices.mechanisms[name] for name in private)]


def _held_out_cells(held_out: pd.DataFrame) -> pd.DataFrame:
    """The difference of each policy that was judged, from one treatment for all, as cells."""
    half = (held_out["high"] - held_out["low"]).max() / 2
    cells = held_out.assign(row="difference", option=held_out["policy"], format=f"change 1 {decimals(half)}")
    level = pd.DataFrame([{"row": "confidence", "value": LEVEL, "format": "percent"}])
    return pd.concat([as_cells(cells), as_cells(level)], ignore_index=True)


def decided(choices: Choices, certainty: pd.DataFrame, each: dict[str, Any] | None = None) -> dict[str, Any] | None:
    """What is chosen, a row of `Choices`; None where nothing does what was asked for.

    Where only a publication is seen, `each`, the best treatment for each, if it does it and is better than one for all.
    One treatment for all if one does it; else, of the policies that are better than the best treatment for all, the one
    that needs least. Where none is told to be, it is the best treatment for all, although it does not do it.
    """
    if each is not None and each["allowed"] and verdict_on(Greedy.name, certainty) == BETTER:
        return each
    if choices.for_all["allowed"].any():
        return choices.least
    allowed = rows_of(choices.needs[choices.needs["allowed"]])
    better = certainty[(certainty["measure"] == "value") & (certainty["verdict"] == BETTER)]
    private = [row for row in allowed if row["policy"] in set(better["policy"])]
    instead = rows_of(choices.for_all[:1]) if allowed else []
    return next(iter([*private, *instead]), None)


def choice_verdict(
    choices: Choices, certainty: pd.DataFrame, published: dict[str, Any] | None = None
) -> dict[str, bool]:
    """Which finding holds: the only place that decides it.

    Parameters
    ----------
    choices : Choices
        What was found.
    certainty : DataFrame
        From `policysim.study.certainty.certainty`, against the best treatment for all of the stated numbers.
    published : dict, optional
        The row of the best treatment for each, where an observer sees a publication alone.

    Returns
    -------
    dict
        By name: "private", a mechanism is chosen, only where it is better than one treatment for all; "one for all",
        one treatment for all is, because it "meets" what was asked for, or because all that meets it is "untold" to be
        better; "cannot" and "open", nothing was found; "told" and "as stated", how sure a mechanism is; "redrawn", it
        is told by redraws, and not on patients held out; "costs lead", it costs more of the lead than the safest
        treatment for all; "limit", what is proven of all mechanisms; "published", the best is given to each, and what
        is published of it is noised.
    """
    chosen = decided(choices, certainty, published)
    copied = chosen is not None and chosen["policy"] == Greedy.name
    found, meets = chosen is not None and not copied, bool(choices.for_all["allowed"].any()) and not copied
    private = chosen is not None and chosen["policy"] in choices.mechanisms
    more = choices.more_of_lead(chosen) if chosen is not None and private else math.nan
    # NaN, where no outcome leads, is not more.
    costs = more * population([more]) >= LEAST_EVENTS
    redrawn, held_out = bool((certainty["draws"] > 0).all()), "low" in certainty
    return {
        "private": private,
        "published": copied,
        "one for all": found and not private,
        "meets": meets,
        "untold": found and not private and not meets,
        "cannot": choices.verdict is Verdict.CANNOT and not copied,
        "open": choices.verdict in {Verdict.MAY, Verdict.NONE} and not copied,
        "redrawn": private and redrawn,
        "told": private and (redrawn or held_out),
        "as stated": private and not (redrawn or held_out),
        "costs lead": costs,
        "limit": choices.limit_proven
        and 0 < choices.limit < math.inf
        and choices.certificate is None
        and not (meets or copied),
    }


def _lines(choices: Choices, labels: Labels, each: dict[str, Any]) -> pd.DataFrame:
    """The options in their order: option, title, section, and of each what `Choices` knows of it."""
    for_all, needs = choices.for_all, choices.needs[:MOST_POLICIES]
    # The best for all; and of the others what is enough, and the safest where it is visibly safer.
    shown = [BestFixed.name, *([choices.least["policy"]] if choices.least else [])]
    expected = f"expected_{choices.lead}"
    if expected in for_all and (for_all.loc[0, expected] - for_all[expected].min()) * MOST_COUNTED >= LEAST_EVENTS:
        shown += for_all.sort_values(expected, kind="stable")["policy"].tolist()[:1]
    everyone = for_all[for_all["policy"].isin(shown)]
    parts = [
        pd.DataFrame([{"option": LIMIT, "section": "limit", "title": LIMIT, "epsilon": choices.limit}]),
        everyone.assign(
            option=everyone["policy"].replace(BestFixed.name, ONE),
            section="all",
            title=[labels.for_all(actions) for actions in everyone["actions"]],
        ),
        needs.assign(option=needs["policy"], section="policy", title=needs["policy"]),
        pd.DataFrame([{**each, "option": EACH, "section": "each", "title": EACH}]),
    ]
    return pd.concat(parts, ignore_index=True)


def _remark(
    line: Mapping[str, Any], choices: Choices, chosen: Mapping[str, Any] | None, certainty: pd.DataFrame
) -> str:
    """Why an option is what is chosen, or is not."""
    if line["chosen"]:
        return CHOSEN
    if line["section"] == "limit":
        return "" if choices.limit_proven else UNPROVEN
    if line["section"] != "policy":
        hides = SEEN if line["section"] == "each" else ""
        return hides if line["allowed"] else NOT_ENOUGH
    if not line["allowed"]:
        return NOWHERE if line["epsilon"] == math.inf else TOO_MUCH
    verdict = _verdict_beside(str(line["policy"]), choices, certainty)
    if verdict and (chosen is None or not (verdict == BETTER or choices.for_all["allowed"].any())):
        return verdict
    least = chosen if verdict else choices.least
    return LARGER if least is not None and line["epsilon"] > least["epsilon"] else ""


def _verdict_beside(policy: str, choices: Choices, certainty: pd.DataFrame) -> str:
    """The verdict on a mechanism; "" where it has none: of a log only what needs least is judged."""
    least = choices.least
    if "low" in certainty and least is not None and policy != least["policy"]:
        return ""
    return verdict_on(policy, certainty)


def _options(
    problem: DecisionProblem, choices: Choices, lines: pd.DataFrame, certainty: pd.DataFrame, labels: Labels
) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """The cells of the table, one precision a column; its columns: row, section, title; and who are counted among."""
    # The outcomes that are shown, the lead first.
    lead = choices.lead
    counted = [*([] if lead is None else [lead]), *(name for name in choices.wish.at_most if name != lead)]
    columns = [f"expected_{name}" for name in counted]
    count = population([*choices.for_all[columns].to_numpy().ravel(), *choices.needs[columns].to_numpy().ravel()])
    rows = [(EPSILON, EPSILON, "", lines["epsilon"], "least")]
    for name in counted:
        rates = lines[f"expected_{name}"]
        places = apart(rates.dropna(), count)
        title = labels.outcomes.get(name, name.replace("_", " "))
        rows.append((name, "count", title, rates, f"counted {count} {places}"))
        if name == lead:
            # Of the numbers as they are printed: whoever subtracts what stands in the table finds the same.
            shown = (rates.astype(np.float64) * count).round(places) / count
            more = shown - shown[lines["option"] == ONE].iloc[0]
            rows.append((MORE, "more", title, more, f"change {count} {places}"))
    rows.append((LOSS, "loss", "", lines["loss"], f"lost {decimals_of(lines['loss'].dropna().to_numpy(np.float64))}"))
    if gain_of(problem).has_shares and verdict_on(Greedy.name, certainty) == BETTER:
        rows.append((BENEFIT, "kept", "", lines["benefit_kept"], "kept"))
    if (certainty["draws"] > 0).all():
        better = certainty[certainty["measure"] == "value"].set_index("policy")["better"].astype(np.float64)
        names = lines["option"].map({EACH: Greedy.name}).fillna(lines["option"])
        rows.append((BETTER_IN, "better", "", names.map(better), "plain"))
    rows.append((RIGHT, "right", "", lines["guess_rate"], "right"))
    cells = [
        as_cells(lines[["option", "epsilon"]].assign(row=row, value=value, format=style))
        for row, _, _, value, style in rows
    ]
    table = pd.concat(cells, ignore_index=True).astype({"value": np.float64})
    # Without privacy there is an ε, too; what is proven of all mechanisms is a bound.
    table.loc[(table["row"] == EPSILON) & (table["option"] == EACH), "format"] = "plain"
    bound = (table["row"] == EPSILON) & (table["option"] == LIMIT)
    table.loc[bound, ["value", "format"]] = _bound(choices)
    return table, pd.DataFrame([row[:3] for row in rows], columns=["row", "section", "title"]), count


def _bound(choices: Choices) -> tuple[float, str]:
    """The epsilon that any mechanism needs: the first policy's if it attains it; NaN where nothing is proven."""
    first = float(choices.needs["epsilon"].iloc[0]) if len(choices.needs) else math.inf
    if not choices.limit_proven:
        return math.nan, "least"
    if choices.limit in {0, math.inf}:
        return choices.limit, "least"
    if choices.attains(first):
        return first, "least"
    return choices.limit, f"above {min(digits_of(first), MOST_DIGITS)}"
