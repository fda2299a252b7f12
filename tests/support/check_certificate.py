"""Check a certificate that no mechanism can, knowing nothing of policysim: python check_certificate.py FILE [PROBLEM].

PROBLEM is JSON: `actions`, `utilities` (a row for each record), `prior`, `outcomes` (name: rows) and, if some records
do not allow every action, `admissible` (rows of true and false). Without it only the multipliers are checked, and that
costs, classes and digest are those of the problem is not.
"""

import hashlib
import json
import math
import sys
from array import array
from decimal import Context, Decimal
from fractions import Fraction
from pathlib import Path

LOST = "utility lost"


def require(holds, what):
    if not holds:
        raise ValueError(f"{what} fail")


def exact(number):
    """A float, or the text that stands for infinity, as the number that it is."""
    return math.inf if number == "inf" else Fraction(number)


def proven_bound(text, problem=None):
    """The least objective of every epsilon-private policy, by weak duality; ValueError if the proof does not hold."""
    proof = json.loads(text)
    if problem is not None:
        check_problem(proof, json.loads(problem))
    epsilon, hidden, partitions = exact(proof["epsilon"]), proof["hidden"], proof["adjacency"]["partitions"]
    require(epsilon >= 0 and 0 < len(set(hidden)) == len(hidden) and min(hidden) >= 0, "the epsilon or what is hidden")
    chosen = [partitions[place] for place in hidden]
    require(len(chosen) == 1 or all(part.get("shape") == chosen[0]["shape"] for part in chosen), "the steps")
    # Correctly rounded to 60 digits, so lowered in the 58th it is below e^-epsilon.
    power = Fraction(Context(prec=60).exp(Decimal(-proof["epsilon"]))) if epsilon < 1001 else Fraction(0)
    q, used, freed, bound = (power * (1 - Fraction(1, 10**58))) ** len(hidden), {}, {}, Fraction(0)
    for group in proof["groups"]:
        numbers = list(zip(group["costs"], group["alpha"], group["beta"], strict=True))
        require(len(numbers) == len(proof["actions"]), "the actions")
        least = []
        for action, (cost, alpha, beta) in enumerate(tuple(map(Fraction, three)) for three in numbers):
            require(alpha >= 0 and beta >= 0, "the signs")
            place = group["class"], action
            used[place], freed[place] = used.get(place, 0) + alpha, freed.get(place, 0) + beta
            least.append(cost + alpha - beta)
        require(Fraction(group["lambda"]) <= min(least), "the charges")
        bound += min(least)
    require(all(used[place] <= q * freed[place] for place in used), "the multipliers of the ceilings")
    require(Fraction(proof["bound"]) <= bound, "the bound")
    if "allowed" in proof:
        demanded = sum(Fraction(of) * Fraction(proof["demanded"][name]) for name, of in proof["objective"].items())
        if not Fraction(proof["bound"]) > Fraction(proof["allowed"]) >= demanded:
            raise ValueError("the bound is not above what is allowed, so nothing is proven")
    return float(bound)


def check_problem(proof, problem):
    """That digest, groups and costs are those of the problem."""
    prior, partitions = [Fraction(chance) for chance in problem["prior"]], proof["adjacency"]["partitions"]
    require(proof["actions"] == problem["actions"] and proof["problem"] == digest(problem, partitions), "the digest")
    rows = list(zip(*(quantity(problem, name, float) for name in proof["objective"]), strict=True))
    exactly = list(zip(*(quantity(problem, name, Fraction) for name in proof["objective"]), strict=True))
    weights, costs, count = list(proof["objective"].values()), {}, {}
    for record, clique in enumerate(cliques(proof["hidden"], partitions, len(prior))):
        floats = total(weights, rows[record])
        order = sorted(range(len(floats)), key=floats.__getitem__)
        place = clique, tuple(problem["actions"][action] for action in order)
        before = costs.get(place, [0] * len(order))
        spent = total(list(map(Fraction, weights)), exactly[record])
        costs[place] = [cost + prior[record] * of for cost, of in zip(before, spent, strict=True)]
        count[place] = count.get(place, 0) + 1
    claimed = {(group["class"], tuple(group["order"])): group for group in proof["groups"]}
    require(len(claimed) == len(proof["groups"]) and claimed.keys() == costs.keys(), "the groups")
    for place, group in claimed.items():
        require(group["records"] == count[place], "the counts")
        require(all(Fraction(c) <= cost for c, cost in zip(group["costs"], costs[place], strict=True)), "the costs")


def total(weights, row):
    """Weight times quantity of each action, added in the order of the objective."""
    sums = [0] * len(row[0])
    for weight, entries in zip(weights, row, strict=True):
        sums = [before + weight * entry for before, entry in zip(sums, entries, strict=True)]
    return sums


def quantity(problem, name, kind):
    """A quantity of each record and action, as numbers of a kind."""
    table = problem["utilities"] if name == LOST else problem["outcomes"][name]
    rows = [[kind(entry) for entry in row] for row in table]
    return [[max(row) - entry for entry in row] for row in rows] if name == LOST else rows


def cliques(hidden, partitions, n_records):
    """The class of each record: that of a list as it is said, that of a grid by its place outside the hidden axes."""
    chosen = [partitions[place] for place in hidden]
    if "cliques" in chosen[0]:
        return chosen[0]["cliques"]
    shape, axes, found = chosen[0]["shape"], {axis for part in chosen for axis in part["axes"]}, []
    for record in range(n_records):
        left, size, clique = record, 1, 0
        for axis in reversed(range(len(shape))):
            left, level = divmod(left, shape[axis])
            if axis not in axes:
                clique, size = clique + size * level, size * shape[axis]
        found.append(clique)
    return found


def digest(problem, partitions):
    """The SHA-256 of the problem, as `DecisionProblem.digest` says."""
    mask = problem.get("admissible")
    head = {
        "actions": problem["actions"],
        "outcomes": list(problem["outcomes"]),
        "n_records": len(problem["prior"]),
        "admissible": mask is not None,
        "partitions": partitions,
    }
    found = hashlib.sha256(json.dumps(head, sort_keys=True).encode() + b"\n")
    for table in (problem["utilities"], [[chance] for chance in problem["prior"]], *problem["outcomes"].values()):
        numbers = array("d", [entry for column in zip(*table, strict=True) for entry in column])
        if sys.byteorder == "big":
            numbers.byteswap()
        found.update(numbers.tobytes())
    if mask is not None:
        found.update(bytes(allowed for column in zip(*mask, strict=True) for allowed in column))
    return found.hexdigest()


if __name__ == "__main__":
    texts = [Path(name).read_text(encoding="utf-8") for name in sys.argv[1:3]]
    print(f"proven: nothing comes to less than {proven_bound(*texts)}")  # noqa: T201
