"""The cohort against its sources (the head of envs/scenarios/covid.toml names them), whose figures are written out here
once more as sentences."""

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

import envs

N = 10**6
SYMPTOMS = ("taste", "fever", "headache", "pneumonia", "stomach", "myocarditis", "blood_clots")
CONDITIONS = ("asthma", "obesity", "smoking", "diabetes", "heart_disease", "hypertension")
MILD = ("taste", "fever", "headache", "stomach")
VACCINES = ("none", "v1", "v2", "v3")
VACCINE_SHARES = (0.7, 0.1, 0.1, 0.1)
GIVEN_POSITIVE = dict(zip(SYMPTOMS, (0.3, 0.2, 0.05, 0.2, 0.02, 0.05, 0.2), strict=True))
GIVEN_NEITHER = dict(zip(SYMPTOMS, (0.001, 0.01, 0.02, 0.002, 0.005, 0.001, 0.002), strict=True))
GIVEN_RECOVERED = dict(zip(SYMPTOMS, (0.01, 0.05, 0.05, 0.01, 0.02, 0.001, 0.001), strict=True))
LONG_COVID = dict(zip(SYMPTOMS, (0.06, 0.04, 0.01, 0.04, 0.004, 0.01, 0.04), strict=True))
MILD_FACTOR = dict(zip(VACCINES, (1.0, 0.6, 0.7, 0.8), strict=True))
CRITICAL_FACTOR = dict(zip(VACCINES, (1.0, 0.8, 0.75, 0.85), strict=True))
GENETIC = 0.5
CUTS = (0, 18, 40, 60, 80, np.inf)
GROUPS = list(itertools.product((0, 1), (0, 1), VACCINES, (0, 1)))  # positive, recovered, vaccine, sex


def symptom_probability(symptom, positive, recovered, vaccine, sex):
    """The population figures of source [C] as sentences rather than rules."""
    if positive:
        factor = MILD_FACTOR[vaccine] if symptom in MILD else CRITICAL_FACTOR[vaccine]
        return GENETIC * GIVEN_POSITIVE[symptom] * factor * (0.5 if recovered else 1.0)
    if recovered:
        extra = 0.01 if (symptom, sex) in {("blood_clots", 1), ("myocarditis", 0)} else 0.0
        return GENETIC * ((GIVEN_RECOVERED[symptom] + extra) / 2 + LONG_COVID[symptom])
    extra = {"fever": 0.2, "headache": 0.1}.get(symptom, 0.0) if vaccine != "none" else 0.0
    if (symptom, vaccine) in {("blood_clots", "v2"), ("myocarditis", "v3")}:
        extra = 0.01
    return GENETIC * (GIVEN_NEITHER[symptom] + extra)


def age_bands():
    """Shares and mean ages of the five bands, by numerical integration."""
    density = gamma(3, scale=11).pdf
    shares, means = [], []
    for low, high in itertools.pairwise(CUTS):
        share = quad(density, low, high, epsabs=1e-14, epsrel=1e-13)[0]
        shares.append(share)
        means.append(quad(lambda x: x * density(x), low, high, epsabs=1e-14, epsrel=1e-13)[0] / share)
    return np.array(shares), np.array(means)


@pytest.fixture(scope="module")
def joint(covid, covid_prior):
    """P(features), an array over the named features in the order given."""
    names = covid.space.names
    grid = covid_prior.reshape(covid.space.shape)

    def probability(*features):
        axes = tuple(names.index(feature) for feature in features)
        assert list(axes) == sorted(axes)
        return grid.sum(axis=tuple(axis for axis in range(grid.ndim) if axis not in axes))

    return probability


def test_age_bands_have_the_shares_and_means_of_the_gamma_distribution(covid, joint):
    shares, means = age_bands()
    assert joint("age") == pytest.approx(shares, rel=1e-9)
    assert covid.means["age"] == pytest.approx(means, rel=1e-9)
    # The whole has the mean of Gamma(3, 11), 33 years.
    assert joint("age") @ np.array(covid.means["age"]) == pytest.approx(33, rel=1e-9)


