"""How sure an answer is: how often an option is better where the uncertain numbers are others, and what to say then.

Every option, private or not, is compared within each redraw with the one treatment for all that the stated numbers
name. Both are the tables of the stated numbers, fixed: an optimum made anew for each redraw would never lose.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from policies.reference import BestFixed
from policysim.study.cells import as_cells
from policysim.study.options_table import (
    BOUND,
    COPY,
    EACH,
    FOR_ALL,
    LEAD,
    LEAST_MOVED,
    ONE,
    PRIVATE,
    RIGHT,
    lead_of,
    moves_at,
)
from policysim.words import ALL

# Better in so many of the redraws is better, in so few is not; between them it cannot be told.
SURE, UNLIKELY = 0.9, 0.1
BETTER, NOT_BETTER, UNTOLD, EQUAL = "better", "not better", "cannot be told", "equal"
# A difference and its interval.
INTERVAL = ("value", "low", "high")
# Values that differ by less, of the range in a redraw or of the largest number there, are equal but for rounding.
TIE, ROUNDING = 1e-9, 1e-12
# Right guesses of who has seen nothing.
CHANCE = 0.5


def certainty(redrawn: pd.DataFrame, reference: str, lead: str | None = None, *, stated: bool = False) -> pd.DataFrame:
    """How often each option is strictly better than one of them, and the verdict.

    Parameters
    ----------
    redrawn : DataFrame
        draw, option (a policy, or "for all: ACTION"), value and any expected_OUTCOME: a row for each draw and option.
    reference : str
        The option that the others are compared with: the one treatment for all of the stated numbers.
    lead : str, optional
        The outcome that leads: an option with less of it is better, too.
    stated : bool, optional
        Whether the only "draw" is the stated numbers: nothing was redrawn.

    Returns
    -------
    DataFrame
        policy, measure ("value": more is better; "lead": less of that outcome is), better and equal (draws), draws (0
        if only the stated numbers are known) and verdict: better in at least 90 % of the draws, not better in at most
        10 %, equal in at least 90 %, else it cannot be told.

    Examples
    --------
    >>> draws = [(0, "one", 1.0), (0, "other", 2.0), (1, "one", 1.0), (1, "other", 0.0)]
    >>> certainty(pd.DataFrame(draws, columns=["draw", "option", "value"]), "one")[["policy", "better", "verdict"]]
      policy  better         verdict
    0    one       0           equal
    1  other       1  cannot be told
    """
    measures = {"value": ("value", 1.0), LEAD: (f"expected_{lead}", -1.0)}
    found = []
    for measure, (column, sign) in measures.items():
        if column not in redrawn:
            continue
        wide = sign * redrawn.pivot(index="draw", columns="option", values=column)[redrawn["option"].unique()]
        beyond = wide.sub(wide[reference], axis=0).to_numpy()
        rounding = _rounding(wide).to_numpy()[:, None]
        better, equal = (beyond > rounding).sum(axis=0), (np.abs(beyond) <= rounding).sum(axis=0)
        verdicts = [verdict_of(more / len(wide), same / len(wide)) for more, same in zip(better, equal, strict=True)]
        numbers = {"better": better, "equal": equal, "draws": 0 if stated else len(wide), "verdict": verdicts}
        found.append(pd.DataFrame({"policy": wide.columns, "measure": measure, **numbers}))
    return pd.concat(found, ignore_index=True)


def as_stated(
    comparison: pd.DataFrame, epsilon: float, lead: str | None, reference: str = BestFixed.name
) -> pd.DataFrame:
    """The same of everyone in a comparison at one epsilon, by the stated numbers alone: nothing is redrawn."""
    stated = comparison[(comparison["group"] == ALL) & (comparison["epsilon"] == epsilon)]
    alone = stated[stated["value"].notna()].rename(columns={"policy": "option"}).assign(draw=0)
    return certainty(alone, reference, lead, stated=True)


def on_held_out(differences: pd.DataFrame, reference: str = BestFixed.name) -> pd.DataFrame:
    """The same of a log, where the interval of a difference on patients held out decides, and nothing is redrawn.

    Parameters
    ----------
    differences : DataFrame
        policy, value, low, high and verdict, of a log. Of other policies nothing can be told.
    reference : str, optional
        What they are compared with.
    """
    same = pd.DataFrame([(reference, 0.0, 0.0, 0.0, EQUAL)], columns=["policy", *INTERVAL, "verdict"])
    found = pd.concat([same, differences], ignore_index=True)
    counts = {"better": (found["verdict"] == BETTER).astype(int), "equal": (found["verdict"] == EQUAL).astype(int)}
    return found.assign(measure="value", **counts, draws=0)


def restated(tables: Mapping[str, pd.DataFrame], epsilon: float) -> dict[str, pd.DataFrame]:
    """The tables of an answer as if another of its epsilons were the stated one; nothing was redrawn there."""
    moved, columns, rows = moves_at(tables["differences"], epsilon), tables["columns"], tables["rows"]
    reference = columns.loc[columns["option"] == ONE, "policy"].iloc[0]
    return {
        **tables,
        "columns": columns.assign(stated=columns["epsilon"] == epsilon),
        "rows": rows.assign(moved=rows["row"].map(moved).fillna(0).astype(int)),
        "certainty": as_stated(tables["comparison"], epsilon, lead_of(rows), reference),
    }


def restated_trial(tables: Mapping[str, pd.DataFrame], epsilon: float) -> dict[str, pd.DataFrame]:
    """The same of a log: its tables have the verdicts of all epsilons."""
    columns = tables["columns"]
    return {**tables, "columns": columns.assign(stated=columns["epsilon"].isna() | columns["epsilon"].eq(epsilon))}


def verdict_of(better: float, equal: float = 0.0) -> str:
    """The verdict on an option that is better, and equal, in these shares of the redraws."""
    if equal >= SURE:
        return EQUAL
    if better >= SURE:
        return BETTER
    return NOT_BETTER if better <= UNLIKELY else UNTOLD


def verdict_of_interval(low: float, high: float) -> str:
    """The verdict on a difference whose 95 % interval is known: only what is above 0, or below it, is told.

    Examples
    --------
    >>> verdict_of_interval(0.01, 0.05), verdict_of_interval(-0.05, -0.01), verdict_of_interval(-0.01, 0.05)
    ('better', 'not better', 'cannot be told')
    """
    if low == high == 0:
        return EQUAL
    return BETTER if low > 0 else NOT_BETTER if high < 0 else UNTOLD


def verdict_on(policy: str, certainty: pd.DataFrame, measure: str = "value") -> str:
    """Whether a policy is better than the best treatment for all, in value or in the lead; else it cannot be told."""
    rows = certainty[(certainty["measure"] == measure) & (certainty["policy"] == policy)]
    return str(next(iter(rows["verdict"]), UNTOLD))


def best_for_all(redrawn: pd.DataFrame) -> pd.DataFrame:
    """In how many redraws each treatment is the best one for all, most first: cells; of equal ones the first counts."""
    of_all = redrawn[redrawn["option"].str.startswith(FOR_ALL)]
    wide = of_all.pivot(index="draw", columns="option", values="value")[of_all["option"].unique()]
    near = wide.ge(wide.max(axis=1) - _rounding(wide), axis=0).to_numpy()
    counts = np.bincount(near.argmax(axis=1), minlength=wide.shape[1])
    order = np.argsort(-counts, kind="stable")
    names = [str(wide.columns[place]).removeprefix(FOR_ALL) for place in order]
    cells = pd.DataFrame({"row": names, "value": counts[order].astype(np.float64)})
    return as_cells(cells.assign(format="plain"))


def _rounding(wide: pd.DataFrame) -> pd.Series:
    """What rounding makes of equal values, in each draw."""
    spread = wide.max(axis=1) - wide.min(axis=1)
    return pd.concat([TIE * spread, ROUNDING * wide.abs().max(axis=1)], axis=1).max(axis=1)


def verdict(tables: Mapping[str, pd.DataFrame]) -> dict[str, bool]:
    """Which finding holds: the only place that decides it.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        "columns", "rows", "options" and "certainty", and where there are such, "who" and "beliefs".

    Returns
    -------
    dict
        By name. A finding asks for one of them; `recommended` for "recommend private choice".
    """
    columns, rows, found = tables["columns"], tables["rows"], tables["certainty"]
    stated = columns[columns["stated"]].set_index("option")
    policy = stated["policy"]
    verdicts = found.set_index(["measure", "policy"])["verdict"]
    said = {option: verdicts.get(("value", policy[option]), UNTOLD) for option in (PRIVATE, EACH)}
    safest = safest_option(tables)
    gains, costs = rows["moved"] < 0, rows["moved"] > 0
    names = {
        "safest": safest != "" and _is_safest(safest, policy, verdicts),
        "gain": bool(gains.any()) and said[PRIVATE] != NOT_BETTER,
        "cost": bool(costs.any()),
        "who": "who" in tables and bool(tables["who"]["epsilon"].eq(stated["epsilon"].iloc[0]).any()),
        "observer": "beliefs" in tables,
        "redrawn": bool((found["draws"] > 0).all()),
    }
    opposite = {f"no {name}": not holds for name, holds in names.items()}
    return {
        **names,
        **opposite,
        "private choice better": said[PRIVATE] == BETTER,
        "each's best better": said[EACH] == BETTER,
        **recommendation(said, published=_only_published(tables)),
    }


def _only_published(tables: Mapping[str, pd.DataFrame]) -> bool:
    """Whether the study says that an observer sees what is published, and no treatment itself."""
    if "names" not in tables:
        return False
    names = tables["names"].set_index("key")["text"]
    return bool(names.get("seen") == "publication")


def recommendation(said: Mapping[str, str], *, published: bool) -> dict[str, bool]:
    """What is better than one treatment for all is recommended; else that is.

    Parameters
    ----------
    said : mapping of str to str
        The verdicts on a private choice and on each's best.
    published : bool
        Whether a publication alone is seen: of the best for each a noised copy is then shown, and no patient pays.
    """
    better = [*([COPY] if published and said[EACH] == BETTER else []), *([PRIVATE] if said[PRIVATE] == BETTER else [])]
    first = next(iter(better), ONE)
    return {f"recommend {name}": name == first for name in (PRIVATE, COPY, ONE)}


def trial_verdict(tables: Mapping[str, pd.DataFrame]) -> dict[str, bool]:
    """The same of a log, from its "options", "columns" and "certainty", and "who" where there is such.

    Returns
    -------
    dict
        As of `verdict`: "gain" where each's best or a private choice is better than one arm, "cost" where a private one
        is not told to be better or equal, "safest" where one arm is better than every other.
    """
    columns, certainty, options = tables["columns"], tables["certainty"], tables["options"]
    now = columns.loc[columns["stated"], "epsilon"].dropna().iloc[0]
    said = certainty[certainty["epsilon"] == now].set_index("option")["verdict"]
    arms = certainty.loc[certainty["section"] == "arm", "verdict"]
    of_private = options["option"].eq(PRIVATE) & options["epsilon"].eq(now)
    guesses = options[of_private & options["row"].eq(RIGHT)]["value"].iloc[0]
    names = {
        "safest": bool((arms == BETTER).all()),
        "gain": BETTER in {said[PRIVATE], said[EACH]},
        "cost": said[PRIVATE] not in {BETTER, EQUAL},
        "who": "who" in tables and bool(tables["who"]["epsilon"].eq(now).any()),
        "observer": bool(guesses > CHANCE + ROUNDING),
        "told": said[PRIVATE] != UNTOLD,
    }
    return {
        **names,
        **{f"no {name}": not holds for name, holds in names.items()},
        **recommendation(said, published=_only_published(tables)),
    }


def course_verdict(tables: Mapping[str, pd.DataFrame]) -> dict[str, bool]:
    """The same of days: one for all is the best schedule for all, and "options" has what bounds the benefit kept.

    Returns
    -------
    dict
        As of `verdict`: "observer" where a private way lets anybody guess better than by chance, "bounded" where it is
        known what none exceeds.
    """
    columns, options = tables["columns"], tables["options"]
    now = options[options["epsilon"] == columns.loc[columns["stated"], "epsilon"].iloc[0]]
    guesses = now.loc[now["row"].eq(RIGHT) & now["option"].eq(PRIVATE), "value"].iloc[0]
    names = {"observer": bool(guesses > CHANCE + ROUNDING), "bounded": bool(now["option"].eq(BOUND).any())}
    return {**verdict(tables), **names, **{f"no {name}": not holds for name, holds in names.items()}}


# Which finding holds, and the tables at another epsilon, of each kind of question.
VERDICTS = {"decision": verdict, "trial": trial_verdict, "course": course_verdict}
RESTATED = {"decision": restated, "trial": restated_trial, "course": restated}


def safest_option(tables: Mapping[str, pd.DataFrame]) -> str:
    """The option with the least of the lead of those that hide, one for all if none has less; "" without a lead.

    None that is judged to have no less than one for all: what the stated numbers say of it, redraws deny.
    """
    expected = _lead_of_hiding(tables)
    if expected.isna().any():
        return ""
    policy = tables["columns"].query("stated").set_index("option")["policy"]
    denied = [
        option
        for option in expected.index
        if option != ONE and verdict_on(policy[option], tables["certainty"], LEAD) == NOT_BETTER
    ]
    able = expected.drop(denied)
    least = str(able.index[int(able.to_numpy().argmin())])
    return least if expected[ONE] - expected[least] > LEAST_MOVED else ONE


def lead_beyond(tables: Mapping[str, pd.DataFrame], safest: str) -> pd.Series:
    """The lead, as stated, of the other options that hide, beyond that of the safest; 0 where it is as much."""
    expected = _lead_of_hiding(tables)
    beyond: pd.Series = expected.drop(safest) - expected[safest]
    return beyond.where(beyond.abs() > LEAST_MOVED, 0.0)


def _lead_of_hiding(tables: Mapping[str, pd.DataFrame]) -> pd.Series:
    """The lead, as stated, of the options that hide what they publish, in the order of the columns."""
    stated = tables["columns"].query("stated")
    hiding = [option for option in stated["option"] if option not in {COPY, EACH}]
    cells = tables["options"]
    now = cells[(cells["row"] == lead_of(tables["rows"])) & (cells["epsilon"] == stated["epsilon"].iloc[0])]
    expected: pd.Series = now.set_index("option")["value"].reindex(hiding)
    return expected


def _is_safest(option: str, policy: pd.Series, verdicts: pd.Series) -> bool:
    """Whether nothing that hides is known to be as safe: others are no better than one for all, or it is."""
    if option != ONE:
        return bool(verdicts.get((LEAD, policy[option]), UNTOLD) == BETTER)
    rivals = [name for name in verdicts[LEAD].index if name.startswith(FOR_ALL) or name == policy[PRIVATE]]
    return all(verdicts[LEAD, name] in {NOT_BETTER, EQUAL} for name in rivals)


def recommended(holds: Mapping[str, bool]) -> str:
    """The option that titles, `choose` and records name, from `verdict`: never one against its verdict."""
    return next(option for option in (PRIVATE, COPY, ONE) if holds[f"recommend {option}"])
