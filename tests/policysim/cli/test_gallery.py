"""The page of all reports: nothing on it is typed."""

import json
import re
import shutil
from pathlib import Path

import pytest
from small_studies import write_small_study

import policysim as ps
from envs.toml_reader import InputFileError
from policysim.cli import gallery as made
from policysim.cli.gallery import PNG, SVG, gallery, index, main, make
from policysim.decision.decision_question import DecisionQuestion
from policysim.output.deliver import DEFAULT, FORMAT
from policysim.output.differences import same_numbers

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"><path d="M 0 0 L 1 1"/></svg>'
REPORTS = Path(__file__).parents[3] / "reports"


def write_report(folder, name, **changes):
    """A folder with the manifest of a study."""
    manifest = {
        "study": {"name": name, "title": f"What of {name}?", "sha256": "0" * 64},
        "format": FORMAT,
        "question": {"price_list": True},
        "given": ["price_list"],
        "figures": {"formats": ["svg", "png"], "size": "page"},
        "command": f"policysim compare {name} --price-list",
        "headline": {
            "finding": "It costs little",
            "number": "3 %",
            "about": "of it is lost",
            "seen": "A line that falls.",
        },
        "results": {"comparison.csv": "1" * 64, PNG: "2" * 64, SVG: "3" * 64},
        **changes,
    }
    (folder / name / "figures").mkdir(parents=True)
    (folder / name / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    (folder / name / SVG).write_text(PICTURE, encoding="utf-8")


def headed(**headline):
    """Changes of a manifest's headline."""
    return {
        "headline": {"finding": "It costs little", "number": "3 %", "about": "of it", "seen": "A line.", **headline}
    }


def test_the_committed_pages_are_what_the_committed_manifests_give():
    assert (REPORTS / "README.md").read_text(encoding="utf-8") == gallery(REPORTS)
    # But for the style, which all pages share.
    committed = (REPORTS / "index.html").read_text(encoding="utf-8")
    assert committed.partition("<body>")[2] == index(REPORTS).partition("<body>")[2]


def test_every_report_is_on_the_page_and_every_link_leads_somewhere():
    text = gallery(REPORTS)
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'(?:href|src)="([^"#]+)"', text + index(REPORTS))
    assert [link for link in links if not (REPORTS / link).is_file()] == []
    reports = {path.parent.name for path in REPORTS.glob("*/report.html")}
    assert {link.split("/")[0] for link in links} == reports
    assert len(re.findall("`(?:policysim compare|python examples/)", text)) == len(reports)


def test_a_card_has_picture_finding_number_question_links_and_command(tmp_path):
    write_report(tmp_path / "reports", "covid")
    row = gallery(tmp_path / "reports").splitlines()[-1]
    assert row == (
        '| <a href="covid/report.html"><img src="covid/figures/card.png" width="280" alt="A line that falls."></a> '
        "| **[It costs little](covid/report.html)**<br>**3 %** of it is lost.<br>What of covid?<br>"
        "[numbers](covid/comparison.csv) · `policysim compare covid --price-list --out reports/covid` |"
    )
    page = index(tmp_path / "reports")
    for part in (
        '<a href="covid/report.html">It costs little</a>',
        "What of covid?",
        "<b>3 %</b> of it is lost",
        'aria-label="A line that falls."',
        "<path",
    ):
        assert part in page


def test_a_report_without_a_headline_is_shown_by_its_question_and_without_a_picture(tmp_path):
    write_report(tmp_path / "reports", "old", headline={}, results={"comparison.csv": "1"})
    row = gallery(tmp_path / "reports").splitlines()[-1]
    assert row.startswith("|  | **[What of old?](old/report.html)**<br>[numbers](old/comparison.csv)")
    assert "<svg" not in index(tmp_path / "reports")


def test_a_study_of_ones_own_is_run_from_its_folder(tmp_path):
    write_report(tmp_path / "reports", "ward", command="policysim compare study.toml")
    # Without the study there is nothing to run.
    assert gallery(tmp_path / "reports").endswith("<br>[numbers](ward/comparison.csv) |\n")
    (tmp_path / "reports" / "ward" / "study.toml").write_text("", encoding="utf-8")
    assert "`policysim compare reports/ward/study.toml --out reports/ward`" in gallery(tmp_path / "reports")


