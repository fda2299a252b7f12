"""Scenario files with mistakes: all of them are listed, each with its line, key and what would be right.

Each case edits the small scenario once or more and says which lines come out. The line of a mistake is that of a
piece of text which stands in the edited file once.
"""

import math
import tomllib
from pathlib import Path

import pytest
from small_studies import SCENARIO

import envs

DATA = Path(__file__).parent / "data"
OUTCOMES = "covid_positive, fever, pneumonia, death"
FEATURES = "covid_positive, fever, pneumonia, asthma, age, vaccine"


def edited(text, edits):
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def line_of(text, piece):
    assert text.count(piece) == 1, piece
    return text[: text.index(piece)].count("\n") + 1


def refusal(path, text):
    path.write_text(text, encoding="utf-8")
    with pytest.raises(envs.InputFileError) as caught:
        envs.load_scenario(path)
    return str(caught.value)


def check(small_path, tmp_path, edits, mistakes):
    """The edited scenario is refused with exactly these mistakes: (piece of text on the line, `key: message`)."""
    text = edited(small_path.read_text(encoding="utf-8"), edits)
    path = tmp_path / "s.toml"
    wanted = [f"{path.as_posix()}:{line_of(text, piece)}: {message}" for piece, message in mistakes]
    assert refusal(path, text).splitlines() == wanted


def test_probabilities_of_0_and_1_are_allowed(small_path, tmp_path):
    edits = [("asthma = 0.3", "asthma = 1.0"), ("fever = 0.4", "fever = 0"), ("fever = 0.7", "fever = 1")]
    path = tmp_path / "s.toml"
    path.write_text(edited(small_path.read_text(encoding="utf-8"), edits), encoding="utf-8")
    assert envs.load_scenario(path).treatments["a2"].clears["fever"] == 1.0


def test_the_small_scenario_itself_is_right(small):
    assert small.space.size == 96
    assert small.actions == ("a0", "a1", "a2", "a3")
    assert small.transient == ("covid_positive", "fever", "pneumonia")
    assert small.treatments["a3"].combines == ("a1", "a2")


EVENT = """
[events.stroke]
relative_risk = { age = [0.5, 1.0] }
baseline = BASELINE
"""


@pytest.mark.parametrize("baseline", [0.04, 0.8, 4])
def test_an_event_of_most_untreated_patients_is_asked_about(tmp_path, baseline):
    """The young, who are 70 of 100, have half of the hazard: at 0.8 most of the old have it, and few of all."""
    text = SCENARIO + "stroke = 1" + EVENT.replace("BASELINE", str(baseline))
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    share = 100 - 70 * math.exp(-baseline / 2) - 30 * math.exp(-baseline)
    if share < 50:
        assert envs.load_scenario(path).events["stroke"].baseline == baseline
        return
    line = line_of(text, f"baseline = {baseline}")
    assert refusal(path, text) == (
        f"{path.as_posix()}:{line}: events.stroke.baseline: gives stroke to {share:.3g} of 100 "
        "untreated patients; 4 % is 0.04, not 4. If so many are meant, say so: [events.stroke] more_than_half = true"
    )
    path.write_text(text + "more_than_half = true\n", encoding="utf-8")
    scenario = envs.load_scenario(path)
    mean = envs.prior(scenario) @ envs.ResponseModel(scenario).probability("stroke")[:, 0]
    assert 100 * mean == pytest.approx(share)


def test_deaths_of_most_untreated_patients_are_asked_about_and_may_be_meant(tmp_path):
    text = SCENARIO.replace("death = 0.001", "death = 0.8")
    said = refusal(tmp_path / "s.toml", text)
    # The infected, 30 of 100, die as their own rule says: 0.7 * 0.8 + 0.3 * 0.05.
    assert said.endswith(
        "rules[1]: gives death to 57.5 of 100 untreated patients; 4 % is 0.04, not 4. If so many are meant, say so: "
        "[death] more_than_half = true"
    )
    (tmp_path / "s.toml").write_text(text.replace("[death]\n", "[death]\nmore_than_half = true\n"), encoding="utf-8")
    scenario = envs.load_scenario(tmp_path / "s.toml")
    assert envs.prior(scenario) @ envs.ResponseModel(scenario).death[:, 0] == pytest.approx(0.575)


