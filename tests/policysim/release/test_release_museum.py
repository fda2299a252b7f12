"""A museum of real defects of the ledger: each is planted here and caught, beside the right version."""

import math
import os
import threading

import pytest

from policysim.question import OutputError
from policysim.release import ledger as module
from policysim.release.ledger import Release, RepeatedReleaseError, read_ledger, release_once


def release(*digits, columns=("sex",), unchanged=("person",)):
    """A release of files with these digests."""
    sha256 = tuple(digit * 64 for digit in digits)
    return Release("privatize", "data", sha256, columns, unchanged, 1.0, "replace-one", "out")


RELEASE = release("0")


# A folder that overlaps an earlier release.


def is_refused(path, *releases):
    """Whether the last of some releases is refused; all others are made."""
    for each in releases[:-1]:
        release_once(path, each, again=True)
    try:
        release_once(path, releases[-1], again=False)
    except RepeatedReleaseError:
        return True
    return False


@pytest.mark.parametrize("planted", [False, True])
def test_a_folder_that_overlaps_an_earlier_release(tmp_path, monkeypatch, planted):
    def contained(releases, release):
        own = set(release.sha256)
        return [each for each in releases if own <= set(each.sha256) or own >= set(each.sha256)]

    if planted:
        monkeypatch.setattr(module, "_same", contained)
    assert is_refused(tmp_path / "inner.json", release("1", "2"), release("2"))
    assert is_refused(tmp_path / "outer.json", release("2"), release("1", "2"))
    assert not is_refused(tmp_path / "other.json", release("1", "2"), release("3"))
    # Neither holds the other: the file that both hold is released twice.
    assert is_refused(tmp_path / "overlap.json", release("1", "2"), release("2", "3")) == (not planted)


# "No privacy left" that looks at the last release only.


@pytest.mark.parametrize("planted", [False, True])
def test_no_privacy_left_that_looks_at_the_last_release_only(monkeypatch, planted):
    both = release("0", columns=("age", "sex"), unchanged=())
    shows_age, hides_age = release("0", unchanged=("age",)), release("0", columns=("age",), unchanged=("sex",))
    earlier = module._earlier
    if planted:
        monkeypatch.setattr(module, "_earlier", lambda same, release: earlier(same[-1:], release))
    assert module._earlier([shows_age], both).epsilon_in_all == math.inf
    assert module._earlier([both, shows_age], both).epsilon_in_all == math.inf
    assert (module._earlier([shows_age, both], both).epsilon_in_all == math.inf) == (not planted)
    # Nor need this release hide what was shown: two earlier ones gave it away between them.
    other = release("0", columns=("smoker",), unchanged=())
    assert (module._earlier([shows_age, hides_age, other], other).epsilon_in_all == math.inf) == (not planted)


# A ledger without a lock, and one that is not read again under it.


def releases_of_two_at_once(path):
    """How often the same rows are released if a second run comes between the last check of the first and its entry."""
    made = []

    def second():
        try:
            release_once(path, RELEASE, again=False)
            made.append("second")
        except OutputError:
            pass

    def between(_):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        return ()

    try:
        release_once(path, RELEASE, again=False, prepare=between)
        made.append("first")
    except OutputError:
        pass
    return len(made), len(read_ledger(path))


def test_a_ledger_without_a_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MOST_SECONDS", 0.0)
    assert releases_of_two_at_once(tmp_path / "right.json") == (1, 1)
    monkeypatch.setattr(module, "_lock", lambda lock: os.open(lock, os.O_RDWR | os.O_CREAT))
    # Both are released, and the entry of one is lost.
    assert releases_of_two_at_once(tmp_path / "unlocked.json") == (2, 1)


def test_a_ledger_that_is_not_read_again_under_the_lock(tmp_path, monkeypatch):
    path = tmp_path / "ledger.json"
    before = read_ledger(path)
    release_once(path, RELEASE, again=False)
    with pytest.raises(RepeatedReleaseError):
        release_once(path, RELEASE, again=False)
    assert len(read_ledger(path)) == 1
    monkeypatch.setattr(module, "read_ledger", lambda _: before)
    release_once(path, RELEASE, again=False)
    assert len(read_ledger(path)) == 1  # of two releases
