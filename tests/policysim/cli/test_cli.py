"""The command line as a user meets it: what it prints, writes, refuses and returns."""

import io
import json
import math
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawings import draw_only
from small_studies import SCENARIO, STUDY, write_small_study

from policies import CATALOGUE
from policysim.cli.main import main, said_on_purpose


@pytest.fixture(autouse=True)
def few_versions(monkeypatch):
    """Few versions of a model: more would prove nothing about commands."""
    monkeypatch.setattr("policysim.decision.redraws.REDRAWS", 20)


@pytest.fixture
def study(tmp_path):
    return str(write_small_study(tmp_path / "study"))


def run(capsys, *arguments):
    """Exit code, stdout and stderr of one command."""
    try:
        code = main(arguments)
    except SystemExit as stop:  # argparse's own way to end
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    """A comparison without options, with blank drawings: its folder, exit code, stdout and stderr."""
    study, folder = write_small_study(tmp_path_factory.mktemp("study")), tmp_path_factory.mktemp("made") / "out"
    with (
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
        pytest.MonkeyPatch.context() as patch,
    ):
        draw_only(patch)
        code = main(["compare", str(study), "--out", str(folder)])
    return folder, code, out.getvalue(), err.getvalue()


def test_alone_it_says_what_it_is_and_what_to_type_next_in_ten_lines(capsys):
    code, out, err = run(capsys)
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 10
    assert "policysim compare covid" in out


def test_compare_prints_one_screen_and_writes_the_report(compared):
    folder, code, out, err = compared
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert max(map(len, lines[:-1])) <= 100
    assert lines[-1].endswith(f"Report: {folder / 'report.html'}")
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    manifest = json.loads((folder / "manifest.json").read_text())
    assert written == {*manifest["results"], "manifest.json", "study.toml", "scenario.toml"}
    assert {"options.csv", "comparison.csv", "report.html", "figures/frontier.svg", "figures/frontier.png"} <= written
    # 5 policies, 3 epsilons; everyone, 2 ages, infected or not.
    table = pd.read_csv(folder / "comparison.csv")
    asked_for = ["greedy", "best-fixed", "uniform", "exponential", "randomized-response"]
    assert (table["policy"].isin(asked_for)).sum() == 5 * 3 * 5
    libraries = {"policysim", "numpy", "scipy", "pandas", "gymnasium", "matplotlib"}
    assert set(manifest["versions"]) == {"python", *libraries}


@pytest.mark.usefixtures("blank_drawings")
def test_epsilons_policies_and_groups_can_be_chosen(capsys, study, tmp_path):
    arguments = ["--epsilon", "2, 0.1,2", "--policy", "exponential", "--policy", "greedy", "--by", "smoker"]
    assert run(capsys, "compare", study, *arguments, "--out", str(tmp_path / "out"))[0] == 0
    table = pd.read_csv(tmp_path / "out" / "comparison.csv")
    assert set(table["epsilon"]) == {0.1, 2.0}
    assert set(table["policy"]) >= {"exponential", "greedy"}
    assert set(table["group"]) == {"all", "smoker"}
    command = json.loads((tmp_path / "out" / "manifest.json").read_text())["command"]
    assert command == ["compare", "study.toml", *arguments]


@pytest.mark.usefixtures("blank_drawings")
def test_json_is_one_document_with_the_numbers_of_all_tables(capsys, study, tmp_path):
    code, out, err = run(capsys, "compare", study, "--json", "--out", str(tmp_path / "out"))
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["report"] == (tmp_path / "out" / "report.html").as_posix()
    assert document["manifest"] == json.loads((tmp_path / "out" / "manifest.json").read_text())
    for path in (tmp_path / "out").glob("*.csv"):
        numbers = pd.read_csv(path).select_dtypes("number")
        assert not numbers.empty or path.stem not in {"comparison", "options"}
        for column in numbers:
            # What is missing is null, and what has no bound "inf".
            values = [math.nan if row[column] is None else float(row[column]) for row in document[path.stem]]
            assert values == pytest.approx(numbers[column].tolist(), nan_ok=True)


