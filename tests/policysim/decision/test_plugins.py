"""Mechanisms of other packages: installed, they work everywhere; broken, they are named and break nothing.

A comparison, the lines on standard error and what is imported are asked of a process of its own. Otherwise the folder
of the installed package is put before the others in this process, which saves the imports of policysim.
"""

import json
import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from small_studies import write_small_study
from toy_package import COIN, install, run, unpack

import policysim as ps
from policies import AnyRecord, DecisionProblem
from policies.catalogue import CATALOGUE, DESCRIPTIONS, REFERENCES, Catalogue, Description, Plugin, describe
from policies.policy import ClaimError, NoTableError, NotApplicableError, Policy
from policies.randomized_response import RandomizedResponse
from policies.reference import Greedy, Uniform
from policysim.cli.main import main
from policysim.decision.audit import audit
from policysim.decision.demands import least_epsilons

CLI = ("-m", "policysim")
# The same with few redraws.
QUICK = ("-c", "import sys; from policysim.decision import redraws; redraws.REDRAWS = 5; import policysim.__main__")
TOYS = ("toy_coin", "toy_exit", "toy_broken")


@pytest.fixture
def packages(monkeypatch):
    """Put packages where this process finds them, as if it had begun with them; until the end of the test."""

    def put(*folders):
        for folder in folders:
            monkeypatch.syspath_prepend(folder)
        monkeypatch.setattr(CATALOGUE, "_plugins", None)

    yield put
    for module in TOYS:
        sys.modules.pop(module, None)


@pytest.fixture
def with_toys(packages, toys):
    packages(toys)


@pytest.fixture
def ask(capsys):
    """Exit code, standard output and standard error of one command, in this process."""

    def ask(*arguments):
        capsys.readouterr()
        return (main(list(map(str, arguments))), *capsys.readouterr())

    return ask


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return str(write_small_study(tmp_path_factory.mktemp("study")))


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    """A package with a good mechanism, one that reveals more than it claims, and one that gives no probabilities."""
    entries = {"coin": "toy_coin:Coin", "liar": "toy_coin:Liar", "crooked": "toy_coin:Crooked"}
    return install(tmp_path_factory.mktemp("toys"), "toy-mechanisms", entries, {"toy_coin": COIN})


