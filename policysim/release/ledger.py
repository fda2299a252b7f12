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
own (LEDGER.key). Private cells stay in it, so that they are never drawn twice. Ledger and key are as private as the
patients. Entries are numbered, and each holds the digest of the one before it, so that an accident is found; a backup
that was put back is found by the head number, which each note prints.
"""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
import sqlite3
import time
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, InvalidOperation
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from envs.toml_reader import one_line, require_file
from policies.levels import MISSING_WORDS
from policysim.errors import EXIT_CHECK, EXIT_DATA, OutputError
from policysim.files.terminal import complain
from policysim.files.whole_files import sync

if TYPE_CHECKING:
    import pandas as pd

FORMAT = 2
# The format before it, whose decisions do not say which study made them.
WITHOUT_STUDIES = 1
# By what SQLite's file says that it is a ledger.
APPLICATION = int.from_bytes(b"poli")
# What is hidden: any value of a row; whether the row is there; or one feature of it at a time.
REPLACE, ADD_OR_REMOVE, ONE_FEATURE = "replace-one", "add-or-remove-one", "one-feature"
# Of counts.
ADJACENCIES = (REPLACE, ADD_OR_REMOVE)
INFINITE = Decimal("Infinity")
# Sums are exact up to so many digits. What is spent is never rounded down, what is left never up.
EXACT, LEFT = Context(prec=400, rounding=ROUND_CEILING), Context(prec=400, rounding=ROUND_FLOOR)
LARGEST_AMOUNT = Decimal("1e309")
# For so long another run is waited for, and so often it is tried.
MOST_SECONDS, PAUSE_SECONDS = 20.0, 0.005
TABLES = f"""
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE ledger (budget TEXT, key TEXT);
CREATE TABLE entry (number INTEGER PRIMARY KEY, content TEXT, digest TEXT);
CREATE TABLE held (number INTEGER PRIMARY KEY, request TEXT UNIQUE, answer TEXT);
CREATE TABLE patient (patient BLOB PRIMARY KEY, spent TEXT, treatment TEXT, entry INTEGER) WITHOUT ROWID;
CREATE TABLE decision (patient BLOB, event BLOB, treatment TEXT, record BLOB, seen TEXT, entry INTEGER,
    PRIMARY KEY (patient, event)) WITHOUT ROWID;
"""
# The entry of a decision from a ledger of format 1 in which several studies decided: nobody knows which.
UNKNOWN_ENTRY = 0
# What a release may hide or publish beside features.
ROWS = "(which rows there are, and how many)"
# A day, or a whole number, with what follows it in one format of files and not in another.
DAY_OR_NUMBER = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00:00(?:\.0+)?|(-?\d+)\.0+")
DAMAGED = "the ledger is damaged, and earlier releases cannot be counted: put back its last backup"
# What SQLite's errors mean here; others speak for themselves.
SAID = {
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: "is not a ledger",
    sqlite3.SQLITE_BUSY: "another run holds its lock: let it end first",
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
        The features that it hides up to epsilon, and the features that an observer of it learns.
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
        return {*map(_column, self.hides)} | ({ROWS} if self.adjacency == ADD_OR_REMOVE else set())

    @property
    def all_published(self) -> set[str]:
        """The features that it publishes, and the presence of rows if it shows that."""
        return {*map(_column, self.publishes)} | ({ROWS} if self.shows_rows else set())


class Decision(NamedTuple):
    """What a patient gets for an event.

    Attributes
    ----------
    treatment : str
    record : bytes
        The digest of the patient's record; empty if nothing was drawn, as beyond the budget.
    seen : str
        What observers see.
    entry : int
        The number of the entry that says by which study; `UNKNOWN_ENTRY` if none does.
    """

    treatment: str
    record: bytes
    seen: str
    entry: int


class Account(NamedTuple):
    """What a patient's own releases have cost, and the treatment that was drawn last, with its entry."""

    spent: Decimal
    treatment: str | None
    entry: int


