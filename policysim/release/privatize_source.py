"""What is privatised: a file or the files of a folder, and values of their columns as positions among their levels."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from envs.toml_reader import one_line, unknown
from policies.arrays import IntArray
from policies.levels import (
    MISSING,
    FeatureLevels,
    LevelKey,
    Levels,
    codes_of_keys,
    level_key,
    level_wanted,
    missing_hint,
    sorted_keys,
)
from policysim.errors import optional
from policysim.files.bad_rows import BadRows, DataError
from policysim.files.columns_file import ColumnsFile, open_columns
from policysim.files.csv_format import RECOGNISED, CsvFormat
from policysim.files.dialect import Dialect
from policysim.files.many_files import READABLE, csv_name, file_digest, files_of, kind_of, left_out, stamp
from policysim.files.terminal import complain
from policysim.progress import SILENT, Progress
from policysim.release.people import People

with optional():
    import pyarrow as pa
    import pyarrow.compute as pc

# A column with more different values than this is no category.
MOST_LEVELS = 1_000


@dataclass(frozen=True)
class Source:
    """Files whose headers have been read.

    Attributes
    ----------
    path : Path
        The file, or the folder.
    files : tuple of ColumnsFile
        Sorted by their names; all with the same columns.
    stamps : tuple
        By what each file is known again; from before it was read, and before its digest.
    """

    path: Path
    files: tuple[ColumnsFile, ...]
    stamps: tuple[tuple[str, int, int], ...]

    @property
    def several(self) -> bool:
        """Whether it is a folder, even of one file: what comes out is then a folder."""
        return self.path.is_dir()

    @property
    def dialects(self) -> tuple[Dialect, ...]:
        """How the files are written, which is part of what is asked."""
        return tuple(dict.fromkeys(file.dialect for file in self.files))

    @property
    def unit(self) -> str:
        """What a step of progress is."""
        return "file" if self.several else self.files[0].unit

    def in_turn(self, progress: Progress) -> Iterator[tuple[ColumnsFile, Progress]]:
        """Each file, and the progress of its rows; in a folder, a step is a file."""
        if self.several:
            progress.expect(len(self.files))
        for file in self.files:
            yield file, SILENT if self.several else progress
            if self.several:
                progress.advance()

    def check_read(self, bad: BadRows, people: People) -> None:
        """DataError if rows are bad, or an id repeats, or a file was changed since it was opened."""
        bad.raise_if_any()
        people.check(self.path.as_posix())
        for file, mark in zip(self.files, self.stamps, strict=True):
            if stamp(file.path) != mark:
                raise DataError(f"{file.path.as_posix()}: was changed while it was read")

    def unchanged(self, private: Collection[str]) -> tuple[str, ...]:
        """The columns that pass through as they are if these ones are private."""
        return tuple(name for name in self.files[0].schema.names if name not in private)

    def digests(self) -> list[str]:
        """The SHA-256 of each file; DataError if one cannot be read."""
        try:
            return [file_digest(file.path) for file in self.files]
        except OSError as error:
            raise DataError(f"{self.path.as_posix()}: cannot be read: {error.strerror}") from None


def open_source(path: Path, stated: CsvFormat = RECOGNISED) -> Source:
    """Read the headers of a file, or of the files of a folder; what is not `stated` of text is recognised.

    Raises
    ------
    DataError
        If there are none, one cannot be read, or its columns are not those of the first; for two of one name but for
        their endings, as what is made of them has the same name.
    """
    stamps, files = [], []
    names: set[str] = set()
    others = left_out(path) if path.is_dir() else []
    if others:
        complain(
            f"warning: {path.as_posix()}: left out: {', '.join(map(one_line, others))}: of a folder .csv, .tsv and "
            ".parquet are read; privatize others by themselves"
        )
    for part in files_of(path) if path.is_dir() else (path,):
        if not kind_of(part):  # before whether there is such a file
            raise DataError(f"{part.as_posix()}: the name must end in {READABLE}")
        if csv_name(part) in names:
            raise DataError(f"{part.as_posix()}: another file of the folder has this name, but for its ending")
        names.add(csv_name(part))
        stamps.append(stamp(part))
        files.append(open_columns(part, stated))
        differ = set(files[0].schema.names) ^ set(files[-1].schema.names)
        if differ:
            one = f"only one of them has {min(differ)!r}"
            raise DataError(f"{part.as_posix()}: must have the columns of {files[0].path.name}, and {one}")
    return Source(path, tuple(files), tuple(stamps))


class Codes:
    """Reads the private columns of a file, and writes others in their place.

    Parameters
    ----------
    file : ColumnsFile
    features : sequence of FeatureLevels
        What each private column may hold (`policies.levels`).
    bad : BadRows
        Lists the rows that hold something else, but not the value: it is private.
    people : People, optional
        Whose rows they are; by default each is a person's.

    Attributes
    ----------
    schema : pyarrow.Schema
        What is written: without what the file says about itself and its columns, which may tell of the true rows,
        and with room for all levels. A private column keeps its type, or becomes text if that cannot hold them. Of
        other columns each row has its value: a dictionary also holds values of rows that are left out.
    n_rows, n_kept : int
        How many were read, and how many of them count.

    Raises
    ------
    DataError
        If a column does not exist or holds no categories.
    """

    def __init__(
        self, file: ColumnsFile, features: Sequence[FeatureLevels], bad: BadRows, people: People | None = None
    ) -> None:
        """Look the columns up."""
        self._file, self._bad, self._people = file, bad, people or People()
        self.n_rows = self.n_kept = 0
        if self._people.id:
            _require_categories(file, self._people.id)
        self._features = {feature.name: feature for feature in features}
        self._levels = {feature.name: _level_array(file, feature) for feature in features}
        self.schema = pa.schema(map(_bare, file.schema))
        for place, field in enumerate(self.schema):
            if field.name in self._levels:
                kind, before = self._levels[field.name].type, file.schema.field(place).type
                if pa.types.is_dictionary(before):
                    kind = pa.dictionary(pa.int32(), kind, before.ordered)
                self.schema = self.schema.set(place, field.with_type(kind))

    def read(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, dict[str, IntArray]] | None:
        """The rows of a batch that count, and the positions of their values; None once any row was bad."""
        codes = {name: self._positions(feature, batch.column(name)) for name, feature in self._features.items()}
        ids = {name: batch.column(name) for name in self._people.columns}
        kept = self._people.keep(self._file, self._bad, ids, before=self.n_rows)
        self.n_rows += batch.num_rows
        if self._bad.count:
            return None  # nothing will be released; what is wrong is counted to the end
        if kept is not None and not kept.all():
            batch, codes = batch.filter(pa.array(kept)), {name: places[kept] for name, places in codes.items()}
        self.n_kept += batch.num_rows
        return batch, codes

    def _positions(self, feature: FeatureLevels, column: pa.Array) -> IntArray:
        values = column.dictionary_encode()
        keys = [*map(level_key, _texts(values.dictionary)), MISSING]
        # Nulls may stand among the positions, or among the values.
        positions = pc.fill_null(values.indices, len(keys) - 1).to_numpy()
        # A time has the text that its column gives it.
        levels = Levels(feature.name, _texts(self._levels[feature.name]), feature.cuts, feature.unknown)
        codes: IntArray = codes_of_keys(levels, keys)[positions]
        # In each line: whether a value is missing is private.
        must = level_wanted(feature) + missing_hint(feature)
        self._bad.add(self._file, codes < 0, feature.name, lambda _: must, before=self.n_rows)
        return codes

    def replace(self, batch: pa.RecordBatch, codes: Mapping[str, IntArray]) -> pa.RecordBatch:
        """A batch with the values at these positions; a dictionary holds all levels, also those that do not occur."""
        columns = []
        for field in self.schema:
            column = batch.column(field.name)
            if field.name in codes:
                positions, levels = pa.array(codes[field.name]), self._levels[field.name]
                if pa.types.is_dictionary(field.type):
                    column = pa.DictionaryArray.from_arrays(positions, levels).cast(field.type)
                else:
                    column = levels.take(positions)
            columns.append(column if column.type == field.type else column.cast(field.type))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def levels_in(source: Source, columns: Sequence[str], progress: Progress = SILENT) -> dict[str, list[str]]:
    """The different values of some columns, in all files, as text, numbers by size; missing ones are left out.

    They are read from the private rows: which values occur is then public without being covered by any epsilon.

    Raises
    ------
    DataError
        For a column that is not there, or is no category.
    """
    texts: dict[str, dict[LevelKey, str]] = {column: {} for column in columns}
    for file, steps in source.in_turn(progress):
        for column in columns:
            _require_categories(file, column)
        for batch in file.batches(columns, steps):
            for column, by_key in texts.items():
                for text in _texts(batch.column(column).dictionary_encode().dictionary):
                    key, other = level_key(text), by_key.get(level_key(text), text)
                    # Of several ways to write a level the shortest, whatever the order of the rows.
                    by_key[key] = min(text, other, key=lambda text: (len(text), text))
                if len(by_key) > MOST_LEVELS:
                    raise DataError(
                        f"{file.path.as_posix()}: {column}: has more than {MOST_LEVELS:,} different values; "
                        "declare its levels, or make it coarser"
                    )
    return {column: [by_key[key] for key in sorted_keys(by_key) if key != MISSING] for column, by_key in texts.items()}


def _bare(field: pa.Field) -> pa.Field:
    """A column without what a Parquet file says about it, or about a part of it, and without dictionaries."""
    kind, part = field.type, [_bare(field.type.field(place)) for place in range(field.type.num_fields)]
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    elif pa.types.is_struct(kind):
        kind = pa.struct(part)
    elif pa.types.is_map(kind):
        kind = pa.map_(part[0].type.field(0), part[0].type.field(1), kind.keys_sorted)
    elif pa.types.is_large_list(kind):
        kind = pa.large_list(part[0])
    elif pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = pa.list_(part[0], getattr(kind, "list_size", -1))  # of a fixed size, or of any
    return pa.field(field.name, kind, field.nullable)


def _level_array(file: ColumnsFile, feature: FeatureLevels) -> pa.Array:
    """Levels in the type of the column, or as text."""
    kind = _require_categories(file, feature.name)
    texts = pa.array(map(str, feature.levels), pa.string())
    try:
        levels = texts.cast(kind)
    except pa.ArrowException:
        return texts
    usable = len(levels.unique()) == len(levels) and not pc.any(pc.is_null(levels, nan_is_null=True)).as_py()
    return levels if usable else texts


def _texts(values: pa.Array) -> list[str]:
    """Values as text; "" where one is missing."""
    texts: list[str] = pc.fill_null(values.cast(pa.string()), "").to_pylist()
    return texts


def _require_categories(file: ColumnsFile, column: str) -> pa.DataType:
    """The type of a column's values, whether or not they are stored as a dictionary; DataError for lists and bytes."""
    names = file.schema.names
    if column not in names:
        raise DataError(f"{file.path.as_posix()}: {unknown('column', column, names)}")
    kind = file.schema.field(column).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    try:
        _texts(pa.array([], kind).dictionary_encode().dictionary)
    except pa.ArrowException:
        raise DataError(f"{file.path.as_posix()}: {column}: is of type {kind}, which cannot hold categories") from None
    return kind