@pytest.mark.parametrize("empty", [False, True])
def test_a_folder_without_reports_is_refused_and_nothing_is_made(tmp_path, capsys, empty):
    folder = tmp_path / "nofolder"
    if empty:
        folder.mkdir()
    for options in ([], ["--make"]):
        assert main([str(folder), *options]) == 2
        out, err = capsys.readouterr()
        assert (out, len(err.splitlines())) == ("", 1)
        assert folder.as_posix() in err
    assert folder.exists() == empty
    assert list(tmp_path.rglob("*.md")) == []


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("What does it cost (ACTG 175)? 3 % & more", "What does it cost (ACTG 175)? 3 % & more"),
        ("p < 0.05, a > b and 30\u00a0%, cd4_baseline", "p < 0.05, a > b and 30\u00a0%, cd4_baseline"),
        ("<script>x</script>", "&lt;script&gt;x&lt;/script&gt;"),
        ("a *b* _c_ `d` [e](f)", "a \\*b\\* \\_c\\_ \\`d\\` \\[e\\](f)"),
        ("&lt; &#60; \\*", "&amp;lt; &amp;#60; \\\\\\*"),
        ("> one # two", "&gt; one # two"),
        ("- one", "\\- one"),
        ("a | b", "a \\| b"),
    ],
)
def test_titles_and_answers_are_shown_as_they_are(tmp_path, text, written):
    study = {"name": "covid", "title": f"{text}?", "sha256": ""}
    write_report(tmp_path, "covid", study=study, **headed(finding=text, about=text))
    row = gallery(tmp_path).splitlines()[-1]
    assert f"**[{written}](covid/report.html)**<br>**3 %** {written}.<br>{written}?<br>" in row


def test_nothing_that_a_manifest_says_becomes_markup(tmp_path):
    evil = 'a "quoted" <script>alert(1)</script> | b c'
    write_report(tmp_path, "covid", **headed(seen=evil, finding=evil, number=evil, about=evil))
    for page in (gallery(tmp_path), index(tmp_path)):
        assert "<script>" not in page
    row = gallery(tmp_path).splitlines()[-1]
    assert 'alt="a &quot;quoted&quot; &lt;script&gt;alert(1)&lt;/script&gt; &#124; b c"' in row
    assert len(re.findall(r"(?<!\\)\|", row)) == 3


@pytest.mark.parametrize("key", ["seen", "number"])
def test_a_manifest_with_what_nobody_sees_is_refused(tmp_path, key):
    write_report(tmp_path, "covid", **headed(**{key: "a\x1b[2Jb"}))
    with pytest.raises(InputFileError, match=rf"^\S+/covid/manifest.json: .*: headline.{key} holds U\+001B"):
        gallery(tmp_path)


def test_a_folder_with_a_space_is_linked(tmp_path):
    write_report(tmp_path, "my (ward)")
    assert "[It costs little](my%20%28ward%29/report.html)" in gallery(tmp_path)
    assert '<a href="my%20%28ward%29/report.html">' in index(tmp_path)
    assert "<path" in index(tmp_path)