UNKNOWN_KEYS = [
    ('title = "Small"', 'titel = "Small"', "titel: unknown key 'titel'; did you mean 'title'? known: death, events"),
    ("shares = [0.7", "share = [0, 1], shares = [0.7", "features.vaccine.share: unknown key 'share'; did you mean 's"),
    ("scale = 11", "scale = 11, cut = 3", "features.age.gamma.cut: unknown key 'cut'; did you mean 'cuts'? known: cut"),
    (
        "[30, 60] }",
        "[30, 60] }, shares = [1]",
        "features.age.shares: unknown key 'shares'; known: gamma, levels, words",
    ),
    (
        'flags = ["asthma"]',
        'flags = ["asthma"]\nsett = {}',
        "rules[1].sett: unknown key 'sett'; did you mean 'set'? kn",
    ),
    (
        "unit = 100",
        "unit = 100, units = 1",
        "rules[1].per.units: unknown key 'units'; did you mean 'unit'? known: feat",
    ),
    (
        "cost = 0.03",
        "cots = 0.03",
        "treatments.a1.cots: unknown key 'cots'; did you mean 'cost'? known: clears, combines, ",
    ),
    (
        "baseline = 0.12",
        "base_line = 0.12",
        "death.base_line: unknown key 'base_line'; did you mean 'baseline'? known:",
    ),
    (
        "[weights]",
        "[waits]\nx = 1\n[weights]",
        "waits: unknown key 'waits'; did you mean 'weights'? known: death, events, feat",
    ),
]


@pytest.mark.parametrize(("old", "new", "message"), UNKNOWN_KEYS)
def test_an_unknown_key_is_refused_with_the_nearest_valid_one(small_path, tmp_path, old, new, message):
    text = edited(small_path.read_text(encoding="utf-8"), [(old, new)])
    path = tmp_path / "s.toml"
    (found,) = refusal(path, text).splitlines()
    name = message.split("'")[1]
    line = next(number for number, row in enumerate(text.splitlines(), 1) if name in row.replace("shares = [0.7", ""))
    assert found.startswith(f"{path.as_posix()}:{line}: {message}")


NUMBERS = [  # in place of the 0.1 of the first line of [natural_clearing], its key and what is wanted
    ("1.5", "must be a number in [0, 1], got 1.5"),
    ("-0.1", "must be a number in [0, 1], got -0.1"),
    ("nan", "must be a number in [0, 1], got nan"),
    ("-nan", "must be a number in [0, 1], got nan"),
    ("inf", "must be a number in [0, 1], got inf"),
    ("true", "must be a number in [0, 1], got True"),
    ('"0.1"', "must be a number in [0, 1], got '0.1'"),
    ("[0.1]", "must be a number in [0, 1], got [0.1]"),
    ("{ a = 0.1 }", "must be a number in [0, 1], got a table"),
    ("2", "must be a number in [0, 1], got 2"),
]


@pytest.mark.parametrize(("value", "message"), NUMBERS)
def test_what_is_no_probability_is_refused(small_path, tmp_path, value, message):
    edits = [("[natural_clearing]\ncovid_positive = 0.1", f"[natural_clearing]\ncovid_positive = {value}")]
    mistake = (f"covid_positive = {value}", f"natural_clearing.covid_positive: {message}")
    check(small_path, tmp_path, edits, [mistake])


def mistakes(kind):
    cases = tomllib.loads((DATA / "mistakes.toml").read_text(encoding="utf-8"))[kind]
    return [pytest.param(case, id=case["name"]) for case in cases]


