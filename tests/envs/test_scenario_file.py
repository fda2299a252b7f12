"""Scenario files with mistakes: all of them are listed, each with its line, key and what would be right.

Each case edits the small scenario once or more and says which lines come out. The line of a mistake is that of a
piece of text which stands in the edited file once.
"""

import math
import re
import tomllib
from pathlib import Path

import pytest
from small_studies import SCENARIO

import envs

DATA = Path(__file__).parent / "data"
OUTCOMES = "covid_positive, fever, pneumonia, death"
FEATURES = "covid_positive, fever, pneumonia, asthma, age, vaccine"


@pytest.fixture
def path(tmp_path):
    """Where a scenario goes."""
    return tmp_path / "s.toml"


@pytest.fixture
def small_text(small_path):
    """The small scenario as text."""
    return small_path.read_text(encoding="utf-8")


def edited(text, edits):
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def line_of(text, piece):
    assert text.count(piece) == 1, piece
    return text[: text.index(piece)].count("\n") + 1


def loaded(path, text):
    path.write_text(text, encoding="utf-8")
    return envs.load_scenario(path)


def refusal(path, text):
    with pytest.raises(envs.InputFileError) as caught:
        loaded(path, text)
    return str(caught.value)


def test_probabilities_of_0_and_1_are_allowed(small_text, path):
    edits = [("asthma = 0.3", "asthma = 1.0"), ("fever = 0.4", "fever = 0"), ("fever = 0.7", "fever = 1")]
    assert loaded(path, edited(small_text, edits)).treatments["a2"].clears["fever"] == 1.0


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
def test_an_event_of_most_untreated_patients_is_asked_about(path, baseline):
    """The young, who are 70 of 100, have half of the hazard: at 0.8 most of the old have it, and few of all."""
    text = SCENARIO + "stroke = 1" + EVENT.replace("BASELINE", str(baseline))
    share = 100 - 70 * math.exp(-baseline / 2) - 30 * math.exp(-baseline)
    if share < 50:
        assert loaded(path, text).events["stroke"].baseline == baseline
        return
    line = line_of(text, f"baseline = {baseline}")
    assert refusal(path, text) == (
        f"{path.as_posix()}:{line}: events.stroke.baseline: gives stroke to {share:.3g} of 100 "
        "untreated patients; 4 % is 0.04, not 4. If so many are meant, say so: [events.stroke] more_than_half = true"
    )
    scenario = loaded(path, text + "more_than_half = true\n")
    mean = envs.prior(scenario) @ envs.ResponseModel(scenario).probability("stroke")[:, 0]
    assert 100 * mean == pytest.approx(share)


def test_deaths_of_most_untreated_patients_are_asked_about_and_may_be_meant(path):
    text = SCENARIO.replace("death = 0.001", "death = 0.8")
    said = refusal(path, text)
    # The infected, 30 of 100, die as their own rule says: 0.7 * 0.8 + 0.3 * 0.05.
    assert said.endswith(
        "rules[1]: gives death to 57.5 of 100 untreated patients; 4 % is 0.04, not 4. If so many are meant, say so: "
        "[death] more_than_half = true"
    )
    scenario = loaded(path, text.replace("[death]\n", "[death]\nmore_than_half = true\n"))
    assert envs.prior(scenario) @ envs.ResponseModel(scenario).death[:, 0] == pytest.approx(0.575)


