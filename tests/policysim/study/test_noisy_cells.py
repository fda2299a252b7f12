"""A study planned on private cells: the model that they make, what their noise costs, and bad tables of cells."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from printed_numbers import unknown_numbers

import policysim as ps
from policysim.decision.report import report
from policysim.numbers import about
from policysim.study.labels import labels_of
from policysim.study.noisy_cells import model_of_cells, read_cells
from policysim.utility import Utility

ARMS = ("none", "low", "high")
UTILITY = Utility({"failures": 2.0}, {"high": 0.1})
# Choosing matters: what is best for one class is worst for the other, with so many patients that no rate is in doubt.
CLEAR = np.array([[[900, 100], [500, 500], [100, 900]], [[200, 1800], [1000, 1000], [1800, 200]]]) * 1000
# The same with few patients.
FEW = np.array([[[21, 9], [15, 15], [12, 18]], [[12, 18], [15, 15], [21, 9]]])


def frame(cells, epsilon=1.0):
    """Cells, (n_classes, 3, 2), as a table."""
    rows = [(f"c{x}", arm, *cells[x, a], epsilon) for x in range(len(cells)) for a, arm in enumerate(ARMS)]
    return pd.DataFrame(rows, columns=["kind", "dose", "successes", "failures", "epsilon"])


@pytest.fixture
def past_of(tmp_path):
    """The cohort of cells, and their patients."""

    def read(table):
        table.to_csv(tmp_path / "cells.csv", index=False)
        return read_cells(tmp_path / "cells.csv", ["kind"], "dose", seed=4)

    return read


@pytest.fixture
def planned(tmp_path):
    """A study that is planned on cells."""

    def load(table, more=""):
        table.to_csv(tmp_path / "cells.csv", index=False)
        keys = '[cohort]\ncells = "cells.csv"\nfeatures = ["kind"]\ntreatment = "dose"\n'
        (tmp_path / "plan.toml").write_text(f"{keys}{more}", encoding="utf-8")
        return ps.load_study(tmp_path / "plan.toml")

    return load


def shrunk_by_hand(effects, weights, freedom):
    """Effects shrunk by the variance between them that DerSimonian & Laird (1986) estimate, one number at a time."""
    pairs = [(float(w), float(e)) for w, e in zip(np.ravel(weights), np.ravel(effects), strict=True)]
    total = sum(w for w, _ in pairs)
    below = total - sum(w * w for w, _ in pairs) / total if total else 0.0
    between = max(0.0, (sum(w * e * e for w, e in pairs) - freedom) / below) if below > 0 else 0.0
    return np.reshape([e * between / (between + 1 / w) if w and between else 0.0 for w, e in pairs], np.shape(effects))


def test_cells_are_read_with_the_variance_of_noise_that_hides_a_patient_in_two_of_them(past_of):
    ratio = math.exp(-0.5 / 2)
    own = model_of_cells(FEW.astype(float), 2 * ratio / (1 - ratio) ** 2)
    np.testing.assert_allclose(past_of(frame(FEW, epsilon=0.5))[1].model.failures, own.failures, rtol=1e-12)
    assert not np.allclose(own.failures, model_of_cells(FEW.astype(float), 0.0).failures)


@given(arrays(np.int64, (3, 2, 2), elements=st.integers(-20, 400)), st.floats(0.5, 60))
@settings(max_examples=60, deadline=None)
def test_rates_are_the_formula_of_the_docstring(cells, variance):
    sums = [[max(0, cells[:, a, j].sum()) for j in (0, 1)] for a in range(2)]
    arms = [(failures + 1) / (successes + failures + 2) for successes, failures in sums]
    own, weights = np.zeros((3, 2)), np.zeros((3, 2))
    for x in range(3):
        for a, p in enumerate(arms):
            good, ill = (max(0, count) for count in cells[x, a])
            if n := good + ill:
                own[x, a] = ill / n - p
                weights[x, a] = 1 / (p * (1 - p) / n + variance * ((1 - p) ** 2 + p**2) / n**2)
    by_class = weights.sum(axis=1)
    means = [float((weights[x] @ own[x]) / by_class[x]) if by_class[x] else 0.0 for x in range(3)]
    classes = shrunk_by_hand(means, by_class, 2)[:, None]
    expected = np.array(arms) + classes + shrunk_by_hand(own - classes, weights, 2)
    model = model_of_cells(cells, variance)
    np.testing.assert_allclose(model.failures, np.clip(expected, 0, 1), atol=1e-12)
    assert (model.patients >= 0).all()
    # Of an arm with patients in some cell the noisy sum stays, in which noise cancels.
    kept = np.maximum(cells, 0).sum(axis=(0, 2)) > 0
    np.testing.assert_allclose(model.patients.sum(axis=0)[kept], np.sum(sums, axis=1)[kept])


def test_many_patients_speak_for_themselves_and_noise_alone_says_nothing(planned):
    study = planned(frame(CLEAR))
    problem = ps.build_problem(study)
    assert (study.weights, problem.actions) == ({"failures": 1.0}, ARMS)
    assert problem.prior == pytest.approx([1 / 3, 2 / 3])
    np.testing.assert_allclose(problem.outcomes["failures"], CLEAR[..., 1] / CLEAR.sum(axis=2), atol=1e-4)
    hardly = model_of_cells(FEW, 1e6).failures
    np.testing.assert_allclose(hardly, np.broadcast_to(hardly[0], hardly.shape))


def test_what_noise_costs_is_found_by_choosing_again_and_again(past_of):
    _, past = past_of(frame(FEW, epsilon=0.5))
    patients, costs, means = past.model.patients.sum(axis=1), (0, 0, 0.1), []
    for drawn in (past.noisy, past.exact):
        lost = 0.0
        for rates in drawn:
            for x, share in enumerate(patients / patients.sum()):
                best = min(range(3), key=lambda a, own=rates[x]: 2 * own[a] + costs[a])
                lost += share * (2 * past.model.failures[x, best] + costs[best])
        means.append(lost / len(drawn))
    assert past.loss(UTILITY, ARMS) > 0
    assert past.loss(UTILITY, ARMS) == pytest.approx(means[0] - means[1])


def test_the_noise_is_that_of_the_cells_and_vanishes_with_it(past_of):
    cohort, past = past_of(frame(FEW, epsilon=80.0))
    assert past.noisy.tobytes() == past.exact.tobytes() == cohort.redraws.outcomes["failures"].tobytes()
    assert past.loss(UTILITY, ARMS) == 0
    # A version of the model has patients, whatever noise leaves of them.
    np.testing.assert_allclose(past_of(frame(FEW, epsilon=1e-6))[0].redraws.shares.sum(axis=1), 1)
    # With n patients in each of two classes, whose six cells have noise: the share of one is 1/2 + (e - e') / 4 n.
    shares = past_of(frame(FEW * 300, epsilon=0.5))[0].redraws.shares[:, 0]
    n, r = FEW[0].sum() * 300, math.exp(-0.25)
    # Four standard errors of the variance of 200 draws that are nearly normal: 4 sqrt(2 / 199).
    assert shares.var() == pytest.approx(12 * 2 * r / (1 - r) ** 2 / (4 * n) ** 2, rel=0.4)


def test_the_report_says_what_protecting_past_patients_costs_beside_future_ones(planned):
    study = planned(frame(FEW * 2, epsilon=0.3), "[utility]\nweights = { failures = 3 }\n[privacy]\nepsilon = 2\n")
    made = report(study, epsilons=[1.0, 2.0])
    (line,) = (line.text for line in made.screen.lines if line.label == "Past patients")
    details = made.findings.details
    assert (details.past_epsilon, details.past_loss) == (0.3, study.past.loss(study.utility, ARMS))
    past, future = (loss * details.patients for loss in (details.past_loss, made.findings.lettered(2.0)["B"]["loss"]))
    assert f"up to ε = 0.3. It costs {about(past)} units of utility per {details.patients:,} patients" in line
    assert f"Protecting future patients costs {about(future)} (B instead of C)" in line
    assert not unknown_numbers(made.screen, made.findings, labels_of(study, ps.build_problem(study)))
    assert len(made.screen.text().splitlines()) <= 45


def test_the_report_on_a_table_without_noise_says_that_its_past_patients_are_not_protected(tmp_path):
    table = frame(FEW).drop(columns="epsilon").assign(patients=30, failures=FEW[..., 1].ravel() / 30)
    table.to_csv(tmp_path / "table.csv", index=False)
    keys = 'file = "table.csv"\nfeatures = ["kind"]\ntreatment = "dose"\npatients = "patients"'
    (tmp_path / "own.toml").write_text(f"[cohort]\n{keys}\n[utility]\nweights = {{ failures = 1 }}\n", encoding="utf-8")
    made = ps.report(ps.load_study(tmp_path / "own.toml"), epsilons=[1.0])
    line = "The patients in the table are not protected."
    for text in (made.screen.text(), made.save(tmp_path / "out").read_text(encoding="utf-8")):
        assert line in " ".join(text.split())
    assert line not in " ".join(report(ps.load_study("covid"), epsilons=[1.0]).screen.text().split())


BAD = {
    "half": ("successes", [2.5], "cells.csv:2: row 1: successes: must be a whole number within ±.*, got '2.5'"),
    "text": ("failures", [1, "many"], "cells.csv:3: row 2: failures: must be a whole number within ±.*, got 'many'"),
    "huge": ("failures", [1e300], r"failures: must be a whole number within ±1,099,511,627,776, got '1e\+300'"),
    "two": ("epsilon", [1, 2], "cells.csv:3: row 2: epsilon: must be a finite number >= 1e-06, the same .*, got '2'"),
    "inf": ("epsilon", ["inf"] * 6, "cells.csv:2: row 1: epsilon: must be a finite number >= 1e-06, .*, got 'inf'"),
    "none": ("epsilon", [0], "cells.csv:2: row 1: epsilon: must be a finite number >= 1e-06"),
    "again": ("dose", ["low"], "is of the same kind and treatment as line 2"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_cells_are_refused(planned, name):
    column, values, words = BAD[name]
    table = frame(FEW, 1).astype(object)
    table.loc[: len(values) - 1, column] = values
    with pytest.raises(ValueError, match=words):
        planned(table)
    with pytest.raises(ValueError, match=r"unknown column 'epsilon'.*policysim privatize STUDY --as cells"):
        planned(table.drop(columns="epsilon"))
    with pytest.raises(ValueError, match=r"cells.csv: the noise leaves no patients: release fewer cells"):
        planned(frame(-FEW))
    with pytest.raises(ValueError, match=r"cohort.patients"):
        planned(frame(FEW), 'patients = "kind"\n')
