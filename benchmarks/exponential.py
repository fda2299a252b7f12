"""What each part of the fitted exponential mechanism adds, and what it costs: python benchmarks/exponential.py.

Prints the tables of docs/notes/exponential-ablation.md. All mechanisms but the box and the limit have rows
p(a|x) proportional to mu(a) exp(-t min(r(x, a), d)), with the regret r, a base measure mu, a cap d, and a t such that
the policy is epsilon-private. A part "alone" is added to the textbook mechanism: mu uniform, d infinite, and
t = epsilon / (2 Delta), with Delta the sensitivity of what is exponentiated.
"""

from functools import partial
from statistics import median

import numpy as np
from side_by_side import machine, markdown, paired, seconds

import policysim as ps
from policies.distinct import once_each
from policies.exponential import classes_of
from policies.optimal.classes import hiding_partitions
from policies.privacy_loss import privacy_loss_of_logs

STUDIES = {"covid": "covid", "warfarin": "warfarin", "ward": "examples/ward/study.toml", "stroke": "stroke"}
EPSILONS = (0.5, 1.0, 2.0, 5.0)
# Of so many caps the one of highest value is taken. The interval that holds t is doubled and halved so often.
CAPS, DOUBLINGS, HALVINGS = 24, 20, 20
# Smaller regrets are rounding.
LEAST_REGRET = 1e-9


def log_ceilings(problem, epsilon):
    """Base measure: the logarithms of the optimum's ceilings, (n_records, k), the same for a whole public class."""
    (partition,) = hiding_partitions(problem.adjacency, problem.n_records)
    logs = np.empty(problem.utilities.shape)
    for members, ceilings in classes_of(problem, partition, epsilon):
        with np.errstate(divide="ignore"):
            logs[members.records] = np.log(ceilings)[:, None]
    return logs


def log_rows(scores, t, log_base=0.0):
    """log p, (n_records, k), proportional to the base measure times exp(t score)."""
    logs = t * scores + log_base
    return logs - np.logaddexp.reduce(logs, axis=1, keepdims=True)


def published_t(problem, scores, epsilon):
    """epsilon / (2 Delta)."""
    return epsilon / (2 * problem.with_utilities(scores).sensitivity.value)


def exact_t(problem, scores, epsilon, log_base=0.0):
    """The largest t whose exact privacy loss is at most epsilon, by bisection; epsilon / range is always private."""

    def is_private(t):
        return privacy_loss_of_logs(log_rows(scores, t, log_base), problem.adjacency).epsilon <= epsilon

    low = epsilon / problem.with_utilities(scores).sensitivity.range
    high = 2 * low
    for _ in range(DOUBLINGS):
        if not is_private(high):
            break
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_private(middle) else (low, middle)
    return low


def share_kept(problem, logs):
    """Of the benefit of the best treatment for each patient over the same one for everyone."""
    one_for_all, best = problem.best_fixed_value, problem.value(ps.make_policy("greedy"))
    return (problem.value(np.exp(logs)) - one_for_all) / (best - one_for_all)


def ablation(problem):
    """A row for each epsilon: the share of the benefit that each mechanism keeps."""
    scores = problem.utilities - problem.utilities.max(axis=1, keepdims=True)
    regrets = -scores[scores < -LEAST_REGRET]
    capped = [np.maximum(scores, -cap) for cap in np.geomspace(regrets.min(), regrets.max(), CAPS)]
    for epsilon in EPSILONS:
        base, t = log_ceilings(problem, epsilon), published_t(problem, problem.utilities, epsilon)
        mechanisms = {
            "textbook": [log_rows(scores, t)],
            "base measure alone": [log_rows(scores, t, base)],
            "cap alone": (log_rows(each, published_t(problem, each, epsilon)) for each in capped),
            "exact calibration alone": [log_rows(scores, exact_t(problem, scores, epsilon))],
            "all three": (log_rows(each, exact_t(problem, each, epsilon, base), base) for each in capped),
            "floors and ceilings": [ps.make_policy("exponential-fitted", epsilon=epsilon).log_probabilities(problem)],
            "limit": [ps.make_policy("optimal", epsilon=epsilon).log_probabilities(problem)],
        }
        shares = {name: max(share_kept(problem, logs) for logs in tables) for name, tables in mechanisms.items()}
        yield {"ε": f"{epsilon:g}"} | {name: f"{share:.4f}" for name, share in shares.items()}


def seconds_on_covid(name, epsilons):
    """What a mechanism's tables take on a new problem, with each distinct row once."""
    problem = ps.build_problem(ps.load_study("covid"))
    policies = [ps.make_policy(name, epsilon=epsilon) for epsilon in epsilons]
    return seconds(lambda: [policy.probabilities(once_each(policy, problem)) for policy in policies])


def main():
    """Print the tables."""
    print(machine())
    for name, study in STUDIES.items():
        problem = ps.build_problem(ps.load_study(study))
        problem = once_each(ps.make_policy("exponential", epsilon=1.0), problem)
        print(f"## {name}\n", markdown(list(ablation(problem))), sep="\n", flush=True)
    curve = ps.load_study("covid").epsilons
    works = {
        "one": partial(seconds_on_covid, "optimal", [1.0]),
        "all": partial(seconds_on_covid, "exponential-fitted", curve),
    }
    taken = paired(works)
    ratio = median(all_of / one for one, all_of in zip(taken["one"], taken["all"], strict=True))
    print(f"{len(curve)} values of ε of exponential-fitted take {ratio:.1f} times what optimal takes at one on covid")
    print(f"({median(taken['all']):.1f} s and {median(taken['one']):.2f} s).")


if __name__ == "__main__":
    main()
