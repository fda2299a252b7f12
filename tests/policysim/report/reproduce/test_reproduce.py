"""Running a study again: what agrees, what differs, what cannot be run."""

import hashlib
import json
import math
import shutil

import pandas as pd
import pytest
from small_studies import STUDY, write_small_study

from policysim.cli.main import main
from policysim.report import reproduction


@pytest.fixture
def made_again(monkeypatch, made):
    """A second run that makes the very same files as the first, without its work."""
    files = {path.relative_to(made).as_posix(): path.read_bytes() for path in made.rglob("*") if path.is_file()}
    manifest = json.loads(files["manifest.json"])
    kept = {name: files[name] for name in (*manifest["results"], "manifest.json", "study.toml")}
    monkeypatch.setattr(reproduction, "answered_again", lambda *_: (kept, manifest))


def edit(path, change):
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def count_numbers(folder):
    """How many numbers the CSV files of a report have, by pandas."""
    tables = [pd.read_csv(path, dtype=str, keep_default_na=False) for path in folder.rglob("*.csv")]
    return int(sum(pd.to_numeric(table[name], errors="coerce").notna().sum() for table in tables for name in table))


@pytest.mark.usefixtures("drawn_as_made")
def test_an_unchanged_study_agrees_in_all_numbers_and_bytes(run, report):
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, err) == (0, "")
    assert "Run again: policysim compare study.toml --seed 0 --by smoker\n" in out
    n_files = len(list(report.rglob("*.csv")))
    assert f"All {count_numbers(report):,} numbers in {n_files} file" in out
    assert "comparison.csv" in out
    assert "report.html" in out
    assert "Not the same" not in out
    assert "Not as it was" not in out


@pytest.mark.usefixtures("made_again")
def test_a_changed_number_is_named_with_its_row_and_column(run, report):
    path = report / "comparison.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    place = table.index[(table["policy"] == "exponential") & (table["level"] == "1")][0]
    now = table.loc[place, "loss"]
    table.loc[place, "loss"] = "0.25"
    table.to_csv(path, index=False)
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, err) == (4, "")
    assert f"1 difference in {count_numbers(report):,} numbers:" in out
    assert (
        f"  comparison.csv, row {place + 1} (policy exponential, group smoker, level 1): loss 0.25; now {now}\n" in out
    )
    assert "comparison.csv is not the file that the manifest describes" in out


@pytest.mark.usefixtures("made_again")
def test_twenty_differences_are_shown_and_the_rest_counted(run, report):
    path = report / "comparison.csv"
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    # Shares of at most 1, so that each cell of these columns differs.
    table["share"], table["value"] = "7", "-70"
    table.to_csv(path, index=False)
    code, out, _ = run("reproduce", report / "manifest.json")
    total = 2 * len(table)
    assert code == 4
    assert f"{total} differences in" in out
    assert out.count("comparison.csv, row ") == 20
    assert f"  and {total - 20} more\n" in out
    _, out, _ = run("reproduce", report / "manifest.json", "--json")
    assert len(json.loads(out)["differences"]) == total


@pytest.mark.usefixtures("made_again")
def test_a_digit_less_is_no_difference_but_the_edit_is_told(run, report):
    path = report / "comparison.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("\n", "\r\n"), encoding="utf-8", newline="")
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 0
    assert "was changed after that run" in out


@pytest.mark.usefixtures("made_again")
def test_other_versions_and_another_page_are_told_but_are_no_failure(run, report):
    # The page of another version: other bytes, with their digest in the manifest.
    (report / "report.html").write_bytes(b"<html>")

    def change(manifest):
        manifest["versions"]["numpy"] = "2.0.99"
        manifest["results"]["report.html"] = hashlib.sha256(b"<html>").hexdigest()

    edit(report / "manifest.json", change)
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 0
    assert "Not as it was, a possible reason: numpy 2.0.99 then, " in out
    assert "Not the same: report.html." in out


@pytest.mark.usefixtures("made_again")
@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("epsilon", 2.0, "  epsilon: 2.0; now 1.0\n"),
        ("records", 7, "  records: 7; now 32\n"),
        ("answer", ["All is well."], "  answer: ['All is well.']; now ["),
        ("policies", ["greedy"], "  policies: ['greedy']; now ['greedy', "),
        ("remark", "checked", "  remark: checked; now nothing\n"),
        ("study", {"name": "ward", "title": "Better"}, "  study.title: Better; now A small study\n"),
        ("sensitivity", {"value": 1e6}, "  sensitivity.value: 1000000.0; now "),
    ],
)
def test_a_manifest_that_says_something_else_is_a_failure_that_names_it(run, report, key, value, line):
    def change(manifest):
        manifest[key] = {**manifest[key], **value} if isinstance(value, dict) else value

    edit(report / "manifest.json", change)
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, err) == (4, "")
    assert "The manifest does not say what the run does:\n" in out
    assert line in out
    code, out, _ = run("reproduce", report / "manifest.json", "--json")
    assert (code, json.loads(out)["agree"], len(json.loads(out)["manifest_differences"])) == (4, False, 1)