@pytest.mark.usefixtures("blank_drawings")
def test_brief_is_a_part_of_the_screen_and_full_adds_to_it(capsys, study, tmp_path):
    asked = ("compare", study, "--epsilon", "1", "--out", str(tmp_path / "out"))
    printed = (run(capsys, *asked, *options)[1] for options in (["--brief"], [], ["--full"]))
    brief, out, full = (text.split("Report: ")[0] for text in printed)
    assert out.startswith(brief.rstrip()) and full.startswith(out.rstrip())
    assert len(brief) < len(out) < len(full)


def test_sensitivity_names_the_two_records_and_the_action(capsys, study):
    code, out, err = run(capsys, "sensitivity", study)
    assert (code, err) == (0, "")
    for words in ("Sensitivity Δ", "Range Γ", "age old", "u("):
        assert words in out
    code, out, _ = run(capsys, "sensitivity", study, "--json")
    document = json.loads(out)
    assert document["value"] > document["range"] / 2
    assert document["witness"]["actions"][0] in ("none", "syrup", "pill")


def test_mistakes_in_a_study_are_lines_and_exit_two(capsys, tmp_path):
    path = write_small_study(tmp_path, STUDY.replace("seed = 3", "seed = -3\nsede = 3"))
    code, out, err = run(capsys, "compare", str(path), "--out", str(tmp_path / "out"))
    assert (code, out) == (2, "")
    assert [line.split(": ")[1] for line in err.splitlines()] == [f"{path.as_posix()}:{line}" for line in (3, 4)]


def test_a_folder_that_cannot_be_written_is_one_line_and_exit_two(capsys, study, tmp_path):
    (tmp_path / "file").write_text("mine")
    code, out, err = run(capsys, "compare", study, "--out", str(tmp_path / "file"))
    assert (code, out) == (2, "")
    assert err == f"policysim: cannot write to {tmp_path / 'file'}: File exists\n"
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.usefixtures("blank_drawings")
def test_an_interrupt_leaves_the_old_report_whole_and_is_exit_130(capsys, study, compared, tmp_path, monkeypatch):
    folder = shutil.copytree(compared[0], tmp_path / "out")
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("policysim.files.whole_files.os.fsync", interrupted)
    code, _, err = run(capsys, "compare", study, "--epsilon", "3", "--out", str(folder))
    assert code == 130
    assert err == "policysim: interrupted; nothing was written\n"
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    assert not list(folder.rglob(".*"))


BUG = "policysim: this is a bug in policysim, please report it: "


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda: {}["surprise"], "KeyError: 'surprise'"),
        (lambda: np.zeros(3).reshape(2, 2), "ValueError: cannot reshape array of size 3 into shape (2,2)"),
    ],
)
def test_a_bug_shows_its_traceback_and_asks_to_be_reported(capsys, study, monkeypatch, broken, words):
    monkeypatch.setattr("policysim.cli.compare_command.report_of", lambda *_: broken())
    code, out, err = run(capsys, "compare", study, "--out", f"{study}.out")
    assert (code, out) == (1, "")
    first, *_, last = err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert "compare_command.py" in err
    assert last.startswith(BUG + words)
    assert not Path(f"{study}.out").exists()


def test_a_file_that_is_gone_before_it_is_read_is_no_bug(capsys, study, monkeypatch):
    monkeypatch.setattr("policysim.cli.compare_command.report_of", lambda *_: Path("/no/where").read_text())
    code, out, err = run(capsys, "compare", study, "--out", f"{study}.out")
    assert (code, out, err) == (3, "", "policysim: /no/where: cannot be read: No such file or directory\n")
    assert not Path(f"{study}.out").exists()