def test_patients_come_before_source_documents_and_days_are_told_apart(tmp_path):
    write_report(tmp_path, "a-source", analysis="a-source")
    write_report(tmp_path, "covid", question={"horizon": 14}, given=["horizon"])
    text = gallery(tmp_path)
    parts = "## Patients", "What of covid? Over 14 days.", "## Source documents, figure by figure", "What of a-source?"
    for page, words in ((text, parts), (index(tmp_path), [part.removeprefix("## ") for part in parts])):
        places = [page.index(part) for part in words]
        assert places == sorted(places)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"headline": None}, "headline must be a table of finding, number, about, seen"),
        (headed(number=3), "headline must be a table"),
    ],
)
def test_a_headline_that_is_none_is_refused(tmp_path, capsys, changes, words):
    write_report(tmp_path, "covid", **changes)
    with pytest.raises(InputFileError, match=words):
        gallery(tmp_path)
    assert main([str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_make_runs_each_command_into_its_folder_and_writes_the_page(tmp_path, capsys):
    folder = tmp_path / "reports"
    shutil.copytree(REPORTS / "common-disease", folder / "common-disease")
    before = (folder / "common-disease" / "comparison.csv").read_bytes()
    (folder / "common-disease" / "comparison.csv").unlink()
    assert main([str(folder), "--make"]) == 0
    assert capsys.readouterr() == ("", "")
    # To the last digit but one: this may be another processor than that of the report.
    assert same_numbers(before, (folder / "common-disease" / "comparison.csv").read_bytes())
    for name in ("README.md", "index.html"):
        assert "common-disease/report.html" in (folder / name).read_text(encoding="utf-8")


def test_make_takes_the_study_as_it_is_now_and_the_options_that_were_given(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(made, "deliver", lambda question, **rest: asked.append((question, rest)) or 0)
    question = {"epsilons": [1.0], "policies": ["uniform"], "by": [], "price_list": True}
    write_report(tmp_path, "ward", question=question, given=["epsilons"], command="policysim compare study.toml")
    shutil.copy(write_small_study(tmp_path / "own"), tmp_path / "ward" / "study.toml")
    shutil.copy(tmp_path / "own" / "scenario.toml", tmp_path / "ward")
    assert make(tmp_path) == 0
    ((found, rest),) = asked
    study = ps.load_study(tmp_path / "ward" / "study.toml")
    assert found == DecisionQuestion(study.with_choices(epsilons=[1.0]))
    assert rest == {
        "command": "policysim compare study.toml",
        "given": ["epsilons"],
        "out": tmp_path / "ward",
        "wanted": DEFAULT,
    }


def test_make_stops_at_a_study_that_cannot_be_run(tmp_path, capsys):
    write_report(tmp_path, "ward")
    assert make(tmp_path) == 2
    assert "study.toml" in capsys.readouterr().err
    assert main([str(tmp_path), "--make"]) == 2
    assert not (tmp_path / "README.md").exists()


SCRIPT = """import pathlib, sys
pathlib.Path(sys.argv[sys.argv.index("--out") + 1], "made.txt").write_text(" ".join(sys.argv[1:]))
sys.exit("7" in sys.argv and 3)
"""


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(made.EXPERIMENTS, "ask", "examples/ask.py")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "ask.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path


def write_experiment(folder, **question):
    write_report(folder, "ask", command="python examples/ask.py", question=question, given=[])


def test_our_script_of_the_name_is_run_with_the_seed_into_its_folder(repository, capsys):
    write_experiment(repository / "reports", seed=2)
    assert main(["reports", "--make"]) == 0
    assert capsys.readouterr() == ("", "")
    assert (repository / "reports" / "ask" / "made.txt").read_text() == "--seed 2 --out reports/ask"
    text = (repository / "reports" / "README.md").read_text(encoding="utf-8")
    assert "`python examples/ask.py --out reports/ask`" in text


def test_make_stops_at_a_script_that_fails_and_at_one_that_is_missing(repository, capsys):
    write_experiment(repository / "reports", seed=7)
    assert main(["reports", "--make"]) == 3
    (repository / "examples" / "ask.py").unlink()
    assert main(["reports", "--make"]) == 2
    assert "examples/ask.py: is missing; it makes reports/ask/manifest.json" in capsys.readouterr().err


@pytest.mark.parametrize("question", [{"seed": "2; true"}, {"seed": 1, "out": "elsewhere"}])
def test_a_script_is_given_nothing_but_a_seed(repository, capsys, question):
    write_experiment(repository / "reports", **question)
    assert main(["reports", "--make"]) != 0
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (repository / "reports" / "ask" / "made.txt").exists()


def test_no_script_that_a_manifest_names_is_run(repository, capsys):
    write_report(repository / "reports", "mine", command="python examples/ask.py", study={"name": "mine", "sha256": ""})
    assert main(["reports", "--make"]) == 2
    assert "mine/study.toml: cannot be read" in capsys.readouterr().err
    assert not (repository / "reports" / "mine" / "made.txt").exists()
