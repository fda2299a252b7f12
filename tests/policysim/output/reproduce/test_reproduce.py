"""Running a study again: what agrees, what differs, what cannot be run."""

import hashlib
import json
import os
import shutil

import pandas as pd
import pytest
from drawings import draw_only
from small_studies import STUDY, write_small_study

from policysim.cli.main import main
from policysim.cli.reproduce_command import ask
from policysim.output import reproduction
from policysim.output.manifest import read_manifest


@pytest.fixture
def made_again(monkeypatch, made):
    """A second run that makes the very same files as the first, without its work."""
    files = {path.relative_to(made).as_posix(): path.read_bytes() for path in made.rglob("*") if path.is_file()}
    monkeypatch.setattr(reproduction, "made_again", lambda *_: files)


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
    question = " ".join(out.partition("All")[0].split())
    assert question.startswith("Asked again: ward; adjacency any-record; sensitive none; epsilons 1; policies greedy, ")
    assert question.endswith("; by smoker; seed 0; price_list false.")
    n_files = len(list(report.rglob("*.csv")))
    assert f"All {count_numbers(report):,} numbers in {n_files} file" in out
    assert "comparison.csv" in out
    n_figures = len([path for path in (report / "figures").iterdir() if path.suffix != ".csv"])
    assert f"The same bytes: report.html and {n_figures} figure files.\n" in out
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
    n_files = len(list(report.rglob("*.csv")))
    assert f"1 difference; {count_numbers(report):,} numbers in {n_files} files were compared:" in out
    assert (
        f"  comparison.csv, row {place + 1} (policy exponential, group smoker, level 1): loss 0.25; now {now}\n" in out
    )
    assert "  comparison.csv: changed after that run, SHA-256 " in out


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
    assert f"{total} differences; " in out
    assert out.count("comparison.csv, row ") == 20
    assert f"  and {total - 20} more\n" in out
    _, out, _ = run("reproduce", report / "manifest.json", "--json")
    assert len(json.loads(out)["differences"]) == total


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
    assert "Not as it was:\n  manifest.json: versions.numpy 2.0.99; now " in out
    assert f"  report.html: SHA-256 {hashlib.sha256(b'<html>').hexdigest()[:12]}…; now " in out


@pytest.mark.usefixtures("made_again")
@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("epsilon", 2.0, "  manifest.json: epsilon 2.0; now 1.0\n"),
        ("records", 7, "  manifest.json: records 7; now 32\n"),
        ("answer", ["All is well."], "  manifest.json: answer ['All is well.']; now ["),
        ("question", {"policies": ["greedy"]}, "  manifest.json: question.policies ['greedy']; now ['greedy', "),
        ("remark", "checked", "  manifest.json: remark checked; now missing\n"),
        ("study", {"name": "ward", "title": "Better"}, "  manifest.json: study.title Better; now A small study\n"),
        ("sensitivity", {"value": 1e6}, "  manifest.json: sensitivity.value 1000000.0; now "),
        ("scenario_sha256", "0" * 64, "  manifest.json: scenario_sha256 000000000000…; now "),
    ],
)
def test_a_manifest_that_says_something_else_is_a_failure_that_names_it(run, report, key, value, line):
    def change(manifest):
        manifest[key] = {**manifest[key], **value} if isinstance(value, dict) else value

    edit(report / "manifest.json", change)
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, err) == (4, "")
    assert line in out
    code, out, _ = run("reproduce", report / "manifest.json", "--json")
    assert (code, json.loads(out)["agree"], len(json.loads(out)["differences"])) == (4, False, 1)


@pytest.mark.usefixtures("made_again")
def test_what_a_stranger_wrote_is_shown_in_one_short_line(run, report):
    edit(report / "manifest.json", lambda manifest: manifest.update(answer="All is well. " * 10_000))
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 4
    (line,) = [line for line in out.splitlines() if "answer" in line]
    assert line.startswith("  manifest.json: answer All is well. All")
    assert len(line) < 3000


