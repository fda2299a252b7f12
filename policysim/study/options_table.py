"""The table that answers: options as columns, absolute numbers as rows, at every epsilon. The only place that ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import pandas as pd

from policies.arrays import FloatArray
from policies.exponential import Exponential, ExponentialFitted
from policies.optimal.classes import hiding_partitions
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policies.reference import BestFixed, Greedy
from policysim.numbers import NEGLIGIBLE, apart, population
from policysim.study.cells import as_cells
from policysim.study.gain import best_first
from policysim.study.labels import Labels
from policysim.study.sweep import REFERENCES
from policysim.words import ALL

# The options; a policy that was asked for by name is one under its name.
ONE, PRIVATE, EXPONENTIAL = "one for all", "private choice", "exponential mechanism"
COPY, EACH, FEWEST = "noised copy", "each's best", "fewest"
# Where the fitted exponential mechanism is compared, too: the textbook's, which stands in the trace alone.
TEXTBOOK = "exponential mechanism, textbook"
# What the odds of the fitted one do, and what where a record has several kinds of neighbours.
BETWEEN_FLOORS = "stay between public floors and ceilings"
FROM_WEIGHTS = "start from public weights, and regrets are cut off"
FOR_ALL = "for all: "
# Over days, the best mechanism that chooses day by day, where that is not the best of all.
DRAWN_DAILY = "drawn daily"
# In the place of an option: what none exceeds.
BOUND = "bound"
MOST_COLUMNS = 6
LOSS, BENEFIT, BETTER_IN, BELIEF, RIGHT = "loss", "benefit kept", "better", "belief", "right guesses"
# The section of the outcome that leads, which is counted first, and its name among measures and in tables of cells.
LEAD = "lead"
# So many outcomes that a private choice makes better are shown, and so many that it makes worse.
MOST_MOVED = 2
# Rates that differ by less, per patient, are not told apart.
LEAST_MOVED = 1e-6
TRACE = (0.5, 1.0, 2.0, 5.0, 10.0)
# What a utility is counted among where nothing else is counted.
HUNDRED = 100


def choose_columns(
    comparison: pd.DataFrame, labels: Labels, epsilon: float, *, policies: Sequence[str], named: Sequence[str] = ()
) -> pd.DataFrame:
    """Which policy stands in which column at each epsilon.

    Parameters
    ----------
    comparison : DataFrame
        From `compare_problem`, with the references, `Exponential` and `RandomizedResponse`, and a row "for all: ACTION"
        for each action.
    labels : Labels
        The titles of its actions, and which outcome leads.
    epsilon : float
        The stated one.
    policies : sequence of str
        The policies of the study: among those that spend epsilon, the private choice has the highest value.
    named : sequence of str, optional
        Policies that were asked for by name: they get columns of their own, up to six in all.

    Returns
    -------
    DataFrame
        option, epsilon, policy (what patients are given), published (the policy that whoever sees a treatment sees),
        title, hides ("fully", "partly" or "no") and stated (whether the epsilon is the stated one): in the order of the
        columns.
    """
    everyone = comparison[comparison["group"] == ALL]
    best = private_choices(comparison, policies)
    epsilons = sorted(everyone["epsilon"].unique())
    # Where contraindications differ, one for all is all that somebody gets.
    row = everyone[everyone["policy"] == BestFixed.name].iloc[0]
    shares = {name: row[f"p_{name}"] for name in labels.actions if row[f"p_{name}"] > 0}
    treatment = labels.for_all(sorted(shares, key=lambda name: -shares[name]))
    # The option, its title, and the policy; of a private choice, that at each epsilon.
    found: list[tuple[str, str, str | Mapping[float, str]]] = [(ONE, f"{treatment} for all", BestFixed.name)]
    private = _private(everyone, (*policies, Exponential.name))
    fewest = _fewest(everyone, private, epsilon, {BestFixed.name, best[epsilon]}, labels.lead)
    if fewest:
        action = fewest.removeprefix(FOR_ALL)
        found.append((FEWEST, fewest if action == fewest else f"{labels.actions[action]} for all", fewest))
    found.append((PRIVATE, "best private choice*", best))
    exponential, *textbook = exponential_options(everyone["policy"])
    if set(best.values()) != {exponential[-1]}:
        found.append(exponential)
    shown = {best[epsilon], fewest, exponential[-1], BestFixed.name, Greedy.name}
    others = [name for name in named if name not in shown and name in set(everyone["policy"])]
    found += [(name, f"{name}*", name) for name in others[: MOST_COLUMNS - len(found) - 2]]
    found += [(COPY, "each's best, noised copy†", Greedy.name), (EACH, "each's best", Greedy.name), *textbook]

    spent = everyone.set_index(["policy", "epsilon"])["epsilon_spent"]
    rows = []
    for option, title, policy in found:
        for each in epsilons:
            given = policy if isinstance(policy, str) else policy[each]
            published = RandomizedResponse.name if option == COPY else given
            rows.append((option, each, given, published, title, _hides(spent[given, each]), each == epsilon))
    return pd.DataFrame(rows, columns=["option", "epsilon", "policy", "published", "title", "hides", "stated"])


def exponential_options(compared: Collection[str]) -> list[tuple[str, str, str]]:
    """The exponential mechanisms: the fitted one, if it is compared, and the textbook's; else the textbook's alone.

    Returns
    -------
    list of tuple
        The option, its title and its policy.

    Examples
    --------
    >>> exponential_options(["exponential", "optimal"])
    [('exponential mechanism', 'exponential mechanism*', 'exponential')]
    """
    if ExponentialFitted.name not in set(compared):
        return [(EXPONENTIAL, "exponential mechanism*", Exponential.name)]
    fitted = (EXPONENTIAL, "exponential, fitted*", ExponentialFitted.name)
    return [fitted, (TEXTBOOK, "exponential, textbook*", Exponential.name)]


def fitted_odds(problem: DecisionProblem) -> str:
    """What the odds of the fitted exponential mechanism do on a problem."""
    overlapping = len(hiding_partitions(problem.adjacency, problem.n_records)) > 1
    return FROM_WEIGHTS if overlapping else BETWEEN_FLOORS


def private_choices(comparison: pd.DataFrame, policies: Collection[str], *, by: str = "value") -> dict[float, str]:
    """The private choice at each epsilon: of the policies that spend it, the one of the highest value.

    Parameters
    ----------
    comparison : DataFrame
        As for `choose_columns`.
    policies : collection of str
        Of these; the exponential mechanism where none of them spends epsilon. Of equal ones the optimum.
    by : str, optional
        The column that ranks.
    """
    everyone = comparison[comparison["group"] == ALL]
    asked = _private(everyone, policies)
    ranked = _private(everyone, [Exponential.name]) if asked.empty else asked
    values: dict[float, dict[str, float]] = {}
    for name, epsilon, value in zip(ranked["policy"], ranked["epsilon"], ranked[by], strict=True):
        values.setdefault(epsilon, {})[name] = value
    return {epsilon: best_first(known, known)[0] for epsilon, known in values.items()}


def _private(everyone: pd.DataFrame, policies: Collection[str]) -> pd.DataFrame:
    """The rows of policies that spend epsilon, and are known to spend no more than it."""
    spend = set(policies) - {policy.name for policy in REFERENCES}
    able = everyone[everyone["policy"].isin(spend) & everyone["epsilon_spent"].notna()]
    return able[able["guarantee"] <= able["epsilon"] * (1 + NEGLIGIBLE)]


def _hides(spent: float) -> str:
    return "fully" if spent < NEGLIGIBLE else "partly" if spent < math.inf else "no"


def _fewest(everyone: pd.DataFrame, able: pd.DataFrame, epsilon: float, shown: set[str], lead: str | None) -> str:
    """The policy, private or for all, with visibly less of the lead than what is shown anyway; "" if none has."""
    expected = f"expected_{lead}"
    if expected not in everyone:
        return ""
    stated = everyone[everyone["epsilon"] == epsilon]
    hiding = stated[stated["policy"].isin(able["policy"]) | stated["policy"].str.startswith(FOR_ALL)]
    least = hiding.iloc[int(hiding[expected].to_numpy().argmin())]
    known = stated[stated["policy"].isin(shown)][expected].min()
    return str(least["policy"]) if known - least[expected] > LEAST_MOVED else ""


def trace(epsilons: Sequence[float], epsilon: float) -> list[float]:
    """At most five epsilons of a study around the stated one.

    Examples
    --------
    >>> trace([0.1, 0.5, 1.0, 2.0, 5.0, 10.0], 1.0), trace([0.0, 3.0], 3.0)
    ([0.5, 1.0, 2.0, 5.0, 10.0], [3.0])
    """
    finite = [each for each in epsilons if 0 < each < math.inf]
    if not 0 < epsilon < math.inf:
        return [epsilon]
    if len(finite) <= len(TRACE):
        return finite
    return sorted({min(finite, key=lambda each: abs(math.log(each / (epsilon * factor)))) for factor in TRACE})


def options(
    comparison: pd.DataFrame,
    columns: pd.DataFrame,
    labels: Labels,
    epsilon: float,
    *,
    certainty: pd.DataFrame,
    best_for_all: float = math.nan,
    beliefs: pd.DataFrame | None = None,
    weights: Mapping[str, float] | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The numbers of the options at every epsilon of a comparison.

    Parameters
    ----------
    comparison : DataFrame
        As for `choose_columns`; its `expected_*` of everyone are the outcomes.
    columns : DataFrame
        From `choose_columns`.
    labels : Labels
        The titles of the outcomes, and which leads.
    epsilon : float
        The stated one.
    certainty : DataFrame
        From `policysim.study.certainty`, at the stated epsilon.
    best_for_all : float, optional
        In how many redraws the treatment that is best for all is so; NaN where nothing was redrawn.
    beliefs : DataFrame, optional
        policy, epsilon, low, high: the belief in one hidden level after seeing the treatment; and `before`.
    weights : mapping of str to float, optional
        What one of an outcome costs in utility: outcomes are ranked by what their changes cost, or by changes.

    Returns
    -------
    options : DataFrame of cells
        row, option, epsilon, value, low, high, format. A row has one precision.
    rows : DataFrame
        row, title, section ("lead", "count", "loss", "better", "belief", "right", "benefit"), patients (who are counted
        among) and moved (−1: a private choice makes it less, 1: more, 0: neither visibly), in the order of the rows.
        Utility is moved only where nothing that is counted is moved to the same side.
    differences : DataFrame of cells
        What a private choice changes in the rows that it moves, against one treatment for all.
    """
    everyone = comparison[comparison["group"] == ALL].set_index(["policy", "epsilon"])
    given = everyone.loc[list(zip(columns["policy"], columns["epsilon"], strict=True))]
    published = everyone.loc[list(zip(columns["published"], columns["epsilon"], strict=True))]
    stated = columns["stated"].to_numpy()
    numbers = {name: given[name].to_numpy(dtype=np.float64) for name in map(str, given) if name.startswith("expected_")}
    now = {option: int(np.flatnonzero(stated & (columns["option"] == option))[0]) for option in (ONE, PRIVATE, EACH)}
    changes = {
        option: {
            name.removeprefix("expected_"): float(each[now[option]] - each[now[ONE]]) for name, each in numbers.items()
        }
        for option in (PRIVATE, EACH)
    }
    # Where a private choice moves nothing, the rows show what could be bought.
    moves = changes[PRIVATE if any(abs(move) > LEAST_MOVED for move in changes[PRIVATE].values()) else EACH]
    counted = _counted(moves, weights, labels.lead)
    count = population(numbers[f"expected_{name}"][stated].max() for name in counted) if counted else HUNDRED

    # The fitted exponential mechanism is so near to the optimum that decimals which tell them apart would be many.
    decides = stated & ~(columns["option"].eq(EXPONENTIAL) & columns["policy"].eq(ExponentialFitted.name)).to_numpy()
    # The row, its title, its section, the format of its cells, and their numbers.
    made: list[tuple[str, str, str, str, dict[str, FloatArray]]] = []
    for name in counted:
        rates = numbers[f"expected_{name}"]
        style = f"counted {count} {apart(rates[decides], count)}"
        section = LEAD if name == labels.lead else "count"
        made.append((name, labels.outcomes.get(name, name.replace("_", " ")), section, style, {"value": rates}))
    loss = given["loss"].to_numpy(dtype=np.float64)
    made.append((LOSS, "units of utility lost", "loss", f"lost {decimals_of(loss[decides])}", {"value": loss}))
    better = _better_in(columns, certainty, best_for_all)
    if np.isfinite(better).any():
        made.append((BETTER_IN, "better than one for all", "better", "plain", {"value": better}))
    if beliefs is not None:
        ends = beliefs.set_index(["policy", "epsilon"]).loc[published.index]
        places = _places_of_share(float(beliefs["before"].iloc[0]))
        low, high = (ends[end].to_numpy(dtype=np.float64) for end in ("low", "high"))
        made.append((BELIEF, "belief", "belief", f"span {places}", {"low": low, "high": high}))
    guesses = published["guess_rate"].to_numpy(dtype=np.float64)
    made.append((RIGHT, "right guesses", "right", "right", {"value": guesses}))
    kept = given["benefit_kept"].to_numpy(dtype=np.float64)
    # Shares of the benefit are said where each's best is better.
    verdicts = certainty[certainty["measure"] == "value"].set_index("policy")["verdict"]
    if verdicts.get(Greedy.name) == "better" and np.isfinite(kept).any():
        made.append((BENEFIT, "benefit kept", "benefit", "kept", {"value": kept}))

    keys = columns[["option", "epsilon"]]
    cells = [as_cells(keys.assign(row=row, format=style, **values)) for row, _, _, style, values in made]
    table = pd.concat(cells, ignore_index=True)
    differences = _differences(table, [*counted, LOSS], count)
    moved = moves_at(differences, epsilon)
    described = [(row, title, section, count, moved.get(row, 0)) for row, title, section, _, _ in made]
    return (
        # What is known at one epsilon only is no cell at others.
        table[table["row"].ne(BETTER_IN) | table["epsilon"].eq(epsilon)].reset_index(drop=True),
        pd.DataFrame(described, columns=["row", "title", "section", "patients", "moved"]),
        differences,
    )


