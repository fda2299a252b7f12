"""The report of `policysim choose`: the choice, and what `compare` finds at its epsilon."""

import html
import json
import re
from hashlib import sha256

import pandas as pd
import pytest
from page_policy import breaks
from small_studies import write_small_study

from policysim.cli.main import main

CELL = re.compile(r'<data data-cell="(choice-[^"]+)/(?:value|low|high)" value="([^"]*)">([^<]*)</data>')
pytestmark = pytest.mark.usefixtures("blank_drawings")


@pytest.fixture
def study(tmp_path):
    return str(write_small_study(tmp_path / "study"))


def ask(capsys, *arguments):
    """Exit code, and what is printed."""
    code = main([str(argument) for argument in arguments])
    return code, capsys.readouterr().out


def page_of(out):
    return (out / "report.html").read_text(encoding="utf-8")


def test_its_page_has_the_choice_and_then_the_comparison_at_the_chosen_epsilon(study, tmp_path, capsys):
    out = tmp_path / "out"
    demands = ("--keep", "80%", "--policy", "randomized-response")
    code, screen = ask(capsys, "choose", study, *demands, "--out", out)
    assert code == 0 and screen.endswith(f"Report: {out.as_posix()}/report.html\n")
    code, alone = ask(capsys, "choose", study, *demands)
    assert code == 0 and screen.startswith(alone)
    document = json.loads(ask(capsys, "choose", study, *demands, "--out", out, "--json")[1])
    epsilon = document["rows"][0]["epsilon"]
    assert (document["chosen"], document["report"]) == ("randomized-response", (out / "report.html").as_posix())
    page = page_of(out)
    choice, compared = page.split('id="compared"')
    words = html.unescape(re.sub(r"<[^>]*>", "", choice))
    assert f"“randomized-response” at ε = {epsilon}: the least that does this" in words
    assert choice.count('<tr class="chosen"><th scope="row">randomized-response</th>') == 1
    # The slider of the comparison stands at the chosen epsilon.
    assert f'aria-live="off"><data data-cell="facts/at//{epsilon}/value"' in compared
    assert breaks(page) == []


def test_each_number_of_the_choice_is_a_cell_of_its_files(study, tmp_path, capsys):
    out = tmp_path / "out"
    assert ask(capsys, "choose", study, "--keep", "80%", "--max-extra-lead", "5", "--out", out)[0] == 0
    written = {}
    for name in ("choice-options", "choice-facts"):
        for cell in pd.read_csv(out / f"{name}.csv", keep_default_na=False).to_dict("records"):
            epsilon = "" if cell["epsilon"] == "" else f"{float(cell['epsilon']):g}".replace("inf", "∞")
            written["/".join((name, cell["row"], cell["option"], epsilon))] = str(cell["value"])
    cells = CELL.findall(page_of(out))
    assert len(cells) > 30
    for key, value, _ in cells:
        stated = written[html.unescape(key)]
        assert value == stated or float(value) == pytest.approx(float(stated), rel=1e-5)


@pytest.mark.parametrize(
    "demands",
    [
        ("--keep", "80%"),
        ("--keep", "0", "--policy", "all", "--seed", "5"),
        ("--at-most", "death=one-for-all", "--max-loss", "0.5", "--max-guess", "99%"),
        ("--max-extra-lead", "3", "--max-guess-rate", "0.97", "--policy", "optimal", "--sensitive", "infected"),
    ],
)
def test_it_comes_out_again(study, tmp_path, capsys, demands):
    out = tmp_path / "out"
    code, _ = ask(capsys, "choose", study, *demands, "--out", out)
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert all(sha256((out / name).read_bytes()).hexdigest() == found for name, found in manifest["results"].items())
    assert {"choice-options.csv", "choice-facts.csv", "options.csv", "report.html"} <= set(manifest["results"])
    assert manifest["command"].startswith("policysim choose study.toml ")
    again, said = ask(capsys, "reproduce", out / "manifest.json")
    assert (code, again) == (0, 0) and "choice-options.csv" in said


def test_its_command_asks_the_same(study, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    demands = ("--keep", "0.35", "--max-extra-lead", "1000", "--at-most", "symptoms=one-for-all", "--seed", "2")
    ask(capsys, "choose", study, *demands, "--out", "one")
    command = json.loads((tmp_path / "one" / "manifest.json").read_text(encoding="utf-8"))["command"]
    words = command.replace("study.toml", study).split(" ")
    assert words[:2] == ["policysim", "choose"]
    ask(capsys, *words[1:], "--out", "two")
    documents = [json.loads((tmp_path / name / "manifest.json").read_text(encoding="utf-8")) for name in ("one", "two")]
    assert documents[0]["question"] == documents[1]["question"]
    assert documents[0]["question"]["demands"] == {
        "keep": 0.35,
        "max_extra_lead": 0.01,
        "at_most": {"symptoms": "one for all"},
    }


def test_where_nothing_can_do_it_the_certificate_is_beside_the_report(study, tmp_path, capsys):
    out = tmp_path / "out"
    code, screen = ask(capsys, "choose", study, "--keep", "0.9", "--max-guess", "55%", "--out", out)
    assert code == 4
    assert f"Certificate file: {out.as_posix()}/certificate.json" in screen
    assert json.loads((out / "certificate.json").read_text(encoding="utf-8"))["bound"]
    words = re.sub(r"<[^>]*>", "", page_of(out))
    assert "No mechanism that gives what it publishes can do this: that takes more than ε = " in words
    assert ask(capsys, "reproduce", out / "manifest.json")[0] == 0


@pytest.mark.parametrize(
    "demands",
    [
        {"keep": 1.5},
        {"keep": "most"},
        {"keep": True},
        {"max_guess": 0.3},
        {"at_most": {"death": -1}},
        {"at_most": {"deths": 1}},
        {"more": 1},
        [],
    ],
)
def test_a_manifest_with_other_demands_is_refused(study, tmp_path, capsys, demands):
    out = tmp_path / "out"
    assert ask(capsys, "choose", study, "--keep", "20%", "--policy", "optimal", "--out", out)[0] == 0
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    manifest["question"]["demands"] = demands
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert main(["reproduce", str(out / "manifest.json")]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and ("demands must be" in error or "at_most: deths" in error)