@pytest.mark.usefixtures("made_again")
def test_an_edited_page_and_a_missing_figure_are_named_and_are_not_called_the_same(run, report):
    figures = [path.relative_to(report).as_posix() for path in sorted((report / "figures").rglob("*.*"))]
    figures = [name for name in figures if not name.endswith(".csv")]
    _, before, _ = run("reproduce", report / "manifest.json")
    assert f"The same bytes: report.html and {len(figures)} figure files." in before
    (report / "report.html").write_text("<p>all is well", encoding="utf-8")
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 4
    assert "  report.html: changed after that run, SHA-256 " in out
    assert f"The same bytes: {len(figures)} figure files." in out
    (report / figures[0]).unlink()
    (report / figures[1]).write_bytes(b"")
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 4
    assert f"  {figures[0]}: file missing; now there" in out
    assert f"  {figures[1]}: changed after that run, SHA-256 " in out
    assert f"The same bytes: {len(figures) - 2} figure files." in out
    code, out, _ = run("reproduce", report / "manifest.json", "--json")
    differences = json.loads(out)["differences"]
    assert {difference["file"] for difference in differences} == {"report.html", *figures[:2]}


@pytest.mark.usefixtures("made_again")
def test_a_table_that_only_one_of_the_runs_made_is_a_difference(run, report):
    edit(report / "manifest.json", lambda manifest: manifest["results"].update({"prices.csv": "0" * 64}))
    (report / "prices.csv").write_text("hides,loss\nage,1\n", encoding="utf-8")
    code, out, _ = run("reproduce", report / "manifest.json")
    assert code == 4
    assert "prices.csv: file there; now missing" in out


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
    edit(report / "manifest.json", lambda manifest: manifest.update(data={"trial.csv": "0" * 64}))
    code, _, err = run("reproduce", report / "manifest.json")
    assert (code, len(err.splitlines())) == (3, 1)
    assert "trial.csv: is not the data of" in err


def test_a_missing_table_is_refused_before_anything_is_computed(run, report, monkeypatch):
    monkeypatch.setattr(reproduction, "made_again", lambda *_: pytest.fail("computed"))
    (report / "comparison.csv").unlink()
    code, _, err = run("reproduce", report / "manifest.json")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "comparison.csv: cannot be read" in err


ALLOWED = "known: adjacency, sensitive, epsilons, policies, by, seed, at_most, price_list"


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("cluster", "tcp://203.0.113.1:8786", f"unknown key 'cluster'; {ALLOWED}"),
        ("seeds", 1, f"unknown key 'seeds'; did you mean 'seed'? {ALLOWED}"),
        ("x y" * 1000, 1, "unknown key 'x yx y"),
        ("epsilons", list(range(1, 1003)), "epsilons must have at most 1,000 entries, got 1,002"),
        ("seed", 2**128, "seed must be below 2^128, got a number of 129 bits"),
        ("seed", True, "seed must be a whole number >= 0, got True"),
        ("epsilons", 1.0, 'epsilons must be a list of numbers >= 0 or "inf", got 1.0'),
        ("epsilons", [-1], "epsilons must be a list"),
        ("epsilons", ["-inf"], "epsilons must be a list"),
        ("policies", [["optimal"]], "policies must be a list of at least one text"),
        ("policies", ["no-such"], "unknown policy 'no-such'"),
        ("by", "smoker", "by must be a list of texts, got 'smoker'"),
        ("adjacency", "any", "unknown adjacency 'any'"),
        ("sensitive", {"age": 1}, "sensitive must be a list of texts, got a table"),
        ("at_most", {"death": -1}, "at_most must be a table"),
        ("at_most", {"hiccups": 1}, "at_most: hiccups: unknown outcome 'hiccups'"),
        ("price_list", "yes", "price_list must be true or false, got 'yes'"),
        ("horizon", 2, "unknown key 'epsilons'; did you mean 'total_epsilons'? known: adjacency"),
    ],
    ids=lambda value: str(value)[:30].encode("unicode_escape").decode(),
)
def test_a_question_that_cannot_be_asked_is_refused_before_anything_is_computed(run, report, key, value, words):
    edit(report / "manifest.json", lambda manifest: manifest["question"].update({key: value}))
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert len(err) < 600
    assert err.startswith(f"policysim: {(report / 'manifest.json').as_posix()}: question: {words}")


@pytest.mark.usefixtures("drawn_as_made")
def test_the_command_line_of_a_manifest_is_for_people_and_nothing_is_taken_from_it(run, report):
    def change(manifest):
        manifest["command"] = "policysim compare study.toml --cluster tcp://203.0.113.1:8786 --out / --seed 7"

    edit(report / "manifest.json", change)
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, err) == (0, "")
    assert "203.0.113.1" not in out
    # The page shows it, and so is not the one that the manifest describes.
    assert "  report.html: SHA-256 " in out


