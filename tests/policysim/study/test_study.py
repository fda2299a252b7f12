"""Study files: what is read, and every mistake with its line."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from envs import InputFileError
from envs.toml_reader import SIZES
from policies import CATALOGUE, OneFeature, Sensitive
from policies.catalogue import DEFAULT_POLICIES
from policies.optimal.optimum import OptimalSafe
from policysim.cli.main import main
from policysim.study.study_reader import SCRIPTS

LANGUAGE = Path(__file__).parents[2] / "envs" / "data" / "language.toml"


def mistakes(folder, study, scenario=SCENARIO):
    """The lines of the error, with the folder's own name taken off."""
    path = write_small_study(folder, study, scenario)
    with pytest.raises(InputFileError) as caught:
        ps.load_study(path)
    return str(caught.value).replace(f"{folder.as_posix()}/", "").splitlines()


def line_of(text, start):
    return next(number for number, line in enumerate(text.splitlines(), start=1) if line.startswith(start))


def test_a_study_is_what_its_file_says(tmp_path):
    study = ps.load_study(write_small_study(tmp_path))
    assert study.name == "small"
    assert study.title == "A small study"
    assert study.epsilons == (0.5, 1.0, 4.0)
    assert study.policies == ("greedy", "best-fixed", "uniform", "exponential", "randomized-response")
    assert study.by == ("age", "infected")
    assert study.seed == 3
    problem = ps.build_problem(study)
    assert problem.utilities.shape == (32, 3)
    assert problem.actions == ("none", "syrup", "pill")


def test_a_file_called_study_is_named_after_its_folder(tmp_path):
    path = write_small_study(tmp_path / "my-cohort")
    path.rename(path.with_name("study.toml"))
    assert ps.load_study(path.with_name("study.toml")).name == "my-cohort"


def test_weights_and_costs_of_a_study_replace_those_of_its_scenario(tmp_path):
    study = STUDY + "\n[utility]\nweights = { death = 20 }\ncosts = { pill = 0.5 }\n"
    utility = ps.load_study(write_small_study(tmp_path, study)).utility
    assert utility.weights == {"infected": 0.1, "fever": 0.2, "cough": 0.3, "death": 20}
    assert utility.costs == {"none": 0, "syrup": 0.02, "pill": 0.5}


def test_the_digest_changes_with_the_file(tmp_path):
    one = ps.load_study(write_small_study(tmp_path / "a"))
    other = ps.load_study(write_small_study(tmp_path / "b", STUDY + "# a comment\n"))
    assert one.digest != other.digest


def test_every_adjacency_can_be_asked_for(tmp_path):
    one = STUDY.replace('"any-record"', '"one-feature"')
    assert ps.build_problem(ps.load_study(write_small_study(tmp_path / "a", one))).adjacency == OneFeature((2,) * 5)
    some = STUDY.replace('"any-record"', '"sensitive"\nsensitive = ["fever", "age"]')
    problem = ps.build_problem(ps.load_study(write_small_study(tmp_path / "b", some)))
    assert problem.adjacency == Sensitive((2,) * 5, (1, 4))


def test_all_mistakes_are_listed_at_once_with_their_lines(tmp_path):
    study = (
        STUDY.replace("seed = 3", "seed = -1\ntypo = 2")
        .replace("epsilons = [0.5, 1.0, 4.0]", 'epsilons = [0.5, -1.0, nan, "x"]')
        .replace('"exponential"', '"exponentail"')
        .replace('by = ["age"', 'by = ["aeg"')
    )
    study += "\n[utility]\nweights = { deth = 1 }\n"
    epsilons, policies = line_of(study, "epsilons"), line_of(study, "policies")
    assert mistakes(tmp_path, study) == [
        "small.toml:3: seed: must be a whole number >= 0, got -1",
        "small.toml:4: typo: unknown key 'typo'; "
        "known: capacity, cohort, compare, data, lead, privacy, related, scenario, seed, title, utility",
        f"small.toml:{epsilons}: privacy.epsilons[1]: must be {SIZES}, got -1.0",
        f"small.toml:{epsilons}: privacy.epsilons[2]: must be {SIZES}, got nan",
        f"small.toml:{epsilons}: privacy.epsilons[3]: must be {SIZES}, got 'x'",
        f"small.toml:{policies}: compare.policies[3]: unknown policy 'exponentail'; did you mean 'exponential'? "
        f"known: {', '.join(CATALOGUE)}.",
        f"small.toml:{policies + 1}: compare.by[0]: unknown group 'aeg'; did you mean 'age'? "
        "known: infected, fever, cough, smoker, age",
        f"small.toml:{line_of(study, 'weights')}: utility.weights.deth: unknown outcome 'deth'; did you mean 'death'? "
        "known: infected, fever, cough, death",
    ]


