"""What future patients lose if a model is made from private cells: python benchmarks/private_cells.py.

The log is ACTG 175, which is public: only so may private and true cells be compared. In each of 200 draws four fifths
of its patients, others each time, give cells: the true ones, and the same with fresh noise. The best arm for each class
is taken from both, and the other patients say what that is worth (doubly robust, each arm's mean as the model; pseudo-
outcomes where follow-up ended early, as in a report). The error is that of the draws.
"""

import random

import numpy as np

import policysim as ps
from policies.discrete_laplace import standard_deviation
from policysim.logs.load_log import load_log
from policysim.release.noisy_table import noisy_counts
from policysim.release.private_cells import cells_plan
from policysim.study.noisy_cells import model_of_cells

STUDY, DRAWS, TRAINED, EPSILONS = "reports/actg175/study.toml", 200, 0.8, (0.1, 0.5, 1.0, 2.0)
CLASSES = (
    ["treated_before"],
    ["treated_before", "symptomatic"],
    ["treated_before", "cd4_baseline"],
    ["treated_before", "symptomatic", "cd4_baseline", "age"],
)


def value(log, rows, chosen, means):
    """The mean outcome of some patients under an arm for each, (n_rows,), if an arm has these means."""
    taken = log.data.actions[rows] == chosen
    beyond = taken / log.data.propensities[rows] * (log.data.rewards[rows] - means[chosen])
    return float((means[chosen] + beyond).mean())


def measure(log, source, features, epsilon):
    """In each draw what the best arm for everyone, and that for each by true and by private cells, is worth."""
    rng, below = np.random.default_rng(0), random.Random(0).randrange
    plan = cells_plan(source, features, epsilon)
    variance = standard_deviation(float(plan.rate)) ** 2
    sizes = tuple(len(source.features[name].levels) for name in features)
    codes = log.space.codes(log.records)[:, [log.space.axis(name) for name in features]]
    classes = np.ravel_multi_index(tuple(codes.T), sizes)
    arms, known = len(log.data.names), log.data.observed.weights > 0
    kinds = (classes * arms + log.data.actions) * 2 + (log.data.observed.rewards != 1)
    found = []
    for _ in range(DRAWS):
        trained = rng.random(len(kinds)) < TRAINED
        others = np.flatnonzero(~trained)
        counts = np.bincount(kinds[trained & known], minlength=int(np.prod(sizes)) * arms * 2)
        shape = (-1, arms, 2)
        true = model_of_cells(counts.reshape(shape), 0.0).failures
        private = model_of_cells(np.reshape(noisy_counts(counts, plan, below), shape), variance).failures
        means = np.array([log.data.rewards[trained & (log.data.actions == arm)].mean() for arm in range(arms)])
        by_cells = [table.argmin(axis=1)[classes[others]] for table in (true, private)]
        best = [np.full(len(others), means.argmax()), *by_cells]
        found.append([value(log, others, chosen, means) for chosen in best])
    return 100 * np.array(found)


def main():
    """Print a row for each way to make classes and each epsilon."""
    source = ps.load_study(STUDY).log
    log = load_log(source)
    print(f"ACTG 175, {len(log.records):,} patients; successes of 100 other patients, means of {DRAWS} draws.\n")
    print("| classes by | cells | ε | one arm for all | best by true cells | by private cells | lost, ± its error |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for features in CLASSES:
        for epsilon in EPSILONS:
            found = measure(log, source, features, epsilon)
            lost = found[:, 1] - found[:, 2]
            size = 2 * len(log.data.names) * np.prod([len(source.features[name].levels) for name in features])
            error = lost.std() / np.sqrt(DRAWS)
            row = [", ".join(features), size, f"{epsilon:g}", *(f"{mean:.2f}" for mean in found.mean(axis=0))]
            print("| " + " | ".join(map(str, [*row, f"{lost.mean():.2f} ± {error:.2f}"])) + " |", flush=True)


if __name__ == "__main__":
    main()
