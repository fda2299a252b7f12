"""Treatments for real patients: each drawn once, privately, and counted before anybody sees it.

For each patient and event the ledger has at most one decision. Asked again it gives the same, unless that is now
contraindicated by what is public; so a rerun costs nothing, and completes what a crash has interrupted. All rows of a
file are charged, drawn and written into the ledger in one transaction. Only then a file appears.

Whether a row is drawn, repeated or refused depends on the patient's id and event, on the budget, and on public
features. It never depends on what is hidden: of that a missing value is a value like any other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from envs.toml_reader import one_line
from policies.adjacency import OneFeature, public_classes
from policies.arrays import IntArray, Words, blocks
from policies.catalogue import make_policy
from policies.policy import Policy
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedResponse
from policysim.errors import OutputError, optional
from policysim.files.bad_rows import DataError
from policysim.files.columns_file import open_columns
from policysim.files.columns_writer import check_ending, open_writer
from policysim.files.csv_format import CsvFormat
from policysim.files.data_table import DataTable, coded, read_table
from policysim.files.many_files import file_digest, is_file
from policysim.files.whole_files import check_writable, keep_closed, sync, temporary_folder
from policysim.progress import SILENT, Progress
from policysim.release.exact import ExactPolicy, exact_policy
from policysim.release.ledger import (
    ONE_FEATURE,
    REPLACE,
    UNKNOWN_ENTRY,
    BudgetError,
    Decision,
    Ledger,
    Release,
    amount,
    open_ledger,
    shown,
)
from policysim.release.patients_file import Columns, Outcome, Patients, Row
from policysim.study.declared import SEEN, LoggedStudy, Study
from policysim.study.study_problem import build_problem
from policysim.study.study_reader import load_study
from policysim.study.sweep import at

with optional():
    import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

DRAWN, AS_BEFORE, RECORD_CHANGED = "drawn", "as before", "as before: record changed"
OVER_BUDGET, CONTRAINDICATED = "refused: budget", "refused: contraindicated"
TREATMENT, PUBLICATION = SEEN
# How treatments are chosen unless it is said: those that are seen, and those that are published beside the best.
DEFAULT_POLICY = {TREATMENT: "exponential-fitted", PUBLICATION: RandomizedResponse.name}
# What is in each file: of the publication only what is published, under the title of a treatment.
FIELDS = {
    "private": ("id", "event", "treatment", "status"),
    "published": ("id", "published"),
    "given": ("id", "treatment"),
}
COUNTED = "what was drawn is counted: run the same command again, and it gives the same treatments"
# What is between the levels of a record whose digest is kept.
BETWEEN = "\x1f"


@dataclass(frozen=True, eq=False)
class Method:
    """How treatments are drawn, and what that costs a patient.

    Attributes
    ----------
    problem : DecisionProblem
    exact : ExactPolicy
        The table of the policy, in whole numbers.
    seen : str
        Whether the drawn treatment is given ("treatment"), or only published beside the best ("publication").
    columns : Columns
    release : Release
        The entry of the ledger, and what a new decision costs its patient.
    doubts : tuple of str
        What makes the study doubtful: guesses that nobody has read.
    """

    problem: DecisionProblem
    exact: ExactPolicy
    seen: str
    columns: Columns
    release: Release
    doubts: tuple[str, ...] = ()

    @cached_property
    def instead(self) -> IntArray:
        """What a record gets beyond the budget, (n_records,): the best single treatment for all that agree in public.

        The mean utility under the prior decides; where no such patient comes, what is best for all who allow the same.
        """
        problem = self.problem
        classes = public_classes(problem.adjacency, problem.n_records)
        means = np.stack([np.bincount(classes, problem.prior * utility)[classes] for utility in problem.utilities.T])
        if problem.admissible is not None:
            means[~problem.admissible.T] = -np.inf
        nobody = np.bincount(classes, problem.prior)[classes] == 0
        return np.where(nobody, problem.best_fixed_actions, means.argmax(axis=0))

    def allows(self, record: int, treatment: str) -> bool:
        """Whether a record allows a treatment, by public features, if there is such a treatment."""
        actions, mask = self.problem.actions, self.problem.admissible
        return treatment in actions and (mask is None or bool(mask[record, actions.index(treatment)]))


def make_method(
    of: Study | DecisionProblem | str | Path,
    source: Path | pd.DataFrame,
    *,
    policy: str | Policy | None,
    epsilon: Decimal | float | str,
    id: str,  # noqa: A002
    event: str,
    missing: Sequence[str] = (),
    seen: str | None = None,
) -> Method:
    """Make the problem and its table, and check all of it: what `decide` says of its parameters.

    ClaimError if the policy reveals more than epsilon; DataError for the log that a study was fitted to.
    """
    declared = amount(epsilon)
    if declared.is_infinite():
        raise ValueError("epsilon must be finite: where nothing is hidden, nothing needs to be drawn or counted.")
    study = of if isinstance(of, Study | DecisionProblem) else load_study(str(of))
    _refuse_fitted_patients(study, source)
    seen = seen or (study.seen if isinstance(study, Study) else TREATMENT)
    if seen not in SEEN:
        raise ValueError(f"seen must be one of {', '.join(SEEN)}, got {seen!r}.")
    problem = study if isinstance(study, DecisionProblem) else build_problem(study)
    columns = Columns.of(problem, id=id, event=event, missing=missing)
    of_name = study.policy if isinstance(study, Study) else make_policy
    chosen = policy or DEFAULT_POLICY[seen]
    template = of_name(chosen) if isinstance(chosen, str) else chosen
    if seen == PUBLICATION and template.name != RandomizedResponse.name:
        raise ValueError(f"a publication is drawn by {RandomizedResponse.name}, got policy={template.name}.")
    fitted = at(template, float(declared)).fit(problem)
    exact = exact_policy(fitted, declared)
    # All rows, so that a policy is refused whoever is among the patients.
    for rows in blocks(problem.n_records):
        exact.weights(np.arange(rows.start, rows.stop))
    names = [feature.name for feature in columns.features]
    release = Release(
        "decide",
        source.name if isinstance(source, Path) else "patients",
        declared,
        hides=columns.hidden,
        publishes=tuple(name for name in names if name not in columns.hidden),
        adjacency=ONE_FEATURE if isinstance(problem.adjacency, OneFeature) else REPLACE,
        shows_rows=True,
        each=True,
        details={
            **({"study": study.name} if isinstance(study, Study) else {}),
            "study_sha256": problem.digest,
            "policy": template.name,
            "policy_sha256": sha256(fitted.probabilities.T.tobytes()).hexdigest(),
            "seen": seen,
        },
    )
    doubts = (study.log.unread_words,) if isinstance(study, LoggedStudy) and study.log.unread else ()
    return Method(problem, exact, seen, columns, release, doubts)


def decide(
    of: Study | DecisionProblem | str | Path,
    patients: pd.DataFrame | str | Path,
    *,
    policy: str | Policy | None = None,
    epsilon: Decimal | float | str,
    id: str,  # noqa: A002
    event: str,
    ledger: Ledger | str | Path,
    missing: str | Sequence[str] = (),
    seen: str | None = None,
) -> pd.DataFrame:
    """Draw a treatment for each patient, privately, from the operating system's randomness, and count it.

    The same patient and event get the same treatment again, at no cost, unless it is now contraindicated.

    Parameters
    ----------
    of : Study, DecisionProblem, str or Path
        A study: loaded, by its built-in name, or by the path of its file; or a problem.
    patients : DataFrame, str or Path
        A row for each decision, with the columns `id` and `event` and one for each feature; or the path of such a .csv
        or .parquet file. Not the log that a study was fitted to.
    policy : str or Policy, optional
        How treatments are chosen, at this epsilon; exponential-fitted by default.
    epsilon : Decimal, str or float
        What a patient is charged for an event, >= 0 and finite; a number counts as the decimal by which it is written.
        Under one-feature adjacency it is charged once for each feature.
    id, event : str
        The columns of the patients' ids, and of what the treatment is for, such as an admission: one decision is made
        for each. Both are compared as text, and neither may be a feature.
    ledger : Ledger, str or Path
        Of this group of people (`policysim.release.ledger.open_ledger`); `Ledger(path, budget)` makes one.
    missing : str or sequence of str, optional
        What a missing value stands for: LEVEL or FEATURE=LEVEL; a level "NA" by itself. Of a hidden feature an unknown
        value is a missing one. Such a record is treated like any other of this level.
    seen : {"treatment", "publication"}, optional
        What an observer sees; the study's by default. If only a publication is seen, `treatment` is the best for each
        and must not be published, and a column `published` has it by randomised response.

    Returns
    -------
    DataFrame
        A row for each of `patients`, in their order and with their index, which is private: the id, `treatment` (""
        where none is given), and `status`: "drawn", "as before", "as before: record changed", "refused: budget" (what
        was drawn last, or else the best single treatment for the public features: neither reveals anything new), or
        "refused: contraindicated" (nothing is given; a new event is needed).

    Raises
    ------
    DataError
        A ValueError, and nothing is drawn: for patients that do not fit the study, with a line for each of the first
        20 rows; for the log that the study was fitted to.
    ClaimError
        For a policy that reveals more than epsilon.
    LedgerError
        For a ledger that cannot be used; BudgetError if one decision costs more than the budget, or it publishes what
        an earlier release hides.
    ValueError
        For another parameter that does not fit; a TypeError for patients that are no table and no path.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> from policies import AnyRecord
    >>> utilities = pd.DataFrame({"wait": [1.0, 0.0], "treat": [0.0, 1.0]}, pd.Index(["young", "old"], name="age"))
    >>> problem = DecisionProblem(utilities, [0.5, 0.5], AnyRecord())
    >>> today = pd.DataFrame({"patient": ["P1", "P2"], "admission": [1, 1], "age": ["old", "young"]})
    >>> ledger = Ledger(Path(tempfile.mkdtemp()) / "ledger.sqlite", budget=2)
    >>> asked = dict(epsilon=1, id="patient", event="admission", ledger=ledger)
    >>> decide(problem, today, **asked)["status"].tolist(), decide(problem, today, **asked)["status"].tolist()
    (['drawn', 'drawn'], ['as before', 'as before'])
    >>> ledger.remaining("P1")
    Decimal('1')
    """
    import pandas as pd  # noqa: PLC0415 - half a second that most uses of this module do not need

    source = Path(patients) if isinstance(patients, str | Path) else patients
    if not isinstance(source, Path | pd.DataFrame):
        raise TypeError(f"patients must be a pandas DataFrame or the path of a file, got {type(patients).__name__}.")
    rules = [missing] if isinstance(missing, str) else missing
    method = make_method(of, source, policy=policy, epsilon=epsilon, id=id, event=event, missing=rules, seen=seen)
    counted = ledger if isinstance(ledger, Ledger) else open_ledger(ledger)
    rows = Patients(source, method.problem, method.columns, counted)
    decide_all(rows, counted, method)
    table = pd.DataFrame([outcome for batch in rows.outcomes(keep_order=True) for outcome in batch])
    columns = ["id", "treatment", *(["published"] if method.seen == PUBLICATION else []), "status"]
    decisions = table[columns].rename(columns={"id": id})
    return decisions if isinstance(source, Path) else decisions.set_axis(source.index, axis="index")


def _refuse_fitted_patients(study: Study | DecisionProblem, source: Path | pd.DataFrame) -> None:
    """DataError for the log that a study's numbers were fitted to: their privacy does not cover these patients."""
    if not isinstance(study, LoggedStudy):
        return
    name = source.as_posix() if isinstance(source, Path) else "patients"
    for part in filter(is_file, study.data.files):
        if _is_copy(source, part) if isinstance(source, Path) else _has_its_rows(source, part, study.log.form):
            raise DataError(
                f"{name}: is the log of the study {study.name}, whose numbers were fitted to these "
                "patients: ε does not protect them from these numbers. Treat other patients by it"
            )


