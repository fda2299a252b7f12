"""How a release comes out: drawn out of sight, counted in the ledger, and then, with its note, in its place.

What is counted is delivered. A draw is written where only the owner of the ledger may read (LEDGER.pending), then
counted in one transaction, and only then does it come out: first its note, then the data, each by one rename. Whatever
ends the process, and wherever, the same request gets the draw that was counted, and no other one is made. A release
replaces nothing, so an old one stands until somebody moves it away.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from policysim.errors import EXIT_CHECK, OutputError
from policysim.files.many_files import CSV, PARQUET
from policysim.files.terminal import complain, json_text
from policysim.files.whole_files import check_writable, has_content, keep_closed, remove_empty, sync, temporary_folder
from policysim.release.ledger import EXACT, INFINITE, BudgetError, Ledger, Release, shown
from policysim.release.privatize_source import Source

# The name of a simulation says what it is, so that it is never taken for a release, and no release for it.
SIMULATED = ".simulated"
# What a note and a document say of the ledger: the number of the entry, and for everybody's releases what is spent.
Facts: TypeAlias = dict[str, Any]


class NotReplacedError(OutputError):
    """A release that would replace something; str() is one line for the user."""

    exit_code = EXIT_CHECK


@dataclass(frozen=True)
class Draw:
    """What was drawn.

    Attributes
    ----------
    answer : dict
        Values of JSON: all that must be known to deliver it, and to say what it is.
    release : Release
        What it costs.
    patients : collection of bytes
        The digests of the ids of the charged patients (`Ledger.digest`), if the release charges `each`.
    """

    answer: dict[str, Any]
    release: Release
    patients: Collection[bytes] = ()


def note_path(private: Path) -> Path:
    """Where the note of a private file, or folder, is: beside it."""
    named = private.resolve() if private.name in ("", "..") else private  # the current folder, and those above it
    return named.parent / f"{named.name}.privacy.json"


def count_and_deliver(
    ledger: Ledger,
    request: str,
    *,
    check: Callable[[], None],
    draw: Callable[[Path], Draw],
    deliver: Callable[[Path, dict[str, Any]], None],
) -> dict[str, Any]:
    """Draw, count, deliver; or deliver what the same request drew and counted before it was stopped.

    Parameters
    ----------
    ledger : Ledger
    request : str
        All that makes one request another: what is asked, of which bytes, to come out where.
    check : callable
        Refuses, as OutputError, what could not come out; called before anything is drawn, and again before it counts.
    draw : callable
        Draws into a folder that only the owner of the ledger may enter.
    deliver : callable
        Lets come out what is in that folder and in the answer, to which "ledger" was added. It may be called again,
        if it was stopped: then it does what is still to be done.

    Returns
    -------
    dict
        The answer.

    Raises
    ------
    BudgetError
        Where somebody would lose more than the budget: nothing is counted, and nothing comes out.
    OutputError
        If something cannot be written; what is counted by then is kept.
    """
    pending = ledger.path.with_name(f"{ledger.path.name}.pending") / ledger.digest("request", request).hex()
    held = _held(ledger, request, pending)
    try:
        if held:
            complain(f"entry {held[0]} was counted before, and was not delivered: nothing is drawn again")
        else:
            check()
            held = _count(ledger, request, pending, check, draw)
        number, answer = held[0], dict(json.loads(held[1]))
        with ledger.transaction():  # of several runs with the same request one delivers
            if ledger.held(request) is None:
                raise NotReplacedError(f"entry {number} of {ledger.path.as_posix()} was delivered by another run")
            deliver(pending, answer)
        ledger.delivered(number)
        _held(ledger, request, pending)
    except BaseException:
        if held and ledger.held(request):
            complain(f"entry {held[0]} is counted and kept: the same command delivers it")
        raise
    finally:
        remove_empty([pending.parent])
    complain(f"{ledger.path.as_posix()}: {spent_words(answer['ledger'])}")
    return answer


def _held(ledger: Ledger, request: str, pending: Path) -> tuple[int, str] | None:
    """What is counted of a request and not delivered; if nothing, what was drawn for it is removed."""
    with ledger.transaction():
        held = ledger.held(request)
        if held is None:
            shutil.rmtree(pending, ignore_errors=True)
    return held


def _count(
    ledger: Ledger, request: str, pending: Path, check: Callable[[], None], draw: Callable[[Path], Draw]
) -> tuple[int, str]:
    """Draw, and count it: the number of the entry, and what is held."""
    with _writing(pending.parent), temporary_folder(pending) as stage:
        drawn = draw(stage)
        with ledger.transaction():
            held = ledger.held(request)  # another run may have asked the same
            if held:
                return held
            check()
            facts = _facts(ledger, drawn.release)
            text = json.dumps({**drawn.answer, "ledger": facts})
            number = ledger.charge(drawn.release, text, request=request)
            charged = drawn.patients if drawn.release.each else ()
            over = sum(not ledger.charge_patient(patient, drawn.release.cost) for patient in charged)
            if over:
                raise BudgetError(
                    f"{ledger.path.as_posix()}: {over:,} of {len(drawn.patients):,} patients in {drawn.release.data} "
                    f"would lose more than the budget {facts['budget']}: nothing is released of "
                    "anybody; leave them out, for a reason that is public"
                )
            shutil.rmtree(pending, ignore_errors=True)  # of a run that was killed before it had counted
            stage.replace(pending)
            for path in (pending, pending.parent, pending.parent.parent):
                sync(path)
    return number, text


def _facts(ledger: Ledger, release: Release) -> Facts:
    """What may be published of the ledger, with this release; of a release that charges each, nobody's account."""
    cost = INFINITE if ledger.conflict(release) else release.cost
    return ledger_facts(ledger, ledger.head + 1, None if release.each else EXACT.add(ledger.spent(), cost))


