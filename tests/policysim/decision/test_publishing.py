"""Giving and publishing: what each way costs the patients and the reader, against tables, simulations and by hand."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import policysim as ps
from envs.records import record_space
from policies.discrete_laplace import discrete_laplace
from policies.local import KAry, TwoCoin
from policies.policy import one_hot_logs
from policies.randomized_response import RandomizedResponse
from policysim.decision.publishing import TRUSTED, channel_matrix, commonest_share, error_of_a_count


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(7)
    return ps.DecisionProblem(
        rng.normal(size=(24, 3)),
        rng.dirichlet(np.ones(24)),
        ps.AnyRecord(),
        ["none", "a", "b"],
        records=record_space({"ill": [0, 1], "age": ["young", "mid", "old"], "town": ["n", "e", "s", "w"]}),
        outcomes={"death": rng.uniform(size=(24, 3))},
        lead="death",
    )


@pytest.fixture(scope="module")
def ways(problem):
    return ps.ways_to_publish(problem, [0.5, 1.0, 3.0]).set_index(["way", "epsilon"])


def given_shares(problem):
    return np.bincount(problem.best_actions, problem.prior, problem.n_actions)


def test_the_ways_and_their_columns(problem, ways):
    assert list(ways.index.get_level_values("way").unique()) == list(TRUSTED)
    assert ways.index.is_unique
    assert len(ways) == 3 * len(TRUSTED)
    assert list(ps.ways_to_publish(problem))[:9] == [
        *("way", "given", "published", "epsilon", "guess_rate", "benefit_kept", "expected_death", "true_share"),
        "error_of_a_count",
    ]


def test_a_noised_copy_reveals_what_randomized_response_does_and_costs_nothing(problem, ways):
    compared = ps.compare(problem, policies=["greedy", "randomized-response"], epsilons=[0.5, 1.0, 3.0])
    compared = compared.set_index(["policy", "epsilon"])
    for epsilon in (0.5, 1.0, 3.0):
        # The best for each, published through k-ary response, made here from its parts.
        table = np.exp(one_hot_logs(problem.best_actions, 3)) @ KAry(3, epsilon).matrix
        policy = RandomizedResponse(epsilon).probabilities(problem)
        np.testing.assert_allclose(table, policy, rtol=0, atol=1e-12)
        row, same = ways.loc[("noisy values", epsilon)], compared.loc[("randomized-response", epsilon)]
        assert row["epsilon_spent"] == pytest.approx(same["epsilon_spent"], abs=1e-12)
        assert row["epsilon_spent"] == pytest.approx(ps.privacy_loss(table, problem.adjacency).epsilon, abs=1e-12)
        assert row["guess_rate"] == pytest.approx(same["guess_rate"], abs=1e-12)
        assert row["guess_rate"] == pytest.approx(ps.guess_rate(table, problem.adjacency).rate, abs=1e-12)
        for feature in ("ill", "age", "town"):
            mine, its = (ps.beliefs(problem, each, feature)["after"] for each in (table, policy))
            np.testing.assert_allclose(mine, its, rtol=0, atol=1e-12)
        assert row["expected_death"] == compared.loc[("greedy", epsilon), "expected_death"]
        assert row["benefit_kept"] == 1.0
        assert row["given"] == "greedy"


def test_what_is_published_as_it_is_given_is_the_row_of_its_policy(problem, ways):
    compared = ps.compare(problem, policies=["optimal", "randomized-features", "best-fixed", "greedy"], epsilons=[1.0])
    compared = compared.set_index("policy")
    for way in ("private draw", "private record", "the same for everyone", "as it is"):
        row = ways.loc[(way, 1.0)]
        for column in ("guess_rate", "benefit_kept", "expected_death", "epsilon_spent"):
            assert row[column] == compared.loc[row["given"], column]
        assert (row["true_share"], row["error_of_a_count"], row["published"]) == (1.0, 0.0, "as given")
    assert ways.loc[("private draw", 1.0), "given"] == "optimal"


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_error_of_noisy_values_is_that_of_simulated_copies(problem, ways, epsilon):
    n, runs, rng = 10_000, 4_000, np.random.default_rng(3)
    counts = np.round(n * given_shares(problem)).astype(int)
    matrix = KAry(3, epsilon).matrix
    published = sum(rng.multinomial(count, row, size=runs) for count, row in zip(counts, matrix, strict=True))
    estimated = published @ np.linalg.inv(matrix)
    assert abs(estimated.mean(axis=0) - counts).max() < 5 * estimated.std() / math.sqrt(runs)
    found = ways.loc[("noisy values", epsilon), "error_of_a_count"]
    assert estimated.std(axis=0).max() == pytest.approx(found, rel=0.05)
    share = sum(
        share * row[place] for place, (share, row) in enumerate(zip(given_shares(problem), matrix, strict=True))
    )
    assert ways.loc[("noisy values", epsilon), "true_share"] == pytest.approx(share, abs=1e-12)


def test_the_error_of_a_channel_that_looks_at_the_record_is_that_of_simulated_patients():
    # Where it is public who is likelier to be given a treatment, the truest copy looks at more than the treatment.
    adjacency = ps.Sensitive((2, 2), (1,))
    problem = ps.DecisionProblem([[1, 0], [0, 1], [1, 0], [0, 1]], [0.3, 0.1, 0.25, 0.35], adjacency)
    row = ps.ways_to_publish(problem, [2.0], patients=5_000).set_index("way").loc["noisy values, most true"]
    policy = ps.make_policy("optimal", epsilon=2.0)
    table, matrix = policy.probabilities(problem), channel_matrix(policy, problem)
    n, runs, rng = 5_000, 4_000, np.random.default_rng(5)
    estimated = []
    for g in (0, 1):
        prior = np.where(problem.best_actions == g, problem.prior, 0)
        patients = rng.multinomial(round(n * prior.sum()), prior / prior.sum(), size=runs)
        first = rng.binomial(patients, table[:, 0]).sum(axis=1)
        estimated.append(np.stack([first, patients.sum(axis=1) - first], axis=1))
    counts = sum(estimated) @ np.linalg.inv(matrix)
    assert counts[:, 0].std() == pytest.approx(row["error_of_a_count"], rel=0.05)
    assert row["true_share"] == pytest.approx(float(problem.prior @ table[np.arange(4), problem.best_actions]))


def test_the_error_of_a_noisy_table_is_that_of_drawn_noise(ways):
    source = random.Random(11)
    for epsilon in (0.5, 1.0, 3.0):
        rate = Fraction(repr(epsilon)) / 2
        noise = [discrete_laplace(rate, source.randrange) for _ in range(12_000)]
        row = ways.loc[("noisy table", epsilon)]
        assert np.std(noise) == pytest.approx(row["error_of_a_count"], rel=0.05)
        assert row["epsilon_spent"] == epsilon
        assert 0.5 < row["guess_rate"] < math.exp(epsilon) / (1 + math.exp(epsilon))
    assert ways.loc[("noisy table", 1.0), "error_of_a_count"] == pytest.approx(2.80, abs=0.005)


@pytest.mark.parametrize(("epsilon", "first"), [(0.1, 9), (1.0, 9), (5.0, 29)])
def test_a_noisy_table_is_the_more_accurate_from_as_many_rows_on_as_the_docs_say(epsilon, first):
    even = ps.DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], ps.AnyRecord())
    for patients in (first - 1, first):
        error = ps.ways_to_publish(even, epsilon, patients).set_index("way")["error_of_a_count"]
        assert (error["noisy table"] < error["noisy values"]) == (patients >= first)


def test_a_channel_that_hides_a_treatment_determines_no_counts():
    assert math.isnan(error_of_a_count(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([5.0, 5.0])))
    assert math.isnan(error_of_a_count(np.array([[0.9, 0.1], [math.nan, math.nan]]), np.array([5.0, 0.0])))
    coins = TwoCoin().matrix
    assert error_of_a_count(coins, np.array([50.0, 50.0])) == pytest.approx(math.sqrt(100 * 3 / 16) / 0.5)


def test_a_treatment_that_is_hardly_given_is_left_out_of_the_truest_copy():
    problem = ps.DecisionProblem(np.eye(3), [0.6, 0.39, 0.01], ps.AnyRecord())
    found = ps.ways_to_publish(problem, [0.01, 1.0]).set_index(["way", "epsilon"])
    truest = found.loc["noisy values, most true"]
    assert truest["error_of_a_count"].isna().all()
    assert truest.loc[0.01, "true_share"] == pytest.approx(0.6)
    assert (truest["true_share"] >= found.loc["noisy values", "true_share"] - 1e-12).all()
    assert (found["common_share"] == 0.6).all()
    # k-ary response looks at the treatment alone: of a treatment that nobody is given, its counts can be estimated.
    never = ps.DecisionProblem([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], [0.5, 0.5], ps.AnyRecord())
    found = ps.ways_to_publish(never).set_index("way")["error_of_a_count"]
    assert found["noisy values"] == pytest.approx(error_of_a_count(KAry(3, 1.0).matrix, np.array([5e3, 5e3, 0.0])))
    assert math.isnan(found["noisy values, most true"])


def test_the_commonest_treatment_is_that_of_those_who_look_alike():
    problem = ps.DecisionProblem([[1, 0], [0, 1], [1, 0], [0, 1]], [0.4, 0.1, 0.1, 0.4], ps.Sensitive((2, 2), (1,)))
    assert commonest_share(problem) == pytest.approx(0.8)
    assert commonest_share(problem.with_adjacency(ps.AnyRecord())) == pytest.approx(0.5)
    # What follows from what is public says nothing, however often it is true.
    row = ps.ways_to_publish(problem, [0.0]).set_index("way").loc["noisy values, most true"]
    assert row["true_share"] == pytest.approx(0.8)
    assert math.isnan(row["error_of_a_count"])


def test_without_privacy_and_with_nothing_but_it(problem):
    found = ps.ways_to_publish(problem, [0.0, math.inf]).set_index(["way", "epsilon"])
    assert found.loc[("noisy table", 0.0), "error_of_a_count"] == math.inf
    assert found.loc[("noisy table", math.inf), "error_of_a_count"] == 0.0
    assert found.loc[("noisy table", math.inf), "guess_rate"] == 1.0
    assert math.isnan(found.loc[("noisy values", 0.0), "error_of_a_count"])
    assert found.loc[("noisy values", math.inf), "true_share"] == pytest.approx(1.0)


def test_where_all_are_given_the_same_nothing_is_told():
    found = ps.ways_to_publish(ps.DecisionProblem([[0, 1], [0, 2]], [0.5, 0.5], ps.AnyRecord())).set_index("way")
    assert (found["guess_rate"] == 0.5).all()
    assert (found["epsilon_spent"] == 0).all()
    assert not any(name.startswith("expected_") for name in found)


def test_contraindications_and_one_feature():
    rng = np.random.default_rng(2)
    allowed = np.ones((12, 3), dtype=bool)
    allowed[:4, 2] = False
    utilities, prior = rng.normal(size=(12, 3)), rng.dirichlet(np.ones(12))
    problem = ps.DecisionProblem(utilities, prior, ps.Sensitive((3, 4), (1,)), admissible=allowed)
    found = ps.ways_to_publish(problem).set_index("way")
    table = RandomizedResponse(1.0).probabilities(problem)
    share = float(prior @ table[np.arange(12), problem.best_actions])
    assert found.loc["noisy values", "true_share"] == pytest.approx(share, abs=1e-12)
    assert np.isfinite(found.loc["noisy values", "error_of_a_count"])
    one = ps.ways_to_publish(ps.DecisionProblem(utilities, prior, ps.OneFeature((3, 4)))).set_index("way")
    assert (one["guess_rate"].between(0.5, 1)).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"epsilons": [-1.0]}, "epsilon must be a number >= 0, got -1.0"),
        ({"epsilons": []}, "empty list"),
        ({"patients": 0}, "patients must be a whole number >= 1, got patients=0"),
        ({"patients": True}, "patients=True"),
        ({"patients": 10.5}, "patients=10.5"),
    ],
)
def test_what_is_no_question_is_refused(problem, options, words):
    with pytest.raises(ValueError, match=words):
        ps.ways_to_publish(problem, **options)


def test_what_is_no_problem_is_refused():
    with pytest.raises(ValueError, match="takes a DecisionProblem, got 'covid'"):
        ps.ways_to_publish("covid")