def refusal_of(case, small_path, path):
    """The lines with which the small scenario with one mistake is refused, and what each begins with."""
    text = small_path.read_text(encoding="utf-8")
    line = text[: text.index(case["old"])].count("\n") + 1 + case["new"].count("\n")
    found = refusal(path, edited(text, [(case["old"], case["new"])]))
    return found.splitlines(), f"{path.as_posix()}:{line}: "


@pytest.mark.parametrize("case", mistakes("exact"))
def test_one_mistake_gives_one_line(small_path, tmp_path, case):
    found, place = refusal_of(case, small_path, tmp_path / "s.toml")
    assert found == [place + case["message"]]


@pytest.mark.parametrize("case", [*mistakes("alone"), *mistakes("unusable")])
def test_a_value_that_cannot_be_used_is_refused_and_what_follows_from_it_is_not_listed_as_another(
    small_path, tmp_path, case
):
    found, place = refusal_of(case, small_path, tmp_path / "s.toml")
    assert [row.startswith(f"{place}{case['key']}: ") for row in found] == [True], found


@pytest.mark.parametrize(("old", "key"), [("0.03", "treatments.a1.cost"), ('"Small"', "title")])
def test_a_number_of_too_many_digits_to_print_is_refused(small_path, tmp_path, old, key):
    case = {"old": f"= {old}\n", "new": f"= 0x{'f' * 5000}\n"}
    found, _ = refusal_of(case, small_path, tmp_path / "s.toml")
    assert len(found) == 1
    assert f": {key}: must be " in found[0]


def test_a_rule_that_does_nothing_is_refused(small_path, tmp_path):
    old = 'vaccine = "v1" }\nmultiply = { fever = 0.6, pneumonia = 0.5, death = 0.9 }'
    # The mistake is that of the whole rule, whose header stands a line above.
    text = edited(small_path.read_text(encoding="utf-8"), [(old, 'vaccine = "v1" }')])
    path = tmp_path / "s.toml"
    line = line_of(text, 'vaccine = "v1"') - 1
    message = "rules[4]: does nothing: it needs set, add, multiply, shares or per"
    assert refusal(path, text) == f"{path.as_posix()}:{line}: {message}"


def test_a_rule_that_changes_a_flag_twice_is_refused(small_path, tmp_path):
    edits = [('vaccine = "v1" }\n', 'vaccine = "v1" }\nset = { fever = 0.1 }\n')]
    message = "rules[4].multiply.fever: fever is changed twice by one rule"
    check(small_path, tmp_path, edits, [("multiply =", message)])


def test_a_unit_that_overflows_is_refused(small_path, tmp_path):
    text = edited(small_path.read_text(encoding="utf-8"), [("unit = 100", "unit = 1e-320")])
    (found,) = refusal(tmp_path / "s.toml", text).splitlines()
    assert ": rules[1]" in found


def test_a_feature_must_not_be_called_death(small_path, tmp_path):
    # Death is an outcome, never a feature.
    edits = [("asthma = {}", "asthma = {}\ndeath = {}")]
    (found,) = refusal(tmp_path / "s.toml", edited(small_path.read_text(encoding="utf-8"), edits)).splitlines()
    assert ": features.death: " in found


# Rules together.


def test_rules_that_together_leave_the_unit_interval_are_refused(small_path, tmp_path):
    edits = [("multiply = { fever = 0.6,", "add = { fever = 0.7 }\nmultiply = {")]
    text = edited(small_path.read_text(encoding="utf-8"), edits)
    # At the last rule that changes fever, whose header stands two lines above.
    path, line = tmp_path / "s.toml", line_of(text, "add = {") - 2
    message = "rules[4]: the rules make the probability of fever 1.1: it must stay in [0, 1]"
    assert refusal(path, text) == f"{path.as_posix()}:{line}: {message}"


def test_rules_that_together_fall_below_zero_are_refused(small_path, tmp_path):
    edits = [("multiply = { fever = 0.6,", "add = { fever = -0.5 }\nmultiply = {")]
    text = edited(small_path.read_text(encoding="utf-8"), edits)
    assert refusal(tmp_path / "s.toml", text).endswith(
        "rules[4]: the rules make the probability of fever -0.1: it must stay in [0, 1]"
    )


