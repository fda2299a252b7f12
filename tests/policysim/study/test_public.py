"""`[privacy] public`: all other features are hidden; and contraindications, which read public features only."""

import math
from dataclasses import replace

import pytest
from scipy import optimize
from small_studies import STUDY, write_small_study

import policysim as ps
from envs import InputFileError
from policies import Sensitive
from policysim.study import study_reader
from policysim.study.declared import build_adjacency
from policysim.study.labels import hidden
from policysim.study.stated_bounds import hidden_contraindications, why_refused

PUBLIC = STUDY.replace('adjacency = "any-record"', 'public = ["age", "smoker"]')
SENSITIVE = STUDY.replace(
    'adjacency = "any-record"', 'adjacency = "sensitive"\nsensitive = ["infected", "fever", "cough"]'
)
PUBLIC_LINE = 1 + PUBLIC.splitlines().index('public = ["age", "smoker"]')


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("public"), PUBLIC))


def refusals(folder, study):
    path = write_small_study(folder, study)
    with pytest.raises(InputFileError) as caught:
        ps.load_study(path)
    return str(caught.value).replace(f"{folder.as_posix()}/", "").splitlines()


def test_public_is_sensitive_on_all_the_others(public, tmp_path):
    assert public.public == ("age", "smoker")
    assert public.sensitive == ("infected", "fever", "cough") and public.adjacency == "sensitive"
    assert ps.build_problem(public).adjacency == Sensitive((2,) * 5, (0, 1, 2))
    other = ps.load_study(write_small_study(tmp_path, SENSITIVE))
    assert other.public == ()
    pairs = [ps.compare(ps.build_problem(study), epsilons=[1.0]) for study in (public, other)]
    assert pairs[0].equals(pairs[1])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('public = ["age"]\nadjacency = "any-record"', "public: does not go with adjacency: public features hide all"),
        ('public = ["age"]\nsensitive = ["fever"]', "public: does not go with sensitive"),
        ('public = ["ages"]', "public[0]: unknown feature 'ages'; did you mean 'age'"),
        ('public = ["age", "smoker", "age"]', "public[2]: 'age' is named twice"),
        ('public = ["age", "smoker", "fever", "cough", "infected"]', "public: nothing is left to hide"),
        ("public = []", "public: must not be empty"),
    ],
)
def test_what_does_not_go_with_public_is_one_line(tmp_path, lines, message):
    study = STUDY.replace('adjacency = "any-record"', lines)
    assert refusals(tmp_path, study)[0].startswith(f"small.toml:{PUBLIC_LINE}: privacy.{message}")


def test_the_same_adjacency_may_be_named_beside_it(tmp_path):
    same = PUBLIC.replace("public =", 'adjacency = "sensitive"\npublic =')
    assert ps.load_study(write_small_study(tmp_path, same)).public == ("age", "smoker")


def test_other_choices_take_its_place(public):
    assert public.with_choices(sensitive=["fever"]).public == ()
    assert public.with_choices(adjacency="any-record").public == ()
    assert public.with_choices(adjacency="any-record").sensitive == ()
    assert public.with_choices(epsilons=[2.0]).public == ("age", "smoker")


def test_words_name_what_is_public(public):
    assert hidden(public) == "everything about the patient but age, smoker"
    assert "public features" in public._repr_html_() and "hidden features" not in public._repr_html_()


def contraindicated(study, *features):
    """The study's scenario, its last treatment forbidden to those who have these features."""
    scenario = study.scenario
    name = scenario.actions[-1]
    pill = replace(scenario.treatments[name], contraindicated=tuple({feature: (1,)} for feature in features))
    return replace(scenario, treatments={**scenario.treatments, name: pill})


def test_a_contraindication_by_a_hidden_feature_is_refused(public, tmp_path, monkeypatch):
    scenario = contraindicated(public, "smoker")
    assert scenario.contraindication_features == ("smoker",)
    assert hidden_contraindications(scenario, public.adjacency, public.sensitive) == ()
    monkeypatch.setattr(study_reader, "load_scenario", lambda _: scenario)
    assert ps.load_study(write_small_study(tmp_path / "a", PUBLIC)).public == ("age", "smoker")
    for text, key in (
        (STUDY, "privacy.adjacency"),
        (STUDY.replace('"any-record"', '"one-feature"'), "privacy.adjacency"),
        (STUDY.replace('adjacency = "any-record"\n', ""), "privacy"),
        (PUBLIC.replace(', "smoker"', ""), "privacy.public"),
    ):
        (found,) = refusals(tmp_path / "b", text)
        assert f": {key}: contraindications read smoker, which is hidden" in found
        assert '[privacy] public = ["smoker"]' in found and "an event with a weight" in found
        assert "at least e^-ε q (0.368 q at ε = 1), and certainly if q is 1" in found
    allowed = replace(public, scenario=scenario)
    with pytest.raises(ValueError, match="contraindications read smoker"):
        allowed.with_choices(adjacency="any-record")
    assert allowed.with_choices(epsilons=[1.0]).public == ("age", "smoker")


def test_the_figure_is_what_no_mechanism_goes_below():
    """The least of a treatment that a neighbour of somebody who gets it with q may get, by a programme of its own."""
    for epsilon, q in [(1.0, 0.5), (0.3, 0.8), (2.0, 1.0)]:
        ratio = math.exp(epsilon)
        # p of the treatment for the neighbour; p and 1 - p are within e^epsilon of q and 1 - q, either way.
        rows, bounds = [[-ratio], [1], [-1], [ratio]], [-q, ratio * q, ratio * (1 - q) - 1, ratio - 1 + q]
        least = optimize.linprog([1.0], A_ub=rows, b_ub=bounds, bounds=[(0, 1)]).fun
        assert least >= math.exp(-epsilon) * q - 1e-9
        assert least == pytest.approx(1.0 if q == 1 else max(q / ratio, 1 - ratio * (1 - q)))
    assert "at least e^-ε q (0.741 q at ε = 0.3), and certainly if q is 1" in why_refused(["pregnancy"], 0.3)
    assert "certainly" not in why_refused(["pregnancy"], math.inf)
    # 1 - e (1 - 0.9), which is more than 0.9 / e, rounded down.
    assert why_refused(["pregnancy"], 1.0).endswith(
        "; where q is 0.9, at least 72.8 of 100 patients who must not get it do"
    )


def test_studies_of_logs_have_public_features_too(tmp_path):
    lines = ["age,ill,arm,cured", *(f"{i % 2},{i % 3 % 2},{'ab'[i % 5 % 2]},{i % 7 % 2}" for i in range(60))]
    (tmp_path / "trial.csv").write_text("\n".join(lines) + "\n")
    text = """\
title = "A trial"
[data]
file = "trial.csv"
treatment = "arm"
treatments = { a = "a", b = "b" }
propensity = "equal"
outcome = { cured = 1.0 }
[data.features]
age = { levels = [0, 1] }
ill = { levels = [0, 1] }
[privacy]
public = ["age"]
"""
    path = tmp_path / "study.toml"
    path.write_text(text)
    study = ps.load_study(path)
    assert (study.public, study.sensitive, study.adjacency) == (("age",), ("ill",), "sensitive")
    assert build_adjacency(study) == Sensitive((2, 2), (1,))
    path.write_text(text.replace('public = ["age"]', 'public = ["aeg"]'))
    with pytest.raises(InputFileError, match=r"privacy\.public\[0\]: unknown feature 'aeg'; did you mean 'age'"):
        ps.load_study(path)
