"""Digests of patients' data: what is published confirms no guess of their rows, and its owner can check them."""

import hashlib
import hmac
import json
import os
import shutil
import stat
from pathlib import Path

import pytest
from parts_work import log_rows, write_parts
from printed_blocks import few_draws

from policysim.cli.main import main
from policysim.files import keyed_digests

FEW = ("--policy", "uniform", "--epsilon", "1", "--json")


def compare(folder, capsys, *, n_parts=1, public=False):
    """A log in parts/, its report, and what was printed."""
    study = write_parts(folder, log_rows(300), n_parts)
    text = study.read_text().replace("[data]\n", "[data]\npublic = true\n" if public else "[data]\n")
    study.write_text(text.replace('"parts"', '"parts/0000.csv"') if n_parts == 1 else text)
    capsys.readouterr()
    with few_draws():
        assert main(["compare", str(study), *FEW, "--out", str(folder)]) == 0
    return json.loads((folder / "manifest.json").read_text()), capsys.readouterr().out


def files_of(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("n_parts", [1, 3])
@pytest.mark.usefixtures("blank_drawings")
def test_nothing_published_is_a_digest_of_the_rows_or_of_what_is_made_of_them_without_the_key(
    tmp_path, capsys, n_parts
):
    manifest, printed = compare(tmp_path, capsys, n_parts=n_parts)
    key_path = tmp_path / "parts" / keyed_digests.KEY
    key = key_path.read_bytes()
    assert stat.S_IMODE(key_path.stat().st_mode) == 0o600
    files = files_of(tmp_path)
    published = b"".join(content for path, content in files.items() if path.parent.name != "parts") + printed.encode()
    assert key not in published
    guesses = [content for path, content in files.items() if path.name != "study.toml"]
    parts = sorted((tmp_path / "parts").glob("*.csv"))
    guesses += ["".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in parts).encode()]
    for guess in guesses:
        assert hashlib.sha256(guess).hexdigest().encode() not in published
    # Whoever has the key finds them by other means.
    assert manifest["data"]["public"] is False
    if n_parts == 1:
        assert manifest["data"]["hmac_sha256"] == {"0000.csv": hmac.digest(key, files[parts[0]], "sha256").hex()}
    assert manifest["results"] == {
        name: hmac.digest(key, (tmp_path / name).read_bytes(), "sha256").hex() for name in manifest["results"]
    }


@pytest.mark.usefixtures("blank_drawings")
def test_without_the_key_of_the_run_reproduce_says_that_data_are_not_checked(tmp_path, capsys):
    compare(tmp_path / "trial", capsys)
    manifest, data = tmp_path / "trial" / "manifest.json", tmp_path / "trial" / "parts"

    def reproduce():
        with few_draws():
            code = main(["reproduce", str(manifest)])
        return code, *capsys.readouterr()

    code, said, _ = reproduce()
    assert (code, "unchanged since that run" in said, "Not checked" in said) == (0, True, False)
    with (data / "0000.csv").open("a") as stream:
        stream.write("\n")
    assert reproduce()[::2] == (
        3,
        f"policysim: {manifest.as_posix()}: the data (0000.csv) changed since this report was made (another digest)\n",
    )
    key = data / keyed_digests.KEY
    for other in (None, b"0" * 64):
        key.unlink(missing_ok=True)
        if other:
            key.write_bytes(other)
        before = files_of(tmp_path)
        code, said, _ = reproduce()
        assert (code, "unchanged since that run" in said) == (0, False)
        assert "Not checked: whether data, pages and figures are those of that run." in said
        assert files_of(tmp_path) == before
    key.write_bytes(b"")
    code, _, error = reproduce()
    assert (code, error) == (
        3,
        f"policysim: {key.as_posix()}: is no key of policysim: put back the key, or remove this file\n",
    )


@pytest.mark.usefixtures("blank_drawings")
def test_data_that_anyone_may_have_need_no_key_and_the_manifest_says_that_they_are_public(tmp_path, capsys):
    manifest, _ = compare(tmp_path, capsys, public=True)
    digest = hashlib.sha256((tmp_path / "parts" / "0000.csv").read_bytes()).hexdigest()
    assert manifest["data"] == {"public": True, "sha256": {"0000.csv": digest}}
    assert not list(tmp_path.rglob(keyed_digests.KEY))


@pytest.mark.usefixtures("blank_drawings")
def test_the_next_report_keeps_the_key_and_where_none_can_be_written_nothing_is(tmp_path, capsys, monkeypatch):
    first, _ = compare(tmp_path / "trial", capsys)
    again = shutil.copytree(tmp_path / "trial", tmp_path / "again")
    with few_draws():
        assert main(["compare", str(again / "study.toml"), *FEW, "--out", str(tmp_path / "out")]) == 0
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["data"] == first["data"]
    (again / "parts" / keyed_digests.KEY).unlink()
    capsys.readouterr()

    open_file = os.open

    def refuse_key(path, *arguments, **named):
        if str(path).endswith(keyed_digests.KEY):
            raise PermissionError(13, "Permission denied")
        return open_file(path, *arguments, **named)

    monkeypatch.setattr(os, "open", refuse_key)
    assert main(["compare", str(again / "study.toml"), *FEW, "--out", str(tmp_path / "none")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"policysim: {(again / 'parts' / keyed_digests.KEY).as_posix()}: Permission denied")
    assert error.count("\n") == 1 and not (tmp_path / "none").exists()


def test_the_reports_of_the_repository_are_of_public_data_and_say_so():
    of_data = {}
    for path in Path(__file__).parents[3].glob("reports/*/manifest.json"):
        manifest = json.loads(path.read_text(encoding="utf-8"))
        if "data" in manifest:
            of_data[path.parent.name] = manifest["data"]["public"]
    assert of_data == dict.fromkeys(("actg175", "ist", "ist-14-days", "warfarin"), True)