def _is_copy(source: Path, part: Path) -> bool:
    """Whether a file has the same bytes as a file of a log."""
    same_size = is_file(source) and source.stat().st_size == part.stat().st_size
    return same_size and file_digest(source) == file_digest(part)


def _has_its_rows(frame: pd.DataFrame, part: Path, form: CsvFormat) -> bool:
    """Whether a table has all columns of a file of a log, and in these the same rows, in any order."""
    if not {*open_columns(part, form).schema.names} <= {*map(str, frame.columns)}:
        return False
    import pandas as pd  # noqa: PLC0415 - as in `decide`

    log = read_table(part, stated=form)

    def hashes(table: DataTable) -> Words:
        columns = {name: coded(table[name]) for name in log.columns}
        words = {name: np.array(list(map(str, keys)), dtype=object)[codes] for name, (codes, keys) in columns.items()}
        return np.sort(pd.util.hash_pandas_object(pd.DataFrame(words), index=False).to_numpy())

    return len(frame) == len(log) and np.array_equal(hashes(read_table(frame)), hashes(log))


def decide_all(
    patients: Patients,
    ledger: Ledger,
    method: Method,
    *,
    taken: str = "",
    dry_run: bool = False,
    progress: Progress = SILENT,
) -> int | None:
    """Charge and draw what is new, in one transaction, and keep what came of each row.

    Returns the number of the entry; None if nothing is new, also of what is hidden and public. `taken` names an output
    that is there: OutputError, and nothing is drawn, if anything is new. A dry run draws nothing, and leaves the ledger
    as it was.
    """
    problem, news, refused = method.problem, False, dict[int, Decision]()
    progress.expect(patients.n_rows)
    with ledger.transaction(keep=not dry_run):
        entry = ledger.head + 1
        entries = {entry, *_earlier_entries(ledger, method.release)}
        for rows in patients.by_patient():
            records = np.array([row.record for row in rows], dtype=np.intp)
            drawn = method.instead[records] if dry_run else method.exact.draw(records)
            levels = problem.decode(records).itertuples(index=False, name=None)
            outcomes = []
            for row, action, values in zip(rows, drawn.tolist(), levels, strict=True):
                record = ledger.digest("record", BETWEEN.join(map(str, values)))
                before = ledger.decision(row.patient, row.event)
                if before is None:
                    if taken:
                        raise OutputError(f"{taken}: is there, and new decisions are asked for; name another file")
                    _require_affordable(ledger, method.release)
                    news = True
                    new = Decision(problem.actions[action], record, method.seen, entry)
                    treatment, status = _first(method, row, new, ledger, entries)
                elif before.entry not in entries or before.seen != method.seen:
                    refused[row.row] = before
                    continue
                else:
                    treatment, status = _again(method, row, before, record)
                given = treatment if method.seen == TREATMENT else problem.actions[problem.best_actions[row.record]]
                outcomes.append((row.row, given, treatment, status))
            patients.store(outcomes)
            progress.advance(len(rows))
        patients.refuse(refused, lambda row: _refusal(method, refused[row], ledger, entries))
        # Other public features decide what is contraindicated now: that shows them, though nothing is drawn.
        return ledger.charge(method.release) if news or not ledger.covers(method.release) else None