def test_rules_that_leave_the_unit_interval_are_listed_beside_other_mistakes(small_path, tmp_path):
    edits = [("multiply = { fever = 0.6,", "add = { fever = 0.7 }\nmultiply = {"), ("cost = 0.03", "cots = 0.03")]
    found = refusal(tmp_path / "s.toml", edited(small_path.read_text(encoding="utf-8"), edits))
    assert "the rules make the probability of fever 1.1" in found
    assert "unknown key 'cots'" in found


def test_certain_death_is_refused(small_path, tmp_path):
    text = edited(
        small_path.read_text(encoding="utf-8"),
        [("death = 0.1 }", "death = 1.0 }"), ("fever = 0.6, pneumonia = 0.5, death = 0.9", "fever = 0.6, death = 1")],
    )
    # At the last rule that changes death.
    path, line = tmp_path / "s.toml", line_of(text, "multiply =") - 2
    message = "rules[4]: the rules make death without treatment certain: it must be < 1"
    assert refusal(path, text) == f"{path.as_posix()}:{line}: {message}"


def test_rules_in_a_circle_are_refused(small_path, tmp_path):
    circle = "[[rules]]\nwhen = { fever = 1 }\nadd = { covid_positive = 0.1 }\n"
    text = edited(small_path.read_text(encoding="utf-8"), [("[natural_clearing]", f"{circle}[natural_clearing]")])
    (found,) = refusal(tmp_path / "s.toml", text).splitlines()
    assert ": rules: depend on each other in a circle: " in found
    assert {"covid_positive", "fever"} == set(found.split("circle: ")[1].split(" -> "))


def test_a_rule_that_reads_what_it_changes_is_refused(small_path, tmp_path):
    text = edited(small_path.read_text(encoding="utf-8"), [('vaccine = "v1"', "fever = 1")])
    assert refusal(tmp_path / "s.toml", text).endswith("rules: depend on each other in a circle: fever -> fever")


# Whole files.


def test_all_mistakes_are_listed_at_once_in_the_order_of_their_lines(small_path, tmp_path):
    edits = [
        ("asthma = 0.3", "asthma = 3"),
        ("[0.7, 0.3]", "[0.7, 0.4]"),
        ("cost = 0.03", "cots = 0.03"),
        ("death = 100.0", "deth = 100.0"),
        ('title = "Small"', "title = 1"),
        ('vaccine = "v1"', 'vacine = "v1"'),
    ]
    mistakes = [
        ("title = 1", "title: must be text in quotes, got 1"),
        ("[0.7, 0.4]", "features.vaccine.shares: must sum to 1, got 1.1"),
        ("asthma = 3", "rules[0].set.asthma: must be a number in [0, 1], got 3"),
        ("vacine =", f"rules[4].when.vacine: unknown feature 'vacine'; did you mean 'vaccine'? known: {FEATURES}"),
        (
            "cots =",
            "treatments.a1.cots: unknown key 'cots'; did you mean 'cost'? "
            "known: clears, combines, contraindicated, cost, hazard_ratio, rules, side_effects, source, title",
        ),
        ("deth =", f"weights.deth: unknown outcome 'deth'; did you mean 'death'? known: {OUTCOMES}"),
    ]
    check(small_path, tmp_path, edits, mistakes)


def test_several_mistakes_in_one_line_are_all_listed(small_path, tmp_path):
    edits = [("fever = 0.7, pneumonia = 0.2 }", "fever = -1, pneumonia = true, cough = 1 }")]
    mistakes = [
        ("cough = 1", "treatments.a2.clears.cough: unknown flag 'cough'; known: covid_positive, fever, pneumonia"),
        ("cough = 1", "treatments.a2.clears.fever: must be a number in [0, 1], got -1"),
        ("cough = 1", "treatments.a2.clears.pneumonia: must be a number in [0, 1], got True"),
    ]
    check(small_path, tmp_path, edits, mistakes)