VACCINE = 'vaccine = { levels = ["none", "v1"]'
CLEARED = "natural_clearing.covid_positive: must be a number in [0, 1], got"
LAST_WHEN = 'when = { covid_positive = 1, vaccine = "v1" }'
LAST_RULE = f"[[rules]]\n{LAST_WHEN}"
FACTORS = "multiply = { fever = 0.6, pneumonia = 0.5, death = 0.9 }"
FEVER_RISES = (FACTORS, "add = { fever = 0.7 }\nmultiply = { pneumonia = 0.5, death = 0.9 }")
COTS = (
    "treatments.a1.cots: unknown key 'cots'; did you mean 'cost'? "
    "known: clears, combines, contraindicated, cost, hazard_ratio, rules, side_effects, source, title"
)
# Edits of the small scenario, and all lines of its refusal: a piece of the edited text on the line, and what is said.
MISTAKES = {
    **{
        f"no probability: {value}": (
            [("[natural_clearing]\ncovid_positive = 0.1", f"[natural_clearing]\ncovid_positive = {value}")],
            [(f"covid_positive = {value}", f"{CLEARED} {shown}")],
        )
        for value, shown in (
            ("1.5", "1.5"),
            ("-0.1", "-0.1"),
            ("-nan", "nan"),
            ("inf", "inf"),
            ("true", "True"),
            ('"0.1"', "'0.1'"),
            ("[0.1]", "[0.1]"),
            ("{ a = 0.1 }", "a table"),
        )
    },
    **{
        f"words {words}": ([(VACCINE, f"{VACCINE}, words = {words}")], [(VACCINE, f"features.vaccine.words{message}")])
        for words, message in (
            ('["one"]', ": must be a different text for each level (2), got ['one']"),
            ('["one", "one"]', ": must be a different text for each level (2), got ['one', 'one']"),
            ('["one", 2]', "[1]: must be text in quotes, got 2"),
            ('["one", " "]', "[1]: must be text in quotes, got ' '"),
            ('"one"', ": must be a list of text in quotes, got 'one'"),
        )
    },
    "no value": ([("cost = 0.03", "cost = ")], [("cost = \n", "not valid TOML: Invalid value")]),
    "no sign": (
        [("cost = 0.03", "cost 0.03")],
        [("cost 0.03", "not valid TOML: Expected '=' after a key in a key/value pair")],
    ),
    "a key twice": (
        [("cost = 0.03", "cost = 0.03\ncost = 1")],
        [("cost = 1", "not valid TOML: Cannot overwrite a value")],
    ),
    "an open header": (
        [("[weights]", "[weights")],
        [("[weights", "not valid TOML: Expected ']' at the end of a table declaration")],
    ),
    "a table twice": (
        [("[weights]", "[death]")],
        [("[death]\ncovid_positive = 0.2", "not valid TOML: Cannot declare ('death',) twice")],
    ),
    # What is wrong with a whole rule is said at its header; of rules together at the last that changes the value.
    "a rule that does nothing": (
        [(f"{LAST_WHEN}\n{FACTORS}", LAST_WHEN)],
        [(LAST_RULE, "rules[4]: does nothing: it needs set, add, multiply, shares or per")],
    ),
    "a flag changed twice": (
        [(LAST_WHEN, f"{LAST_WHEN}\nset = {{ fever = 0.1 }}")],
        [("multiply =", "rules[4].multiply.fever: fever is changed twice by one rule")],
    ),
    "a rule that reads what it changes": (
        [(LAST_WHEN, "when = { fever = 1 }")],
        [("[[rules]]\nsource", "rules: depend on each other in a circle: fever -> fever")],
    ),
    "an unknown key that is near none": (
        [("[30, 60] }", "[30, 60] }, shares = [1]")],
        [("shares = [1]", "features.age.shares: unknown key 'shares'; known: gamma, levels, words")],
    ),
    "rules above 1, beside another mistake": (
        [FEVER_RISES, ("cost = 0.03", "cots = 0.03")],
        [
            (LAST_RULE, "rules[4]: the rules make the probability of fever 1.1: it must stay in [0, 1]"),
            ("cots =", COTS),
        ],
    ),
    "rules below 0": (
        [(FACTORS, "add = { fever = -0.5 }")],
        [(LAST_RULE, "rules[4]: the rules make the probability of fever -0.1: it must stay in [0, 1]")],
    ),
    "certain death": (
        [("death = 0.1 }", "death = 1.0 }"), (FACTORS, "multiply = { fever = 0.6, death = 1 }")],
        [(LAST_RULE, "rules[4]: the rules make death without treatment certain: it must be < 1")],
    ),
    "many mistakes, in the order of their lines": (
        [
            ("asthma = 0.3", "asthma = 3"),
            ("[0.7, 0.3]", "[0.7, 0.4]"),
            ("cost = 0.03", "cots = 0.03"),
            ("death = 100.0", "deth = 100.0"),
            ('title = "Small"', "title = 1"),
            ('vaccine = "v1"', 'vacine = "v1"'),
        ],
        [
            ("title = 1", "title: must be text in quotes, got 1"),
            ("[0.7, 0.4]", "features.vaccine.shares: must sum to 1, got 1.1"),
            ("asthma = 3", "rules[0].set.asthma: must be a number in [0, 1], got 3"),
            ("vacine =", f"rules[4].when.vacine: unknown feature 'vacine'; did you mean 'vaccine'? known: {FEATURES}"),
            ("cots =", COTS),
            ("deth =", f"weights.deth: unknown outcome 'deth'; did you mean 'death'? known: {OUTCOMES}"),
        ],
    ),
    "many mistakes in one line": (
        [("fever = 0.7, pneumonia = 0.2 }", "fever = -1, pneumonia = true, cough = 1 }")],
        [
            ("cough = 1", "treatments.a2.clears.cough: unknown flag 'cough'; known: covid_positive, fever, pneumonia"),
            ("cough = 1", "treatments.a2.clears.fever: must be a number in [0, 1], got -1"),
            ("cough = 1", "treatments.a2.clears.pneumonia: must be a number in [0, 1], got True"),
        ],
    ),
    "mistakes below dotted keys and sub-tables": (
        [
            ("clears = { fever = 0.7, pneumonia = 0.2 }", "clears.fever = 0.7\nclears.pneumonia = 2"),
            (FACTORS, "[rules.multiply]\nfever = 0.6\npneumonia = -0.5\n[[rules]]\n[rules.set]\nasthma = 5"),
        ],
        [
            ("pneumonia = -0.5", "rules[4].multiply.pneumonia: must be a number >= 0, got -0.5"),
            ("asthma = 5", "rules[5].set.asthma: must be a number in [0, 1], got 5"),
            ("clears.pneumonia = 2", "treatments.a2.clears.pneumonia: must be a number in [0, 1], got 2"),
        ],
    ),
}