@pytest.fixture(scope="module")
def compared(toys, study, tmp_path_factory):
    """The folder of a comparison with the toy mechanism, and what was printed."""
    out = tmp_path_factory.mktemp("compared")
    policies = [part for name in ("toy-coin", "randomized-response", "optimal") for part in ("--policy", name)]
    done = run(
        *(toys, *QUICK, "compare", study, *policies, "--epsilon", "0.5,1", "--full", "--out", str(out)),
        *("--format", "svg", "--figures", "frontier,benefit-parts"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return out, done.stdout


def test_compare_and_its_report_have_the_mechanism(compared):
    out, printed = compared
    assert "toy-coin" in printed
    table = pd.read_csv(out / "comparison.csv")
    everyone = table[table["group"] == "all"]
    mine, response = (everyone[everyone["policy"] == name] for name in ("toy-coin", "randomized-response"))
    # It is response at half its ε.
    assert mine["epsilon_spent"].tolist() == pytest.approx((mine["epsilon"] / 2).tolist())
    at = mine.set_index("epsilon")["value"], response.set_index("epsilon")["value"]
    assert at[0][1.0] == pytest.approx(at[1][0.5])
    options = pd.read_csv(out / "options.csv").set_index("policy")["option"]
    assert options["toy-coin"].eq("D").all()
    assert "toy-coin" in (out / "report.html").read_text()
    for figure in ("frontier", "benefit-parts"):
        assert "toy-coin" in (out / "figures" / f"{figure}.svg").read_text()
    assert json.loads((out / "manifest.json").read_text())["versions"]["toy-mechanisms"] == "1.2"


@pytest.mark.usefixtures("with_toys", "blank_drawings")
def test_its_report_comes_out_again_where_the_package_is(ask, tmp_path, monkeypatch):
    folder = tmp_path / "again"
    write_small_study(folder).rename(folder / "study.toml")
    few = ("--policy", "toy-coin", "--epsilon", "1", "--figures", "frontier", "--format", "svg")
    code, _, error = ask("compare", folder / "study.toml", *few, "--out", folder)
    assert (code, error) == (0, "")
    assert '"toy-mechanisms": "1.2"' in (folder / "manifest.json").read_text()
    monkeypatch.setattr(CATALOGUE, "_plugins", None)
    code, said, error = ask("reproduce", folder / "manifest.json")
    assert (code, error) == (0, "")
    assert "agree" in said
    monkeypatch.setattr(CATALOGUE, "_plugins", {})
    assert "unknown policy 'toy-coin'" in ask("reproduce", folder / "manifest.json")[2]


@pytest.mark.usefixtures("with_toys")
def test_choose_finds_its_epsilon_and_says_whose_it_is(ask, study, tmp_path):
    options = ("--keep", "80%", "--policy", "toy-coin", "--json", "--out", str(tmp_path / "out"))
    code, printed, error = ask("choose", study, *options)
    assert (code, error) == (0, "")
    (row,) = json.loads(printed)["rows"]
    _, plain, _ = ask("choose", study, "--keep", "80%", "--policy", "randomized-response", "--json")
    (other,) = json.loads(plain)["rows"]
    assert row["epsilon"] == pytest.approx(2 * other["epsilon"], rel=1e-3)
    assert "toy-mechanisms 1.2" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.usefixtures("with_toys")
def test_audit_and_simulate_and_python_have_it(ask, toys, study):
    code, printed, error = ask("audit", study, "--policy", "toy-coin", "--epsilon", "1,4", "--json")
    assert (code, error) == (0, "")
    findings = json.loads(printed)["findings"]
    assert [found["exact"] for found in findings] == pytest.approx([0.5, 2.0])
    options = ("--policy", "toy-coin", "--epsilon", "1", "--patients", "2000")
    assert ask("simulate", study, *options)[0] == 0
    script = (
        "import sys, policysim as ps\n"
        "assert 'numpy' not in sys.modules\n"
        "ps.make_policy('optimal')\n"
        "assert 'toy_coin' not in sys.modules\n"
        "assert ps.make_policy('toy-coin', epsilon=2.0).guarantee == 2.0\n"
    )
    assert run(toys, "-c", script).stderr == ""


@pytest.mark.usefixtures("with_toys")
@pytest.mark.parametrize("command", [("compare",), ("choose", "--keep", "80%")])
def test_a_mechanism_that_reveals_more_than_it_claims_is_told_and_not_compared(ask, study, tmp_path, command):
    verb, *options = command
    code, printed, error = ask(verb, study, *options, "--policy", "toy-liar", "--out", tmp_path / "out")
    assert (code, printed) == (4, "")
    assert error.startswith("policysim: toy-liar at ε = ")
    assert "claims a privacy loss of at most" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("with_toys", "blank_drawings")
def test_a_broken_claim_is_named_and_its_policy_left_out_beside_others(ask, study, tmp_path):
    out, few = tmp_path / "out", ("--epsilon", "0.5,1", "--format", "svg", "--figures", "frontier")
    named = [part for name in ("toy-liar", "toy-coin", "toy-crooked") for part in ("--policy", name)]
    code, printed, error = ask("compare", study, *named, *few, "--out", out)
    assert (code, error) == (4, "")
    said = " ".join(printed.split())
    assert "left out: toy-liar at ε = 0.5 claims a privacy loss of at most 0.5, and its exact loss is 1" in said
    assert "left out: toy-crooked at ε = 0.5 gives no table of probabilities: its probabilities sum to" in said
    compared = set(pd.read_csv(out / "comparison.csv")["policy"])
    assert "toy-coin" in compared and not compared & {"toy-liar", "toy-crooked"}
    assert {"toy-coin"} == {name for name in pd.read_csv(out / "options.csv")["policy"] if name.startswith("toy")}
    assert ask("compare", study, "--policy", "all", *few, "--out", tmp_path / "all")[0] == 4


class Triple(Policy):
    """What reveals three times what it claims."""

    name = "triple"

    def _log_probabilities(self, problem):
        return RandomizedResponse(3 * self.epsilon).log_probabilities(problem)


class Forked(Policy):
    """What hides everything by one method, and nothing by another."""

    name = "forked"

    def _log_probabilities(self, problem):
        return Uniform().log_probabilities(problem)

    def _probabilities(self, problem):
        return Greedy().probabilities(problem)


class Failing(Policy):
    """What does not work."""

    name = "failing"

    def _log_probabilities(self, problem):
        raise RuntimeError("out\nof order.")


class Late(Failing):
    """What fails where it is checked."""

    name = "late"

    def _tables(self, problem):
        return RandomizedResponse(self.epsilon).tables(problem)


class Unsaid(Policy):
    """What cannot say what it claims."""

    name = "unsaid"

    @property
    def guarantee(self):
        return {}[self.name]

    def _log_probabilities(self, problem):
        return RandomizedResponse(self.epsilon).log_probabilities(problem)


class Wordy(Unsaid):
    """What claims no number."""

    name = "wordy"
    guarantee = "all is safe"


PROBLEM = DecisionProblem(np.eye(3), np.full(3, 1 / 3), AnyRecord())
FAULTS = {
    Failing: (NoTableError, r"failing at ε = .* gives no table of probabilities: RuntimeError: out of order$"),
    Late: (NoTableError, r"late at ε = .* gives no table of probabilities: RuntimeError: out of order$"),
    Triple: (ClaimError, r"triple at ε = .* claims a privacy loss of at most .*, and its exact loss is"),
    Unsaid: (ClaimError, r"unsaid at ε = .* claims no privacy loss: KeyError: 'unsaid'$"),
    Wordy: (ClaimError, r"wordy at ε = .* claims no privacy loss: ValueError: guarantee must be >= 0"),
    Forked: (NoTableError, r"forked at ε = .*: its probabilities are not those of its logarithms"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_no_epsilon_is_promised_for_a_policy_that_is_not_what_it_says(kind):
    error, message = FAULTS[kind]
    with pytest.raises(error, match=message):
        ps.smallest_epsilon(PROBLEM, kind(), keep=0.8)
    with pytest.raises(error, match=message):
        ps.compare(PROBLEM, policies=[kind()], epsilons=[1.0])
    with pytest.warns(UserWarning, match=f"left out: {message}"):
        table = ps.compare(PROBLEM, policies=[kind(), "exponential"], epsilons=[2.0, 1.0])
    assert table["policy"].unique().tolist() == ["exponential"]
    found = ps.report(PROBLEM, policies=[kind(), "exponential"], epsilons=[1.0])
    assert found.exit_code == 4 and "left out: " in str(found) and kind.name in str(found)
    assert not audit(PROBLEM, [kind()], [1.0])[0].holds


def test_what_cannot_be_used_on_a_problem_is_not_called_broken():
    class Choosy(Policy):
        name = "choosy"

        def _check(self, problem):
            raise NotApplicableError("it wants two records")

        def _log_probabilities(self, problem):
            self._check(problem)

    for used in (Choosy(1.0).check, Choosy(1.0).fit, Choosy(1.0).tables):
        with pytest.raises(NotApplicableError, match=r"^it wants two records$"):
            used(PROBLEM)


def test_a_claim_that_breaks_only_where_the_search_ends_is_promised_no_epsilon():
    class Sly(Triple):
        name = "sly"

        def _log_probabilities(self, problem):
            honest = RandomizedResponse(self.epsilon).log_probabilities(problem)
            return honest if self.epsilon in (0.0, 1.0) else super()._log_probabilities(problem)

    table = ps.compare(PROBLEM, policies=[Sly()], epsilons=[1.0])
    assert least_epsilons(PROBLEM, [Sly()], table)[["better_from", "keeps_from"]].isna().any(axis=None)


def test_nor_is_an_epsilon_of_a_process():
    moves = np.full((3, 3, 3), 1 / 3)
    mdp = ps.TabularMDP(moves, np.eye(3), initial=np.full(3, 1 / 3), horizon=2, axes="SAS")
    with pytest.raises(
        ClaimError, match=r"triple at ε = .* claims a privacy loss of at most .*, and its exact loss is"
    ):
        ps.smallest_epsilon(mdp, Triple(), keep=0.8)


@pytest.mark.usefixtures("with_toys")
def test_audit_shows_who_reveals_more_than_is_claimed_and_who_gives_no_probabilities(ask, study, tmp_path):
    code, printed, _ = ask(
        "audit", study, "--policy", "toy-liar", "--policy", "toy-crooked", "--epsilon", "1", "--json"
    )
    assert code == 4
    liar, crooked = json.loads(printed)["findings"]
    assert (liar["claimed"], liar["exact"], liar["holds"]) == (1.0, pytest.approx(2.0), False)
    assert "sum to 0.904837418" in crooked["fault"]
    code, _, error = ask("compare", study, "--policy", "toy-crooked", "--out", tmp_path / "out")
    assert code == 3
    assert "toy-crooked at ε = " in error and "gives no table of probabilities" in error


BROKEN = """\
from policies.policy import Policy
from policies.reference import Uniform


class Nameless(Uniform.__base__):
    def _log_probabilities(self, problem): ...


class Clash(Nameless):
    name = "exponential"


class Heir(Uniform): ...


class Reserved(Nameless):
    name = "optimal-mine"


class Loud(Nameless):
    name = "Loud Policy"


class Unfinished(Policy):
    name = "unfinished"


class Fussy(Nameless):
    name = "fussy"

    def __post_init__(self):
        raise RuntimeError("I want\\nmore")


class Good(Nameless):
    name = "twice"


class Twice(Nameless):
    name = "twice"


class Old(Uniform):
    name = "old"

    def log_probabilities(self, problem): ...


def function(): ...
"""
REFUSED = {
    "a-import": ("toy_import", "ModuleNotFoundError: No module named 'nowhere'"),
    "b-exit": ("toy_exit:Policy", "SystemExit: 3"),
    "c-missing": ("toy_broken:Missing", "AttributeError: module 'toy_broken' has no attribute 'Missing'"),
    "d-function": ("toy_broken:function", "it is no subclass of policies.policy.Policy"),
    "e-nameless": ("toy_broken:Nameless", "the class Nameless has no name"),
    "f-clash": ("toy_broken:Clash", "its name 'exponential' is taken: a policy of this name is built in"),
    "g-heir": ("toy_broken:Heir", "its name 'uniform' is taken: a policy of this name is built in"),
    "h-reserved": ("toy_broken:Reserved", "its name 'optimal-mine' is reserved, as all, optimal-… and best-… are"),
    "i-loud": (
        "toy_broken:Loud",
        "its name must be lower-case letters and digits with hyphens between, got 'Loud Policy'",
    ),
    "j-unfinished": ("toy_broken:Unfinished", "the class Unfinished lacks _log_probabilities"),
    "k-fussy": ("toy_broken:Fussy", "Fussy(1.0) cannot be made: RuntimeError: I want more"),
    "m-twice": ("toy_broken:Twice", "its name 'twice' is taken: a policy of this name is from broken-mechanisms"),
    "n-old": (
        "toy_broken:Old",
        "Old replaces log_probabilities, which keeps a policy to what records allow; implement _log_probabilities",
    ),
}


def test_broken_mechanisms_are_named_in_a_line_each_and_break_nothing(toys, study, tmp_path, request, caplog):
    packages, ask = request.getfixturevalue("packages"), request.getfixturevalue("ask")
    entries = {**{name: value for name, (value, _) in REFUSED.items()}, "l-good": "toy_broken:Good"}
    modules = {"toy_import": "import nowhere", "toy_exit": "raise SystemExit(3)", "toy_broken": BROKEN}
    broken = unpack(tmp_path, "broken-mechanisms", entries, modules)
    done = run((broken, toys), *CLI, "audit", study, "--policy", "toy-coin", "--epsilon", "1", "--json")
    assert done.returncode == 0
    assert [found["policy"] for found in json.loads(done.stdout)["findings"]] == ["toy-coin"]
    assert done.stderr.splitlines() == [
        f"policysim: left out the policy {name!r} of the package broken-mechanisms ({value}): {why}."
        for name, (value, why) in REFUSED.items()
    ]
    # Who asks for none of them is not told, and --help imports none.
    packages(broken)
    code, _, error = ask("audit", study, "--policy", "optimal", "--epsilon", "1")
    assert (code, error, caplog.messages) == (0, "", [])
    code, _, error = ask("audit", study, "--policy", "twise")
    assert code == 2
    assert "unknown policy 'twise'; did you mean 'twice'?" in error.splitlines()[-1]
    assert caplog.messages == done.stderr.splitlines()
    script = (
        "import sys\n"
        "from policysim.cli.main import main\n"
        "try: main(['--help'])\n"
        "finally: assert 'policies' not in sys.modules\n"
    )
    assert run(broken, "-c", script).stderr == ""


# What is drawn, and so what looks for a policy's colours, does not depend on how the policies were named.
def test_a_study_of_built_in_policies_imports_no_other_package(monkeypatch, study, tmp_path):

    def fail(**_):
        raise AssertionError("looked for other packages")

    monkeypatch.setattr("policies.catalogue.entry_points", fail)
    monkeypatch.setattr(CATALOGUE, "_plugins", None)
    for policies, drawn in ([], "frontier"), (["--policy", "best-fixed"], "loss-by-group"):
        options = ("--epsilon", "1", "--format", "svg", "--figures", drawn, "--out", str(tmp_path / drawn))
        assert main(["compare", study, *policies, *options]) == 0
    assert main(["choose", study, "--keep", "0.5", "--out", str(tmp_path / "record")]) == 0


def test_a_mechanism_of_another_package_is_described_by_its_name_and_docstring(monkeypatch):
    class Mine(Uniform):
        """By lot, as Uniform.

        And more.
        """

        name = "mine"

    @dataclass(frozen=True)
    class Bare(Uniform):
        name = "bare"

    plugins = {kind.name: Plugin(kind, "toys", "1") for kind in (Mine, Bare)}
    monkeypatch.setattr(CATALOGUE, "_plugins", plugins)
    assert describe("mine") == Description("the mechanism “mine” (By lot, as Uniform)")
    assert describe("bare") == Description("the mechanism “bare”")


def test_every_built_in_policy_is_described_and_every_work_is_listed():
    assert set(DESCRIPTIONS) == set(CATALOGUE.built_in)
    for name, description in DESCRIPTIONS.items():
        assert description.words and description.formula, name
        assert not any(text.endswith(".") for text in (description.words, description.formula)), name
        assert set(description.works) <= set(REFERENCES), name


def test_a_package_may_look_into_the_catalogue_while_it_is_imported(monkeypatch):
    catalogue = Catalogue([Uniform])
    seen = []

    class Curious:
        dist = None
        name = value = "curious"

        def load(self):
            seen.append(list(catalogue))
            return type("Mine", (Uniform,), {"name": "mine"})

    monkeypatch.setattr("policies.catalogue.entry_points", lambda **_: [Curious()])
    assert list(catalogue) == ["uniform", "mine"]
    assert seen == [["uniform"]]
    assert len(catalogue) == 2
    assert "nothing" not in catalogue
    assert catalogue.versions(["uniform", "mine"]) == {"?": "?"}