def test_entries_of_a_long_list_have_their_own_lines(small_path, tmp_path):
    edits = [("[0.5, 1.0, 3.0]", "[\n  0.5,\n  true,\n  -3.0,\n] # young, middle, old")]
    text = edited(small_path.read_text(encoding="utf-8"), edits)
    path = tmp_path / "s.toml"
    first, second, *_ = refusal(path, text).splitlines()
    assert first.startswith(f"{path.as_posix()}:{line_of(text, '  true,')}: death.relative_risk.age[1]: must be ")
    assert second.startswith(f"{path.as_posix()}:{line_of(text, '  -3.0')}: death.relative_risk.age[2]: must be ")


def test_dotted_keys_and_tables_are_read_as_inline_tables_are(small_path, tmp_path, small):
    text = edited(
        small_path.read_text(encoding="utf-8"),
        [
            ("clears = { fever = 0.7, pneumonia = 0.2 }", "clears.fever = 0.7\nclears.pneumonia = 0.2"),
            ("vaccine = { levels = [", "[features.vaccine]\nlevels = ["),
            ('"v1"], shares = [0.7, 0.3] }', '"v1"]\nshares = [0.7, 0.3]'),
            ("multiply = { fever = 0.6, pneumonia = 0.5, ", "[rules.multiply]\nfever = 0.6\npneumonia = 0.5\n"),
            ("death = 0.9 }", "death = 0.9"),
        ],
    )
    path = tmp_path / "small.toml"
    path.write_text(text, encoding="utf-8")
    assert envs.load_scenario(path) == small


def test_mistakes_below_dotted_keys_and_sub_tables_have_their_own_lines(small_path, tmp_path):
    edits = [
        ("clears = { fever = 0.7, pneumonia = 0.2 }", "clears.fever = 0.7\nclears.pneumonia = 2"),
        (
            "multiply = { fever = 0.6, pneumonia = 0.5, death = 0.9 }",
            "[rules.multiply]\nfever = 0.6\npneumonia = -0.5\n[[rules]]\n[rules.set]\nasthma = 5",
        ),
    ]
    mistakes = [
        ("pneumonia = -0.5", "rules[4].multiply.pneumonia: must be a number >= 0, got -0.5"),
        ("asthma = 5", "rules[5].set.asthma: must be a number in [0, 1], got 5"),
        ("clears.pneumonia = 2", "treatments.a2.clears.pneumonia: must be a number in [0, 1], got 2"),
    ]
    check(small_path, tmp_path, edits, mistakes)


def test_a_file_without_anything_lacks_features_and_treatments(tmp_path):
    path = tmp_path / "s.toml"
    wanted = [
        f"{path.as_posix()}:1: natural_clearing is missing: it must be a table of numbers",
        f"{path.as_posix()}:1: weights is missing: it must be a table of numbers",
        f"{path.as_posix()}:1: features: features are missing: at least one is needed",
        f"{path.as_posix()}:1: treatments: at least two are needed, got 0",
    ]
    for text in ("", "\n", "# nothing\n"):
        assert refusal(path, text).splitlines() == wanted


@pytest.mark.parametrize("n_features", [45, 70])
def test_more_records_than_any_memory_holds_are_refused(small_path, tmp_path, n_features):
    flags = "".join(f"flag{number} = {{}}\n" for number in range(n_features))
    text = edited(small_path.read_text(encoding="utf-8"), [("asthma = {}\n", f"asthma = {{}}\n{flags}")])
    path = tmp_path / "s.toml"
    (found,) = refusal(path, text).splitlines()
    assert found.startswith(f"{path.as_posix()}:{line_of(text, '[features]')}: features: ")