class Ledger:
    """A ledger of one group of people; a new file if there is none. Commands open only an existing one.

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

    Notes
    -----
    What writes is called within a `transaction`. Only SQLite opens the file: the locks of a process go when it closes
    any handle of a file.

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
        self.path = Path(os.path.realpath(path))
        self._name = one_line(self.path.as_posix())
        wanted = None if budget is None else amount(budget, "budget")
        if wanted == INFINITE:
            raise ValueError("budget must be finite: leave it out for none.")
        if Path(path).is_symlink():
            raise LedgerError(f"{one_line(str(path))}: is a link: name the ledger that it leads to, {self._name}")
        if self.path.exists() and not self.path.is_file():
            raise LedgerError(f"{self._name}: is not a file, and a ledger is one")
        self._key_path = self.path.with_name(f"{self.path.name}.key")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # For its owner only; SQLite's journal is like the file.
            with suppress(FileExistsError):
                self.path.touch(0o600, exist_ok=False)
            self._sql = sqlite3.connect(self.path, timeout=0, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            reason = getattr(error, "strerror", None) or one_line(str(error))
            raise LedgerError(f"{self._name}: cannot be opened as a ledger: {reason}") from None
        if not self.path.stat().st_mode & 0o222:  # also for an administrator, who may write it all the same
            raise LedgerError(f"{self._name}: {SAID[sqlite3.SQLITE_READONLY]}")
        self._execute("PRAGMA synchronous = EXTRA")
        self._execute("PRAGMA secure_delete = ON")
        with self.transaction():
            if self._row("SELECT count(*) FROM sqlite_master") == (0,):
                self._make(wanted)
            self.budget = self._check_opened()
        if wanted is not None and wanted != self.budget:
            has = "no budget" if self.budget is None else f"the budget {shown(self.budget)}"
            raise LedgerError(f"{self._name}: has {has}, and not {shown(wanted)}; a budget is set once and for all")

    def _make(self, budget: Decimal | None) -> None:
        """Make the key and the tables of a new ledger; LedgerError if a key says that it is not new."""
        self._key = secrets.token_hex(32).encode()
        for statement in TABLES.split(";"):
            self._execute(statement)
        text = None if budget is None else str(budget)
        self._execute("INSERT INTO ledger VALUES (?, ?)", text, self.digest("key", "").hex())
        key_name = one_line(self._key_path.as_posix())
        try:
            self._key_path.touch(0o600, exist_ok=False)
            self._key_path.write_bytes(self._key)
            sync(self._key_path)
        except FileExistsError:
            raise LedgerError(f"{self._name}: {DAMAGED}; if nothing was released, remove {key_name}") from None
        except OSError as error:
            raise LedgerError(f"{key_name}: cannot be written: {error.strerror}") from None
        limit = "without a budget: nothing will be refused" if budget is None else f"with the budget {shown(budget)}"
        complain(f"made the ledger {self._name}, {limit}; it and its key are as private as the patients")

    def _check_opened(self) -> Decimal | None:
        """Check format, key, size and entries; the budget."""
        if self._row("PRAGMA application_id") != (APPLICATION,):
            raise LedgerError(f"{self._name}: {SAID[sqlite3.SQLITE_NOTADB]}")
        (version,) = self._row("PRAGMA user_version")
        if version not in (WITHOUT_STUDIES, FORMAT):
            raise LedgerError(f"{self._name}: has format {version}, and this policysim knows {FORMAT}: update it")
        key_name, (budget, proof) = one_line(self._key_path.as_posix()), self._row("SELECT budget, key FROM ledger")
        try:
            require_file(self._key_path)
            self._key = self._key_path.read_bytes()
        except OSError as error:
            raise LedgerError(f"{key_name}: {error.strerror}: put back the key of {one_line(self.path.name)}") from None
        if proof != self.digest("key", "").hex():
            raise LedgerError(f"{key_name}: is not the key of {one_line(self.path.name)}")
        (pages,), (size,) = self._row("PRAGMA page_count"), self._row("PRAGMA page_size")
        # A file that was cut short; one that is just being made has not reached the disk.
        if 0 < self.path.stat().st_size < pages * size:
            raise LedgerError(f"{self._name}: {DAMAGED}")
        entries = self.entries()
        if version == WITHOUT_STUDIES:
            self._add_studies(entries)
        return None if budget is None else Decimal(budget)

    def _add_studies(self, entries: list[dict[str, Any]]) -> None:
        """Bring a ledger to this format: its decisions belong to its only study, or else to one that nobody knows."""
        decided = {entry["details"].get("study"): entry["number"] for entry in entries if entry["command"] == "decide"}
        entry = max(decided.values()) if len(decided) == 1 else UNKNOWN_ENTRY
        for table in ("patient", "decision"):
            self._execute(f"ALTER TABLE {table} ADD COLUMN entry INTEGER DEFAULT {entry}")
        self._execute(f"PRAGMA user_version = {FORMAT}")

    # What is charged.

    def spent(self, patient: str | None = None) -> Decimal:
        """What a patient has lost, in units of epsilon; without a patient, what everybody has, also who never came."""
        everybody, _, _ = self._sums()
        if patient is None:
            return everybody
        return EXACT.add(everybody, self.account(self.digest("patient", id_text(patient))).spent)

    def remaining(self, patient: str | None = None) -> Decimal:
        """What of the budget is left, of a patient or of who never came; inf without a budget."""
        return INFINITE if self.budget is None else max(Decimal(0), LEFT.subtract(self.budget, self.spent(patient)))

    def releases(self) -> pd.DataFrame:
        """A row for each entry, as an auditor needs it: `number`, the fields of `Release`, `cost` and `digest`.

        LedgerError if the file is damaged, or an entry is missing or was changed.
        """
        import pandas as pd  # noqa: PLC0415 - half a second that most uses do not need

        entries = self.entries()
        if self._row("PRAGMA quick_check") != ("ok",):
            raise LedgerError(f"{self._name}: {DAMAGED}")
        return pd.DataFrame(entries, columns=["number", *Release.__dataclass_fields__, "cost", "digest"])

    def entries(self) -> list[dict[str, Any]]:
        """All entries, as `releases` has them; LedgerError if one does not follow the one before it."""
        entries, before = [], ""
        for expected, (number, content, digest) in enumerate(self._all("SELECT * FROM entry ORDER BY number"), start=1):
            if number != expected or digest != _chained(before, content):
                raise LedgerError(f"{self._name}: entry {expected} is missing, or was changed: {DAMAGED}")
            entries.append({"number": number, **json.loads(content), "digest": digest})
            before = digest
        return entries

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
        conflict, (spent, hidden, published) = self.conflict(release), self._sums()
        cost = INFINITE if conflict else release.cost
        charged = Decimal(0) if release.each and not conflict else cost
        if charged and not happened:
            self._require_budget(release, charged, conflict)
        content = asdict(release) | {
            "cost": cost,
            "spent": EXACT.add(spent, charged),
            "hidden": sorted(hidden | release.all_hidden),
            "published": sorted(published | release.all_published),
        }
        (last, _, before), text = self._last(), json.dumps(content, sort_keys=True, default=str)
        self._execute("INSERT INTO entry VALUES (?, ?, ?)", last + 1, text, _chained(before, text))
        if request:
            digest = self.digest("request", request).hex()
            self._execute("INSERT INTO held VALUES (?, ?, ?)", last + 1, digest, answer)
        return last + 1

    def _sums(self) -> tuple[Decimal, set[str], set[str]]:
        """What everybody has spent, and what was ever hidden and published, as the last entry has it."""
        content = json.loads(self._last()[1])
        return Decimal(content.get("spent", 0)), {*content.get("hidden", ())}, {*content.get("published", ())}

    def _require_budget(self, release: Release, cost: Decimal, conflict: str) -> None:
        """BudgetError if somebody would lose more than the budget."""
        most = max((Decimal(own) for (own,) in self._all("SELECT spent FROM patient")), default=Decimal(0))
        before = EXACT.add(self.spent(), most)
        if self.budget is not None and EXACT.add(before, cost) > self.budget:
            raise BudgetError(
                f"{self._name}: {release.command} of {one_line(release.data)} costs ε = {shown(cost)}"
                f"{f', as {conflict}' if conflict else ''}; {shown(before)} of the budget {shown(self.budget)} is spent"
            )

    def conflict(self, release: Release) -> str:
        """Which features are hidden in one release and public in another, in words; "" for none."""
        _, hidden, published = self._sums()
        both = release.all_hidden & (published | release.all_published) | release.all_published & hidden
        names = ", ".join(map(one_line, sorted(both)))
        return f"one release publishes {names}, and another one hides it" if both else ""

    def covers(self, release: Release) -> bool:
        """Whether earlier entries already say what a release hides and publishes."""
        _, hidden, published = self._sums()
        return not self.conflict(release) and release.all_hidden <= hidden and release.all_published <= published

    # Answers that were counted and have not appeared.

    def held(self, request: str) -> tuple[int, str] | None:
        """The entry and the answer of a request that was counted and not delivered; None if there is none."""
        query = "SELECT number, answer FROM held WHERE request = ?"
        row: tuple[int, str] | None = self._row(query, self.digest("request", request).hex())
        return row

    def delivered(self, number: int) -> None:
        """Forget the answer of an entry: it is where it belongs. A transaction of its own."""
        with self.transaction():
            self._execute("DELETE FROM held WHERE number = ?", number)

    # Patients.

    def digest(self, what: str, text: str) -> bytes:
        """The HMAC of an id, an event or a record under the key, (16 bytes); `what` keeps their digests apart."""
        return hmac.digest(self._key, f"{what}\0{text}".encode(errors="surrogatepass"), "sha256")[:16]

    def decision(self, patient: bytes, event: bytes) -> Decision | None:
        """What a patient gets for an event; None for a new event."""
        query = "SELECT treatment, record, seen, entry FROM decision WHERE patient = ? AND event = ?"
        row = self._row(query, patient, event)
        return Decision._make(row) if row else None

    def account(self, patient: bytes) -> Account:
        """The account of a patient; that of who never came has spent 0."""
        query = "SELECT spent, treatment, entry FROM patient WHERE patient = ?"
        spent, treatment, entry = self._row(query, patient) or ("0", None, UNKNOWN_ENTRY)
        return Account(Decimal(spent), treatment, entry)

    def charge_patient(self, patient: bytes, cost: Decimal) -> bool:
        """Charge one patient, unless that is beyond the budget: whether it was done. What costs nothing always is."""
        self._require_transaction()
        account = self.account(patient)
        reached = EXACT.add(account.spent, amount(cost))
        if cost and self.budget is not None and EXACT.add(self.spent(), reached) > self.budget:
            return False
        row = (patient, str(reached), account.treatment, account.entry)
        self._execute("INSERT OR REPLACE INTO patient VALUES (?, ?, ?, ?)", *row)
        return True

    def decide(self, patient: bytes, event: bytes, decision: Decision) -> None:
        """Write what a patient gets for an event; if it was drawn, it is the patient's last.

        Its entry may still have to be charged, in the same transaction.
        """
        self._require_transaction()
        self._execute("INSERT INTO decision VALUES (?, ?, ?, ?, ?, ?)", patient, event, *decision)
        if decision.record:
            last = "UPDATE patient SET treatment = ?, entry = ? WHERE patient = ?"
            self._execute(last, decision.treatment, decision.entry, patient)

    # SQLite.

    @contextmanager
    def transaction(self, *, keep: bool = True) -> Iterator[None]:
        """All of it is written, or nothing: begun when no other run writes, and on the disk at its end, if it is kept.

        LedgerError if another run does not end its own for 20 s.
        """
        if self._sql.in_transaction:
            raise RuntimeError("a transaction of this ledger is under way")
        try:
            self._execute("BEGIN IMMEDIATE")
            yield
            self._execute("COMMIT" if keep else "ROLLBACK")
        except BaseException:
            with suppress(sqlite3.Error):
                self._sql.execute("ROLLBACK")
            raise

    def _require_transaction(self) -> None:
        if not self._sql.in_transaction:
            raise RuntimeError("this is done within a transaction: with ledger.transaction(): ...")

    def _execute(self, query: str, *values: object) -> sqlite3.Cursor:
        """Run a statement, as soon as no other run is in the way; LedgerError, in one line, if it cannot be done."""
        start = time.monotonic()
        while True:
            try:
                return self._sql.execute(query, values)
            except sqlite3.Error as error:
                code = getattr(error, "sqlite_errorcode", 0) & 0xFF
                if code in (0, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT):
                    raise  # a mistake of ours
                if code != sqlite3.SQLITE_BUSY or time.monotonic() - start > MOST_SECONDS:
                    raise LedgerError(f"{self._name}: {SAID.get(code, str(error))}") from None
            time.sleep(PAUSE_SECONDS)  # SQLite itself would look ever more rarely, and some runs never have their turn

    def _row(self, query: str, *values: object) -> Any:
        return self._execute(query, *values).fetchone()

    def _all(self, query: str) -> list[Any]:
        return self._execute(query).fetchall()

    def _last(self) -> tuple[int, str, str]:
        row: tuple[int, str, str] = self._row("SELECT * FROM entry ORDER BY number DESC LIMIT 1") or (0, "{}", "")
        return row


def open_ledger(path: str | Path) -> Ledger:
    """A ledger that is there; LedgerError if it is not: from a mistyped name, all would be drawn a second time."""
    real_path = Path(os.path.realpath(path))
    if not real_path.exists():
        name = one_line(real_path.as_posix())
        raise LedgerError(
            f"{name}: there is no such ledger: check its name. policysim ledger new {name} --budget B makes a new "
            "one, without the entries of an older one"
        )
    return Ledger(path)


def id_text(value: object) -> str:
    """An id as the text by which a person is known again; "" for what is missing, also by a word such as NA.

    Without margins; a whole number has no point, and a day no midnight.

    Examples
    --------
    >>> [id_text(value) for value in (7.0, "7.0", " 007", "2026-11-29 00:00:00", None, "n/a")]
    ['7', '7', '007', '2026-11-29', '', '']
    """
    text = "" if value is None else str(value).strip()
    ended = DAY_OR_NUMBER.fullmatch(text)
    text = (ended[1] or ended[2]) if ended else text
    if text.lower() in MISSING_WORDS or text == "NaT":
        return ""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


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


def _column(name: str) -> str:
    """A column's name as releases are compared by it: without margins, whatever its case."""
    return name.strip().casefold()


def _chained(before: str, content: str) -> str:
    """The digest of an entry: of the one before it, and of what it says."""
    return sha256(f"{before}\n{content}".encode()).hexdigest()