@pytest.mark.parametrize(("edits", "mistakes"), MISTAKES.values(), ids=MISTAKES)
def test_all_mistakes_are_listed_in_the_order_of_their_lines(small_text, path, edits, mistakes):
    text = edited(small_text, edits)
    wanted = [f"{path.as_posix()}:{line_of(text, piece)}: {message}" for piece, message in mistakes]
    assert refusal(path, text).splitlines() == wanted


# What replaces a piece of the small scenario, the table that has the unknown key, and the nearest that it knows.
UNKNOWN_KEYS = [
    ('title = "Small"', 'titel = "Small"', "", "titel", "title"),
    ("shares = [0.7", "share = [0, 1], shares = [0.7", "features.vaccine.", "share", "shares"),
    ("scale = 11", "scale = 11, cut = 3", "features.age.gamma.", "cut", "cuts"),
    ('flags = ["asthma"]', 'flags = ["asthma"]\nsett = {}', "rules[1].", "sett", "set"),
    ("unit = 100", "unit = 100, units = 1", "rules[1].per.", "units", "unit"),
    ("cost = 0.03", "cots = 0.03", "treatments.a1.", "cots", "cost"),
    ("baseline = 0.12", "base_line = 0.12", "death.", "base_line", "baseline"),
    ("[weights]", "[waits]\nx = 1\n[weights]", "", "waits", "weights"),
]


@pytest.mark.parametrize("case", UNKNOWN_KEYS)
def test_an_unknown_key_is_refused_with_the_nearest_valid_one(small_text, path, case):
    old, new, table, key, nearest = case
    text = edited(small_text, [(old, new)])
    (found,) = refusal(path, text).splitlines()
    line = next(number for number, row in enumerate(text.splitlines(), 1) if re.search(rf"\b{key}\b", row))
    message = f"{table}{key}: unknown key '{key}'; did you mean '{nearest}'? known: "
    assert found.startswith(f"{path.as_posix()}:{line}: {message}")


def mistakes(kind):
    cases = tomllib.loads((DATA / "mistakes.toml").read_text(encoding="utf-8"))[kind]
    return [pytest.param(case, id=case["name"]) for case in cases]


def refusal_of(case, small_text, path):
    """The lines with which the small scenario with one mistake is refused, and what each begins with."""
    line = small_text[: small_text.index(case["old"])].count("\n") + 1 + case["new"].count("\n")
    found = refusal(path, edited(small_text, [(case["old"], case["new"])]))
    return found.splitlines(), f"{path.as_posix()}:{line}: "


@pytest.mark.parametrize("case", mistakes("exact"))
def test_one_mistake_gives_one_line(small_text, path, case):
    found, place = refusal_of(case, small_text, path)
    assert found == [place + case["message"]]


@pytest.mark.parametrize("case", [*mistakes("alone"), *mistakes("unusable")])
def test_a_value_that_cannot_be_used_is_refused_and_what_follows_from_it_is_not_listed_as_another(
    small_text, path, case
):
    found, place = refusal_of(case, small_text, path)
    assert [row.startswith(f"{place}{case['key']}: ") for row in found] == [True], found


