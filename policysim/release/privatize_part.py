"""One file's private columns drawn, wherever that is done: in this process, in another one, or on a cluster."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from secrets import token_hex

import numpy as np

from policies.arrays import IntArray
from policies.local import Estimate, estimate, privatize
from policysim.files.columns_file import check_ending, open_columns, open_writer
from policysim.files.workers import Arrays
from policysim.question.extras import optional
from policysim.question.protocol import SILENT, Progress
from policysim.release.privatize_codes import Codes
from policysim.release.privatize_note import Part, Randomization

with optional():
    import pyarrow as pa


@dataclass(frozen=True, eq=False)
class EstimatedTable:
    """The estimated counts of the values of one part.

    Attributes
    ----------
    part : Part
    labels : tuple of tuple of str, (k,)
        The level of each column, for each value.
    reports : array, (k,)
        Rows of the private file per value.
    estimate : Estimate
        Unbiased shares of the true values with 95 % intervals.
    truth : array, (k,), or None
        The true counts: private, only if they were asked for.
    """

    part: Part
    labels: tuple[tuple[str, ...], ...]
    reports: IntArray
    estimate: Estimate
    truth: IntArray | None = None


@dataclass
class Tally:
    """Counts of the reports of one part of the plan, and of its true values."""

    part: Part
    sizes: tuple[int, ...]
    reports: IntArray = field(init=False)
    truth: IntArray = field(init=False)

    def __post_init__(self) -> None:
        """Begin at 0."""
        self.reports = np.zeros(self.part.channel.n_values, dtype=np.intp)
        self.truth = self.reports.copy()

    def draw(self, codes: dict[str, IntArray], rng: np.random.Generator | None) -> dict[str, IntArray]:
        """Private codes in place of the true ones."""
        values = self._joined(codes)
        reports = privatize(values, self.part.channel, rng=rng)
        self.truth += np.bincount(values, minlength=len(self.truth))
        self.reports += np.bincount(reports, minlength=len(self.reports))
        return dict(zip(self.part.columns, np.unravel_index(reports, self.sizes), strict=True))

    def count(self, codes: dict[str, IntArray]) -> None:
        """Add reports that were drawn before."""
        self.reports += np.bincount(self._joined(codes), minlength=len(self.reports))

    def table(self, plan: Randomization, *, keep_true: bool = False) -> EstimatedTable:
        """The estimate from all reports so far."""
        labels = tuple(product(*(plan.levels[column] for column in self.part.columns)))
        found = estimate(self.reports, self.part.channel)
        return EstimatedTable(self.part, labels, self.reports, found, self.truth if keep_true else None)

    def _joined(self, codes: dict[str, IntArray]) -> IntArray:
        joined: IntArray = np.ravel_multi_index([codes[column] for column in self.part.columns], self.sizes)
        return joined


def tallies_of(plan: Randomization) -> list[Tally]:
    """One for each part of a plan."""
    return [Tally(part, plan.sizes(part)) for part in plan.parts]


@dataclass(frozen=True, eq=False)
class Drawing:
    """What is drawn of each file, and where to.

    Attributes
    ----------
    plan : Randomization
    stage : Path
        An absolute path: the folder of what is not released yet; see `privatize_stage`.
    seed : int or None
        None for a release.
    several : bool
        Whether there are many files, each of which has a stream of its own then.
    keep_true : bool
        Whether true counts are handed back.
    progress : Progress
        Told of what is read; only where that is this process.
    """

    plan: Randomization
    stage: Path
    seed: int | None
    several: bool
    keep_true: bool
    progress: Progress = SILENT

    @property
    def key(self) -> str:
        """What the draws of a file depend on, and what is handed back of them."""
        return repr((self.plan, self.seed, self.several, self.keep_true))

    def rng(self, part: Path) -> np.random.Generator | None:
        """A file's generator: None, which is the operating system, or that of the seed and the file's name.

        A file by itself draws from the seed alone. So the name of a file decides, and not its place among others or who
        works on it.
        """
        if self.seed is None:
            return None
        if not self.several:
            return np.random.default_rng(self.seed)
        words = np.frombuffer(hashlib.sha256(part.name.encode(errors="surrogateescape")).digest(), dtype="<u4")
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=tuple(words.tolist())))


def privatize_part(drawing: Drawing, part: Path) -> Arrays:
    """Draw one file's private columns into the folder of what is not released yet, under a name that nobody else has.

    Whoever asked takes the first answer that comes for a file, removes whatever else was drawn of it, and releases
    only what that answer names: a second attempt at a file can neither replace nor join the first.

    Returns
    -------
    dict of array
        `part` and `drawn`, the names of the file and of what was drawn; `n_rows`, (1,); `reports 0` and so on, the
        counts of each part of the plan, and `truth 0`, if they are to be kept; `n_bad` and `bad`, as `BadRows.told`: if
        there are bad rows, nothing was drawn.

    Raises
    ------
    DataError
        If the file cannot be read, or its columns cannot hold the levels.
    OSError
        If nothing can be written; what was begun is removed.
    """
    file = open_columns(part)
    codes, tallies, rng = Codes(file, drawing.plan.levels), tallies_of(drawing.plan), drawing.rng(part)
    # Without what the file says about itself, which may tell of the true rows.
    schema = pa.schema([codes.field(column) if column.name in codes.columns else column for column in file.schema])
    folder = drawing.stage / part.name
    # Not its parents: once the run is over nothing more is drawn.
    folder.mkdir(exist_ok=True)
    drawn = folder / token_hex(8)
    try:
        with open_writer(drawn, schema, check_ending(part)) as writer:
            for batch in file.batches(progress=drawing.progress):
                true_codes = codes.read(batch)
                if true_codes is None:
                    continue  # Nothing will be written; what is wrong is counted to the end.
                private: dict[str, IntArray] = {}
                for tally in tallies:
                    private |= tally.draw(true_codes, rng)
                writer.write(_with_columns(batch, schema, codes, private))
        with drawn.open("rb") as stream:
            os.fsync(stream.fileno())
    except BaseException:
        drawn.unlink(missing_ok=True)
        raise
    told = codes.told()
    if told["n_bad"][0]:
        drawn.unlink()
    found = {"part": np.array([part.name]), "drawn": np.array([drawn.name]), "n_rows": np.array([codes.n_rows]), **told}
    for place, tally in enumerate(tallies):
        found[f"reports {place}"] = tally.reports
        if drawing.keep_true:
            found[f"truth {place}"] = tally.truth
    return found


def _with_columns(
    batch: pa.RecordBatch, schema: pa.Schema, codes: Codes, private: dict[str, IntArray]
) -> pa.RecordBatch:
    columns = [
        codes.values(name, private[name], schema.field(name).type) if name in private else batch.column(name)
        for name in schema.names
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