def _require_affordable(ledger: Ledger, release: Release) -> None:
    """BudgetError if nobody can ever be drawn for: the epsilon is mistyped, and a refusal would stay in the ledger."""
    if ledger.budget is not None and release.cost > ledger.budget:
        raise BudgetError(
            f"{one_line(ledger.path.as_posix())}: one decision costs ε = {shown(release.cost)}, which is more than the "
            f"budget of a person, {shown(ledger.budget)}: nothing is drawn"
        )


def _earlier_entries(ledger: Ledger, release: Release) -> set[int]:
    """The numbers of the entries by which the same study decided before, also of unknown ones if there are any.

    A study that was edited is known by its name, one that was renamed by its digest; a study of other features that
    only has the same name is another one.
    """
    names, digests = {release.details.get("study")}, {release.details["study_sha256"]}
    features, numbers = {*release.hides, *release.publishes}, set()
    for entry in reversed(ledger.entries()):
        if entry["command"] != release.command:
            continue
        name, digest = entry["details"].get("study"), entry["details"]["study_sha256"]
        others = {*entry["hides"], *entry["publishes"]}
        if (name in names or digest in digests) and (features <= others or others <= features):
            names.add(name)
            digests.add(digest)
            numbers |= {entry["number"], UNKNOWN_ENTRY}
    return numbers