@pytest.mark.parametrize(("old", "key"), [("0.03", "treatments.a1.cost"), ('"Small"', "title")])
def test_a_number_of_too_many_digits_to_print_is_refused(small_text, path, old, key):
    case = {"old": f"= {old}\n", "new": f"= 0x{'f' * 5000}\n"}
    found, _ = refusal_of(case, small_text, path)
    assert len(found) == 1
    assert f": {key}: must be " in found[0]


def test_a_unit_that_overflows_is_refused(small_text, path):
    text = edited(small_text, [("unit = 100", "unit = 1e-320")])
    (found,) = refusal(path, text).splitlines()
    assert ": rules[1]" in found


# Whole files.


def test_entries_of_a_long_list_have_their_own_lines(small_text, path):
    edits = [("[0.5, 1.0, 3.0]", "[\n  0.5,\n  true,\n  -3.0,\n] # young, middle, old")]
    text = edited(small_text, edits)
    first, second, *_ = refusal(path, text).splitlines()
    assert first.startswith(f"{path.as_posix()}:{line_of(text, '  true,')}: death.relative_risk.age[1]: must be ")
    assert second.startswith(f"{path.as_posix()}:{line_of(text, '  -3.0')}: death.relative_risk.age[2]: must be ")


def test_dotted_keys_and_tables_are_read_as_inline_tables_are(small_text, tmp_path, small):
    text = edited(
        small_text,
        [
            ("clears = { fever = 0.7, pneumonia = 0.2 }", "clears.fever = 0.7\nclears.pneumonia = 0.2"),
            ("vaccine = { levels = [", "[features.vaccine]\nlevels = ["),
            ('"v1"], shares = [0.7, 0.3] }', '"v1"]\nshares = [0.7, 0.3]'),
            ("multiply = { fever = 0.6, pneumonia = 0.5, ", "[rules.multiply]\nfever = 0.6\npneumonia = 0.5\n"),
            ("death = 0.9 }", "death = 0.9"),
        ],
    )
    assert loaded(tmp_path / "small.toml", text) == small


def test_a_file_without_anything_lacks_features_and_treatments(path):
    wanted = [
        f"{path.as_posix()}:1: natural_clearing is missing: it must be a table of numbers",
        f"{path.as_posix()}:1: weights is missing: it must be a table of numbers",
        f"{path.as_posix()}:1: features: features are missing: at least one is needed",
        f"{path.as_posix()}:1: treatments: at least two are needed, got 0",
    ]
    for text in ("", "\n", "# nothing\n"):
        assert refusal(path, text).splitlines() == wanted


@pytest.mark.parametrize("n_features", [45, 70])
def test_more_records_than_any_memory_holds_are_refused(small_text, path, n_features):
    flags = "".join(f"flag{number} = {{}}\n" for number in range(n_features))
    text = edited(small_text, [("asthma = {}\n", f"asthma = {{}}\n{flags}")])
    (found,) = refusal(path, text).splitlines()
    assert found.startswith(f"{path.as_posix()}:{line_of(text, '[features]')}: features: ")


def test_missing_features_are_asked_for_by_their_right_name(small_text, path):
    before, _, after = small_text.partition("[features]")
    text = before + after[after.index("[[rules]]\nsource") :]
    found = refusal(path, text).splitlines()
    assert found[0].endswith("s.toml:1: features: features are missing: at least one is needed")
    # Nothing is known of a feature "?" that the file does not have.
    assert not [line for line in found if "?" in line.replace("? known", "")]


def test_a_list_that_never_ends_is_refused_at_the_last_line(small_text, path):
    text = edited(small_text, [("death = 100.0", "death = [100.0")])
    assert refusal(path, text).startswith(f"{path.as_posix()}:{len(text.splitlines())}: not valid TOML: Unclosed array")


@pytest.mark.parametrize(
    "value", ["[" * 5000 + "]" * 5000, "{a=" * 5000 + "1" + "}" * 5000, "9" * 5000], ids=["lists", "tables", "digits"]
)
def test_a_value_too_deep_or_too_long_is_refused(path, value):
    (found,) = refusal(path, f"a = 1\nb = {value}\n").splitlines()
    assert found.startswith(path.as_posix())


