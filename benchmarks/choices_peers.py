"""OpenDP and diffprivlib, in an environment of their own: asked for a measure a line, they answer with its seconds.

diffprivlib does not import beside the scikit-learn that this project uses. `benchmarks/choices.py` starts this file.
"""

import sys
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
    "OpenDP, noisy max, exact": lambda: noisy_max(SCORES),
    "diffprivlib, floating point, built before": built.randomise,
    "diffprivlib, floating point, built and drawn": lambda: Exponential(**terms).randomise(),
    "OpenDP, randomised response": lambda: response(0),
}

if __name__ == "__main__":
    for line in sys.stdin:
        name, _, choices = line.strip().rpartition("\t")
        start = time.perf_counter()
        for _ in range(int(choices)):
            CHOICES[name]()
        print(time.perf_counter() - start, flush=True)
