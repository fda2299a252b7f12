"""A study's bounds: every command makes its policies with them, and what breaks them is said."""

import io
import json
from contextlib import redirect_stdout
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from drawings import draw_only
from small_studies import STUDY, write_small_study

import policysim as ps
from policysim.cli.main import main
from policysim.study.stated_bounds import broken_bounds

POLICIES = ("best-fixed", "exponential", "randomized-response", "optimal", "optimal-safe")
BOUNDED = STUDY.replace(
    'policies = ["greedy", "best-fixed", "uniform", "exponential", "randomized-response"]',
    f"policies = {json.dumps(POLICIES)}\nat_most = {{ death = 0.0127, symptoms = 0.3 }}",
).replace("[compare]", "[capacity]\npill = 0.1\n\n[compare]")
TITLES = {"death": "deaths", "symptoms": "symptoms"}
BOUNDS = {"at_most": {"death": 0.0127, "symptoms": 0.3}, "capacity": {"pill": 0.1}}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    # At much smaller epsilons no private policy keeps these bounds.
    text = BOUNDED.replace("epsilon = 1.0\nepsilons = [0.5, 1.0, 4.0]", "epsilon = 4.0\nepsilons = [4.0]")
    return write_small_study(tmp_path_factory.mktemp("bounded"), text)


@pytest.fixture(scope="module")
def problem(path):
    return ps.build_problem(ps.load_study(path))


@pytest.fixture(scope="module")
def report(path, tmp_path_factory):
    """The folder and the screen of a comparison."""
    out = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as screen:
        draw_only(patch)
        assert main(["compare", str(path), "--out", str(out)]) == 0
    return out, screen.getvalue()


def expected(problem, table):
    """Independently: the outcomes per patient, and the share of each action."""
    weighted = problem.prior[:, None] * table
    outcomes = {name: float((weighted * values).sum()) for name, values in problem.outcomes.items()}
    return outcomes, dict(zip(problem.actions, weighted.sum(axis=0), strict=True))


def table_of(problem, name, epsilon=4.0):
    return ps.make_policy(name, epsilon=epsilon, **(BOUNDS if name == "optimal-safe" else {})).probabilities(problem)


def test_the_policy_within_bounds_has_them_in_every_table_of_a_report(problem, report):
    table = table_of(problem, "optimal-safe")
    outcomes, shares = expected(problem, table)
    assert outcomes["death"] <= 0.0127 + 1e-9
    assert shares["pill"] <= 0.1 + 1e-9
    # The optimum without bounds is another one, so that a row of it would be seen.
    assert abs(problem.value(table) - problem.value(table_of(problem, "optimal"))) > 1e-4
    rows = pd.read_csv(report[0] / "comparison.csv")
    row = rows[(rows["policy"] == "optimal-safe") & (rows["epsilon"] == 4) & (rows["group"] == "all")].iloc[0]
    assert row["value"] == pytest.approx(problem.value(table), rel=1e-7)
    examples = pd.read_csv(report[0] / "examples.csv").query("policy == 'optimal-safe' and epsilon == 4")
    common = examples[examples["patient"].str.contains("the most common")]
    assert common["probability"].to_numpy() == pytest.approx(table[problem.prior.argmax()], abs=1e-7)
    losses = pd.read_csv(report[0] / "patient-losses.csv").query("policy == 'optimal-safe'")["loss"]
    regrets = (table * (problem.utilities.max(axis=1, keepdims=True) - problem.utilities)).sum(axis=1)
    assert set(np.round(losses, 6)) <= set(np.round(regrets, 6))


def test_what_breaks_a_bound_is_said_first(problem, path, report):
    out, screen = report
    study = ps.load_study(path)
    manifest = json.loads((out / "manifest.json").read_text())
    assert (manifest["at_most"], manifest["capacity"]) == (BOUNDS["at_most"], BOUNDS["capacity"])
    rows = pd.read_csv(out / "comparison.csv").query("group == 'all' and epsilon == 4")
    found = broken_bounds(problem, study.at_most, study.capacity, rows, TITLES)
    for name in POLICIES:
        outcomes, shares = expected(problem, table_of(problem, name))
        broken = [
            *(
                f"more than {m:g} {TITLES[o]} per patient"
                for o, m in BOUNDS["at_most"].items()
                if outcomes[o] > m + 1e-9
            ),
            *(["gives pill to more than 10 of 100 patients"] if shares["pill"] > 0.1 + 1e-9 else []),
        ]
        assert list(found.get(name, ())) == broken, name
    assert "optimal-safe" not in found
    assert len({text for texts in found.values() for text in texts}) == 3
    first = " ".join(screen.partition("A small study:")[0].split())
    warned = unescape((out / "report.html").read_text(encoding="utf-8").partition('<dl class="answer">')[0])
    for name in (*POLICIES, "greedy"):
        said = f"{name}: {', '.join(found[name])}." if name in found else f"{name}:"
        assert (f"Warning: {said}" in first) == (name in found)
        assert (f'<p class="warning">{said}</p>' in warned) == (name in found)


