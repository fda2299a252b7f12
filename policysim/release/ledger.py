"""The ledger: what was released about one group of people, what that costs each of them, and what each was given.

One ledger is for one group of people. Everything that is released about them belongs in it, whichever file holds them
that day: no digest of a file can say whether two files hold the same people, so nothing here guesses it.

**What counts.** A release is charged in exact decimals (basic composition). Where an id names the patients, each of
them is charged for his own; otherwise everybody is, also who comes later. The unit is the loss that hides one record
among all others. So an epsilon that hides one feature counts once for each hidden feature, and one that hides whether a
row is there counts twice (a replaced row is one removed and one added). Nothing hides what another release publishes:
a feature that is hidden here and public there costs infinity, and so do presence and the number of rows beside a copy
of the rows.

**Transaction.** Whatever is released is charged, and what was drawn is written into the ledger, in one transaction of
SQLite that is on the disk before anything appears elsewhere. A crash can cost budget, never privacy; `held` gives the
answer that was counted, until `delivered`.

**What it holds.** Ids stand nowhere: patients, events and records are HMAC-SHA256 digests under a key in a file of its
own (LEDGER.key). Ledger and key are as private as the patients. Entries are numbered, and each holds the digest of the
one before it, so that an accident is found; a backup that was put back is found by the head number, which each note
prints.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import sqlite3
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policysim.files.terminal import complain
from policysim.question import EXIT_CHECK, EXIT_DATA, OutputError

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 1
# What is hidden: any value of a row; whether the row is there; or one feature of it at a time.
REPLACE, ADD_OR_REMOVE, ONE_FEATURE = "replace-one", "add-or-remove-one", "one-feature"
# Of counts.
ADJACENCIES = (REPLACE, ADD_OR_REMOVE)
INFINITE = Decimal("Infinity")
# Sums are exact up to so many digits, and never rounded down.
EXACT = Context(prec=400, rounding=ROUND_CEILING)
# For so long another run is waited for, and after so long that is said.
MOST_SECONDS, SILENT_SECONDS = 20, 1
KEY_BYTES = 32
# Of a SQLite file: https://www.sqlite.org/fileformat.html, section 1.3.
HEADER_BYTES = 100
TABLES = """
CREATE TABLE ledger (format INTEGER, budget TEXT, key TEXT, spent TEXT, most TEXT, hides TEXT, publishes TEXT);
CREATE TABLE entry (number INTEGER PRIMARY KEY, content TEXT, digest TEXT);
CREATE TABLE held (number INTEGER PRIMARY KEY, request TEXT UNIQUE, answer TEXT);
CREATE TABLE patient (patient BLOB PRIMARY KEY, spent TEXT, treatment TEXT) WITHOUT ROWID;
CREATE TABLE decision (patient BLOB, event BLOB, number INTEGER, treatment TEXT, record BLOB,
                       PRIMARY KEY (patient, event)) WITHOUT ROWID;
