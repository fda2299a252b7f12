"""A log of six rows whose estimates are worked out by hand."""

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def six_rows():
    """Weights 8/5, 2/5, 2, 1, 1/2 and 1."""
    return pd.DataFrame(
        {
            "action": ["a", "a", "b", "b", "a", "b"],
            "reward": [1, 0, 1, 0, 1, 1],
            "propensity": [0.5, 0.5, 0.25, 0.5, 0.8, 0.5],
        }
    )


@pytest.fixture
def policy_of_six():
    """The probabilities of a and of b."""
    chance = np.array([0.8, 0.2, 0.5, 0.5, 0.4, 0.5])
    return np.column_stack([chance, 1 - chance])
