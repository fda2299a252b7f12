"""Where else patients may come from, and what covid's best policies within bounds and in the worst case are."""

import numpy as np
import pytest
from small_studies import STUDY, write_small_study
from small_trials import SPACE, make_trial

import policysim as ps
from envs.toml_reader import InputFileError
from policies.distinct import once_each
from policies.optimal.bounded import bounded_optimum
from policysim.study.gain import gain_of
from policysim.study.study_problem import FACTORS, OtherPriors, problem_of_log


def study_with(tmp_path, line):
    return ps.load_study(write_small_study(tmp_path, STUDY.replace("[compare]", f"[compare]\n{line}")))


def test_the_prevalence_is_multiplied_and_nothing_else_changes(tmp_path):
    study = ps.load_study(write_small_study(tmp_path))
    problem = ps.build_problem(study)
    ill = study.scenario.space.decode(np.arange(problem.n_records))["infected"].to_numpy() == 1
    assert study.robust == "prevalence"
    assert list(problem.priors) == [f"prevalence × {words}" for words in FACTORS]
    for prior, factor in zip(problem.priors.values(), (1 / 3, 1 / 2, 1, 2, 3), strict=True):
        # Three in ten are infected.
        assert prior[ill].sum() == pytest.approx(0.3 * factor)
        for part in (ill, ~ill):
            np.testing.assert_allclose(prior[part] / prior[part].sum(), problem.prior[part] / problem.prior[part].sum())


def test_each_level_that_some_patient_has_is_a_prior(tmp_path):
    problem = ps.build_problem(study_with(tmp_path, 'robust = "age"'))
    codes, labels = problem.records.groups("age")
    assert list(problem.priors) == [f"age {label}" for label in labels]
    for level, prior in enumerate(problem.priors.values()):
        assert prior.sum() == pytest.approx(1)
        assert prior[codes != level].sum() == 0
        within = problem.prior[codes == level]
        np.testing.assert_allclose(prior[codes == level], within / within.sum())
    nobody = OtherPriors(study_with(tmp_path, 'robust = "age"'), np.where(codes == 0, problem.prior, 0.0))
    assert list(nobody) == [f"age {labels[0]}"]
    with pytest.raises(KeyError):
        nobody["age 7"]


def test_a_log_has_groups_but_no_prevalence():
    trial = make_trial(200, 0.2, 1, robust=None)
    assert dict(problem_of_log(trial.study, trial.log).priors) == {}
    by_age = make_trial(200, 0.2, 1, robust="old")
    problem = problem_of_log(by_age.study, by_age.log)
    assert list(problem.priors) == ["old 0", "old 1"]
    assert problem.priors["old 1"][SPACE.groups("old")[0] == 0].sum() == 0
    assert problem.value(ps.make_policy("optimal-robust", epsilon=1.0).probabilities(problem)) > 0


def test_a_prevalence_that_all_or_none_have_is_no_prior(tmp_path):
    study = ps.load_study(write_small_study(tmp_path))
    problem = ps.build_problem(study)
    ill = study.scenario.space.groups("infected")[0] == 1
    for part in (ill, ~ill):
        assert dict(OtherPriors(study, np.where(part, problem.prior, 0) / problem.prior[part].sum())) == {}


def kept_under(problem, policy):
    """The benefit kept under each of the problem's priors."""
    table = policy.probabilities(problem)
    under = [problem.with_prior(prior) for prior in problem.priors.values()]
    return [gain_of(other).kept(other.value(table)) for other in under]


def test_covid_in_the_worst_case_over_prevalences(covid_problem):
    on = once_each(ps.make_policy("optimal-robust", epsilon=1.0), covid_problem)
    robust = kept_under(on, ps.make_policy("optimal-robust", epsilon=1.0))
    np.testing.assert_allclose(robust, [-0.341, -0.021, 0.177, -0.052, -0.341], atol=1e-3)
    nominal = kept_under(on, ps.make_policy("optimal", epsilon=1.0))
    np.testing.assert_allclose(nominal, [0.077, 0.253, 0.303, -0.089, -0.582], atol=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "kept", "within"),
    [(5.0, 0.0, 0.0), (6.3, 0.166, 0.003), (7.0, 0.796, 0.006), (8.0, 0.9977, 1e-4)],
)
def test_covid_with_no_more_deaths_than_one_for_all(covid_problem, epsilon, kept, within):
    on = once_each(ps.make_policy("optimal-safe", epsilon=epsilon), covid_problem)
    deaths = on.outcomes["death"]
    found = bounded_optimum(on, epsilon, at_most={"death": "one for all"})
    table = np.exp(found.log_probabilities)
    gain = gain_of(on)
    assert gain.kept(found.value) == pytest.approx(kept, abs=max(within, 1e-12))
    assert found.bound - found.value <= 1e-9 * abs(found.value)
    of_all = float(on.prior @ deaths[:, on.best_fixed_action])
    expected = sum(float(on.prior @ (column * chosen)) for column, chosen in zip(deaths.T, table.T, strict=True))
    assert expected <= of_all * (1 + 1e-12)
    if found.multipliers["death"] > 0:
        assert expected == pytest.approx(of_all, rel=1e-9)
    if epsilon == 8:
        best = float(on.prior @ np.take_along_axis(deaths, on.best_actions[:, None], axis=1)[:, 0])
        assert 1e5 * (expected - best) == pytest.approx(0.146, abs=1e-3)
    np.testing.assert_array_equal(
        found.log_probabilities, ps.make_policy("optimal-safe", epsilon=epsilon).log_probabilities(on)
    )


def test_a_log_names_no_prevalence(tmp_path):
    text = STUDY.replace('scenario = "scenario.toml"', "").replace("[compare]", '[compare]\nrobust = "prevalence"')
    (tmp_path / "log.csv").write_text("patient,arm,outcome,age\n1,0,1,2\n")
    text += """
[data]
file = "log.csv"
id = "patient"
outcome = { outcome = 1.0 }
range = [0, 1]
treatment = "arm"
treatments = { 0 = "none", 1 = "drug" }
[data.features]
age = { levels = [1, 2] }
"""
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(InputFileError, match=r"compare\.robust: unknown prior 'prevalence'; known: age"):
        ps.load_study(tmp_path / "study.toml")
