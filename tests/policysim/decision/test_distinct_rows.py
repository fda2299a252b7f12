"""A comparison on distinct rows is the comparison on all records: against one in which every row is made distinct."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import policysim as ps
from envs import record_space
from policies import CATALOGUE, Policy
from policies.distinct import distinct_rows
from policies.privacy_loss import privacy_loss_of_logs
from policysim.decision.choose import Wish, choose, rows_of
from policysim.study.example_patients import ExamplePatient, example_probabilities, loss_quantiles

EPSILONS = [0.0, 0.5, 3.0]
NAMES = list(CATALOGUE.built_in)


@pytest.fixture(scope="module")
def problem():
    """Forty-eight records of seven rows, with groups that the rows are not: none of them is a level's own."""
    space = record_space({"age": ["young", "middle", "old"], "sex": [0, 1], "ill": [0, 1], "ward": list("abcd")})
    rng = np.random.default_rng(7)
    which = rng.integers(7, size=space.size)
    prior = rng.random(space.size)
    return ps.DecisionProblem(
        rng.normal(size=(7, 3))[which],
        prior / prior.sum(),
        ps.AnyRecord(),
        records=space,
        outcomes={"death": rng.random((7, 3))[which]},
        lead="death",
        priors={ward: rng.dirichlet(np.ones(space.size)) for ward in "abc"},
    )


@pytest.fixture(scope="module")
def apart(problem):
    """The same problem with one more outcome, which no two records share: nothing can be merged."""
    marks = np.arange(problem.n_records, dtype=float)[:, None] * np.ones(3)
    return ps.DecisionProblem(
        problem.utilities,
        problem.prior,
        problem.adjacency,
        problem.actions,
        records=problem.records,
        outcomes={**problem.outcomes, "mark": marks},
        priors=problem.priors,
        lead=problem.lead,
    )


def equal_tables(first, second, columns):
    for column in columns:
        if first[column].dtype.kind == "f":
            np.testing.assert_allclose(first[column], second[column], rtol=1e-12, atol=1e-12, err_msg=column)
        else:
            assert first[column].tolist() == second[column].tolist()


def test_every_column_of_every_group_is_that_of_all_records(problem, apart):
    assert len(distinct_rows(problem).first) == 7
    assert distinct_rows(apart) is None
    by = ["age", "ward"]
    once, whole = (ps.compare(found, policies=NAMES, epsilons=EPSILONS, by=by) for found in (problem, apart))
    assert len(once) == len(NAMES) * len(EPSILONS) * 8
    equal_tables(once, whole, [name for name in once if name not in ("least_loss", "most_kept")])


def test_searches_and_patients_are_those_of_all_records(problem, apart):
    once, whole = (choose(found, Wish(keep=0.6), ["exponential", "optimal"]) for found in (problem, apart))
    for first, second in zip(rows_of(once.needs), rows_of(whole.needs), strict=True):
        assert first["policy"] == second["policy"]
        assert first["epsilon"] == pytest.approx(second["epsilon"], rel=1e-9)
        assert first["benefit_kept"] == pytest.approx(second["benefit_kept"], rel=1e-12)
        assert first["expected_death"] == pytest.approx(second["expected_death"], rel=1e-12)
    for name in ("exponential-fitted", "optimal"):
        found = [ps.smallest_epsilon(each, name, keep=0.5, max_extra_lead=0.2) for each in (problem, apart)]
        assert found[0] == pytest.approx(found[1], rel=1e-9)
    examples = [ExamplePatient("one", 5), ExamplePatient("two", 40)]
    rows = [
        example_probabilities(each, examples, ["optimal", "randomized-features"], [1.0]) for each in (problem, apart)
    ]
    equal_tables(*rows, list(rows[0]))
    losses = [loss_quantiles(each, ["exponential", "greedy"], 1.0) for each in (problem, apart)]
    equal_tables(*losses, list(losses[0]))


@dataclass(frozen=True)
class Liar(Policy):
    """Says that it is row-wise, and looks at which record it is."""

    name: ClassVar[str] = "liar"
    row_wise: ClassVar[bool] = True

    def _log_probabilities(self, problem):
        place = np.arange(problem.n_records) / problem.n_records
        return np.log(np.stack([0.1 + 0.1 * place, 0.8 - 0.1 * place, np.full(len(place), 0.1)], axis=1))


def test_what_is_not_built_in_is_not_believed_to_be_row_wise(problem):
    policy = Liar(1.0)
    (row,) = ps.compare(problem, policies=[policy], epsilons=[1.0]).to_dict("records")
    logs = policy.log_probabilities(problem)
    assert row["value"] == pytest.approx(problem.value(np.exp(logs)), rel=1e-12)
    assert row["epsilon_spent"] == privacy_loss_of_logs(logs, problem.adjacency).epsilon
    assert row["p_a0"] == pytest.approx(problem.prior @ np.exp(logs[:, 0]), rel=1e-12)