def test_infections_sexes_and_vaccines_are_independent_and_have_the_shares_of_the_facts(covid, joint):
    assert covid.space.feature("vaccine").levels == VACCINES
    infections, others = np.outer([0.9, 0.1], [0.9, 0.1]), np.outer([0.5, 0.5], VACCINE_SHARES)
    table = joint("covid_positive", "covid_recovered", "sex", "vaccine")
    np.testing.assert_allclose(table, np.multiply.outer(infections, others), rtol=1e-12)


def test_conditions_have_the_probabilities_of_the_facts_and_are_independent_given_what_they_depend_on(joint):
    shares, means = age_bands()
    table = joint(*CONDITIONS, "age")
    for codes in itertools.product((0, 1), repeat=len(CONDITIONS)):
        present = dict(zip(CONDITIONS, codes, strict=True))
        chances = {
            "asthma": 0.08,
            "obesity": 0.3 * means / 100,
            "smoking": 0.2,
            "diabetes": 0.6 if present["obesity"] else 0.1,
            "heart_disease": 0.15 * means / 100,
            "hypertension": (0.8 if present["smoking"] else 0.3) * means / 100,
        }
        product = shares
        for name, chance in chances.items():
            product = product * (chance if present[name] else 1 - chance)
        np.testing.assert_allclose(table[codes], product, rtol=1e-9)


def test_symptoms_have_the_probabilities_of_the_facts_and_are_independent_given_what_they_depend_on(joint):
    groups = joint("covid_positive", "covid_recovered", "sex", "vaccine")
    table = joint("covid_positive", "covid_recovered", *SYMPTOMS, "sex", "vaccine")
    for positive, recovered, vaccine, sex in GROUPS:
        product = np.array(1.0)
        for symptom in SYMPTOMS:
            chance = symptom_probability(symptom, positive, recovered, vaccine, sex)
            product = np.multiply.outer(product, [1 - chance, chance])
        place = VACCINES.index(vaccine)
        share = groups[positive, recovered, sex, place]
        found = table[positive, recovered, ..., sex, place] / share
        np.testing.assert_allclose(found, product, rtol=1e-9)


def test_conditions_and_ages_are_independent_of_everything_else(covid, covid_prior):
    grid = covid_prior.reshape(covid.space.shape)
    conditions = tuple(covid.space.axis(name) for name in (*CONDITIONS, "age"))
    others = tuple(axis for axis in range(grid.ndim) if axis not in conditions)
    product = grid.sum(axis=conditions, keepdims=True) * grid.sum(axis=others, keepdims=True)
    np.testing.assert_allclose(grid, product, rtol=1e-9)


# A sample against the prior.


def test_a_sample_agrees_with_the_prior_record_by_record(covid_patients, covid_prior, too_far):
    counts = np.bincount(covid_patients, minlength=covid_prior.size)
    assert counts.sum() == N
    assert not too_far(counts, N * covid_prior)


def test_patients_drawn_evenly_over_the_records_would_be_noticed(covid_prior, too_far):
    wrong = np.random.default_rng(5).integers(0, covid_prior.size, N)
    assert too_far(np.bincount(wrong, minlength=covid_prior.size), N * covid_prior)


def test_records_of_probability_zero_never_come():
    prior = np.array([0.0, 0.25, 0.0, 0.0, 0.75, 0.0])

    class Extremes:
        """A generator that only gives the ends of [0, 1)."""

        def random(self, size):
            return np.resize([0.0, np.nextafter(1.0, 0.0), 0.25, np.nextafter(0.25, 0.0)], size)

    assert set(envs.sample_patients(prior, 8, Extremes())) == {1, 4}  # type: ignore[arg-type]
    assert set(envs.sample_patients(prior, 10_000, np.random.default_rng(2))) == {1, 4}


def test_no_patients_may_be_drawn(covid_prior):
    assert envs.sample_patients(covid_prior, 0, np.random.default_rng(0)).shape == (0,)