def moves_at(differences: pd.DataFrame, epsilon: float) -> dict[str, int]:
    """Which rows a private choice makes less (−1) or more (1) at an epsilon; as `options` describes them."""
    moved = differences[differences["epsilon"] == epsilon].set_index("row")["value"].map(np.sign).astype(int).to_dict()
    counted = [move for row, move in moved.items() if row != LOSS]
    return {str(row): 0 if row == LOSS and move in counted else move for row, move in moved.items()}


def _counted(moves: Mapping[str, float], weights: Mapping[str, float] | None, lead: str | None) -> list[str]:
    """The lead; and the outcomes that a private choice makes better, or worse, by most: two of each."""
    cost = {name: move * (1.0 if weights is None else weights.get(name, 0.0)) for name, move in moves.items()}
    others = [name for name in moves if name != lead and abs(moves[name]) > LEAST_MOVED]
    ranked = sorted(others, key=lambda name: -abs(cost[name]))
    better = [name for name in ranked if moves[name] < 0][:MOST_MOVED]
    worse = [name for name in ranked if moves[name] > 0][:MOST_MOVED]
    return [*([lead] if lead is not None and lead in moves else []), *better, *worse]


def decimals_of(losses: FloatArray) -> int:
    """The decimals at which the least loss has two digits, or more to tell losses apart; the largest at most four.

    Examples
    --------
    >>> decimals_of(np.array([0.0986, 0.0687, 0.0])), decimals_of(np.array([0.1047, 0.1028]))
    (3, 3)
    """
    seen = losses[losses > NEGLIGIBLE]
    if not seen.size:
        return 0
    two, four = (max(0, digits - math.floor(math.log10(each))) for digits, each in ((1, seen.min()), (3, seen.max())))
    told = [np.unique(seen.round(places)).size for places in range(four + 1)]
    return next((places for places in range(two, four) if told[places] == told[four]), four)