"""
# What a release publishes beside features.
ROWS = "(which rows there are, and how many)"


class LedgerError(OutputError):
    """A ledger that cannot be used; str() is one line for the user."""

    exit_code = EXIT_DATA


class BudgetError(LedgerError):
    """A release that would cost more than the budget; str() is one line for the user."""

    exit_code = EXIT_CHECK


@dataclass(frozen=True)
class Release:
    """What an entry says: all of it may be shown to an auditor, and nothing of it depends on a record.

    Attributes
    ----------
    command : str
        What releases.
    data : str
        The name of the file, or folder, of patients.
    epsilon : Decimal
        The privacy loss of one person, all of his rows together, as declared: >= 0; inf for what hides nothing.
    hides, publishes : tuple of str
        The features that it hides up to epsilon, and those that whoever sees it learns.
    adjacency : str
        `REPLACE`, `ADD_OR_REMOVE` or `ONE_FEATURE`.
    copies_rows : bool
        Whether what comes out has a row for each person, so that it shows who is there.
    each : bool
        Whether it is charged to the patients that it names; if not, to everybody.
    details : mapping of str to str
        More for an auditor, such as digests of study and policy.
    date : str
        When, for people to read; nothing depends on it.
    """

    command: str
    data: str
    epsilon: Decimal
    hides: tuple[str, ...]
    publishes: tuple[str, ...] = ()
    adjacency: str = REPLACE
    copies_rows: bool = False
    each: bool = False
    details: Mapping[str, str] = field(default_factory=dict)
    date: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    @property
    def cost(self) -> Decimal:
        """What a person is charged: the loss between any two values of his record."""
        features = len(self.hides) if self.adjacency == ONE_FEATURE else 1
        return EXACT.multiply(self.epsilon, Decimal(features * (2 if self.adjacency == ADD_OR_REMOVE else 1)))

    @property
    def all_hidden(self) -> set[str]:
        """The features that it hides, and the presence of rows if it hides that."""
        return {*map(str.strip, self.hides)} | ({ROWS} if self.adjacency == ADD_OR_REMOVE else set())

    @property
    def all_published(self) -> set[str]:
        """The features that it publishes, and the presence of rows if it shows that."""
        return {*map(str.strip, self.publishes)} | ({ROWS} if self.copies_rows else set())


@dataclass(frozen=True)
class Decision:
    """What a patient was given for an event: the treatment, its entry, and the digest of the record."""

    treatment: str
    number: int
    record: bytes


class Ledger:
    """A ledger of one group of people; it is made if it is not there.

    Parameters
    ----------
    path : str or Path
        Of the SQLite file. Its key stands beside it, in PATH.key.
    budget : Decimal, float or str, optional
        What each person may lose in all, >= 0. None takes the budget that the ledger has; a new one then has none, and
        nothing is refused.

    Attributes
    ----------
    budget : Decimal or None
    head : int
        The number of its last entry; 0 if it has none.

    Raises
    ------
    LedgerError
        If it has another budget, is damaged, of a newer format, read-only, without its key, or locked for over 20 s;
        or if the disk is full.
    BudgetError
        For a release beyond the budget.

    Examples
    --------
    >>> import tempfile
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite", budget="0.3")
    >>> with ledger.transaction():
    ...     ledger.charge(Release("select", "visits.csv", Decimal("0.1"), ("diagnosis",)))
    1
    >>> ledger.spent(), ledger.remaining("any patient")
    (Decimal('0.1'), Decimal('0.2'))
    """

    def __init__(self, path: str | Path, budget: Decimal | float | str | None = None) -> None:
        """Open it, or make it."""
        self.path = Path(os.path.realpath(path))  # a link to a ledger stays one
        wanted = None if budget is None else amount(budget, "budget")
        with self._told():
            try:
                _check_file(self.path)
                self._key = _key(self.path)
                # The system makes a file for its owner only, and SQLite its journal like the file.
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            except OutputError:
                raise
            except OSError as error:
                said = f"{self.path.as_posix()}: cannot be opened as a ledger: {error.strerror}"
                raise LedgerError(said) from None
            self._sql = sqlite3.connect(self.path, timeout=SILENT_SECONDS, isolation_level=None)
            self._sql.execute("PRAGMA synchronous = EXTRA")
        with self.transaction():
            self._open(wanted)
        (budget_text,) = self._row("SELECT budget FROM ledger")
        self.budget = None if budget_text is None else Decimal(budget_text)
        if wanted != self.budget and wanted is not None:
            has = "no budget" if self.budget is None else f"the budget {self.budget}"
            raise LedgerError(f"{self.path.as_posix()}: has {has}, and not {wanted}; a budget is set once and for all")

    def _open(self, budget: Decimal | None) -> None:
        """Make the tables of a new ledger, or check those of an old one."""
        if self._row("SELECT count(*) FROM sqlite_master") == (0,):
            for statement in TABLES.split(";"):
                self._sql.execute(statement)
            given = None if budget is None else str(budget)
            proof = self.digest("key", "").hex()
            self._sql.execute("INSERT INTO ledger VALUES (?, ?, ?, '0', '0', '[]', '[]')", (FORMAT, given, proof))
            limit = "without a budget: nothing will be refused" if budget is None else f"with the budget {budget}"
            complain(f"made the ledger {self.path.as_posix()}, {limit}; it and its key are as private as the patients")
        found, proof = self._row("SELECT format, key FROM ledger")
        if found != FORMAT:
            raise LedgerError(
                f"{self.path.as_posix()}: has format {found}, and this policysim knows {FORMAT}: update it"
            )
        if proof != self.digest("key", "").hex():
            raise LedgerError(
                f"{_key_path(self.path).as_posix()}: is not the key of {self.path.name}: put its own back"
            )
        number, content, digest = self._last()
        before = self._row("SELECT digest FROM entry WHERE number = ?", number - 1) or ("",)
        count = self._row("SELECT count(*) FROM entry")[0]
        if number and (count != number or digest != _chained(before[0], content)):
            raise LedgerError(f"{self.path.as_posix()}: entry {number} does not follow the one before it: {DAMAGED}")

    # What is charged.

    def spent(self, patient: str | None = None) -> Decimal:
        """What a patient has lost, in units of epsilon; without a patient, what everybody has, also who never came."""
        everybody = Decimal(self._row("SELECT spent FROM ledger")[0])
        if patient is None:
            return everybody
        return EXACT.add(everybody, self.account(self.digest("patient", patient))[0])

    def remaining(self, patient: str | None = None) -> Decimal:
        """What of the budget is left, of a patient or of who never came; inf without a budget."""
        return INFINITE if self.budget is None else max(Decimal(0), EXACT.subtract(self.budget, self.spent(patient)))

    def releases(self) -> pd.DataFrame:
        """A row for each entry, as an auditor needs it: `number`, the fields of `Release`, `cost` and `digest`.

        LedgerError if an entry is missing or was changed.
        """
        import pandas as pd  # noqa: PLC0415 - half a second that most uses do not need

        rows, before = [], ""
        for place, (number, content, digest) in enumerate(self._all("SELECT * FROM entry ORDER BY number"), start=1):
            if number != place or digest != _chained(before, content):
                raise LedgerError(
                    f"{self.path.as_posix()}: entry {place} is missing, or was changed, or does not follow the one "
                    f"before it: {DAMAGED}"
                )
            rows.append({"number": number, **json.loads(content), "digest": digest})
            before = digest
        names = ["number", *Release.__dataclass_fields__, "cost", "answer", "digest"]
        return pd.DataFrame(rows, columns=names).drop(columns="answer")

    @property
    def head(self) -> int:
        """The number of the last entry."""
        return int(self._last()[0])

    def charge(self, release: Release, answer: str = "", *, request: str = "", happened: bool = False) -> int:
        """Write an entry, charge everybody unless the release charges `each`, and hold the answer; its number.

        Within a transaction. `request` says what was asked, so that the same request gets the same answer until it is
        delivered; without one nothing is held. BudgetError, and no entry, for a release beyond the budget, unless it
        has `happened` already.
        """
        spent, hides, publishes = self._row("SELECT spent, hides, publishes FROM ledger")
        conflict = self.conflict(release)
        cost = INFINITE if conflict else release.cost
        charged = Decimal(0) if release.each and not conflict else cost
        if charged and not happened:
            self._require_budget(release, charged, conflict)
        hidden, published = {*json.loads(hides), *release.all_hidden}, {*json.loads(publishes), *release.all_published}
        self._sql.execute(
            "UPDATE ledger SET spent = ?, hides = ?, publishes = ?",
            (str(EXACT.add(Decimal(spent), charged)), json.dumps(sorted(hidden)), json.dumps(sorted(published))),
        )
        number, _, before = self._last()
        content = {**asdict(release), "epsilon": str(release.epsilon), "cost": str(cost)}
        content["answer"] = self.digest("answer", answer).hex()
        text = json.dumps(content, sort_keys=True)
        self._sql.execute("INSERT INTO entry VALUES (?, ?, ?)", (number + 1, text, _chained(before, text)))
        if request:
            held = (number + 1, self.digest("request", request).hex(), answer)
            self._sql.execute("INSERT INTO held VALUES (?, ?, ?)", held)
        return number + 1

    def _require_budget(self, release: Release, cost: Decimal, conflict: str) -> None:
        """BudgetError if somebody would lose more than the budget."""
        spent, most = map(Decimal, self._row("SELECT spent, most FROM ledger"))
        before = EXACT.add(spent, most)
        if self.budget is not None and EXACT.add(before, cost) > self.budget:
            raise BudgetError(
                f"{self.path.as_posix()}: {release.command} of {release.data} costs ε = {shown(cost)}"
                f"{f', as {conflict}' if conflict else ''}; {shown(before)} of the budget {shown(self.budget)} is spent"
            )

    def conflict(self, release: Release) -> str:
        """Which features are hidden in one release and public in another, in words; "" for none."""
        hides, publishes = map(json.loads, self._row("SELECT hides, publishes FROM ledger"))
        told = sorted((release.all_hidden & {*publishes, *release.all_published}) | (release.all_published & {*hides}))
        return f"one release publishes {', '.join(told)}, and another one hides it" if told else ""

    # Answers that were counted and have not appeared.

    def held(self, request: str) -> tuple[int, str] | None:
        """The entry and the answer of a request that was counted and not delivered; None if there is none."""
        found: tuple[int, str] | None = self._row(
            "SELECT number, answer FROM held WHERE request = ?", self.digest("request", request).hex()
        )
        return found

    def delivered(self, number: int) -> None:
        """Forget the answer of an entry: it is where it belongs."""
        with self.transaction():
            self._sql.execute("DELETE FROM held WHERE number = ?", (number,))

    # Patients, within a transaction.

    def digest(self, what: str, text: str) -> bytes:
        """The HMAC of an id, an event or a record under the key, (16 bytes); `what` keeps their digests apart."""
        return hmac.digest(self._key, f"{what}\0{text}".encode(errors="surrogatepass"), "sha256")[:16]

    def decision(self, patient: bytes, event: bytes) -> Decision | None:
        """What a patient was given for an event; None for a new event."""
        found = self._row(
            "SELECT treatment, number, record FROM decision WHERE patient = ? AND event = ?", patient, event
        )
        return None if found is None else Decision(*found)

    def account(self, patient: bytes) -> tuple[Decimal, str | None]:
        """What the patient's own decisions have cost, and the treatment drawn last; 0 and None for who never came."""
        spent, treatment = self._row("SELECT spent, treatment FROM patient WHERE patient = ?", patient) or ("0", None)
        return Decimal(spent), treatment

    def charge_patient(self, patient: bytes, cost: Decimal) -> bool:
        """Charge one patient, unless that is beyond the budget: whether it was done."""
        own, treatment = self.account(patient)
        spent, most = map(Decimal, self._row("SELECT spent, most FROM ledger"))
        reached = EXACT.add(own, cost)
        if self.budget is not None and EXACT.add(spent, reached) > self.budget:
            return False
        self._sql.execute("INSERT OR REPLACE INTO patient VALUES (?, ?, ?)", (patient, str(reached), treatment))
        if reached > most:
            self._sql.execute("UPDATE ledger SET most = ?", (str(reached),))
        return True

    def decide(self, patient: bytes, event: bytes, decision: Decision) -> None:
        """Write what a patient gets for an event, drawn and charged."""
        row = (patient, event, decision.number, decision.treatment, decision.record)
        self._sql.execute("INSERT INTO decision VALUES (?, ?, ?, ?, ?)", row)
        self._sql.execute("UPDATE patient SET treatment = ? WHERE patient = ?", (decision.treatment, patient))

    # SQLite.

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it is written, or nothing: begun when no other run writes, and on the disk at its end."""
        with self._told():
            self._begin()
            try:
                yield
                self._sql.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    self._sql.execute("ROLLBACK")
                raise

    def _begin(self) -> None:
        for waited in range(0, MOST_SECONDS, SILENT_SECONDS):
            try:
                self._sql.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
            if waited == 0:
                complain(f"another run holds the lock of {self.path.as_posix()}; waiting")
        raise LedgerError(f"another run holds the lock of {self.path.as_posix()}: let it end first")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of SQLite as one line."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if code == 0:
                raise  # a mistake of ours
            told = SAID.get(code, str(error))
            raise LedgerError(f"{self.path.as_posix()}: {told}") from None

    def _row(self, query: str, *values: object) -> Any:
        with self._told():
            return self._sql.execute(query, values).fetchone()

    def _all(self, query: str) -> list[Any]:
        with self._told():
            return self._sql.execute(query).fetchall()

    def _last(self) -> tuple[int, str, str]:
        found: tuple[int, str, str] = self._row("SELECT * FROM entry ORDER BY number DESC LIMIT 1") or (0, "", "")
        return found


DAMAGED = "the ledger is damaged, and earlier releases cannot be counted: put back its last backup"


SAID = {
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: "is not a ledger",
    sqlite3.SQLITE_ERROR: "is not a ledger",  # a database without its tables
    sqlite3.SQLITE_READONLY: "cannot be written: it is read-only",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full; nothing was released",
}


def amount(value: Decimal | float | str, name: str = "epsilon") -> Decimal:
    """A number >= 0 as the decimal by which it is written; ValueError for something else.

    Examples
    --------
    >>> amount(0.1)
    Decimal('0.1')
    """
    try:
        found = value if isinstance(value, Decimal) else Decimal(str(value))
    except InvalidOperation:
        found = Decimal("NaN")
    if found.is_nan() or found < 0:
        raise ValueError(f"{name} must be a number >= 0, got {value!r}.")
    return found


def shown(number: Decimal) -> str:
    """An amount as people read it: all its digits, without zeros behind them."""
    return "∞" if number == INFINITE else f"{number.normalize():f}"


def _chained(before: str, content: str) -> str:
    """The digest of an entry: of the one before it, and of what it says."""
    return sha256(f"{before}\n{content}".encode()).hexdigest()


def _key_path(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.key")


def _key(ledger: Path) -> bytes:
    """The key beside a ledger; a new one beside a new ledger. LedgerError if an old ledger has none."""
    place = _key_path(ledger)
    old = ledger.exists() and ledger.stat().st_size > 0  # first: another run may be making both, the key before this
    if not place.exists():
        if old:
            raise LedgerError(
                f"{place.as_posix()}: is missing, without which {ledger.name} knows no patient: put it back"
            )
        ledger.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f"{place.name}.{secrets.token_hex(8)}")
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, secrets.token_hex(KEY_BYTES).encode())
            os.fsync(handle)
            with suppress(FileExistsError):  # another run has just made the ledger
                os.link(part, place)
        finally:
            os.close(handle)
            part.unlink()
    key = place.read_bytes().strip()
    if len(key) != 2 * KEY_BYTES:
        raise LedgerError(f"{place.as_posix()}: is not a key of {2 * KEY_BYTES} digits: put it back")
    return key


def _check_file(ledger: Path) -> None:
    """LedgerError for a file that may not be written, or ends before its last page, as after an incomplete copy."""
    if not ledger.exists():
        return
    if not ledger.is_file():
        raise LedgerError(f"{ledger.as_posix()}: is not a file, and a ledger is one")
    status = ledger.stat()
    if not status.st_mode & 0o222:  # also for an administrator, who may write it all the same
        raise LedgerError(f"{ledger.as_posix()}: {SAID[sqlite3.SQLITE_READONLY]}")
    with ledger.open("rb") as stream:
        head = stream.read(HEADER_BYTES)
    if len(head) == HEADER_BYTES and head.startswith(b"SQLite format 3"):
        page, pages = struct.unpack(">H", head[16:18])[0], struct.unpack(">I", head[28:32])[0]
        if status.st_size < (65536 if page == 1 else page) * pages:
            raise LedgerError(f"{ledger.as_posix()}: {DAMAGED}")
    elif head:
        raise LedgerError(f"{ledger.as_posix()}: {SAID[sqlite3.SQLITE_NOTADB]}")
