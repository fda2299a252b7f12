"""How long the sensitivity and each mechanism take with many actions: python benchmarks/many_actions.py."""

import numpy as np
from side_by_side import machine, markdown, seconds

import policysim as ps
from policies.policy import NotApplicableError

SIZES = ((2, 64), (300, 64), (2, 1_000), (300, 1_000), (2, 5_000), (300, 5_000), (2_000, 5_000))
MECHANISMS = ("exponential", "exponential-fitted", "permute-and-flip", "report-noisy-max", "randomized-response")


def told(problem, name):
    """Seconds in which a mechanism gives its table and its exact loss, or refuses."""
    refused = []

    def work():
        try:
            ps.make_policy(name, epsilon=1.0).fit(problem)
        except NotApplicableError:
            refused.append(name)

    spent = seconds(work)
    return f"{spent:.3g}{' (refused)' if refused else ''}"


def main():
    """Print the table: independent uniform utilities, any two records neighbours."""
    rows = []
    for records, actions in SIZES:
        utilities = np.random.default_rng(0).random((records, actions))
        problem = ps.DecisionProblem(utilities, np.full(records, 1 / records), ps.AnyRecord())
        row = {"records": f"{records:,}", "actions": f"{actions:,}"}
        row["Δ and Γ"] = f"{seconds(lambda problem=problem: problem.sensitivity):.3g}"
        rows.append(row | {name: told(problem, name) for name in MECHANISMS})
    print(machine(), "Seconds, at ε = 1.", markdown(rows), sep="\n\n")


if __name__ == "__main__":
    main()