@pytest.mark.parametrize(
    ("code", "module", "on_purpose"),
    [
        ("raise ValueError('row 3 is bad')", "policysim.logs.toy", True),
        ("try: float('x')\nexcept ValueError: raise ValueError('row 3 is bad') from None", "envs.toy", True),
        ("float('x')", "policysim.logs.toy", False),
        ("a, b = [1]", "policies.toy", False),
        ("max([])", "envs.toy", False),
        ("raise ValueError('row 3 is bad')", "numpy.toy", False),
        ("raise ValueError('row 3 is bad')", "policysimilar", False),
        # What a plug-in says with a class of ours is meant for people.
        ("from policies.policy import NotApplicableError\nraise NotApplicableError('not here')", "their_package", True),
    ],
)
def test_only_what_we_say_on_purpose_is_about_data(code, module, on_purpose):
    with pytest.raises(ValueError) as caught:
        exec(code, {"__name__": module})
    assert said_on_purpose(caught.value) == on_purpose


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("comprae", "covid"), "unknown command 'comprae'; did you mean 'compare'? known: compare, choose, decide, "),
        (("compare", "covid", "--epsilom", "1"), "unknown option '--epsilom'; did you mean --epsilon? policysim comp"),
        (("compare", "covid", "--epsilom=1"), "unknown option '--epsilom'; did you mean --epsilon? policysim compare "),
        (("audit", "--qqq"), "unknown option '--qqq'; policysim audit --help lists all"),
        (("audit", "covid", "too"), "unknown argument 'too'; policysim audit --help lists all"),
        (("--qqq",), "unknown option '--qqq'; policysim --help lists all"),
        (("compare", "--epsilon"), "--epsilon needs a value (behind = if it begins with -)"),
        (("compare", "--json=yes"), "--json takes no value, got 'yes'"),
        (("compare", "--s", "1"), "ambiguous option: --s could match --sensitive, --seed"),
        (("compare", "--figure-size", "a4"), "--figure-size must be one of page, column, slide, got 'a4'"),
        (("simulate", "--seed", "one"), "--seed must be a whole number >= 0, got 'one'"),
        (("init",), "the following arguments are required: DATA"),
        *(
            ((command, "FILE", option, "1", f"{option}=1"), f"{option} is given twice, and takes one value")
            for command, options in {
                "compare": ("--epsilon", "--out", "--seed"),
                "choose": ("--keep", "--max-guess"),
                "evaluate": ("--estimator", "--table"),
                "init": ("--time", "--event", "--id", "--cluster", "--assigned", "--out"),
            }.items()
            for option in options
        ),
        (("init", "log.csv", "--assigned", "randomised", "--ass=by-doctors"), "--assigned is given twice, and takes "),
        (("evaluate", "log.csv", "--estimator", "dm2"), "--estimator: unknown estimator 'dm2'; did you mean 'dm'? "),
        (
            ("audit", "--table", "p.csv", "--epsilon", "1,2"),
            "--epsilon must be one number >= 0 with --table, got '1,2'",
        ),
        (
            ("compare", "--delta", "0"),
            "--delta goes with treatment over days in a scenario, not with one decision in a scenario (covid): add "
            "--horizon",
        ),
        (("compare", "--workers", "2"), "--workers goes with a log, not with one decision in a scenario (covid)"),
        (
            ("compare", "--horizon", "2", "--epsilon", "0"),
            "--epsilon goes with one decision in a scenario, a table of one's own or a log, not with treatment over "
            "days in a scenario (covid): give --total-epsilon",
        ),
        (("compare", "--brief", "--full"), "--full does not go with --brief"),
        (("compare", "--at-most", "hiccups=1"), "--at-most: unknown outcome 'hiccups'; known: death, "),
        (("compare", "--policy", "plan-once"), "unknown policy 'plan-once'; known: "),
        (("choose", "--price-list"), "unknown option '--price-list'; policysim choose --help lists all"),
        (("choose",), "choose needs at least one of --keep, --max-loss, --max-extra-lead and --at-most"),
    ],
)
def test_what_is_not_understood_is_one_line_and_exit_two(capsys, arguments, message):
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"policysim: {message}") and err.count("\n") == 1


