"""Whatever ends a command, and wherever: a folder is all old or all new, and nothing is out that was not counted."""

import signal

import pytest
from ended_releases import ends
from private_files import write_people
from small_studies import write_small_study

from policysim.cli.main import main
from policysim.files.whole_folders import NAMES, unfinished, write_files
from policysim.output.manifest import read_manifest
from policysim.release.ledger import NAME, read_ledger
from policysim.study.study_reader import study_of

KILL, TERM = signal.SIGKILL, signal.SIGTERM


def files(folder):
    """All files below a folder but those that a run keeps for itself."""
    found = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if not name.startswith(".") and "/." not in name}


def own(folder):
    """What a run keeps for itself."""
    return [path.name for path in folder.rglob("*") if path.name.startswith(".")]


@pytest.fixture
def template(tmp_path, monkeypatch, blank_drawings, few_redraws):  # noqa: ARG001 - what a report says is not looked at
    """An empty folder, which is the current one."""
    folder = tmp_path / "template"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def each(tmp_path, statuses):
    """The folders that the runs left, and after a kill those that the next run left."""
    for step, (status, then) in enumerate(statuses, start=1):
        yield status, tmp_path / str(step), None if then is None else tmp_path / f"then {step}"


def check(tmp_path, statuses, out, *, refuses, number):
    """A folder is all old or all new, or it is refused until the next run, which finishes it: how often each was."""
    old, new = files(tmp_path / "template" / out), files(tmp_path / str(len(statuses)) / out)
    assert statuses[-1][0] == 0
    assert new not in (old, {})
    seen = {"old": 0, "new": 0, "refused": 0}
    for status, folder, then in each(tmp_path, statuses):
        found = files(folder / out)
        kind = "refused" if refuses(folder) else "old" if found == old else "new" if found == new else "mixed"
        seen[kind] += 1
        if number == KILL:
            assert status in (-KILL, 0)
            assert (files(then / out), own(then)) == (new, [])
        else:
            assert (status in (-number, 130, 0), own(folder)) == (True, [])
    return seen


@pytest.mark.parametrize("number", [KILL, TERM])
def test_a_comparison_that_is_ended_at_any_step_leaves_the_old_report_or_the_new_one(template, capsys, number):
    write_small_study(template)
    tmp_path = template.parent
    asked = ["compare", "small.toml", "--out", "out"]
    assert main([*asked, "--epsilon", "0.5,2"]) == 0
    statuses = ends(template, tmp_path, number, asked)

    def refuses(folder):
        return unfinished(folder / "out" / "files")

    seen = check(tmp_path, statuses, "out", refuses=refuses, number=number)
    assert seen["old"] > 5
    assert (seen["refused"] > 5) == (number == KILL)
    assert read_manifest(tmp_path / str(len(statuses)) / "out" / "manifest.json").name == "small"
    if number == KILL:
        refused = next(folder for _, folder, _ in each(tmp_path, statuses) if refuses(folder))
        assert main(["reproduce", str(refused / "out" / "manifest.json")]) == 2
        assert capsys.readouterr().err == (
            f"policysim: {refused / 'out'}: the run that wrote it was ended while its files took their places; a "
            "further policysim compare into this folder finishes it\n"
        )


def test_a_log_that_is_killed_at_any_step_is_never_taken_for_that_of_another_study(tmp_path, template):
    write_small_study(template)
    other = template / "other.toml"
    other.write_text((template / "small.toml").read_text().replace("seed = 3", "seed = 4"))
    asked = ["simulate", "other.toml", "--patients", "20", "--log", "log/log.csv"]
    assert main([*asked[:1], "small.toml", *asked[2:]]) == 0
    statuses = ends(template, tmp_path, KILL, asked)
    seen = check(tmp_path, statuses, "log", refuses=lambda at: unfinished(at / "log" / "log.csv"), number=KILL)
    assert seen["old"] > 3 and seen["refused"] > 0
    for _, folder, _ in each(tmp_path, statuses):
        if unfinished(folder / "log" / "log.csv"):
            with pytest.raises(ValueError, match="was ended while its files took their places; simulate it again"):
                study_of(folder / "log" / "log.csv")


@pytest.mark.parametrize("number", [KILL, TERM])
def test_a_private_choice_that_is_ended_at_any_step_is_counted_before_it_is_printed(tmp_path, template, number):
    write_people(template / "data.csv", 20)
    asked = ["select", "data.csv", "--column", "sex", "--candidates", "0,1", "--epsilon", "1"]
    statuses = ends(template, tmp_path, number, asked)
    seen = set()
    for status, folder, then in each(tmp_path, statuses):
        entries = read_ledger(folder / NAME)
        said = (folder.parent / f"said {folder.name}").read_text()
        assert len(entries) == 1 or "Choice" not in said
        assert [path.read_text() for path in folder.iterdir() if path.suffix == ".csv"] == [
            (template / "data.csv").read_text()
        ]
        seen.add((len(entries), status == 0))
        if then is not None:
            # What was counted is not released again; whatever was left is taken away.
            assert statuses[int(folder.name) - 1][1] == (4 if entries else 0)
            assert (len(read_ledger(then / NAME)), own(then)) == (1, [])
    assert {(0, False), (1, True)} <= seen or number == TERM  # which waits until the choice is counted


def test_names_that_lead_out_of_a_folder_are_not_taken(tmp_path):
    """What was left may be a stranger's."""
    folder, part = tmp_path / "report", tmp_path / "report" / ".files.part-x"
    part.mkdir(parents=True)
    (part / "0").write_text("theirs")
    (part / "1").write_text("good")
    (tmp_path / "mine.txt").write_text("mine")
    (folder / "elsewhere").symlink_to(tmp_path)
    names = {"0": "../mine.txt", "1": "good.txt"}
    for name in ("../mine.txt", str(tmp_path / "mine.txt"), "elsewhere/mine.txt"):
        part.mkdir(exist_ok=True)
        (part / "0").write_text("theirs")
        (part / NAMES).write_text(str(names | {"0": name}).replace("'", '"'))
        write_files(folder, {"a.txt": b"A"})
        assert (tmp_path / "mine.txt").read_text() == "mine"
        assert not part.exists()
    assert (folder / "good.txt").read_text() == "good"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"0": 1}', '{"../0": "a"}'])
def test_a_list_of_names_that_is_none_moves_nothing(tmp_path, text):
    part = tmp_path / ".files.part-x"
    part.mkdir()
    (part / NAMES).write_text(text)
    write_files(tmp_path, {"a.txt": b"A"})
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