def ledger_facts(ledger: Ledger, entry: int, spent: Decimal | None) -> Facts:
    """What may be published of a ledger at an entry; `spent` is None where each patient has an account of his own."""
    budget = None if ledger.budget is None else shown(ledger.budget)
    return {"entry": entry, **({} if spent is None else {"spent": shown(spent)}), "budget": budget}


def spent_words(facts: Facts) -> str:
    """The same in words."""
    spent = f"ε = {facts['spent']} is spent" if "spent" in facts else "each of its patients is charged"
    limit = "no budget, so nothing is refused" if facts["budget"] is None else f"budget {facts['budget']} a person"
    return f"entry {facts['entry']}; {spent}; {limit}"


def release_files(
    source: Source,
    out: Path,
    ending: str,
    *,
    seed: int | None,
    ledger: Ledger | None,
    asked: tuple[Any, ...],
    draw: Callable[[Path], Draw],
) -> dict[str, Any]:
    """Let a file, or a folder, come out with the note beside it, and return the answer of the draw.

    Parameters
    ----------
    source : Source
        What it is drawn from.
    out : Path
    ending : str
        Of a file's name, "" of a folder's.
    seed : int or None
        Of a simulation, which may replace what is there.
    ledger : Ledger or None
        None for a simulation, and for a release that nobody counts.
    asked : tuple
        All that makes one request another, beside the bytes of the source and where it comes out.
    draw : callable
        Writes the data to a path. The "note" in its answer is written beside them, with what the ledger says.
    """
    beside, check = note_path(out), partial(_check_out, source, out, ending, simulated=seed is not None)

    def deliver(pending: Path, answer: dict[str, Any]) -> None:
        answer["note"]["ledger"] = answer["ledger"]
        text = json_text(answer["note"])
        begun = has_content(beside, text.encode())
        if not begun:
            check_new(out)
        with _writing(out), temporary_folder(out) as stage:
            if begun and out.exists():
                return  # all is there: the data come last
            shutil.copytree(pending, stage, dirs_exist_ok=True)
            _appear(stage, out, text)

    if ledger:
        request = repr((*asked, out.absolute(), source.digests()))
        return count_and_deliver(
            ledger, request, check=check, draw=lambda stage: draw(stage / out.name), deliver=deliver
        )
    check()
    with _writing(out), temporary_folder(out) as stage:
        answer = draw(stage / out.name).answer
        check()  # once more: another run may have ended since
        _appear(stage, out, json_text(answer["note"]))
    if seed is None:
        complain_uncounted(out.name)
    return answer


def _check_out(source: Source, out: Path, ending: str, *, simulated: bool) -> None:
    """Refuse an output that cannot be written, or stands where the true values or a release do: OutputError.

    `ending` is that of a file's name, "" of a folder's.
    """
    name = out.as_posix()
    if ending and out.suffix.lower() != ending:
        raise OutputError(f"{name}: must end in {ending}")
    if not ending and (out.name in ("", "..") or out.suffix.lower() in (CSV, PARQUET)):
        raise OutputError(f"{name}: must be a new folder, as the data are in a folder")
    if out.name.removesuffix(out.suffix if ending else "").endswith(SIMULATED) != simulated:
        must = "must end" if simulated else "is a release's, and must not end"
        raise OutputError(f"{name}: {must} in {SIMULATED}{ending}, as the names of simulations do")
    if out.exists() and any(out.samefile(path) for path in (source.path, *(file.path for file in source.files))):
        raise OutputError(f"{name}: holds the true values, which would be lost")
    if os.path.realpath(out.parent) == os.path.realpath(source.path):
        raise OutputError(f"{name}: is in the folder of the true values, and would be taken for some of them")
    check_writable(out.parent)
    if not simulated:
        return check_new(out)
    if out.exists() and out.is_dir() == bool(ending):
        raise OutputError(f"{name}: is a {'folder' if ending else 'file'}")
    for path in sorted(out.iterdir()) if out.is_dir() else ():
        if not note_path(out).exists() or path.is_dir() or path.suffix.lower() not in (CSV, PARQUET):
            raise OutputError(f"{name}: holds {path.name}, which privatize did not write there; name a new folder")
    return None


def complain_uncounted(what: str) -> None:
    """Warn that no ledger counts a release."""
    complain(f"{what}: not counted: no ledger adds it to the other releases about these people")


def check_new(out: Path) -> None:
    """NotReplacedError if something is there already, or a note of it."""
    for path in (out, note_path(out)):
        if os.path.lexists(path):
            raise NotReplacedError(
                f"{path.as_posix()}: is there already, and a release replaces nothing: name another, or move it away"
            )


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """What the system refuses, in one line."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        # Who begins the same release removes what looks like the rest of a run that was killed.
        reason = "another run writes it, too" if isinstance(error, FileNotFoundError) else error.strerror or error
        raise OutputError(f"cannot write {path.as_posix()}: {reason}") from None


def _appear(stage: Path, out: Path, note: str) -> None:
    """Let a note, and then what it stands beside, take their names; an older folder leaves first."""
    beside = stage / note_path(out).name
    beside.write_bytes(note.encode())
    keep_closed(beside, [stage / out.name])
    for path in sorted(stage.rglob("*"), reverse=True):
        sync(path)
    if out.is_dir():
        out.replace(stage / "old")
    for path in (note_path(out), out):
        (stage / path.name).replace(path)
        sync(path.parent)
