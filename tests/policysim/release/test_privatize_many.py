"""Many files are one release: the same by whoever draws them, each drawn file released once, whatever goes wrong."""

import functools
import json
from pathlib import Path

import numpy as np
import pytest
from private_files import COLUMNS, DECLARED, LEVELS, people, read_rows, run
from private_parts import (
    change_after,
    die_after,
    die_within,
    draw_and_tell,
    draws,
    stop_at,
    write_part,
    write_parts,
)
from scipy.stats import chisquare

from policies.local import KAry, privatize
from policysim.files.workers import Workers
from policysim.question import OutputError
from policysim.release.privatize import privatize_files, read_private
from policysim.release.privatize_note import make_plan, note_path
from policysim.release.privatize_source import open_source
from policysim.release.privatize_stage import KNOWN, stage_path, staged

PLAN = make_plan(LEVELS, 1.0)
OPTIONS = (*COLUMNS, *DECLARED, "--epsilon", 1)
WORK = "policysim.release.privatize.privatize_part"
CLUSTER = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def data(tmp_path):
    return write_parts(tmp_path / "true" / "parts", 7)


@pytest.fixture
def out(tmp_path):
    (tmp_path / "published").mkdir()
    return tmp_path / "published" / "out"


@pytest.fixture
def told(tmp_path):
    (tmp_path / "told").mkdir()
    return tmp_path / "told"


@pytest.fixture
def planted(monkeypatch, told):
    """Put other work in the place of the real one, and say where it tells of its draws."""

    def plant(work, *arguments):
        monkeypatch.setattr(WORK, functools.partial(work, *arguments, str(told)))

    return plant


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def everywhere(folder):
    """The bytes of all files below a folder."""
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def releases(data):
    path = data.with_name(f"{data.name}.releases.json")
    return json.loads(path.read_text())["releases"] if path.exists() else []


def simulated(data, out, workers=None, seed=5):
    note, (table,) = privatize_files(open_source([data]), out, PLAN, seed=seed, workers=workers, keep_true=True)
    return contents(out), note_path(out).read_bytes(), note.n_rows, table.reports.tolist(), table.truth.tolist()


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_many_files_keep_their_names_their_rows_and_what_is_not_private(capsys, tmp_path, out, ending):
    data = write_parts(tmp_path / "data", 3, ending=ending)
    code, printed, _ = run(capsys, data, *OPTIONS, "--out", out, "--json")
    assert code == 0
    assert set(contents(out)) == set(contents(data))
    hidden = 0
    for part in sorted(data.iterdir()):
        (header, true), (own_header, found) = read_rows(part), read_rows(out / part.name)
        assert own_header == header
        assert [(row[0], row[3]) for row in found] == [(row[0], row[3]) for row in true]
        hidden += [row[1:3] for row in found] != [row[1:3] for row in true]
    # Of 46 rows all tell the truth: (e / (e + 3))^46 < 1e-14.
    assert hidden == 3
    document = json.loads(printed)
    assert document["note"]["rows"] == 140
    assert document["file"] == out.as_posix()
    (table,) = document["estimates"]
    rows = [row[1:3] for part in out.iterdir() for row in read_rows(part)[1]]
    assert [row["reports"] for row in table["rows"]] == [rows.count(row["levels"]) for row in table["rows"]]
    code, again, _ = run(capsys, "--estimate", out, "--json")
    assert (code, json.loads(again)) == (0, document)
    assert len(releases(data)) == 1
    assert len(releases(data)[0]["sha256"]) == 3
    assert {path.name for path in tmp_path.iterdir()} == {"data", "data.releases.json", "published"}
    assert {path.name for path in out.parent.iterdir()} == {"out", "out.privacy.json"}


@pytest.mark.parametrize("n_parts", [1, 3, 7])
def test_a_seed_gives_the_same_bytes_here_and_in_processes(tmp_path, n_parts):
    data = write_parts(tmp_path / "data", n_parts)
    here = simulated(data, tmp_path / "here")
    assert here[2] == sum(here[3]) == 140
    true = [tuple(row[1:3]) for row in people(140)]
    assert here[4] == [true.count((age, sex)) for age in LEVELS["age_band"] for sex in LEVELS["sex"]]
    assert simulated(data, tmp_path / "there", Workers(2)) == here
    assert simulated(data, tmp_path / "other", seed=6)[0] != here[0]


