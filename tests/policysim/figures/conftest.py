"""Tables for the figures: of the small study, and made up where it has none."""

import numpy as np
import pandas as pd
import pytest
from small_studies import STUDY, write_small_study

import policysim as ps
from policies.catalogue import CATALOGUE
from policysim.course.days import ways as which_ways
from policysim.decision.prices import price_list
from policysim.decision.scenario_outcomes import loss_by_outcome
from policysim.study.example_patients import loss_quantiles

EPSILONS = [0.1, 1.0, 5.0, 20.0]


@pytest.fixture(scope="session")
def study(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("figures"), STUDY))


@pytest.fixture(scope="session")
def problem(study):
    return ps.build_problem(study)


@pytest.fixture(scope="session")
def policies():
    left_out = ("report-noisy-max",)
    return [name for name in CATALOGUE if name not in left_out]


@pytest.fixture(scope="session")
def curve(problem):
    """The policies of a report over its 24 epsilons, in groups."""
    policies = ["best-fixed", "greedy", "exponential", "exponential-fitted", "randomized-response", "optimal"]
    return ps.compare(problem, policies=policies, by=["age", "infected", "smoker", "fever"])


@pytest.fixture(scope="session")
def comparison(problem, policies):
    """All policies that apply, over epsilon."""
    return ps.compare(problem, policies=policies, epsilons=EPSILONS, by=["age", "infected"])


@pytest.fixture(scope="session")
def at_one(comparison):
    return comparison[comparison["epsilon"] == 1]


@pytest.fixture(scope="session")
def logged(comparison):
    """What a comparison on logged data looks like: no deaths, intervals, benefit kept refused."""
    kept = comparison.drop(columns=[name for name in comparison if "death" in name])
    return kept.assign(
        benefit_kept=np.nan,
        difference=kept["value"],
        difference_low=kept["value"] - 0.02,
        difference_high=kept["value"] + 0.03,
        loss_low=kept["loss"] - 0.01,
        loss_high=kept["loss"] + 0.02,
    )


@pytest.fixture(scope="session")
def logged_at_one(logged):
    return logged[logged["epsilon"] == 1]


@pytest.fixture(scope="session")
def parts(study, problem):
    names = ["best-fixed", "exponential", "randomized-response", "optimal"]
    rows = ps.compare(problem, policies=["greedy", *names], epsilons=[1.0])
    return loss_by_outcome(rows, study.weights, names)


@pytest.fixture(scope="session")
def choices(problem):
    """Action probabilities of three records, one with a long name, under one policy."""
    rows = [
        ("exponential", epsilon, patient, action, probability)
        for epsilon in EPSILONS
        for patient, record in (("aged 60-79, with every symptom and every comorbidity", 3), ("healthy", 0), ("x", 1))
        for action, probability in zip(
            problem.actions,
            ps.make_policy("exponential", epsilon=epsilon).probabilities(problem)[record],
            strict=True,
        )
    ]
    return pd.DataFrame(rows, columns=["policy", "epsilon", "patient", "action", "probability"])


@pytest.fixture(scope="session")
def errors(problem):
    return ps.trade_off(ps.make_policy("randomized-response", epsilon=1.0).fit(problem))


@pytest.fixture(scope="session")
def prices(problem):
    return price_list(problem, 1.0)


@pytest.fixture(scope="session")
def losses(problem, policies):
    return loss_quantiles(problem, policies, 1.0)


@pytest.fixture(scope="session")
def course():
    """What `compare_days` returns, with values that are made up."""
    rng = np.random.default_rng(5)
    names = ["best-fixed", "best-schedule", "greedy", "uniform", "exponential", "randomized-response", "optimal"]
    names.append("exponential-fitted")
    rows = [
        (name, "all", horizon, total, rng.uniform(-0.5, 1))
        for name in names
        for horizon in (1, 2, 5, 14)
        for total in (0.0, 1.0, 5.0, 10.0)
    ]
    return pd.DataFrame(rows, columns=["policy", "group", "horizon", "total_epsilon", "benefit_kept"])


@pytest.fixture(scope="session")
def ways(course):
    """What `policysim.course.days.ways` makes of such a table."""
    named = course.replace({"policy": {"uniform": "plan-once"}})
    return which_ways(named.assign(value=named["benefit_kept"], total_spent=0.0, most_kept=1.0, hides="course"))


@pytest.fixture(scope="session")
def given_daily():
    """What is given on each day: the same to everyone on the first, and then by age."""
    rows = [
        (group, level, share, day, *(early if day == 1 else later))
        for group, level, share, later in [
            ("all", "all", 1.0, (0.5, 0.3, 0.2)),
            ("age", "under 60", 0.5, (0.8, 0.1, 0.1)),
            ("age", "60 and over", 0.5, (0.2, 0.5, 0.3)),
        ]
        for day, early in [(1, (0.0, 1.0, 0.0)), (2, ()), (3, ())]
    ]
    return pd.DataFrame(rows, columns=["group", "level", "share", "day", "p_none", "p_syrup", "p_pill"])


@pytest.fixture(scope="session")
def drawn(request):
    """Each figure once: a function of what draws it, its table and its size."""
    kept = {}

    def once(draw, name, size):
        key = draw, name, size
        if key not in kept:
            kept[key] = draw(request.getfixturevalue(name), size=size)
        return kept[key]

    return once


@pytest.fixture
def without_layout(monkeypatch):
    """Figures for which nobody looks for room, for what does not depend on places: that is most of drawing."""
    monkeypatch.setattr("policysim.figures.layout.ROUNDS", 0)


@pytest.fixture(scope="session")
def published(problem):
    return ps.ways_to_publish(problem, EPSILONS)