def test_a_study_of_a_source_document_is_refused_and_the_script_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, script in SCRIPTS.items():
        assert (Path(__file__).parents[3] / script).is_file()
        for command in ("compare", "choose", "sensitivity"):
            assert main([command, name]) == 2
            assert capsys.readouterr() == ("", f"policysim: {name} is no study; {script} makes this report\n")
    path = Path("study.toml")
    for key, line, script in (
        ("analysis", 'analysis = "sock-groups"', "examples/source_documents/sock_groups.py"),
        ("analysis", 'analysis = "sock-socks"', "a script in examples/source_documents"),
        ("source", '[source]\nname = "sock-groups"', "a script in examples/source_documents"),
    ):
        path.write_text(f'title = "Socks"\n{line}\n[groups.Blue]\nViolent = 1\n', encoding="utf-8")
        assert main(["compare", "study.toml"]) == 2
        message = f"study.toml:2: {key}: is no key of a study; {script} makes this report"
        assert capsys.readouterr() == ("", f"policysim: {message}\n")
    assert list(tmp_path.iterdir()) == [tmp_path / "study.toml"]


def test_mistakes_of_the_scenario_are_listed_with_those_of_the_study(tmp_path):
    scenario = SCENARIO.replace("infected = 0.3", "infected = 1.3")
    found = mistakes(tmp_path, STUDY.replace("seed = 3", "seed = 3.5"), scenario)
    assert found == [
        "small.toml:3: seed: must be a whole number >= 0, got 3.5",
        f"scenario.toml:{line_of(scenario, 'set = { infected')}: rules[0].set.infected: "
        "must be a number in [0, 1], got 1.3",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("epsilons = [0.5, 1.0, 4.0]", "epsilons = []", "privacy.epsilons: must not be empty"),
        ("epsilon = 1.0", "epsilon = -1", "privacy.epsilon: must be a number >= 0, got -1"),
        (
            'scenario = "scenario.toml"',
            'scenario = "covod"',
            "unknown scenario 'covod'; did you mean 'covid'",
        ),
        ('scenario = "scenario.toml"', 'scenario = "no.toml"', "no.toml: cannot be read: No such file"),
        ('scenario = "scenario.toml"', "", "scenario is missing"),
        ('"any-record"', '"one-record"', "privacy.adjacency: unknown adjacency 'one-record'"),
        ('"any-record"', '"sensitive"', "sensitive is missing"),
        ('"any-record"', '"any-record"\nsensitive = ["age"]', "privacy.sensitive: only goes with"),
        ('"any-record"', '"sensitive"\nsensitive = ["ages"]', "unknown feature 'ages'; did you mean 'age'"),
        ("[compare]", "[compare", "not valid TOML"),
        (
            'by = ["age", "infected"]',
            "at_most = { deaths = 0.1 }",
            "compare.at_most.deaths: unknown outcome 'deaths'; did you mean 'death'? known: death, symptoms",
        ),
        (
            'by = ["age", "infected"]',
            "at_most = { death = -1 }",
            'compare.at_most.death: must be a number >= 0 per patient, or "one for all", got -1',
        ),
        ("[compare]", "[capacity]\npil = 0.1\n[compare]", "capacity.pil: unknown action 'pil'; did you mean 'pill'?"),
        (
            "[compare]",
            "[capacity]\nnone = 0.2\nsyrup = 0.3\npill = 0.4\n[compare]",
            "capacity: cannot serve everybody: every treatment is limited, and the shares sum to 0.9, which is below 1",
        ),
        (
            "[compare]",
            '[compare]\nrobust = "agee"',
            "compare.robust: unknown prior 'agee'; did you mean 'age'? known: prevalence, infected",
        ),
        (
            "[compare]",
            "[utility]\ncost = 2\n[compare]",
            "unknown key 'cost'; did you mean 'costs'? known: costs, weights",
        ),
    ],
)
def test_each_mistake_is_named(tmp_path, old, new, message):
    assert old in STUDY
    found = mistakes(tmp_path, STUDY.replace(old, new))
    assert any(message in line for line in found), found
    assert all(line.split(":")[0].endswith(".toml") for line in found)