def test_missing_treatments_are_asked_for(small_path, tmp_path):
    text = small_path.read_text(encoding="utf-8")
    text = text[: text.index("[treatments.a0]")] + text[text.index("[death]") :]
    found = refusal(tmp_path / "s.toml", text)
    assert found.endswith("s.toml:1: treatments: at least two are needed, got 0")


def test_missing_features_are_asked_for_by_their_right_name(small_path, tmp_path):
    text = small_path.read_text(encoding="utf-8")
    text = text[: text.index("[features]")] + text[text.index("[[rules]]\nsource") :]
    found = refusal(tmp_path / "s.toml", text).splitlines()
    assert found[0].endswith("s.toml:1: features: features are missing: at least one is needed")
    # Nothing is known of a feature "?" that the file does not have.
    assert not [line for line in found if "?" in line.replace("? known", "")]


@pytest.mark.parametrize(
    ("edits", "piece", "message"),
    [
        ([("cost = 0.03", "cost = ")], "cost = \n", "Invalid value"),
        ([("cost = 0.03", "cost 0.03")], "cost 0.03", "Expected '=' after a key in a key/value pair"),
        ([("cost = 0.03", "cost = 0.03\ncost = 1")], "cost = 1", "Cannot overwrite a value"),
        ([("[weights]", "[weights")], "[weights", "Expected ']' at the end of a table declaration"),
        ([("[weights]", "[death]")], "[death]\ncovid_positive = 0.2", "Cannot declare ('death',) twice"),
    ],
)
def test_what_is_not_toml_is_refused_at_its_line(small_path, tmp_path, edits, piece, message):
    text = edited(small_path.read_text(encoding="utf-8"), edits)
    path = tmp_path / "s.toml"
    assert refusal(path, text) == f"{path.as_posix()}:{line_of(text, piece)}: not valid TOML: {message}"


def test_a_list_that_never_ends_is_refused_at_the_last_line(small_path, tmp_path):
    text = edited(small_path.read_text(encoding="utf-8"), [("death = 100.0", "death = [100.0")])
    path, last = tmp_path / "s.toml", len(text.splitlines())
    assert refusal(path, text).startswith(f"{path.as_posix()}:{last}: not valid TOML: Unclosed array")


@pytest.mark.parametrize(
    "value", ["[" * 5000 + "]" * 5000, "{a=" * 5000 + "1" + "}" * 5000, "9" * 5000], ids=["lists", "tables", "digits"]
)
def test_a_value_too_deep_or_too_long_is_refused(tmp_path, value):
    path = tmp_path / "s.toml"
    (found,) = refusal(path, f"a = 1\nb = {value}\n").splitlines()
    assert found.startswith(path.as_posix())


@pytest.mark.parametrize("name", ["a\nb", "a\u2028b", "a\x1cb", "a\r\nb"])
def test_a_key_with_a_line_break_does_not_break_the_list_of_mistakes(small_path, tmp_path, name):
    quoted = '"' + "".join(c if c.isalpha() else f"\\u{ord(c):04x}" for c in name) + '"'
    text = edited(small_path.read_text(encoding="utf-8"), [("cost = 0.03", f"{quoted} = 0.03")])
    assert len(refusal(tmp_path / "s.toml", text).splitlines()) == 1
    text = edited(small_path.read_text(encoding="utf-8"), [("fever = 0.7, p", f"{quoted} = 0.7, p")])
    assert len(refusal(tmp_path / "s.toml", text).splitlines()) == 1


def test_a_missing_file_is_named(tmp_path):
    path = tmp_path / "nowhere.toml"
    with pytest.raises(envs.InputFileError) as caught:
        envs.load_scenario(path)
    assert str(caught.value) == f"{path.as_posix()}: cannot be read: No such file or directory"


def test_a_folder_is_refused(tmp_path):
    path = tmp_path / "folder.toml"
    path.mkdir()
    with pytest.raises(envs.InputFileError) as caught:
        envs.load_scenario(path)
    assert str(caught.value) == f"{path.as_posix()}: cannot be read: Is a directory"


