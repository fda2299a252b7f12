"""OpenDP and diffprivlib, in an environment of their own: `benchmarks/choices.py` starts this file there.

diffprivlib does not import beside the scikit-learn that this project uses.
"""

import time

import numpy as np
import opendp.prelude as dp
from diffprivlib.mechanisms import Exponential

SCORES, SENSITIVITY, EPSILON = [-1.0, -2.0, -3.0, -4.0], 102.5, 1.0
CODES = [0, 1, 2, 3]

dp.enable_features("contrib")
space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.linf_distance(T=float)
noisy_max = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2 * SENSITIVITY / EPSILON)
truth = float(np.exp(EPSILON) / (np.exp(EPSILON) + len(CODES) - 1))
response = dp.m.make_randomized_response(CODES, prob=truth)
terms = {"epsilon": EPSILON, "sensitivity": SENSITIVITY, "utility": SCORES}
built = Exponential(**terms)

CHOICES = {
    "OpenDP, noisy max, exact, built before": lambda: noisy_max(SCORES),
    "diffprivlib, floating point, built before": built.randomise,
    "diffprivlib, floating point, built and drawn": lambda: Exponential(**terms).randomise(),
    "OpenDP, randomised response": lambda: response(0),
}


def work(name, choices):
    """Seconds of so many choices."""
    start = time.perf_counter()
    for _ in range(choices):
        CHOICES[name]()
    return time.perf_counter() - start