def test_names_of_outcomes_and_treatments_are_not_judged_where_the_scenario_is_not_read(tmp_path):
    study = STUDY.replace("scenario.toml", "no.toml").replace(
        "[compare]", "[compare]\nat_most = { deths = 1 }\nbuy = 1"
    )
    study += "\n[utility]\nweights = { deth = 1 }\n[capacity]\npil = 1\n"
    unread, unknown = mistakes(tmp_path, study)
    assert unknown.startswith(
        f"small.toml:{line_of(study, 'buy')}: compare.buy: unknown key 'buy'; did you mean 'by'? "
    )
    assert unread.startswith("small.toml:2: scenario: ")
    assert unread.endswith("no.toml: cannot be read: No such file or directory")


@pytest.mark.parametrize("key", ["privacy", "compare", "related", "utility", "capacity", "scenario", "seed"])
def test_a_key_of_another_type_is_refused_and_what_follows_from_it_is_not_listed(tmp_path, key):
    (tmp_path / "language.toml").write_text(LANGUAGE.read_text(encoding="utf-8"), encoding="utf-8")
    text = 'scenario = "language.toml"\nprivacy.public = ["pregnancy", "age", "asthma", "clots", "fever"]'
    lines = [line for line in text.splitlines() if not line.startswith(key)]
    (line,) = mistakes(tmp_path, "\n".join([*lines, f"{key} = 0.5"]))
    assert line.startswith(f"small.toml:{len(lines) + 1}: {key}: must be ")


BOUNDED = STUDY.replace(
    'by = ["age", "infected"]', 'at_most = { symptoms = 1.5, death = "one for all" }\n[capacity]\npill = 0.25'
)


def test_the_policy_within_bounds_has_those_of_its_study(tmp_path):
    study = ps.load_study(write_small_study(tmp_path, BOUNDED))
    safe = study.policy("optimal-safe", 2.0)
    assert safe == OptimalSafe(2.0, at_most={"symptoms": 1.5, "death": "one for all"}, capacity={"pill": 0.25})
    assert study.policy("optimal", 2.0) == ps.make_policy("optimal", epsilon=2.0)
    # A capacity is added to the policy's own bound, and no bound leaves it as it is.
    only = study.with_choices()
    assert replace(only, at_most={}).policy("optimal-safe").at_most is None
    assert replace(only, at_most={}, capacity={}).policy("optimal-safe") == ps.make_policy("optimal-safe")
    # What may be bounded is what its problem counts.
    assert study.outcomes == tuple(ps.build_problem(study).outcomes)


def test_capacities_that_serve_everybody_or_leave_a_treatment_free_are_taken(tmp_path):
    for place, capacity in enumerate(("none = 0.1\nsyrup = 0.2\npill = 0.7", "none = 0\npill = 0.1")):
        text = STUDY.replace("[compare]", f"[capacity]\n{capacity}\n[compare]")
        study = ps.load_study(write_small_study(tmp_path / str(place), text))
        assert sum(study.capacity.values()) <= 1
        study.policy("optimal-safe", 1.0).check(ps.build_problem(study))


def test_limits_of_a_log_need_its_treatments(tmp_path):
    text = 'lead = "death"\n[data]\nfile = "no.csv"\n[compare]\nat_most = { death = 1 }\n[capacity]\npill = 0.1\n'
    found = mistakes(tmp_path, text)
    assert "small.toml:1: lead: only goes with a scenario or a cohort: in a log the utility leads" in found
    why = "needs [data.treatments], whose names it has"
    assert {f"small.toml:5: compare.at_most: {why}", f"small.toml:6: capacity: {why}"} < set(found)


def test_a_name_that_no_study_has_is_refused_with_those_that_exist():
    with pytest.raises(InputFileError, match="unknown study 'covd'; did you mean 'covid'"):
        ps.load_study("covd")
    with pytest.raises(InputFileError, match="cannot be read: No such file"):
        ps.load_study("nowhere/study.toml")


def test_a_study_may_leave_out_all_but_its_scenario(tmp_path):
    study = ps.load_study(write_small_study(tmp_path, 'scenario = "scenario.toml"'))
    assert len(study.epsilons) == 24
    assert study.policies == DEFAULT_POLICIES


def test_a_folder_is_refused_with_the_study_in_it(tmp_path):
    write_small_study(tmp_path).rename(tmp_path / "study.toml")
    with pytest.raises(InputFileError, match=r"a folder: did you mean .*study\.toml"):
        ps.load_study(tmp_path)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = write_small_study(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert ps.load_study(path).title == "A small study"


@pytest.mark.parametrize("seen", ["treatment", "publication"])
def test_who_must_not_learn_the_record_sees_what_observers_see(tmp_path, seen):
    study = write_small_study(tmp_path, STUDY.replace("[privacy]", f'[privacy]\nseen = "{seen}"'))
    assert ps.load_study(study).hidden_from == f"anyone who sees the {seen}"