def test_bounds_of_one_for_all_are_its_own_numbers_and_mark_what_is_beyond(problem, path):
    study = replace(ps.load_study(path), at_most={"death": "one for all"}, capacity={})
    deaths = problem.prior @ problem.outcomes["death"]
    rows = [
        {"policy": "best-fixed", "expected_death": deaths[problem.best_fixed_action] * (1 + 1e-12)},
        {"policy": "uniform", "expected_death": deaths.mean()},
        {"policy": "optimal-achievable"},
    ]
    rows = pd.DataFrame(rows)
    assert deaths.mean() > deaths[problem.best_fixed_action]
    assert broken_bounds(problem, study.at_most, study.capacity, rows, TITLES) == {
        "uniform": ("more deaths than under one treatment for all",)
    }
    assert broken_bounds(problem, {}, study.capacity, rows, TITLES) == {}


def test_other_commands_have_the_bounds_of_the_study(problem, path, capsys, tmp_path):
    def asked(*arguments):
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    value = problem.value(table_of(problem, "optimal-safe"))
    options = ("--policy", "optimal-safe", "--epsilon", "4")
    log = tmp_path / "log.csv"
    code, text, _ = asked("simulate", path, *options, "--patients", "3000", "--json", "--log", log)
    assert (code, json.loads(text)["exact"]) == (0, pytest.approx(value, rel=1e-9))
    code, text, _ = asked("evaluate", log, *options, "--json")
    assert code == 0
    assert json.loads(text)["exact"]["value"] == pytest.approx(value, rel=1e-9)
    code, text, _ = asked("audit", path, *options, "--json")
    assert code == 0
    spent = ps.privacy_loss(table_of(problem, "optimal-safe"), problem.adjacency).epsilon
    assert json.loads(text)["findings"][0]["exact"] == pytest.approx(spent, rel=1e-9)
    code, text, _ = asked("choose", path, "--keep", "70%", "--policy", "optimal-safe", "--json")
    (row,) = (row for row in json.loads(text)["options"] if row["policy"] == "optimal-safe")
    chosen = table_of(problem, "optimal-safe", row["epsilon"])
    assert row["value"] == pytest.approx(problem.value(chosen), rel=1e-7)


@pytest.mark.usefixtures("blank_drawings")
def test_bounds_on_the_command_line_are_in_place_of_the_studys_and_are_asked_again(path, capsys, tmp_path):
    out = tmp_path / "out"
    options = ("--at-most", "death=one-for-all", "--policy", "best-fixed,optimal-safe", "--epsilon", "1", "--json")
    assert main(["compare", str(path), *options, "--out", str(out)]) == 0
    manifest = json.loads(capsys.readouterr().out)["manifest"]
    assert manifest["at_most"] == {"death": "one for all"}
    assert "--at-most" in manifest["command"]
    assert main(["reproduce", str(out / "manifest.json")]) == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--at-most", "deaths=1"], 2, "--at-most: unknown outcome 'deaths'; did you mean 'death'? known: death, symp"),
        (["--at-most", "death=1", "--horizon", "2"], 2, "--at-most goes with one decision"),
        (
            ["--policy", "optimal-safe", "--horizon", "2"],
            2,
            "optimal-safe is for one decision, and does not go with --",
        ),
        (["--epsilon", "0.1"], 3, "no policy keeps all of these bounds at epsilon=0.1: death at most 0.0127 (the le"),
    ],
)
def test_bounds_that_cannot_be_are_one_line(path, capsys, options, code, message):
    assert main(["compare", str(path), *options]) == code
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert message in said.err


def test_the_first_sentence_names_options_beyond_the_limits_and_the_best_draw_within_them(problem, report):
    out, screen = report
    options = pd.read_csv(out / "options.csv").set_index("option")
    letter = options.index[options["policy"] == "optimal-safe"][0]
    advice = " ".join(screen.partition("A small study")[2].partition("Choose ")[0].split())
    named = []
    fewest = np.eye(problem.n_actions)[np.full(problem.n_records, (problem.prior @ problem.outcomes["death"]).argmin())]
    for option, table in (("A", fewest), ("B", table_of(problem, "optimal"))):
        outcomes, shares = expected(problem, table)
        words = [f"more than {m:g} {TITLES[o]} per patient" for o, m in BOUNDS["at_most"].items() if outcomes[o] > m]
        words += ["gives pill to more than 10 of 100 patients"] if shares["pill"] > 0.1 else []
        named += [f"{option} ({', '.join(words)})"] if words else []
    assert named
    within = f"{letter} is the best private draw within them. Without these limits:"
    assert advice == f"Beyond the limits of this study: {' and '.join(named)}; {within}"


@pytest.mark.parametrize("options", [["--keep", "0"], ["--max-extra-lead", "-50"]], ids=" ".join)
def test_choose_says_which_limits_its_choice_does_not_keep(path, problem, capsys, options):
    assert main(["choose", str(path), *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (chosen,) = [row for row in found["options"] if row["chosen"]]
    best = problem.actions[(problem.prior @ problem.utilities).argmax()]
    action = problem.actions.index(chosen["policy"].removeprefix("for all: ").replace("best-fixed", best))
    outcomes, shares = expected(problem, np.eye(problem.n_actions)[np.full(problem.n_records, action)])
    words = [f"more than {m:g} {TITLES[o]} per patient" for o, m in BOUNDS["at_most"].items() if outcomes[o] > m]
    words += ["gives pill to more than 10 of 100 patients"] if shares["pill"] > 0.1 else []
    assert found["details"]["beyond"] == ", ".join(words)
    assert main(["choose", str(path), *options]) == 0
    said = " ".join(capsys.readouterr().out.split())
    told = f"{chosen['option']} is beyond the limits of this study: {', '.join(words)}."
    assert words and told in said
