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
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from envs.toml_reader import one_line
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
# Sums are exact up to so many digits. What is spent is never rounded down, what is left never up.
EXACT, LEFT = Context(prec=400, rounding=ROUND_CEILING), Context(prec=400, rounding=ROUND_FLOOR)
LARGEST_AMOUNT = Decimal("1e309")
# For so long another run is waited for; after so long that is said; and so often it is tried.
MOST_SECONDS, SILENT_SECONDS, PAUSE_SECONDS = 20.0, 1.0, 0.005
KEY_DIGITS = 64
# The key of a ledger that was made ends so: if the tables are missing then, they were lost.
MADE = b"\n"
TABLES = """
CREATE TABLE ledger (format INTEGER, budget TEXT, key TEXT, spent TEXT, most TEXT, hides TEXT, publishes TEXT);
CREATE TABLE entry (number INTEGER PRIMARY KEY, content TEXT, digest TEXT);
CREATE TABLE held (number INTEGER PRIMARY KEY, request TEXT UNIQUE, answer TEXT);
CREATE TABLE patient (patient BLOB PRIMARY KEY, spent TEXT, treatment TEXT) WITHOUT ROWID;
CREATE TABLE decision (patient BLOB, event BLOB, number INTEGER, treatment TEXT, record BLOB,
                       PRIMARY KEY (patient, event)) WITHOUT ROWID;
"""
NAMES = {"ledger", "entry", "held", "patient", "decision"}
# What a release may hide or publish beside features.
ROWS = "(which rows there are, and how many)"
DAMAGED = "the ledger is damaged, and earlier releases cannot be counted: put back its last backup"
# What SQLite's errors mean here; others speak for themselves.
SAID = {
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: "is not a ledger",
    sqlite3.SQLITE_READONLY: "cannot be written: it is read-only",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full; nothing was released",
}


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
    shows_rows : bool
        Whether what comes out, or what it takes for public, shows how many rows there are, or which.
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
    shows_rows: bool = False
    each: bool = False
    details: Mapping[str, str] = field(default_factory=dict)
    date: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))

    def __post_init__(self) -> None:
        """Check epsilon."""
        object.__setattr__(self, "epsilon", amount(self.epsilon))

    @property
    def cost(self) -> Decimal:
        """What a person is charged: the loss between any two values of his record."""
        features = max(1, len(self.hides)) if self.adjacency == ONE_FEATURE else 1
        return EXACT.multiply(self.epsilon, Decimal(features * (2 if self.adjacency == ADD_OR_REMOVE else 1)))

    @property
    def all_hidden(self) -> set[str]:
        """The features that it hides, and the presence of rows if it hides that."""
        return {*map(str.strip, self.hides)} | ({ROWS} if self.adjacency == ADD_OR_REMOVE else set())

    @property
    def all_published(self) -> set[str]:
        """The features that it publishes, and the presence of rows if it shows that."""
        return {*map(str.strip, self.publishes)} | ({ROWS} if self.shows_rows else set())


@dataclass(frozen=True)
class Decision:
    """What a patient was given for an event: the treatment, its entry, and the digest of the record it was drawn for.

    The digest is empty if nothing was drawn, as beyond the budget.
    """

    treatment: str
    number: int
    record: bytes