def test_help_imports_nothing_heavy():
    script = (
        "import sys\n"
        "from policysim.cli.main import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'pandas', 'scipy', 'matplotlib', 'jinja2', 'gymnasium'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_the_packages_resolve_inside_this_repository():
    root = Path(__file__).parents[3]
    names = ("envs", "policies", "policysim")
    script = f"from importlib.util import find_spec\nfor name in {names}: print(find_spec(name).origin)"
    out = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    assert [Path(line).parent.parent for line in out.splitlines()] == [root] * 3


@pytest.fixture
def one_prevalence(tmp_path):
    """A study in which everybody has the condition: there is no other prevalence, which optimal-robust would need."""
    return str(write_small_study(tmp_path / "study", scenario=SCENARIO.replace("infected = 0.3,", "infected = 1,")))


@pytest.mark.usefixtures("blank_drawings")
def test_all_policies_are_compared_but_those_that_do_not_apply(capsys, one_prevalence, tmp_path):
    code, out, err = run(capsys, "compare", one_prevalence, "--policy", "all", "--out", str(tmp_path / "out"))
    assert (code, err) == (0, "")
    assert "optimal-robust needs the priors that patients may come" in " ".join(out.splitlines()[:3])
    table = pd.read_csv(tmp_path / "out" / "comparison.csv")
    assert set(table["policy"]) & set(CATALOGUE) == set(CATALOGUE) - {"optimal-robust"}


def test_a_named_policy_that_does_not_apply_is_refused_with_what_it_lacks(capsys, one_prevalence, tmp_path):
    options = ("--policy", "optimal-robust", "--out", str(tmp_path / "out"))
    code, out, err = run(capsys, "compare", one_prevalence, *options)
    assert (code, out) == (3, "")
    assert "optimal-robust needs the priors that patients may come from" in err


@pytest.mark.usefixtures("blank_drawings")
def test_every_command_takes_another_adjacency(capsys, study, tmp_path):
    options = ["--sensitive", "infected", "--sensitive", "age"]
    few = ("--policy", "exponential", "--epsilon", "1")
    assert run(capsys, "compare", study, *options, *few, "--out", str(tmp_path / "out"))[0] == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["command"][2:] == [*options, *few]
    assert run(capsys, "sensitivity", study, *options)[0] == 0
    assert run(capsys, "choose", study, "--keep", "0.5", *options, *few[:2])[0] == 0
    assert run(capsys, "audit", study, *options, *few)[0] == 0


def test_the_audit_of_a_study_holds_and_names_two_records(capsys, one_prevalence):
    code, out, err = run(capsys, "audit", one_prevalence, "--policy", "all")
    assert (code, err) == (0, "")
    assert "Do the claims hold?  Yes: " in out
    assert "refused" in out
    assert max(map(len, out.splitlines())) <= 100


def test_the_audit_of_a_table_is_exit_four_if_it_exceeds_its_claim(capsys, tmp_path):
    path = tmp_path / "probabilities.csv"
    path.write_text("age,p_wait,p_treat\nyoung,0.75,0.25\nold,0.25,0.75\n")
    assert run(capsys, "audit", "--table", str(path), "--epsilon", "1.1")[0] == 0
    code, out, _ = run(capsys, "audit", "--table", str(path), "--epsilon", "1")
    assert code == 4
    assert "No: 0 of 1." in out
    assert "young" in out
    code, out, _ = run(capsys, "audit", "--table", str(path), "--epsilon", "1", "--json")
    finding = json.loads(out)["findings"][0]
    assert (code, finding["exact"]) == (4, pytest.approx(math.log(3)))


def test_a_table_that_holds_no_probabilities_is_exit_three_with_its_lines(capsys, tmp_path):
    path = tmp_path / "probabilities.csv"
    path.write_text("age,p_wait,p_treat\nyoung,0.75,0.3\nold,x,0.75\n")
    code, out, err = run(capsys, "audit", "--table", str(path))
    assert (code, out) == (3, "")
    assert [line.split(":")[2] for line in err.splitlines()] == ["2", "3"]


def test_a_terminal_without_greek_letters_gets_question_marks(study, monkeypatch):
    shown = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", shown)
    assert main(["sensitivity", study]) == 0
    assert b"Sensitivity ? " in shown.buffer.getvalue()


@pytest.mark.usefixtures("blank_drawings")
def test_a_scenario_in_which_nobody_dies_can_be_compared(capsys, tmp_path):
    scenario = SCENARIO[: SCENARIO.index("[death]")] + SCENARIO[SCENARIO.index("[weights]") :]
    for part in (", death = 0.001", ", death = 0.05", "death = 10\n"):
        scenario = scenario.replace(part, "")
    path = str(write_small_study(tmp_path / "study", STUDY, scenario))
    code, out, err = run(capsys, "compare", path, "--out", str(tmp_path / "out"))
    assert (code, err) == (0, "")
    assert "eaths" not in out.replace("There are no deaths", "")
    assert run(capsys, "sensitivity", path)[0] == run(capsys, "audit", path)[0] == 0


@pytest.mark.usefixtures("blank_drawings")
def test_tiny_numbers_do_not_run_into_their_neighbours(capsys, study, tmp_path):
    _, out, _ = run(capsys, "compare", study, "--epsilon", "1e-9", "--out", str(tmp_path / "out"))
    assert max(map(len, out.splitlines()[:-1])) <= 100
