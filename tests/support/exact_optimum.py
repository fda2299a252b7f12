"""The least that a private policy loses when all records are neighbours, in rational numbers, by brute force."""

from fractions import Fraction
from itertools import combinations, product


def least_loss(utilities, prior, factor):
    """The minimum over all tables p with p(a|x) <= factor p(a|x') of the expected loss against the best action.

    For given ceilings M the best row is known: floors M/factor first, then the rest in order of utility up to the
    ceilings. What is lost is convex in M and linear between the hyperplanes where a ceiling is met exactly, so that the
    least is at a point where k of these or of M_a = 0 meet; all such points are tried.
    """
    table = [[Fraction(u) for u in row] for row in utilities]
    weights = [Fraction(chance) for chance in prior]
    losses = [
        sum(weight * lost(row, ceilings, factor) for weight, row in zip(weights, table, strict=True))
        for ceilings in corners(len(table[0]), Fraction(factor))
    ]
    return min(losses)


def fixed_loss(utilities, prior):
    """The least that one action for all loses against the best for each."""
    table = [[Fraction(u) for u in row] for row in utilities]
    return min(
        sum(Fraction(chance) * (max(row) - row[a]) for chance, row in zip(prior, table, strict=True))
        for a in range(len(table[0]))
    )


def lost(row, ceilings, factor):
    """What the best row of probabilities under these ceilings loses."""
    chances = [ceiling / factor for ceiling in ceilings]
    left = 1 - sum(chances)
    for a in sorted(range(len(row)), key=lambda a: -row[a]):
        more = min(left, ceilings[a] - chances[a])
        chances[a] += more
        left -= more
    assert left == 0
    return sum(chance * (max(row) - u) for chance, u in zip(chances, row, strict=True))


CORNERS = {}


def corners(k, factor):
    """Every point M >= 0 with a sum in [1, factor] where k of the hyperplanes meet."""
    if (k, factor) not in CORNERS:
        planes = [([1 if b == a else 0 for b in range(k)], 0) for a in range(k)]
        planes += [
            ([1 if inside else 1 / factor for inside in members], 1) for members in product((False, True), repeat=k)
        ]
        found = {solved(chosen) for chosen in combinations(planes, k)} - {None}
        CORNERS[k, factor] = [m for m in found if min(m) >= 0 and 1 <= sum(m) <= factor]
    return CORNERS[k, factor]


def solved(equations):
    """The one solution of k equations in k unknowns, by Gauss and Jordan; None if there is not one."""
    rows = [[Fraction(x) for x in (*left, right)] for left, right in equations]
    for i in range(len(rows)):
        pivot = next((j for j in range(i, len(rows)) if rows[j][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [x / rows[i][i] for x in rows[i]]
        for j in range(len(rows)):
            if j != i and rows[j][i]:
                rows[j] = [x - rows[j][i] * y for x, y in zip(rows[j], rows[i], strict=True)]
    return tuple(row[-1] for row in rows)
