"""What README and the how-tos say is what comes out."""

import json
import re
import sys
from importlib import import_module
from pathlib import Path

import pytest
from printed_blocks import check_page, matches
from recorded_agents import stand_in

import policysim as ps

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
# Where `make docs` puts the site.
BUILT = "_build"
HOW_TOS = (
    "what-epsilon-means",
    "exponential",
    "who-sees-what",
    "asking",
    "treat",
    "own-study",
    "own-model",
    "own-disease",
    "trials",
    "days",
    "environment",
    "counts-and-columns",
    "paper-figure",
)
PAGES = [README, *(ROOT / "docs" / f"{name}.md" for name in HOW_TOS)]


@pytest.mark.usefixtures("blank_drawings")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_and_every_line_of_python_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch):
    # Training takes a minute, and another machine trains another agent: one that was recorded stands in.
    for name, module in stand_in().items():
        monkeypatch.setitem(sys.modules, name, module)
    assert check_page(page, tmp_path) > 0


def test_a_classifier_is_private_in_eight_lines_and_an_agent_in_ten():
    page = (ROOT / "docs" / "own-model.md").read_text(encoding="utf-8")
    programs = [
        text.splitlines() for text in re.findall(r"^```python\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    ]
    lengths = [sum(bool(line) for line in lines) for lines in programs if "ps.privatize_policy(" in "".join(lines)]
    assert lengths[0] <= 8 and lengths[1] <= 10 and len(lengths) == 2


def test_the_example_of_an_agent_runs_with_one_that_was_recorded(monkeypatch, capsys):
    for name, module in stand_in().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "examples.private_ppo", raising=False)
    import_module("examples.private_ppo").main("examples/ward/study.toml", episodes=20_000)
    monkeypatch.delitem(sys.modules, "examples.private_ppo")
    comparison, earned = capsys.readouterr().out.split("quantity", 1)
    agent = [line.split() for line in comparison.splitlines() if line.split()[0] == "private-ppo"]
    assert [float(line[1]) for line in agent] == [0.5, 1.0, 2.0, 4.0, 8.0]
    assert all(float(line[-1]) <= float(line[1]) for line in agent)
    (returned,) = [line.split() for line in earned.splitlines() if "return" in line]
    assert float(returned[4]) < 5


def test_a_page_that_says_something_else_would_be_found(tmp_path):
    page = tmp_path / "page.md"
    wrong = (
        "console\n$ policysim --version\npolicysim 0.0",
        "python\nprint(1 + 1)  # 3",
        "console\n$ policysim compar",
    )
    for text in wrong:
        page.write_text(f"```{text}\n```\n")
        with pytest.raises(AssertionError):
            check_page(page, tmp_path / text[-3:])


def test_an_ellipsis_stands_for_any_lines_and_nothing_else_does():
    assert matches("a\nb\nc\n", ["a", "…", "c"])
    assert matches("a\nb\n", ["…", "b"])
    assert not matches("a\nb\nc\n", ["a", "c"])
    assert not matches("a\nb\nc\n", ["…", "b"])


def test_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 112


def links(page):
    return re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "page",
    [
        README,
        ROOT / "CONTRIBUTING.md",
        *(page for page in sorted((ROOT / "docs").rglob("*.md")) if BUILT not in page.parts),
    ],
    ids=lambda page: page.stem,
)
def test_links_lead_to_files_that_are_there(page):
    missing = [to for to in links(page) if "://" not in to and not (page.parent / to).exists()]
    assert missing == []


def test_the_scenario_and_study_of_a_new_disease_are_the_files_that_ship():
    text = (ROOT / "docs" / "own-disease.md").read_text(encoding="utf-8")
    *scenario, study = re.findall(r"^```toml\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)
    folder = ROOT / "examples" / "own-disease"
    assert study == (folder / "study.toml").read_text(encoding="utf-8")
    assert "\n".join(scenario) == (folder / "scenario.toml").read_text(encoding="utf-8")


def one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize("page", [*PAGES, ROOT / "docs" / "reading.md"], ids=lambda page: page.stem)
def test_quotations_of_reports_stand_in_their_manifests(page):
    """A block of > in a page is what a report answers, by its manifest, which a test of the report compares with it."""
    manifests = [json.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "reports").glob("*/manifest.json")]
    answers = one_line(" ".join(said for manifest in manifests for said in manifest["answer"]))
    quoted = re.findall(r"(?:^> .*\n)+", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    for each in quoted:
        for part in one_line(each.replace("> ", "")).split(" … "):
            assert part in answers


def test_the_reference_has_every_public_name_and_the_site_every_page():
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\.\. auto(?:function|class):: (\w+)$", page, flags=re.MULTILINE))
    assert described | {"figures", "local"} == set(ps.__all__)
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^([\w-]+)$", index, flags=re.MULTILINE))
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs").glob("*.ipynb")]
    assert {path.stem for path in pages} - {"index"} == listed
    assert set(HOW_TOS) <= listed