class Ledger:
    """A ledger of one group of people; it is made if it is not there. `open_ledger` opens one that should be there.

    Parameters
    ----------
    path : str or Path
        Of the SQLite file. Its key stands beside it, in PATH.key.
    budget : Decimal, float or str, optional
        What each person may lose in all, >= 0 and finite. None takes the budget that the ledger has; a new one then has
        none, and nothing is refused.

    Attributes
    ----------
    path : Path
    budget : Decimal or None

    Raises
    ------
    LedgerError
        If it has another budget, is damaged, of a newer format, read-only, without its key, or locked for over 20 s;
        or if the disk is full.
    BudgetError
        For a release beyond the budget.
    RuntimeError
        From what writes, outside a transaction; from a transaction within another one.

    Notes
    -----
    Only SQLite opens the file: the locks of a process go when it closes any handle of a file.

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
        self._name = one_line(self.path.as_posix())
        wanted = None if budget is None else amount(budget, "budget")
        if wanted == INFINITE:
            raise ValueError("budget must be finite: leave it out for none.")
        if self.path.exists() and not self.path.is_file():
            raise LedgerError(f"{self._name}: is not a file, and a ledger is one")
        try:
            self._key = _key(self.path)
            # For its owner only; SQLite's journal is like the file.
            with suppress(FileExistsError):
                os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            if not self.path.stat().st_mode & 0o222:  # also for an administrator, who may write it all the same
                raise LedgerError(f"{self._name}: {SAID[sqlite3.SQLITE_READONLY]}")
            self._sql = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, OutputError):
                raise
            said = getattr(error, "strerror", None) or one_line(str(error))
            raise LedgerError(f"{self._name}: cannot be opened as a ledger: {said}") from None
        self._execute("PRAGMA synchronous = EXTRA")
        self._execute("PRAGMA secure_delete = ON")
        with self.transaction():
            made = self._row("SELECT count(*) FROM sqlite_master") == (0,)
            if made:
                self._make(wanted)
            self._check_opened()
        if made:
            _mark(_key_path(self.path))
        (known,) = self._row("SELECT budget FROM ledger")
        self.budget = None if known is None else Decimal(known)
        if wanted is not None and wanted != self.budget:
            has = "no budget" if self.budget is None else f"the budget {shown(self.budget)}"
            raise LedgerError(f"{self._name}: has {has}, and not {shown(wanted)}; a budget is set once and for all")

    def _make(self, budget: Decimal | None) -> None:
        """Make the tables of a new ledger."""
        if _key_path(self.path).read_bytes().endswith(MADE):
            raise LedgerError(f"{self._name}: {DAMAGED}")
        for statement in TABLES.split(";"):
            self._execute(statement)
        proof, given = self.digest("key", "").hex(), None if budget is None else str(budget)
        self._execute("INSERT INTO ledger VALUES (?, ?, ?, '0', '0', '[]', '[]')", FORMAT, given, proof)
        limit = "without a budget: nothing will be refused" if budget is None else f"with the budget {shown(budget)}"
        complain(f"made the ledger {self._name}, {limit}; it and its key are as private as the patients")

    def _check_opened(self) -> None:
        """Check format, key, size and last entry."""
        tables = {name for (name,) in self._all("SELECT name FROM sqlite_master WHERE type = 'table'")}
        row = self._row("SELECT format, key FROM ledger") if tables == NAMES else None
        if row is None:
            raise LedgerError(f"{self._name}: {SAID[sqlite3.SQLITE_NOTADB]}")
        if row[0] != FORMAT:
            raise LedgerError(f"{self._name}: has format {row[0]}, and this policysim knows {FORMAT}: update it")
        if row[1] != self.digest("key", "").hex():
            raise LedgerError(f"{one_line(_key_path(self.path).as_posix())}: is not the key of {self.path.name}")
        (pages,), (size,) = self._row("PRAGMA page_count"), self._row("PRAGMA page_size")
        # A file that was cut short; one that is just being made has not reached the disk.
        if 0 < self.path.stat().st_size < pages * size:
            raise LedgerError(f"{self._name}: {DAMAGED}")
        number, content, digest = self._last()
        before = self._row("SELECT digest FROM entry WHERE number = ?", number - 1) or ("",)
        count = self._row("SELECT count(*) FROM entry")[0]
        if number and (count != number or digest != _chained(before[0], content)):
            raise LedgerError(f"{self._name}: entry {number} does not follow the one before it: {DAMAGED}")

    # What is charged.

    def spent(self, patient: str | None = None) -> Decimal:
        """What a patient has lost, in units of epsilon; without a patient, what everybody has, also who never came."""
        everybody = Decimal(self._row("SELECT spent FROM ledger")[0])
        if patient is None:
            return everybody
        return EXACT.add(everybody, self.account(self.digest("patient", patient))[0])

    def remaining(self, patient: str | None = None) -> Decimal:
        """What of the budget is left, of a patient or of who never came; inf without a budget."""
        return INFINITE if self.budget is None else max(Decimal(0), LEFT.subtract(self.budget, self.spent(patient)))

    def releases(self) -> pd.DataFrame:
        """A row for each entry, as an auditor needs it: `number`, the fields of `Release`, `cost` and `digest`.

        LedgerError if the file is damaged, an entry is missing or was changed, or sums do not follow from the entries.
        """
        import pandas as pd  # noqa: PLC0415 - half a second that most uses do not need

        rows, before, spent, hides, publishes = [], "", Decimal(0), set[str](), set[str]()
        for place, (number, content, digest) in enumerate(self._all("SELECT * FROM entry ORDER BY number"), start=1):
            if number != place or digest != _chained(before, content):
                raise LedgerError(
                    f"{self._name}: entry {place} is missing, or was changed, or does not follow the one before it: "
                    f"{DAMAGED}"
                )
            entry, before = json.loads(content), digest
            spent = EXACT.add(spent, Decimal(entry.pop("charged")))
            hides |= {*entry.pop("all_hidden")}
            publishes |= {*entry.pop("all_published")}
            rows.append({"number": number, **entry, "digest": digest})
        sums = (str(spent), json.dumps(sorted(hides)), json.dumps(sorted(publishes)))
        most = max((Decimal(own) for (own,) in self._sql.execute("SELECT spent FROM patient")), default=Decimal(0))
        known = self._row("SELECT spent, hides, publishes, most FROM ledger")
        if known[:3] != sums or Decimal(known[3]) != most or self._row("PRAGMA quick_check") != ("ok",):
            raise LedgerError(f"{self._name}: its sums do not follow from its entries: {DAMAGED}")
        return pd.DataFrame(rows, columns=["number", *Release.__dataclass_fields__, "cost", "digest"])

    @property
    def head(self) -> int:
        """The number of the last entry; 0 if there is none."""
        return int(self._last()[0])

    def charge(self, release: Release, answer: str = "", *, request: str = "", happened: bool = False) -> int:
        """Write an entry, charge everybody unless the release charges `each`, and hold the answer; its number.

        `request` says what was asked, so that the same request gets the same answer until it is delivered; without one
        nothing is held. Ask `held` before, within the same transaction. BudgetError, and no entry, for a release beyond
        the budget, unless it has `happened` already.
        """
        self._require_transaction()
        spent, hides, publishes = self._row("SELECT spent, hides, publishes FROM ledger")
        conflict = self.conflict(release)
        cost = INFINITE if conflict else release.cost
        charged = Decimal(0) if release.each and not conflict else cost
        if charged and not happened:
            self._require_budget(release, charged, conflict)
        hidden, published = {*json.loads(hides), *release.all_hidden}, {*json.loads(publishes), *release.all_published}
        self._execute(
            "UPDATE ledger SET spent = ?, hides = ?, publishes = ?",
            *(str(EXACT.add(Decimal(spent), charged)), json.dumps(sorted(hidden)), json.dumps(sorted(published))),
        )
        content = {**asdict(release), "epsilon": str(release.epsilon), "cost": str(cost), "charged": str(charged)}
        content |= {"all_hidden": sorted(release.all_hidden), "all_published": sorted(release.all_published)}
        content |= {"answer": self.digest("answer", answer).hex()}
        (number, _, before), text = self._last(), json.dumps(content, sort_keys=True)
        self._execute("INSERT INTO entry VALUES (?, ?, ?)", number + 1, text, _chained(before, text))
        if request:
            self._execute(
                "INSERT INTO held VALUES (?, ?, ?)", number + 1, self.digest("request", request).hex(), answer
            )
        return number + 1

    def _require_budget(self, release: Release, cost: Decimal, conflict: str) -> None:
        """BudgetError if somebody would lose more than the budget."""
        spent, most = map(Decimal, self._row("SELECT spent, most FROM ledger"))
        before = EXACT.add(spent, most)
        if self.budget is not None and EXACT.add(before, cost) > self.budget:
            raise BudgetError(
                f"{self._name}: {release.command} of {one_line(release.data)} costs ε = {shown(cost)}"
                f"{f', as {conflict}' if conflict else ''}; {shown(before)} of the budget {shown(self.budget)} is spent"
            )

    def conflict(self, release: Release) -> str:
        """Which features are hidden in one release and public in another, in words; "" for none."""
        hides, publishes = map(json.loads, self._row("SELECT hides, publishes FROM ledger"))
        both = (release.all_hidden & {*publishes, *release.all_published}) | (release.all_published & {*hides})
        told = ", ".join(map(one_line, sorted(both)))
        return f"one release publishes {told}, and another one hides it" if both else ""

    # Answers that were counted and have not appeared.

    def held(self, request: str) -> tuple[int, str] | None:
        """The entry and the answer of a request that was counted and not delivered; None if there is none."""
        found: tuple[int, str] | None = self._row(
            "SELECT number, answer FROM held WHERE request = ?", self.digest("request", request).hex()
        )
        return found

    def delivered(self, number: int) -> None:
        """Forget the answer of an entry: it is where it belongs. A transaction of its own."""
        with self.transaction():
            self._execute("DELETE FROM held WHERE number = ?", number)

    # Patients.

    def digest(self, what: str, text: str) -> bytes:
        """The HMAC of an id, an event or a record under the key, (16 bytes); `what` keeps their digests apart."""
        return hmac.digest(self._key, f"{what}\0{text}".encode(errors="surrogatepass"), "sha256")[:16]

    def decision(self, patient: bytes, event: bytes) -> Decision | None:
        """What a patient was given for an event; None for a new event."""
        query = "SELECT treatment, number, record FROM decision WHERE patient = ? AND event = ?"
        row = self._row(query, patient, event)
        return None if row is None else Decision(*row)

    def account(self, patient: bytes) -> tuple[Decimal, str | None]:
        """What the patient's own decisions have cost, and the treatment drawn last; 0 and None for who never came."""
        spent, treatment = self._row("SELECT spent, treatment FROM patient WHERE patient = ?", patient) or ("0", None)
        return Decimal(spent), treatment

    def affords(self, own: Decimal) -> bool:
        """Whether a patient's own decisions may have cost so much in all."""
        return self.budget is None or EXACT.add(self.spent(), own) <= self.budget

    def charge_patient(self, patient: bytes, cost: Decimal) -> bool:
        """Charge one patient, unless that is beyond the budget: whether it was done. What costs nothing always is."""
        self._require_transaction()
        own, treatment = self.account(patient)
        reached = EXACT.add(own, amount(cost))
        if cost and not self.affords(reached):
            return False
        self._execute("INSERT OR REPLACE INTO patient VALUES (?, ?, ?)", bytes(patient), str(reached), treatment)
        if reached > Decimal(self._row("SELECT most FROM ledger")[0]):
            self._execute("UPDATE ledger SET most = ?", str(reached))
        return True

    def decide(self, patient: bytes, event: bytes, decision: Decision) -> None:
        """Write what a patient gets for an event; if it was drawn, it was charged, and is the patient's last."""
        self._require_transaction()
        row = (bytes(patient), bytes(event), decision.number, decision.treatment, decision.record)
        self._execute("INSERT INTO decision VALUES (?, ?, ?, ?, ?)", *row)
        if decision.record:
            query = "UPDATE patient SET treatment = ? WHERE patient = ?"
            if not self._execute(query, decision.treatment, patient).rowcount:
                raise RuntimeError("a treatment that is drawn must be charged before")

    # SQLite.

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of it is written, or nothing: begun when no other run writes, and on the disk at its end."""
        if self._sql.in_transaction:
            raise RuntimeError("a transaction of this ledger is under way")
        try:
            self._execute("BEGIN IMMEDIATE")
            yield
            self._execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                self._sql.execute("ROLLBACK")
            raise

    def _require_transaction(self) -> None:
        if not self._sql.in_transaction:
            raise RuntimeError("this is done within a transaction: with ledger.transaction(): ...")

    def _execute(self, query: str, *values: object) -> sqlite3.Cursor:
        """Run a statement, as soon as no other run is in the way; LedgerError, in one line, if it cannot be done."""
        start, silent = time.monotonic(), True
        while True:
            try:
                return self._sql.execute(query, values)
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code in (0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT):
                    raise  # a mistake of ours
                if code != sqlite3.SQLITE_BUSY:
                    raise LedgerError(f"{self._name}: {SAID.get(code, str(error))}") from None
            waited = time.monotonic() - start
            if waited > MOST_SECONDS:
                raise LedgerError(f"another run holds the lock of {self._name}: let it end first")
            if waited > SILENT_SECONDS and silent:
                complain(f"another run holds the lock of {self._name}; waiting")
                silent = False
            time.sleep(PAUSE_SECONDS)

    def _row(self, query: str, *values: object) -> Any:
        return self._execute(query, *values).fetchone()

    def _all(self, query: str) -> list[Any]:
        return self._execute(query).fetchall()

    def _last(self) -> tuple[int, str, str]:
        row: tuple[int, str, str] = self._row("SELECT * FROM entry ORDER BY number DESC LIMIT 1") or (0, "", "")
        return row


def open_ledger(path: str | Path) -> Ledger:
    """A ledger that should be there; where there is none, a new one without a budget.

    LedgerError if another ledger stands in its folder: from a mistyped name, everything would be drawn a second time.
    """
    place = Path(os.path.realpath(path))
    others = sorted(key.stem for key in place.parent.glob("*.key") if key.with_suffix("").exists())
    if others and not place.exists():
        raise LedgerError(
            f"{one_line(place.as_posix())}: there is no such ledger, but {one_line(others[0])} is beside it; if you "
            f"want another one: policysim ledger new {one_line(place.name)}"
        )
    return Ledger(place)


def amount(value: Decimal | float | str, name: str = "epsilon") -> Decimal:
    """A number >= 0, or inf, as the decimal by which it is written; ValueError for something else.

    Examples
    --------
    >>> amount(0.1)
    Decimal('0.1')
    """
    try:
        number = value if isinstance(value, Decimal) else Decimal(str(value))
    except InvalidOperation:
        number = Decimal("NaN")
    if number.is_nan() or number < 0 or LARGEST_AMOUNT < number < INFINITE:
        raise ValueError(f"{name} must be a number >= 0, got {value!r}.")
    return number.copy_abs()  # -0 is 0


def shown(number: Decimal) -> str:
    """An amount as people read it: all its digits, without zeros behind them."""
    return "∞" if number == INFINITE else f"{number.normalize(EXACT):f}"


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
            raise LedgerError(f"{one_line(place.as_posix())}: is missing: put back the key of {one_line(ledger.name)}")
        ledger.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f"{place.name}.{secrets.token_hex(8)}")
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(handle, secrets.token_hex(KEY_DIGITS // 2).encode())
            os.fsync(handle)
            os.link(part, place)  # which, unlike a move, replaces no key that another first run has just made
        except FileExistsError:
            pass
        except OSError:
            part.replace(place)  # a file system that knows no links
        finally:
            os.close(handle)
            part.unlink(missing_ok=True)
    key = place.read_bytes().strip()
    if len(key) != KEY_DIGITS:
        raise LedgerError(f"{one_line(place.as_posix())}: is not a key of {KEY_DIGITS} digits: put it back")
    return key


def _mark(key: Path) -> None:
    """Note in the key's file that its ledger was made."""
    with key.open("ab") as stream:
        stream.write(MADE)
        stream.flush()
        os.fsync(stream.fileno())