def _refusal(method: Method, before: Decision, ledger: Ledger, entries: Collection[int]) -> str:
    """Why a decision cannot be given again: another study made it, or others saw it."""
    if before.entry in entries:
        return (
            f"was decided where others see the {before.seen}, and now they see the {method.seen}: both together reveal "
            "more than ε allows; a new decision needs a new event"
        )
    details = [entry["details"] for entry in ledger.entries() if entry["number"] == before.entry]
    name = details[0].get("study", "") if details else ""
    return (
        f"was decided by {f'the study {name}' if name else 'another study'}: this study needs an event of its own. If "
        "it is the same study, edited and renamed, give it its old name"
    )


def _again(method: Method, row: Row, before: Decision, record: bytes) -> tuple[str, str]:
    """What was given before, and its status."""
    if not method.allows(row.record, before.treatment):
        return "", CONTRAINDICATED
    if not before.record:
        return before.treatment, OVER_BUDGET
    return before.treatment, AS_BEFORE if before.record == record else RECORD_CHANGED


def _first(method: Method, row: Row, new: Decision, ledger: Ledger, entries: Collection[int]) -> tuple[str, str]:
    """Charge the patient and write what was drawn; beyond the budget, what reveals nothing new. And its status.

    That is the treatment drawn last, if this study drew it and still allows it; else the best single one for the public
    features.
    """
    if ledger.charge_patient(row.patient, method.release.cost):
        ledger.decide(row.patient, row.event, new)
        return new.treatment, DRAWN
    last = ledger.account(row.patient)
    treatment = method.problem.actions[int(method.instead[row.record])]
    if last.treatment is not None and last.entry in entries and method.allows(row.record, last.treatment):
        treatment = last.treatment
    ledger.decide(row.patient, row.event, new._replace(treatment=treatment, record=b""))
    return treatment, OVER_BUDGET


