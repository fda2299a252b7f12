"""Check a certificate that no mechanism can, knowing nothing of policysim: python check_certificate.py FILE."""

import json
import math
import sys
from decimal import Context, Decimal
from fractions import Fraction


def exact(number):
    """A float, or the text that stands for infinity, as the number that it is."""
    return math.inf if number == "inf" else Fraction(number)


def proven_bound(text):
    """The least that every epsilon-private policy loses, by weak duality; ValueError if the proof does not hold."""
    proof, bound = json.loads(text), Fraction(0)
    epsilon, q, used, freed = exact(proof["epsilon"]), exact(proof["q"]), {}, {}
    if not exact(proof["class_epsilon"]) >= epsilon >= 0 or q < 0:
        raise ValueError("the epsilons fail")
    if q > 0:
        # Correctly rounded to 60 digits, so lowered in the 58th it is below.
        power = Context(prec=60).exp(Decimal(-proof["class_epsilon"]))
        if q > Fraction(power) * (1 - Fraction(1, 10**58)) and (q, epsilon) != (1, 0):
            raise ValueError("q fails: it is above e^-epsilon")
    for group in proof["groups"]:
        charge = exact(group["lambda"])
        numbers = zip(group["costs"], group["alpha"], group["beta"], strict=True)
        for a, (cost, alpha, beta) in enumerate([tuple(map(exact, three)) for three in numbers]):
            if alpha < 0 or beta < 0 or charge > cost + alpha - beta:
                raise ValueError(f"the dual constraint of action {a} fails in {group['order']}")
            place = group["class"], a
            used[place] = used.get(place, 0) + alpha
            freed[place] = freed.get(place, 0) + beta
        bound += charge
    if any(used[place] > q * freed[place] for place in used) or bound < exact(proof["bound"]):
        raise ValueError("the multipliers of the ceilings, or the bound, fail")
    if "allowed" in proof and not exact(proof["bound"]) > exact(proof["allowed"]):
        raise ValueError("the bound is not above what is allowed, so nothing is proven")
    return float(bound)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - nothing but the bare language
        print(f"proven: nothing loses less than {proven_bound(file.read())}")  # noqa: T201
