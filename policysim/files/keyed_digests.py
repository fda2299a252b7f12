"""Digests of patients' data, by which files are known again: under a key, unless anyone may have the data.

Whoever can guess the rows of a file can check the guess against its SHA-256, even if a release of its columns hides
them. An HMAC-SHA-256 tells nothing without its key. The key lies beside the data and is as private as they are.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envs.toml_reader import require_file
from policysim.errors import OutputError
from policysim.files.bad_rows import DataError
from policysim.files.terminal import complain

KEY = "policysim-digest.key"


@dataclass(frozen=True)
class Digests:
    """By what files are known again: SHA-256 without a key, HMAC-SHA-256 with one."""

    key: bytes | None = None

    @property
    def key_check(self) -> str | None:
        """By what whoever has the key knows it again; None without one."""
        return None if self.key is None else self.of(b"policysim digest key")

    def of(self, content: bytes) -> str:
        """The digest of a file's content."""
        return self._of_stream(io.BytesIO(content))

    def of_file(self, path: Path) -> str:
        """The digest of a file of any size; OSError if it cannot be read (`require_file`)."""
        require_file(path)
        with path.open("rb") as stream:
            return self._of_stream(stream)

    def _of_stream(self, stream: io.BufferedReader | io.BytesIO) -> str:
        key = self.key
        new = hashlib.sha256 if key is None else lambda: hmac.new(key, digestmod="sha256")
        return hashlib.file_digest(stream, new).hexdigest()

    def of_files(self, files: Sequence[Path]) -> str:
        """One digest of many files: of their digests and names, a line each."""
        return self.of("".join(f"{self.of_file(file)}  {file.name}\n" for file in files).encode())


@dataclass(frozen=True)
class DataFiles:
    """The files of patients' data that a study is made of; none for a scenario.

    Parameters
    ----------
    files : tuple of Path
    public : bool
        Whether anyone may have them.
    several : bool
        Whether they are many parts of one table, which have one digest together.
    """

    files: tuple[Path, ...] = ()
    public: bool = True
    several: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """What a manifest calls them: by their names, or how many there are."""
        return (f"{len(self.files):,} files",) if self.several else tuple(file.name for file in self.files)

    @property
    def key_path(self) -> Path:
        """Where the key of data lies that are not public."""
        return self.files[0].parent / KEY

    def digests(self, *, make_key: bool = True) -> Digests | None:
        """The digests to use for these files and for what is made of them; None if the key is missing and not made.

        Raises
        ------
        OutputError
            If a key cannot be written beside the data.
        DataError
            If what lies there is no key, or no file.
        """
        if self.public:
            return Digests()
        name, missing = self.key_path.as_posix(), not os.path.lexists(self.key_path)
        if missing and not make_key:
            return None
        try:
            if missing:
                _write_key(self.key_path)
                complain(f"made {name}, the key of digests of these data: keep it as private as they are")
        except OSError as error:
            raise self._no_key(str(error.strerror)) from None
        try:
            require_file(self.key_path)
            key = self.key_path.read_bytes()
        except OSError as error:
            raise DataError(f"{name}: {error.strerror}: put back the key, or remove this") from None
        if not re.fullmatch(rb"[0-9a-f]{64}", key):
            raise DataError(f"{name}: is no key of policysim: put back the key, or remove this file")
        return Digests(key)

    def check_key(self) -> None:
        """Raise, as `digests` does, where a key cannot be read or made; nothing is written."""
        if self.digests(make_key=False) is None and not os.access(self.key_path.parent, os.W_OK):
            raise self._no_key("Permission denied")

    def _no_key(self, why: str) -> OutputError:
        """Why there is no key, and what to do."""
        instead = "make the folder writable, or copy the data to one that is"
        return OutputError(
            f"{self.key_path.as_posix()}: {why}, and digests of patients' data need a key beside them: {instead}"
        )

    def document(self, digests: Digests) -> dict[str, Any]:
        """What a manifest says of them: whether they are public, and their digests by the names of the files."""
        if not self.files:
            return {}
        together = (digests.of_files(self.files),) if self.several else map(digests.of_file, self.files)
        found = dict(zip(self.names, together, strict=True))
        if digests.key is None:
            return {"data": {"public": True, "sha256": found}}
        return {"data": {"public": False, "hmac_sha256": found, "key": digests.key_check}}


def _write_key(path: Path) -> None:
    """A new key, for its owner alone; the one that another run writes meanwhile stays."""
    with suppress(FileExistsError), os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as key:
        key.write(secrets.token_hex(32).encode())
