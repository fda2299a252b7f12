"""The comparison table against definitions, brute force and simulation."""

import math
import sys

import numpy as np
import pandas as pd
import pytest
from small_studies import DEPENDENT, STUDY, write_small_study

import policysim as ps
from envs import ResponseModel, record_space, sample_patients
from policies import CATALOGUE
from policysim.study.sweep import EPSILONS


@pytest.fixture(scope="module")
def problem():
    """Twelve random records with features, so that groups can be recomputed by hand."""
    space = record_space({"age": ["young", "middle", "old"], "sex": [0, 1], "ill": [0, 1]})
    rng = np.random.default_rng(5)
    prior = rng.random(12)
    return ps.DecisionProblem(
        rng.normal(size=(12, 3)),
        prior / prior.sum(),
        ps.AnyRecord(),
        records=space,
        outcomes={"death": rng.random((12, 3))},
        lead="death",
    )


POLICIES = ["greedy", "best-fixed", "uniform", "exponential", "exponential-fitted", "randomized-response"]


@pytest.fixture(scope="module")
def table(problem):
    return ps.compare(problem, policies=POLICIES, epsilons=[0, 0.5, 2], by=["age", "sex"])


def group_mask(problem, group, level):
    if group == "all":
        return np.ones(problem.n_records, dtype=bool)
    frame = problem.records.decode(np.arange(problem.n_records))
    return (frame[group].astype(str) == level).to_numpy()


def test_every_number_equals_its_definition_in_every_group(problem, table):
    u, prior = problem.utilities, problem.prior
    fixed = np.eye(3)[np.repeat(int((prior @ u).argmax()), 12)]
    greedy = np.eye(3)[u.argmax(axis=1)]
    for _, row in table.iterrows():
        p = ps.make_policy(row["policy"], epsilon=row["epsilon"]).probabilities(problem)
        mask = group_mask(problem, row["group"], row["level"])
        weight = np.where(mask, prior, 0) / prior[mask].sum()
        value, best, fixed_value, uniform_value = (
            float(weight @ (table * u).sum(axis=1)) for table in (p, greedy, fixed, np.full((12, 3), 1 / 3))
        )
        expected = {
            "share": prior[mask].sum(),
            "value": value,
            "loss": best - value,
            "normalized_loss": (best - value) / (best - uniform_value),
            "benefit_kept": (value - fixed_value) / (best - fixed_value) if best > fixed_value else math.nan,
            "best_action_rate": weight @ (p * greedy).sum(axis=1),
            "p_a0": weight @ p[:, 0],
            "p_a2": weight @ p[:, 2],
            "expected_death": weight @ (p * problem.outcomes["death"]).sum(axis=1),
            "extra_death": weight @ ((p - fixed) * problem.outcomes["death"]).sum(axis=1),
            "epsilon_spent": ps.privacy_loss(p, ps.AnyRecord()).epsilon,
            "guess_rate": (1 + max(abs(one - other).sum() / 2 for one in p for other in p)) / 2,
        }
        for name, number in expected.items():
            assert row[name] == pytest.approx(number, rel=1e-12, abs=1e-14, nan_ok=True), (row["policy"], name)


def test_the_table_is_tidy(table):
    groups = 1 + 3 + 2
    assert len(table) == len(POLICIES) * 3 * groups
    assert not table.duplicated(["policy", "epsilon", "group", "level"]).any()
    overall = table[table["group"] == "all"]
    assert (overall["level"] == "all").all()
    assert len(overall) == len(POLICIES) * 3


def test_the_bound_from_theory_is_shown_and_holds(problem, table):
    rows = table[(table["policy"] == "exponential") & (table["group"] == "all") & (table["epsilon"] == 0.5)]
    bound = 2 * ps.sensitivity(problem.utilities, problem.adjacency).value / 0.5 * math.log(3)
    assert rows["loss_bound"].item() == pytest.approx(bound)
    private = table[table["loss_bound"].notna()]
    assert (private["loss"] <= private["loss_bound"]).all()
    assert table.loc[table["policy"] == "randomized-response", "loss_bound"].isna().all()


def test_a_group_without_patients_and_one_without_anything_to_gain_have_no_ratio():
    space = record_space({"age": ["young", "old"], "ill": [0, 1]})
    problem = ps.DecisionProblem(
        [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]], [0.5, 0.5, 0.0, 0.0], ps.AnyRecord(), records=space
    )
    table = ps.compare(problem, policies=["greedy"], epsilons=[1.0], by=["age"]).set_index("level")
    assert table.loc["young", "benefit_kept"] != table.loc["young", "benefit_kept"]
    assert table.loc["old", "share"] == 0
    assert math.isnan(table.loc["old", "value"])


def test_a_policy_with_options_can_be_compared_beside_names(problem):
    masked = ps.make_policy("exponential", base_measure=(1, 1, 0))
    table = ps.compare(problem, policies=[masked], epsilons=[1.0])
    assert table["p_a2"].item() == 0


def test_all_policies_and_the_default_curve_are_the_default(problem):
    table = ps.compare(problem, policies=["uniform"])
    assert tuple(table["epsilon"]) == EPSILONS
    assert len(EPSILONS) == 24
    assert {0.05, 0.1, 0.5, 1, 2, 5, 10, 20} <= set(EPSILONS)