def output_paths(out: Path, seen: str) -> dict[str, Path]:
    """The files of decisions by what is in them (`FIELDS`), in the order in which they appear: OUT last."""
    beside = {kind: out.with_name(f"{out.stem}.{kind}{out.suffix}") for kind in ("private", "published")}
    if seen == TREATMENT:
        del beside["published"]
    return {**beside, "given": out}


def check_outputs(paths: Mapping[str, Path], source: Path, ledger: Path) -> None:
    """OutputError for a place that cannot be written, or holds the patients or the ledger."""
    check_ending(paths["given"])
    for path in paths.values():
        for other, what in ((source, "the patients"), (ledger, "the ledger")):
            if path.exists() and other.exists() and path.samefile(other):
                raise OutputError(f"{path.as_posix()}: is {what}; name another file")
    check_writable(paths["given"].parent)


def write_outputs(
    paths: Mapping[str, Path], patients: Patients, columns: Columns, *, keep_order: bool, made_from: Path
) -> None:
    """Write all files, after what is in them was counted: OUT appears last, and only as a whole.

    Others may do no more with them than with the file that they are `made_from`.

    OutputError if that cannot be done, or if OUT has other content.
    """
    out = paths["given"]
    try:
        with temporary_folder(out) as stage:
            staged = {kind: stage / path.name for kind, path in paths.items()}
            _fill(staged, patients.outcomes(keep_order=keep_order), columns)
            for kind, path in paths.items():
                # Statuses change when a run is repeated; what is handed out does not.
                if kind != "private" and path.exists() and file_digest(path) != file_digest(staged[kind]):
                    raise OutputError(f"{path}: holds other decisions; name another OUT. {COUNTED.capitalize()}")
            for kind, path in paths.items():
                keep_closed(staged[kind], [made_from])
                staged[kind].replace(path)
            sync(out.parent)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(COUNTED) from None
    except OutputError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {out}: {error.strerror or error}; {COUNTED}") from None


def _fill(paths: Mapping[str, Path], batches: Iterator[list[Outcome]], columns: Columns) -> None:
    """Write batches of outcomes to files of their own, and wait until they are on the disk."""
    titles = {"id": columns.id, "event": columns.event, "published": "treatment"}
    schemas = {kind: pa.schema([(titles.get(name, name), pa.string()) for name in FIELDS[kind]]) for kind in paths}
    with ExitStack() as stack:
        writers = {
            kind: stack.enter_context(open_writer(path, schemas[kind], check_ending(path)))
            for kind, path in paths.items()
        }
        for batch in batches:
            values = dict(zip(Outcome._fields, map(list, zip(*batch, strict=True)), strict=True))
            for kind, writer in writers.items():
                writer.write(pa.record_batch([values[name] for name in FIELDS[kind]], schema=schemas[kind]))
    for kind, path in paths.items():
        if kind == "private" or (kind == "given" and "published" in paths):
            path.chmod(0o600)
        sync(path)