@CLUSTER
def test_a_seed_gives_the_same_bytes_on_a_cluster(tmp_path, data):
    distributed = pytest.importorskip("distributed")
    here = simulated(data, tmp_path / "here")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        protocol="tcp://",
        processes=False,
    ) as cluster:
        assert simulated(data, tmp_path / "there", Workers(cluster=cluster.scheduler_address)) == here


def test_one_file_draws_from_the_seed_alone(tmp_path, out):
    data = write_parts(tmp_path / "data", 1) / "0000.csv"
    out = out.with_suffix(".csv")
    privatize_files(open_source([data]), out, PLAN, seed=5)
    values = [(LEVELS["age_band"].index(row[1]), LEVELS["sex"].index(row[2])) for row in people(140)]
    reports = privatize(np.ravel_multi_index(np.transpose(values), (2, 2)), KAry(4, 1.0), rng=np.random.default_rng(5))
    expected = [[LEVELS["age_band"][code // 2], LEVELS["sex"][code % 2]] for code in reports]
    assert [row[1:3] for row in read_rows(out)[1]] == expected


def test_the_stream_of_a_file_depends_on_its_name_and_not_on_other_files(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    rows = people(60)
    for name in ("b", "c"):
        write_part(folder / f"{name}.csv", rows)
    first = simulated(folder, tmp_path / "first")[0]
    # Equal by chance: (sum of p(r|v)^2)^60 < 0.4^60.
    assert first["b.csv"] != first["c.csv"]
    write_part(folder / "a.csv", rows)
    second = simulated(folder, tmp_path / "second")[0]
    assert {name: second[name] for name in first} == first


def test_releases_of_many_files_have_the_distribution_that_the_note_says(tmp_path, out):
    folder, n = tmp_path / "data", 12_000
    folder.mkdir()
    for number in range(3):
        write_part(folder / f"{number}.csv", [["0", "old", "1", ""]] * (n // 3))
    privatize_files(open_source([folder]), out, PLAN, workers=Workers(2))
    note, (table,) = read_private(out)
    assert note.release
    assert note.n_rows == n
    p, q = np.e / (np.e + 3), 1 / (np.e + 3)
    # The operating system's randomness has no seed: in one of 1e9 runs.
    assert chisquare(table.reports, [n * q, n * q, n * q, n * p]).pvalue > 1e-9
    # Two files are not drawn from one stream: (sum of p(r|v)^2)^4000 < 0.4^4000.
    assert len(set(contents(out).values())) == 3


@pytest.mark.parametrize("died", [die_after, die_within])
def test_of_a_file_whose_worker_was_killed_one_draw_is_released_and_no_other_is_left(data, out, told, planted, died):
    planted(died, "0003.csv")
    note, (table,) = privatize_files(open_source([data]), out, PLAN, workers=Workers(2))
    found = draws(told)
    assert (told / "killed").exists()
    # What the killed one drew; others that were under way beside it may have been drawn twice too.
    assert len(found["0003.csv"]) == (2 if died is die_after else 1)
    assert sum(map(len, found.values())) <= 7 + 4
    released = contents(out)
    assert {name for name, content in released.items() if content in found[name]} == set(found)
    left = everywhere(out.parent) + everywhere(data.parent)
    for name, contents_of in found.items():
        assert sum(content in left for content in contents_of) == 1, name
    assert {path.name for path in out.parent.iterdir()} == {"out", "out.privacy.json"}
    # The estimates are of what was released, and of nothing else.
    assert note.n_rows == 140
    assert read_private(out)[1][0].reports.tolist() == table.reports.tolist()
    assert len(releases(data)) == 1


@pytest.mark.parametrize("n_workers", [1, 2])
def test_what_was_drawn_before_an_interruption_is_released_and_not_drawn_again(capsys, data, out, planted, n_workers):
    options = (data, *OPTIONS, "--out", out, "--workers")
    planted(stop_at, "0004.csv")
    code, _, err = run(capsys, *options, 1)
    assert code == 130
    assert err.endswith("with --resume the same command takes the files that were done\n")
    told = out.parent.parent / "told"
    assert {name: len(each) for name, each in draws(told).items()} == {f"000{i}.csv": 1 for i in range(4)}
    stage = stage_path(out)
    assert stage.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in out.parent.iterdir()] == [stage.name]
    assert releases(data) == []
    planted(draw_and_tell)
    assert run(capsys, *options, n_workers, "--resume")[0] == 0
    found = draws(told)
    assert {name: len(each) for name, each in found.items()} == {f"000{i}.csv": 1 for i in range(7)}
    assert contents(out) == {name: content for name, (content,) in found.items()}
    assert {path.name for path in out.parent.iterdir()} == {"out", "out.privacy.json"}
    assert len(releases(data)) == 1
    assert read_private(out)[0].n_rows == 140


def test_without_resume_or_for_another_question_nothing_drawn_before_is_released(capsys, data, out, told, planted):
    for options in ((*OPTIONS,), (*OPTIONS[:-1], 2, "--resume")):
        planted(stop_at, "0004.csv")
        assert run(capsys, data, *OPTIONS, "--out", out, "--workers", 1, "--again")[0] == 130
        before = draws(told)
        planted(draw_and_tell)
        assert run(capsys, data, *options, "--out", out, "--workers", 1, "--again")[0] == 0
        left = everywhere(out.parent)
        assert not any(content in left for each in before.values() for content in each)
        assert not stage_path(out).exists()
        for path in told.iterdir():
            path.unlink()


def test_a_file_that_changed_since_is_drawn_again_and_a_draw_that_is_gone_is_told(capsys, data, out, told, planted):
    options = (data, *OPTIONS, "--out", out, "--workers", 1)
    planted(stop_at, "0004.csv")
    run(capsys, *options)
    (before,) = draws(told)["0001.csv"]
    part = data / "0001.csv"
    part.write_text(part.read_text() + "9999,old,1,x\n")
    gone = next((stage_path(out) / "0002.csv").iterdir())
    planted(draw_and_tell)
    content = gone.read_bytes()
    gone.unlink()
    code, _, err = run(capsys, *options, "--resume")
    assert code == 2
    assert err.endswith("0002.csv: what was drawn of 0002.csv before is gone: run again without --resume\n")
    gone.write_bytes(content)
    assert run(capsys, *options, "--resume")[0] == 0
    assert before not in everywhere(out.parent)
    assert len(read_rows(out / "0001.csv")[1]) == 21
    assert contents(out)["0002.csv"] == content


def test_two_runs_do_not_draw_into_one_folder(capsys, data, out):
    with staged(out, resume=False):
        code, _, err = run(capsys, data, *OPTIONS, "--out", out)
    said = f"another run is writing to {stage_path(out)}: let it end first, or name another folder"
    assert (code, err) == (2, f"policysim: {said}\n")
    assert list(out.parent.iterdir()) == []


def test_without_workers_an_interrupted_run_leaves_nothing(capsys, data, out, planted):
    planted(stop_at, "0004.csv")
    assert run(capsys, data, *OPTIONS, "--out", out)[0] == 130
    assert list(out.parent.iterdir()) == []
    assert releases(data) == []


def test_a_disk_that_fills_while_something_is_kept_is_told_once(capsys, data, out, monkeypatch):
    def full(folder, _):
        raise OutputError(f"cannot write to {folder}: No space left on device")

    monkeypatch.setattr("policysim.files.workers.write_files", full)
    code, _, err = run(capsys, data, *OPTIONS, "--out", out, "--workers", 1)
    said = f"cannot write to {stage_path(out) / KNOWN}: No space left on device"
    assert (code, err) == (2, f"policysim: {said}\n")
    assert list(out.parent.iterdir()) == []
    assert releases(data) == []


@pytest.mark.parametrize("broken", [KeyboardInterrupt, OSError(28, "No space left on device")])
def test_a_private_folder_never_stands_without_its_note(capsys, data, out, monkeypatch, broken):
    assert run(capsys, data, *OPTIONS, "--out", out)[0] == 0
    replace = Path.replace

    def fail_at_the_note(path, target):
        if target == note_path(out):
            raise broken
        return replace(path, target)

    monkeypatch.setattr("pathlib.Path.replace", fail_at_the_note)
    code, _, err = run(capsys, data, *OPTIONS, "--out", out, "--again")
    assert code == (130 if broken is KeyboardInterrupt else 2)
    assert len(err.splitlines()) == 1
    assert list(out.parent.iterdir()) == []
    # For a moment the private files were there for all to read: that counts.
    assert len(releases(data)) == 2


def test_bad_rows_of_all_files_are_one_list(capsys, data, out):
    for number in (5, 2):
        part = data / f"000{number}.csv"
        part.write_text(part.read_text() + "9999,old,7,x\n" * 12)
    for options in ((), ("--workers", 2)):
        code, printed, err = run(capsys, data, *OPTIONS, "--out", out, *options)
        assert (code, printed) == (3, "")
        lines = err.splitlines()
        must = "sex: must be one of 0, 1, got '7'"
        assert lines[0] == f"policysim: {data}/0002.csv:22: row 21: {must}"
        assert lines[12] == f"policysim: {data}/0005.csv:22: row 21: {must}"
        assert lines[20:] == ["policysim: ... and 4 more"]
        assert list(out.parent.iterdir()) == []
        assert releases(data) == []


def test_files_that_do_not_belong_together_are_told(capsys, tmp_path, data, out):
    def refused(said, *names, code=3):
        got, printed, err = run(capsys, *(names or (data,)), *OPTIONS, "--out", out, "--workers", 2)
        assert (got, printed, err) == (code, "", f"policysim: {said}\n")
        assert list(out.parent.iterdir()) == []

    other = write_parts(tmp_path / "other", 1) / "0000.csv"
    together = "files that are released together keep their names in one new folder, so they must come from one"
    refused(f"{data}/0000.csv: is not in the folder of {other}: {together}", data, other)
    write_part(data / "0004.csv", people(3), ["person", "age", "sex", "note"])
    refused(f"{data}/0004.csv: has no column 'age_band', which 0000.csv has")
    write_part(data / "0004.csv", [[*row, "1"] for row in people(3)], ["person", "age_band", "sex", "note", "ward"])
    refused(f"{data}/0004.csv: has a column 'ward', which 0000.csv has not")
    (data / "0004.csv").unlink()
    refused(
        f"{data}/0004.csv: cannot be read: No such file or directory", *(data / f"000{number}.csv" for number in (3, 4))
    )


def test_a_file_that_changes_after_it_was_read_is_told(capsys, data, out, monkeypatch):
    monkeypatch.setattr(WORK, functools.partial(change_after, "0000.csv"))
    code, _, err = run(capsys, data, *OPTIONS, "--out", out)
    assert (code, err) == (3, f"policysim: {data}/0000.csv: was changed while it was read\n")
    assert list(out.parent.iterdir()) == []
    assert releases(data) == []


def test_a_file_without_rows_may_be_among_others_but_not_alone(capsys, tmp_path, out):
    folder = tmp_path / "data"
    folder.mkdir()
    write_part(folder / "a.csv", [])
    code, _, err = run(capsys, folder, *OPTIONS, "--out", out)
    assert (code, err) == (3, f"policysim: {folder}: has no rows\n")
    write_part(folder / "b.csv", people(30))
    assert run(capsys, folder, *OPTIONS, "--out", out)[0] == 0
    assert (out / "a.csv").read_text() == "person,age_band,sex,note\n"
    assert read_private(out)[0].n_rows == 30


def test_levels_are_taken_from_all_files(capsys, tmp_path, out):
    folder = tmp_path / "data"
    folder.mkdir()
    for name, sex in {"a": "1", "b": "0", "c": "1"}.items():
        write_part(folder / f"{name}.csv", [["0", "old", sex, ""]] * 5)
    assert run(capsys, folder, "--column", "sex", "--epsilon", 1, "--out", out)[0] == 0
    assert read_private(out)[0].plan.levels == {"sex": ("0", "1")}


def test_a_folder_that_holds_something_else_is_not_replaced(capsys, data, out):
    def refused(said, place=out, code=2):
        before = everywhere(out.parent), contents(data)
        got, printed, err = run(capsys, data, *OPTIONS, "--out", place, "--seed", 1)
        assert (got, printed, err) == (code, "", f"policysim: {said}\n")
        assert (everywhere(out.parent), contents(data)) == before

    refused(f"{data}: is the folder with the true values, which would be lost", data)
    refused(f"--out must be a folder, as there may be many files, got '{out}.csv'", f"{out}.csv")
    out.write_text("")
    refused(f"{out}: is a file, and must be a new folder")
    out.unlink()
    out.symlink_to(data)
    refused(f"{out}: is a link, and must be a new folder")
    out.unlink()
    out.mkdir()
    (out / "mine.csv").write_text("mine")
    refused(f"{out}: holds mine.csv, which privatize did not write there; name a new folder")
    (out / "mine.csv").unlink()
    stage_path(out).symlink_to(data)
    refused(f"{stage_path(out)}: is a symbolic link, and private data would be written there")
    stage_path(out).unlink()
    # An empty folder is as good as none, and a simulation may be replaced; files that are gone do not stay.
    for number in (0, 1):
        assert run(capsys, data, *OPTIONS, "--out", out, "--seed", number)[0] == 0
        assert len(contents(out)) == 7 - number
        (data / "0006.csv").unlink(missing_ok=True)
    (out / "mine.txt").write_text("mine")
    refused(f"{out}: holds mine.txt, which privatize did not write there; name a new folder")


def test_a_release_of_the_folder_counts_for_each_file_of_it_and_the_other_way_round(capsys, data, out):
    def again(*names, place):
        code, _, err = run(capsys, *names, *OPTIONS, "--out", place)
        assert code == 2
        return err

    assert run(capsys, data, *OPTIONS, "--out", out)[0] == 0
    err = again(data, place=out.with_name("b"))
    assert err.startswith(
        f"policysim: {data} was released before: age_band, sex at epsilon = 1, as out (1 in parts.rel"
    )
    assert "is a release, whose epsilon is spent; name another folder" in again(data, place=out)
    err = again(data / "0002.csv", place=out.with_name("b.csv"))
    assert err.startswith(f"policysim: {data}/0002.csv was released before: ")
    assert "(1 in 0002.csv.releases.json and the ledgers of its folder or files)" in err
    again(data / "000[5-6].csv", place=out.with_name("b"))
    write_part(data / "0007.csv", people(9))
    again(data, place=out.with_name("b"))
    # By itself it is new; then a release of the folder is a second one of it.
    assert run(capsys, data / "0007.csv", *OPTIONS, "--out", out.with_name("c.csv"))[0] == 0
    assert run(capsys, data, *OPTIONS, "--out", out.with_name("b"), "--again")[0] == 0
    assert json.loads(note_path(out.with_name("b")).read_text())["earlier"] == {
        "releases": 2,
        "epsilon": 2.0,
        "epsilon_in_all": 3.0,
    }
    assert len(releases(data)) == 2


def test_a_pattern_or_a_list_is_some_files_of_a_folder(capsys, data, out):
    assert run(capsys, data / "000[0-2].csv", data / "0001.csv", *OPTIONS, "--out", out)[0] == 0
    assert sorted(contents(out)) == ["0000.csv", "0001.csv", "0002.csv"]
    assert len(releases(data)) == 1


@pytest.mark.parametrize(
    "names", [(".",), ("../parts/",), ("*.csv",), tuple(f"000{number}.csv" for number in range(7))]
)
def test_the_current_folder_has_its_ledger_beside_it(capsys, data, out, monkeypatch, names):
    monkeypatch.chdir(data)
    code, _, err = run(capsys, *names, *OPTIONS, "--out", out)
    assert code == 0
    assert len(err.splitlines()) == 1
    assert len(releases(data)) == 1
    assert len(contents(data)) == len(contents(out)) == 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((*OPTIONS, "--out", "o", "--workers", "0"), "--workers must be a whole number >= 1, got '0'"),
        ((*OPTIONS, "--out", "o", "--resume"), "--resume only goes with --workers or --cluster"),
        ((*OPTIONS, "--out", "o", "--cluster", "nowhere"), "--cluster must be an address such as tcp://10.0.0.1:8786"),
        (("--estimate", "--workers", "2"), "--workers does not go with --estimate"),
        (("another", "--estimate"), "--estimate needs one private file or folder, got 2"),
        ((*OPTIONS, "--out", ""), "--out must be a folder, as there may be many files, got ''"),
        ((*OPTIONS, "--out", ".."), "--out must be a folder, as there may be many files, got '..'"),
    ],
)
def test_options_that_cannot_be_are_one_line(capsys, data, monkeypatch, options, said):
    monkeypatch.chdir(data.parent)
    code, printed, err = run(capsys, data, *options)
    assert (code, printed) == (2, "")
    assert err.startswith(f"policysim: {said}")
    assert len(err.splitlines()) == 1
    assert list(data.parent.iterdir()) == [data]
