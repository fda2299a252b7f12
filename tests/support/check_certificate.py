"""Check a certificate that no mechanism can, knowing nothing of policysim: python check_certificate.py FILE."""

import json
import math
import sys


def proven_bound(text):
    """The value that no epsilon-private policy exceeds, by weak duality; ValueError if the proof does not hold."""
    proof, bound = json.loads(text), 0.0
    floor = math.exp(-proof["epsilon"])
    used, freed = ([0.0] * len(proof["actions"]) for _ in range(2))
    for group in proof["groups"]:
        for a, (c, alpha, beta) in enumerate(zip(group["weights"], group["alpha"], group["beta"], strict=True)):
            if alpha < 0 or beta < 0 or group["lambda"] < c - alpha + beta:
                raise ValueError(f"the dual constraint of action {a} fails in {group['order']}")
            used[a] += alpha
            freed[a] += beta
        bound += group["lambda"]
    if any(u > floor * f for u, f in zip(used, freed, strict=True)) or bound > proof["bound"]:
        raise ValueError("the multipliers of the ceilings, or the bound, fail")
    if not bound < proof.get("needed", math.inf):
        raise ValueError("the bound is not below what is needed, so nothing is proven")
    return bound


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123 - nothing but the bare language
        print(f"proven: nothing exceeds {proven_bound(file.read())}")  # noqa: T201