def _places_of_share(before: float) -> int:
    """The decimals of a belief in per cent: none from one per cent upwards."""
    return 0 if before >= 0.01 or before <= 0 else min(4, -math.floor(math.log10(100 * before)))


def _better_in(columns: pd.DataFrame, certainty: pd.DataFrame, best_for_all: float) -> FloatArray:
    """In how many redraws one for all is the best for all, and each option beats it, at the stated epsilon, or NaN."""
    known = certainty[(certainty["measure"] == "value") & (certainty["draws"] > 0)].set_index("policy")["better"]
    found = columns["policy"].map(known).mask(columns["option"] == ONE, best_for_all).where(columns["stated"])
    return np.asarray(found, dtype=np.float64)


def _differences(table: pd.DataFrame, rows: Sequence[str], count: int) -> pd.DataFrame:
    """A private choice minus one for all, in some rows at every epsilon: of the numbers as they are printed.

    Whoever subtracts what stands in the table finds the same.
    """
    found = []
    for row in rows:
        mine = table[table["row"] == row]
        *scale, places = map(int, mine["format"].iloc[0].split()[1:])
        among = scale[0] if scale else 1
        wide = (mine.pivot(index="epsilon", columns="option", values="value") * among).round(places) / among
        style = f"{'units' if row == LOSS else 'about'} {count}"
        found.append((wide[PRIVATE] - wide[ONE]).rename("value").reset_index().assign(row=row, format=style))
    joined = pd.concat(found, ignore_index=True)
    # What is no more than the rounding of such a difference is none.
    value = joined["value"].where(joined["value"].abs() > NEGLIGIBLE, 0.0)
    return as_cells(joined.assign(option=PRIVATE, value=value))


