"""Estimates beside those of lifelines and econml, as `make oracles` wrote them."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, LogisticRegression

from policysim.logs.censoring import pseudo_outcomes
from policysim.logs.log_frame import LoggedData
from policysim.logs.outcome_models import robust_values
from policysim.trials.estimators import moments

FOLDER = Path(__file__).parents[2] / "oracles"


def oracle(name):
    """What was given and found; the file says who wrote it."""
    document = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert document["command"] == "make oracles"
    assert name in document["versions"] and "python" in document["versions"]
    return document["given"], document["found"]


def test_being_free_of_an_event_is_lifelines_estimate_with_its_interval():
    given, found = oracle("lifelines")
    times, happened = np.array(given["times"]), np.array(given["happened"])
    for horizon, free, ends in zip(given["horizons"], found["free"], found["intervals"], strict=True):
        numbers, _ = pseudo_outcomes(times, happened, horizon)
        own = moments(numbers)
        assert own.mean == pytest.approx(free, abs=1e-12)
        # Greenwood's error on the scale of log(-log); theirs has n where ours has n - 1.
        reach = norm.ppf(0.975) * own.standard_error * np.sqrt(199 / 200) / (free * abs(np.log(free)))
        expected = sorted(free ** np.exp(sign * reach) for sign in (1, -1))
        assert sorted(ends) == pytest.approx(expected, abs=1e-9)


def test_doubly_robust_effects_are_those_of_econml():
    given, found = oracle("econml")
    x, arms, y, folds = (np.array(given[name]) for name in ("covariates", "arms", "outcomes", "folds"))
    predicted, chances = np.empty((len(y), 3)), np.empty((len(y), 3))
    each = np.eye(3)[:, 1:]
    for fold in range(3):
        own, rest = folds == fold, folds != fold
        model = LinearRegression().fit(np.column_stack([x[rest], each[arms[rest]]]), y[rest])
        for arm in range(3):
            predicted[own, arm] = model.predict(np.column_stack([x[own], np.tile(each[arm], (own.sum(), 1))]))
        chances[own] = LogisticRegression().fit(x[rest], arms[rest]).predict_proba(x[own])
    data = LoggedData(arms, y, chances[np.arange(len(y)), arms], ("a", "b", "c"))
    values = robust_values(data, predicted)
    apart = [moments(values[:, arm] - values[:, 0]) for arm in (1, 2)]
    assert [each.mean for each in apart] == pytest.approx(found["effects"], rel=1e-4)
    assert [each.standard_error for each in apart] == pytest.approx(found["errors"], rel=5e-3)