@pytest.mark.parametrize("name", ["a\nb", "a\u2028b", "a\x1cb", "a\r\nb"])
def test_a_key_with_a_line_break_does_not_break_the_list_of_mistakes(small_text, path, name):
    quoted = '"' + "".join(c if c.isalpha() else f"\\u{ord(c):04x}" for c in name) + '"'
    text = edited(small_text, [("cost = 0.03", f"{quoted} = 0.03")])
    assert len(refusal(path, text).splitlines()) == 1
    text = edited(small_text, [("fever = 0.7, p", f"{quoted} = 0.7, p")])
    assert len(refusal(path, text).splitlines()) == 1


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    (tmp_path / "folder.toml").mkdir()
    for name, reason in (("nowhere.toml", "No such file or directory"), ("folder.toml", "Is a directory")):
        path = tmp_path / name
        with pytest.raises(envs.InputFileError) as caught:
            envs.load_scenario(path)
        assert str(caught.value) == f"{path.as_posix()}: cannot be read: {reason}"


def test_a_file_that_is_not_utf_8_is_refused(path):
    path.write_bytes('title = "Müller"\n'.encode("latin-1"))
    with pytest.raises(envs.InputFileError) as caught:
        envs.load_scenario(path)
    assert str(caught.value) == f"{path.as_posix()}: must be UTF-8 text"


def test_a_path_with_a_zero_byte_is_refused():
    with pytest.raises(envs.InputFileError):
        envs.load_scenario("a\0b.toml")


def test_windows_line_ends_keep_the_lines(small_text, path):
    text = edited(small_text, [("death = 100.0", "deth = 100.0")])
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


def test_a_scenario_is_called_after_its_file(small_text, tmp_path):
    path = tmp_path / "ward 7.toml"
    assert loaded(path, small_text).name == "ward 7"
    assert envs.load_scenario(str(path)) == envs.load_scenario(path)


def test_patients_are_called_what_the_scenario_calls_them(small_text, path):
    text = edited(small_text, [(VACCINE, f'{VACCINE}, words = ["unprotected", "protected"]')])
    space = loaded(path, text).space
    assert "unprotected" in space.describe(0)
    # The levels themselves, in data and tables, stay what they are.
    assert space.groups("vaccine")[1] == ("none", "v1")


def test_a_flag_may_have_words_of_its_own(covid, path):
    text = (Path(envs.__file__).parent / "scenarios" / "covid.toml").read_text(encoding="utf-8")
    words = 'covid_positive = { words = ["not infected", "infected"] }'
    plain = loaded(path, edited(text, [(words, "covid_positive = {}")]))
    assert covid.space.feature("covid_positive").in_words("0") == "not infected"
    assert plain.space.feature("covid_positive").in_words("0") == "not covid positive"
    assert covid.outcome_title("stomach") == "stomach complaints"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("death = 100.0", "", "weights: death is missing: it must be a number >= 0; 0 if it is to cost nothing"),
        (
            "[weights]",
            '[events.""]\ntitle = "x"\nbaseline = 1\n[weights]\n"" = 1',
            "events.: must have a name that can be seen, got ''",
        ),
        (
            "[weights]",
            "[events.bleed]\nbaseline = 1\n[weights]",
            "weights: bleed is missing: it must be a number >= 0; 0 if it is to cost nothing",
        ),
        (
            "[weights]",
            '[events.x]\nbaseline = 1\n[events.y]\ntitle = "X "\nbaseline = 1\n[weights]\nx = 1\ny = 1',
            "events.y.title: must be another title than that of x, got 'X '",
        ),
        ('title = "none"', 'title = " "', "treatments.a0.title: must not be empty"),
        ('title = "none"', 'title = "A2"', "treatments.a2.title: must be another title than that of a0, got 'a2'"),
        ('title = "Small"', 'title = ""', "title: must not be empty"),
        ('"v1"]', '" "]', "features.vaccine.levels[1]: must be text that can be seen, got ' '"),
        ("[0.7, 0.3]", "[0.6, 0.3999999]", "features.vaccine.shares: must sum to 1, got 0.9999999"),
        (
            "[0.7, 0.3]",
            "[70, 0.3]",
            "features.vaccine.shares[0]: must be a probability in [0, 1] (60 % is 0.6), got 70",
        ),
    ],
)
def test_what_is_forgotten_or_cannot_be_seen_or_told_apart_is_refused(small_text, path, old, new, message):
    (found,) = refusal(path, edited(small_text, [(old, new)])).splitlines()
    assert found.startswith(path.as_posix()) and found.endswith(f": {message}")