def test_a_file_that_is_not_utf_8_is_refused(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes('title = "Müller"\n'.encode("latin-1"))
    with pytest.raises(envs.InputFileError) as caught:
        envs.load_scenario(path)
    assert str(caught.value) == f"{path.as_posix()}: must be UTF-8 text"


def test_a_path_with_a_zero_byte_is_refused():
    with pytest.raises(envs.InputFileError):
        envs.load_scenario("a\0b.toml")


def test_windows_line_ends_keep_the_lines(small_path, tmp_path):
    text = edited(small_path.read_text(encoding="utf-8"), [("death = 100.0", "deth = 100.0")])
    path = tmp_path / "s.toml"
    path.write_bytes(text.replace("\n", "\r\n").encode())
    with pytest.raises(envs.InputFileError, match=f":{line_of(text, 'deth')}: weights.deth: unknown outcome 'deth'"):
        envs.load_scenario(path)


def test_an_unknown_name_is_refused_with_the_nearest_built_in_scenario():
    assert "covid" in envs.scenario_names()
    with pytest.raises(envs.InputFileError) as caught:
        envs.load_scenario("covit")
    assert str(caught.value).startswith("unknown scenario 'covit'; did you mean 'covid'? known: ")
    assert not caught.value.located


def test_a_built_in_name_may_be_given_as_a_path(covid):
    assert envs.load_scenario(Path("covid")) == covid


def test_a_scenario_is_called_after_its_file(small_path, tmp_path):
    path = tmp_path / "ward 7.toml"
    path.write_text(small_path.read_text(encoding="utf-8"), encoding="utf-8")
    assert envs.load_scenario(path).name == "ward 7"
    assert envs.load_scenario(str(path)) == envs.load_scenario(path)


VACCINE = 'vaccine = { levels = ["none", "v1"]'


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ('["one"]', "features.vaccine.words: must be a different text for each level (2), got ['one']"),
        ('["one", "one"]', "features.vaccine.words: must be a different text for each level (2), got ['one', 'one']"),
        ('["one", 2]', "features.vaccine.words[1]: must be text in quotes, got 2"),
        ('["one", " "]', "features.vaccine.words[1]: must be text in quotes, got ' '"),
        ('"one"', "features.vaccine.words: must be a list of text in quotes, got 'one'"),
    ],
)
def test_words_are_one_text_for_each_level(small_path, tmp_path, words, message):
    check(small_path, tmp_path, [(VACCINE, f"{VACCINE}, words = {words}")], [(VACCINE, message)])


def test_patients_are_called_what_the_scenario_calls_them(small_path, tmp_path):
    text = edited(
        small_path.read_text(encoding="utf-8"), [(VACCINE, f'{VACCINE}, words = ["unprotected", "protected"]')]
    )
    path = tmp_path / "s.toml"
    path.write_text(text, encoding="utf-8")
    space = envs.load_scenario(path).space
    assert "unprotected" in space.describe(0)
    # The levels themselves, in data and tables, stay what they are.
    assert space.groups("vaccine")[1] == ("none", "v1")


def test_a_flag_may_have_words_of_its_own(tmp_path):
    text = (Path(envs.__file__).parent / "scenarios" / "covid.toml").read_text(encoding="utf-8")
    flags = envs.load_scenario("covid").space
    plain = tmp_path / "plain.toml"
    plain.write_text(
        text.replace('covid_positive = { words = ["not infected", "infected"] }', "covid_positive = {}"),
        encoding="utf-8",
    )
    assert flags.feature("covid_positive").in_words("0") == "not infected"
    assert envs.load_scenario(plain).space.feature("covid_positive").in_words("0") == "not covid positive"
    assert envs.load_scenario("covid").outcome_title("stomach") == "stomach complaints"
    plain.write_text(text.replace('["not infected", "infected"]', '["infected"]'), encoding="utf-8")
    with pytest.raises(envs.InputFileError, match=r"covid_positive.words: must be a different text for each level"):
        envs.load_scenario(plain)