@pytest.mark.usefixtures("made_again")
def test_another_scenario_is_told_and_is_a_failure(run, report):
    edit(report / "manifest.json", lambda manifest: manifest.update(scenario_sha256="0" * 64))
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 4
    assert "Not as it was: scenario 000000000000… then" in out


@pytest.mark.usefixtures("made_again")
def test_an_edited_page_and_a_missing_figure_are_named_and_are_not_called_the_same(run, report):
    figures = [path.relative_to(report).as_posix() for path in sorted((report / "figures").rglob("*.*"))]
    figures = [name for name in figures if not name.endswith(".csv")]
    _, before, _ = run("reproduce", report / "manifest.json")
    assert f"The same: report.html and {len(figures)} figure files." in before
    (report / "report.html").write_text("<p>all is well", encoding="utf-8")
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 4
    assert "report.html is not the file that the manifest describes" in out
    assert f"The same: {len(figures)} figure files." in out
    (report / figures[0]).unlink()
    (report / figures[1]).write_bytes(b"")
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 4
    assert f"{figures[0]} is missing" in out
    assert f"{figures[1]} is not the file" in out
    assert f"The same: {len(figures) - 2} figure files." in out
    code, out, _ = run("reproduce", report / "manifest.json", "--json")
    document = json.loads(out)
    assert (document["missing"], set(document["edited"])) == ([figures[0]], {"report.html", figures[1]})


@pytest.mark.usefixtures("made_again")
def test_a_table_that_only_one_of_the_runs_made_is_a_difference(run, report):
    edit(report / "manifest.json", lambda manifest: manifest["results"].update({"prices.csv": "0" * 64}))
    (report / "prices.csv").write_text("hides,loss\nage,1\n", encoding="utf-8")
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 4
    assert "prices.csv: file: there; now missing" in out


def test_another_study_is_refused(run, report):
    with (report / "study.toml").open("a", encoding="utf-8") as stream:
        stream.write("# changed\n")
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "study.toml: is not the study of" in err
    (report / "study.toml").unlink()
    code, _, err = run("reproduce", report / "manifest.json")
    assert code == 2
    assert "its study ward is not built in, and there is no study.toml beside it" in err


def test_other_data_are_refused(run, report):
    def change(manifest):
        manifest["data"] = {"trial.csv": "0" * 64}

    edit(report / "manifest.json", change)
    code, _, err = run("reproduce", report / "manifest.json")
    assert (code, len(err.splitlines())) == (3, 1)
    assert "trial.csv: the data file of" in err
    (report / "trial.csv").write_text("x\n", encoding="utf-8")
    code, _, err = run("reproduce", report / "manifest.json")
    assert (code, len(err.splitlines())) == (3, 1)
    assert "trial.csv: is not the data of" in err


def test_a_missing_table_is_refused_before_anything_is_computed(run, report, monkeypatch):
    monkeypatch.setattr(reproduction, "answered_again", lambda *_: pytest.fail("computed"))
    (report / "comparison.csv").unlink()
    code, _, err = run("reproduce", report / "manifest.json")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "comparison.csv: cannot be read" in err


def test_a_command_that_this_version_does_not_have_is_refused(run, report):
    edit(report / "manifest.json", lambda manifest: manifest["command"].append("--by-moon-phase"))
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "command cannot be run: policysim compare study.toml" in err


@pytest.mark.usefixtures("blank_drawings")
def test_a_built_in_study_can_be_run_again_wherever_its_report_went(run, tmp_path):
    folder = tmp_path / "elsewhere"
    assert run("compare", "marital-status", "--out", folder)[0] == 0
    code, out, err = run("reproduce", folder / "manifest.json")
    assert (code, err) == (0, "")
    # The page shows the study's name, which is not that of the folder.
    assert "Not the same" not in out
    names = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*.csv"))]
    assert len(names) > 1
    assert f"in {len(names)} files agree" in out
    assert all(name in out for name in names)


@pytest.mark.usefixtures("blank_drawings")
@pytest.mark.parametrize("title", ['title = "A small study"\n', ""])
def test_an_untouched_report_of_a_study_that_names_other_files_agrees_wherever_it_is(run, tmp_path, title):
    text = STUDY.replace('title = "A small study"\n', title).replace('"scenario.toml"', '"../shared/scenario.toml"')
    study = write_small_study(tmp_path / "studies", text.replace("any-record", "one-feature"))
    for place in (tmp_path, tmp_path / "reports"):
        (place / "shared").mkdir(parents=True)
        shutil.copy(tmp_path / "studies" / "scenario.toml", place / "shared")
    folder = tmp_path / "reports" / "a-report"
    assert run("compare", study, "--policy", "exponential", "--epsilon", "1", "--out", folder)[0] == 0
    # As its own message advises: the study, which is called small, is put there as study.toml with what it names.
    code, _, err = run("reproduce", folder / "manifest.json")
    assert (code, "put the study there, with the files that it names" in err) == (2, True)
    shutil.copy(study, folder / "study.toml")
    code, out, err = run("reproduce", folder / "manifest.json")
    assert (code, err) == (0, "")
    assert "The same: report.html and " in out
    assert "Not the same" not in out
    (tmp_path / "reports" / "shared" / "scenario.toml").unlink()
    code, _, err = run("reproduce", folder / "manifest.json")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "scenario.toml: is missing; " in err


