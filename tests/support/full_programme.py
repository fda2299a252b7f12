"""The best private policies by the whole linear programme: a row for each pair of neighbours, no ceilings or groups."""

import numpy as np
from random_problems import neighbour_pairs
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, eye_array, hstack, kron, vstack

TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def private_rows(problem, epsilon):
    """The rows A with A p <= 0 of an epsilon-private table p, in C order; none at epsilon = inf."""
    n, k = problem.utilities.shape
    pairs = [(x, y) for x, y in neighbour_pairs(problem.adjacency, n) if x != y] if np.isfinite(epsilon) else []
    if not pairs:
        return csr_array((0, n * k))
    rows = np.repeat(np.arange(len(pairs)), 2)
    entries = np.tile([np.exp(-epsilon), -1.0], len(pairs))
    return kron(coo_array((entries, (rows, np.ravel(pairs))), shape=(len(pairs), n)), eye_array(k)).tocsr()


def full_value(problem, epsilon, bounds=()):
    """The highest value of an epsilon-private policy; None if none keeps the bounds.

    Each bound is a table (n, k) and a limit of its expectation.
    """
    n, k = problem.utilities.shape
    objective = (problem.prior[:, None] * problem.utilities).ravel()
    scale = np.abs(objective).max() or 1.0
    below, limits = [private_rows(problem, epsilon)], [np.zeros(private_rows(problem, epsilon).shape[0])]
    for table, limit in bounds:
        row = (problem.prior[:, None] * table).ravel()
        size = np.abs(row).max() or 1.0
        below.append(csr_array(row[None] / size))
        limits.append([limit / size])
    result = linprog(
        -objective / scale,
        A_ub=vstack(below, format="csr"),
        b_ub=np.concatenate(limits),
        A_eq=kron(eye_array(n), np.ones((1, k))).tocsr(),
        b_eq=np.ones(n),
        bounds=_allowed(problem),
        options=TOLERANCES,
    )
    assert result.status in (0, 2)
    return None if result.status == 2 else -result.fun * scale


def _allowed(problem):
    """Bounds of each entry of a table, in C order: what is forbidden is 0."""
    mask = np.ones(problem.utilities.shape) if problem.admissible is None else problem.admissible
    return [(0, 1.0 if allows else 0.0) for allows in np.ravel(mask)]


def full_worst_case(problem, epsilon, priors, gains):
    """The largest t with V_j >= best_j - (1 - t) gains_j under each prior, of an epsilon-private policy."""
    n, k = problem.utilities.shape
    private = private_rows(problem, epsilon)
    mask = True if problem.admissible is None else problem.admissible
    best = [prior @ np.where(mask, problem.utilities, -np.inf).max(axis=1) for prior in priors]
    rows = [np.r_[-(w[:, None] * problem.utilities).ravel(), -gain] for w, gain in zip(priors, gains, strict=True)]
    result = linprog(
        np.r_[np.zeros(n * k), 1.0],
        A_ub=vstack([hstack([private, csr_array((private.shape[0], 1))]), csr_array(np.array(rows))], format="csr"),
        b_ub=np.r_[np.zeros(private.shape[0]), -np.array(best)],
        A_eq=hstack([kron(eye_array(n), np.ones((1, k))), csr_array((n, 1))], format="csr"),
        b_eq=np.ones(n),
        bounds=[*_allowed(problem), (None, None)],
        options=TOLERANCES,
    )
    assert result.status == 0
    return 1 - result.fun