def who_pays(
    comparison: pd.DataFrame,
    columns: pd.DataFrame,
    count: int,
    name_of: Callable[[str, str], str],
    lead: str | None,
) -> pd.DataFrame:
    """The group to which a private choice costs most beyond one treatment for all, at each epsilon: cells, and a name.

    In the outcome that leads, or in utility where none does; no rows at an epsilon at which none pays.
    """
    expected = f"expected_{lead}"
    measure, sign = (expected, 1.0) if expected in comparison else ("value", -1.0)
    groups = comparison[(comparison["group"] == ALL) | comparison["share"].between(0, 1, inclusive="neither")]
    shares = groups.drop_duplicates(["group", "level"]).set_index(["group", "level"])["share"]
    numbers = groups.set_index(["policy", "epsilon", "group", "level"])[measure].sort_index()
    wide = columns.pivot(index="epsilon", columns="option", values="policy")
    rows: list[tuple[str, float, float, str, str]] = []
    for epsilon, private, one in wide[[PRIVATE, ONE]].itertuples(name=None):
        extra = sign * (numbers[private, epsilon] - numbers[one, epsilon])
        now = extra.drop((ALL, ALL)).dropna()
        if now.empty or now.max() * count < 0.5:
            continue
        group, level = now.idxmax()
        share, mine = float(shares[group, level]), float(now.max())
        others = (float(extra[ALL, ALL]) - share * mine) / (1 - share)
        others = 0.0 if abs(others) <= NEGLIGIBLE else others
        name = name_of(group, level)
        rows += [
            ("share", epsilon, share, "percent", name),
            ("group", epsilon, mine, f"change {count} 0", name),
            ("others", epsilon, others, f"change {count} 0", name),
        ]
    found = pd.DataFrame(rows, columns=["row", "epsilon", "value", "format", "name"])
    return as_cells(found.assign(option=PRIVATE), "name")


def lead_of(rows: pd.DataFrame) -> str:
    """The outcome that leads, of the rows that `options` describes; "" where none does."""
    return str(next(iter(rows.loc[rows["section"] == LEAD, "row"]), ""))


def nobody_pays(comparison: pd.DataFrame, does: str) -> str:
    """The line Who pays where no group does so, or where none is compared."""
    if comparison["group"].eq(ALL).all():
        return "Not known: no groups of patients are compared."
    return f"No group, of those that are compared, {does}."