@pytest.mark.usefixtures("blank_drawings")
def test_a_report_of_an_own_study_can_be_run_again_wherever_it_went(run, tmp_path):
    study = write_small_study(tmp_path / "mine" / "deep", STUDY.replace('"scenario.toml"', '"wards/scenario.toml"'))
    (study.parent / "wards").mkdir()
    (study.parent / "scenario.toml").rename(study.parent / "wards" / "scenario.toml")
    folder = tmp_path / "out"
    assert run("compare", study, "--policy", "exponential", "--epsilon", "1", "--out", folder)[0] == 0
    shutil.rmtree(tmp_path / "mine")
    moved = folder.rename(tmp_path / "elsewhere")
    code, out, err = run("reproduce", moved / "manifest.json")
    assert (code, err) == (0, "")
    assert "Not the same" not in out
    # It is an input: without it, or with another one, nothing is said to agree.
    scenario = moved / "wards" / "scenario.toml"
    scenario.write_text(scenario.read_text().replace("infected = 0.3", "infected = 0.4", 1))
    assert run("reproduce", moved / "manifest.json")[0] == 4
    scenario.unlink()
    assert run("reproduce", moved / "manifest.json")[0] == 2


@pytest.mark.usefixtures("blank_drawings")
def test_another_study_in_the_folder_is_not_replaced_by_the_one_that_is_kept(run, tmp_path):
    study = write_small_study(tmp_path / "mine")
    folder = tmp_path / "ward"
    write_small_study(folder).rename(folder / "study.toml")
    theirs = (folder / "study.toml").read_text() + "# by hand\n"
    (folder / "study.toml").write_text(theirs)
    code, _, err = run("compare", study, "--policy", "exponential", "--epsilon", "1", "--out", folder)
    assert (code, len(err.splitlines())) == (2, 1)
    assert f"{folder / 'study.toml'} is there already, and is not the one that the report keeps" in err
    assert sorted(path.name for path in folder.iterdir()) == ["scenario.toml", "study.toml"]
    assert (folder / "study.toml").read_text() == theirs


def test_a_study_without_the_name_of_its_scenario_is_refused_by_its_line(run, tmp_path):
    study = write_small_study(tmp_path, STUDY.replace('scenario = "scenario.toml"', 'scenario = ""'))
    code, _, err = run("compare", study, "--out", tmp_path / "out")
    assert (code, len(err.splitlines())) == (2, 1)
    assert 'scenario: must be the name of a built-in scenario or of a file, such as "ward.toml", got ""' in err


@pytest.fixture(scope="module")
def course(made, tmp_path_factory):
    """The folder of a report over two days."""
    folder = tmp_path_factory.mktemp("courses") / "ward"
    folder.mkdir()
    for name in ("study.toml", "scenario.toml"):
        shutil.copy(made / name, folder)
    budget = ["--horizon", "2", "--total-epsilon", "3", "--delta", "1e-6", "--adjacency", "any-record"]
    arguments = ["compare", str(folder / "study.toml"), *budget, "--policy", "exponential", "--out", str(folder)]
    assert main(arguments) == 0
    return folder


def test_a_course_of_days_is_run_again_with_its_budget(run, course):
    code, out, _ = run("reproduce", course / "manifest.json")
    assert code == 0
    assert "--horizon 2 --total-epsilon 3 --delta 1e-6" in out
    assert "The same: report.html and 4 figure files." in out


def test_the_answer_of_a_course_names_what_keeps_most(course):
    table = pd.read_csv(course / "comparison.csv")
    overall = table[(table["group"] == "all") & (table["horizon"] == 2)]
    best = overall.loc[overall["benefit_kept"].idxmax()]
    manifest = json.loads((course / "manifest.json").read_text(encoding="utf-8"))
    kept, most = math.floor(100 * best["benefit_kept"]), math.ceil(100 * best["most_kept"])
    assert kept <= most
    assert manifest["answer"][0] == (
        f"Over 2 days, within a total ε of 3, {kept}\u00a0% of the benefit can be kept (by {best['policy']}), and no "
        f"mechanism that gives what it publishes keeps more than {most}\u00a0%. Compared are "
        f"{', '.join(dict.fromkeys(table['policy']))}."
    )


def test_a_study_that_gives_other_numbers_is_told_with_its_reason(run, course, tmp_path):
    folder = shutil.copytree(course, tmp_path / "ward")
    path = folder / "scenario.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("cost = 0.02", "cost = 0.03"), encoding="utf-8")
    code, out, _ = run("reproduce", folder / "manifest.json", "--json")
    document = json.loads(out)
    assert (code, document["agree"]) == (4, False)
    assert {difference["column"] for difference in document["differences"]} >= {"value", "loss"}
    # The first table's rows are told by their policy, the other's by the way.
    assert all({"policy", "way"} & set(difference["key"]) for difference in document["differences"])
    assert list(document["inputs"]) == ["scenario"]
    assert "report.html" in document["other_bytes"]