def test_a_guess_rate_that_takes_too_long_is_left_empty(monkeypatch):
    monkeypatch.setattr(sys.modules["policies.privacy_loss"], "MOST_STEPS", 8)
    problem = ps.DecisionProblem(np.eye(3), np.full(3, 1 / 3), ps.AnyRecord())
    table = ps.compare(problem, policies=["randomized-response"], epsilons=[1.0])
    assert table["guess_rate"].isna().all()
    assert table["epsilon_spent"].item() == pytest.approx(1.0)


def test_progress_is_reported_once_per_evaluation(problem):
    calls = []
    ps.compare(problem, policies=POLICIES, epsilons=[0.5, 2], advance=lambda: calls.append(1))
    # The three references do not depend on epsilon.
    assert len(calls) == 3 + 3 * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policies": ["exponentail"]}, "unknown policy 'exponentail'; did you mean 'exponential'"),
        ({"epsilons": []}, "empty list"),
        ({"epsilons": [1.0, -2.0]}, "got -2.0"),
        ({"epsilons": [math.nan]}, "got nan"),
        ({"by": ["aeg"]}, "unknown feature 'aeg'"),
        ({"policies": ["exponential-monotone"]}, "unknown policy 'exponential-monotone'"),
        ({"policies": []}, "policies must not be empty"),
        ({"policies": "exponential"}, "policies and by must be lists, got policies='exponential'"),
    ],
)
def test_what_does_not_exist_is_refused(problem, arguments, message):
    with pytest.raises(ValueError, match=message):
        ps.compare(problem, **{"policies": ["uniform"], **arguments})


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A study in which the treatment's effects depend on the patient, and an event happens."""
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("simulated"), STUDY, DEPENDENT))


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_simulated_patients_agree_with_the_exact_value(simulated, name):
    problem, n_patients = ps.build_problem(simulated), 10**5
    records = sample_patients(problem.prior, n_patients, np.random.default_rng(11))
    policy = ps.make_policy(name, epsilon=3.0)
    actions = ps.Sampler(policy.probabilities(problem)).draw(records, np.random.default_rng(12)).astype(np.intp)
    outcomes = ResponseModel(simulated.scenario).sample(records, actions, np.random.default_rng(13))
    rewards = simulated.utility.realized(simulated.scenario, outcomes, actions, records)
    exact = problem.value(policy.probabilities(problem))
    standard_error = rewards.std(ddof=1) / math.sqrt(n_patients)
    assert abs(rewards.mean() - exact) <= 4 * standard_error


def test_where_the_limit_can_only_be_bounded_both_bounds_are_rows(monkeypatch):
    # The programme of the same 16 records is solved exactly once, then declared too large.
    rng = np.random.default_rng(6)
    problem = ps.DecisionProblem(rng.normal(size=(16, 3)), np.full(16, 1 / 16), ps.OneFeature((2, 2, 2, 2)))
    exact = ps.compare(problem, policies=["optimal"], epsilons=[0.5, 1.0]).set_index("epsilon")["value"]
    monkeypatch.setattr("policies.optimal.whole_programme.MAX_ENTRIES", 12)
    table = ps.compare(problem, policies=["optimal", "uniform"], epsilons=[0.5, 1.0])
    assert set(table["policy"]) == {"optimal-achievable", "optimal-unbeatable", "uniform"}
    assert table["guess_rate"].isna().tolist() == table["policy"].str.startswith("optimal").tolist()
    bounds = table.pivot_table(index="epsilon", columns="policy", values="value")
    for epsilon in (0.5, 1.0):
        assert bounds.loc[epsilon, "optimal-achievable"] <= exact[epsilon] + 1e-6
        assert bounds.loc[epsilon, "optimal-unbeatable"] >= exact[epsilon] - 1e-6


def test_the_defaults_work_on_any_problem():
    problem = ps.DecisionProblem(np.random.default_rng(1).normal(size=(9, 3)), np.full(9, 1 / 9), ps.AnyRecord())
    table = ps.compare(problem)
    assert set(table["policy"]) == {
        "best-fixed", "exponential", "exponential-fitted", "randomized-response", "optimal"
    }  # fmt: skip


def test_arrays_series_and_generators_serve_as_lists(problem):
    expected = ps.compare(problem, policies=["exponential"], epsilons=[1.0, 2.0])["value"].tolist()
    for epsilons in (np.array([1, 2]), np.float32([1, 2]), pd.Series([1.0, 2.0]), (float(e) for e in (1, 2))):
        table = ps.compare(problem, policies=pd.Index(["exponential"]), epsilons=epsilons)
        assert table["value"].tolist() == expected


@pytest.mark.parametrize("wrong", ["any-record", ps.AnyRecord, None])
def test_what_is_no_adjacency_is_refused_by_name(wrong):
    for call in (
        lambda: ps.DecisionProblem(np.zeros((2, 2)), [0.5, 0.5], wrong),
        lambda: ps.sensitivity(np.zeros((2, 2)), wrong),
        lambda: ps.privacy_loss(np.full((2, 2), 0.5), wrong),
    ):
        with pytest.raises(ValueError, match=r"adjacency must be AnyRecord\(\), OneFeature"):
            call()


def test_of_many_actions_what_takes_few_is_refused_and_left_out_of_the_default():
    problem = ps.DecisionProblem(np.random.default_rng(0).random((2, 65)), [0.5, 0.5], ps.AnyRecord())
    assert set(ps.compare(problem, epsilons=[1.0])["policy"]) == {"best-fixed", "exponential", "randomized-response"}
    for name in ("exponential-fitted", "report-noisy-max"):
        with pytest.raises(ValueError, match=f"{name} takes at most 6[24] actions, got 65"):
            ps.make_policy(name, epsilon=1).check(problem)
