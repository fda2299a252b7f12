"""The data set to learn from offline: its rows and exact values, what Minari and d3rlpy read of it (`make oracles`)."""

import json
from pathlib import Path

import numpy as np
import pytest

import policysim as ps
from examples import offline_data

ROOT = Path(__file__).parents[2]


@pytest.fixture
def document(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = json.loads((ROOT / "tests" / "oracles" / "minari.json").read_text(encoding="utf-8"))
    assert found["command"] == "make oracles"
    assert {"python", "minari"} <= found["versions"].keys()
    for name, value in found["given"].items():
        monkeypatch.setattr(offline_data, name, value)
    monkeypatch.setattr(offline_data, "find_spec", {}.get)
    return found["found"]


def test_minari_reads_the_rows_that_are_written(document, tmp_path, capsys):
    offline_data.main(str(tmp_path))
    rows = np.load(tmp_path / "stays.npz")
    told = json.loads((tmp_path / "stays.json").read_text(encoding="utf-8"))
    assert told["exact_values"] == pytest.approx(document["exact_values"], rel=1e-12)
    assert capsys.readouterr().out.splitlines()[0].split()[0] == "behaviour"
    ends = np.flatnonzero(rows["terminals"]) + 1
    assert (len(ends), len(rows["rewards"])) == (document["episodes"], document["steps"])
    assert ends[-1] == len(rows["rewards"])
    start = 0
    for end, episode in zip(ends, document["first"], strict=False):
        assert rows["observations"][start:end].tolist() == episode["observations"][:-1]
        for name in ("actions", "rewards", "behaviour"):
            assert rows[name][start:end] == pytest.approx(np.array(episode[name]), rel=1e-12)
        assert episode["terminations"] == [False] * (end - start - 1) + [True]
        start = end
    returns = rows["rewards"].sum() / document["episodes"]
    low, high = (document["exact_values"][name] for name in ("uniform", "optimum"))
    assert document["normalized"] == pytest.approx((returns - low) / (high - low))
    # d3rlpy was given the same rows, and learned from them to choose treatments that there are.
    peer = json.loads((ROOT / "tests" / "oracles" / "d3rlpy.json").read_text(encoding="utf-8"))["found"]
    assert peer["lengths"] == np.diff(ends, prepend=0).tolist()
    totals = np.add.reduceat(rows["rewards"], np.append(0, ends[:-1]))
    assert peer["returns"] == pytest.approx(totals, rel=1e-12)
    assert (peer["features"], peer["actions"]) == (rows["observations"].shape[1], rows["behaviour"].shape[1])
    assert set(peer["chosen"]) <= set(range(peer["actions"]))


@pytest.mark.usefixtures("document")
def test_returns_and_weighted_returns_are_worth_what_is_said():
    study, n = ps.load_study(offline_data.STUDY), 20_000
    course = ps.build_course(study, offline_data.DAYS, length_public=True, where=offline_data.WHERE)
    policies = offline_data.policies_of(course)
    rows = offline_data.stays(study, course, policies, n)
    codes = rows["observations"]
    assert (codes[codes[:, -1] == 0, course.records.axis("fever")] == 1).all()
    stay = np.cumsum(np.append(0, rows["terminals"][:-1]))
    taken = np.arange(len(stay)), rows["actions"]
    for name, tables in policies.items():
        # The product of the ratios up to each day (Precup, Sutton & Singh 2000).
        ratio = rows[name][taken] / rows["behaviour"][taken]
        weight = np.array([ratio[start : now + 1].prod() for now, start in enumerate(np.searchsorted(stay, stay))])
        returns = np.bincount(stay, weight * rows["rewards"], minlength=n)
        error = returns.std(ddof=1) / n**0.5
        assert abs(returns.mean() - ps.policy_value(course, tables)) < 4 * error
        assert 0 < error < 0.2