@pytest.mark.usefixtures("blank_drawings")
def test_an_untouched_report_of_a_study_that_names_other_files_agrees_wherever_it_is(run, tmp_path):
    text = STUDY.replace('title = "A small study"\n', "").replace('"scenario.toml"', '"../shared/scenario.toml"')
    study = write_small_study(tmp_path / "studies", text)
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
    assert "The same bytes: report.html and " in out
    assert "Not as it was" not in out
    (tmp_path / "reports" / "shared" / "scenario.toml").unlink()
    code, _, err = run("reproduce", folder / "manifest.json")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "shared/scenario.toml: cannot be read: No such file or directory" in err


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
    assert "Not as it was" not in out
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
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch)
        assert main(arguments) == 0
    return folder


@pytest.mark.usefixtures("blank_drawings")
def test_a_course_of_days_is_run_again_with_its_budget(run, course):
    code, out, _ = run("reproduce", course / "manifest.json")
    assert code == 0
    assert "horizon 2; total_epsilons 3; delta 1e-06; length_public false." in " ".join(out.split())
    assert "The same bytes: report.html and 6 figure files." in out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"horizon": None}, "horizon must be a whole number from 1 to 366, got None"),
        ({"horizon": 367}, "horizon must be a whole number from 1 to 366, got 367"),
        ({"delta": 1}, "delta must be a number in [0, 1), got 1"),
        ({"length_public": 0}, "length_public must be true or false, got 0"),
        ({"total_epsilons": {}}, "total_epsilons must be a list of numbers"),
        ({"price_list": True}, "unknown key 'price_list'"),
        ({"adjacency": "one-feature"}, "over days one-"),
    ],
)
def test_over_days_other_options_are_refused(run, course, tmp_path, options, words):
    folder = shutil.copytree(course, tmp_path / "ward")
    edit(folder / "manifest.json", lambda manifest: manifest["question"].update(options))
    code, out, err = run("reproduce", folder / "manifest.json")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert f"manifest.json: question: {words}" in err


@pytest.mark.usefixtures("blank_drawings")
def test_a_study_that_gives_other_numbers_is_told_with_its_reason(run, course, tmp_path):
    folder = shutil.copytree(course, tmp_path / "ward")
    path = folder / "scenario.toml"
    path.write_text(path.read_text(encoding="utf-8").replace("cost = 0.02", "cost = 0.03"), encoding="utf-8")
    code, out, _ = run("reproduce", folder / "manifest.json", "--json")
    document = json.loads(out)
    assert (code, document["agree"]) == (4, False)
    assert {difference["column"] for difference in document["differences"]} >= {"value", "loss"}
    # Rows are told by what they are of: a policy, a way, or the row of a table of cells.
    cells = [difference for difference in document["differences"] if difference["row"]]
    assert cells and all({"policy", "way", "row"} & set(difference["key"]) for difference in cells)
    assert "scenario_sha256" in {difference["column"] for difference in document["differences"]}
    assert "report.html" in {remark["file"] for remark in document["remarks"]}


@pytest.mark.parametrize("name", ["study.toml", "manifest.json"])
def test_what_is_no_file_of_text_is_not_waited_for(run, report, name):
    (report / name).unlink()
    os.mkfifo(report / name)
    code, out, err = run("reproduce", report / "manifest.json")
    assert (code, out) == (2, "")
    assert err.endswith(f"{name}: is no file of text\n")


@pytest.mark.usefixtures("blank_drawings")
@pytest.mark.parametrize("asked", [(), ("optimal", "randomized-response")])
def test_only_policies_that_were_asked_for_have_columns_when_it_is_asked_again(run, tmp_path, asked):
    study = write_small_study(tmp_path)
    options = ("--policy", ",".join(asked)) if asked else ()
    assert run("compare", study, *options, "--epsilon", "1", "--out", tmp_path / "out")[0] == 0
    question = reproduction.question_of(read_manifest(tmp_path / "out" / "manifest.json"), ask)
    assert question.listed == asked
    assert set(question.study.policies) >= set(asked)
    assert run("reproduce", tmp_path / "out" / "manifest.json")[0] == 0
