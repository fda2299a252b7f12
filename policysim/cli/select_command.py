"""`policysim select`."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from pathlib import Path

import numpy as np

from policysim.files.output import EXIT_CHECK, print_json
from policysim.question.protocol import UsageError
from policysim.release.counts_file import read_counts
from policysim.release.select_private import Terms, choices
from policysim.release.select_screen import analysis_document, release_document, select_screen


def run(chosen: argparse.Namespace) -> int:
    """`policysim select`; exit code 4 if the declared sensitivity is too small for the claim."""
    terms = _terms(chosen)
    counts = read_counts(
        Path(chosen.counts),
        column=chosen.column,
        score=chosen.score,
        by=chosen.by,
        candidates=_names("--candidates", chosen.candidates),
        groups=_names("--groups", chosen.groups),
    )
    found = choices(counts, terms)
    if chosen.seed is None:
        drawn = release_document(counts, terms, found, lambda selection: selection.release())
    else:
        rng = np.random.default_rng(chosen.seed)
        drawn = release_document(counts, terms, found, lambda selection: selection.sample(rng))
    for warning in drawn["warnings"]:
        sys.stderr.write(f"policysim: warning: {warning}\n")
    if chosen.json:
        simulated = None if chosen.seed is None else {"seed": chosen.seed, **drawn}
        released = drawn if chosen.seed is None else None
        document = {"release": released, "simulation": simulated}
        if chosen.analysis:
            document["analysis_not_private"] = analysis_document(found)
        print_json(document)
    else:
        sys.stdout.write(select_screen(terms, found, drawn, chosen.seed, analysis=chosen.analysis) + "\n")
    return 0 if all(choice.holds for choice in found) else EXIT_CHECK


def _terms(chosen: argparse.Namespace) -> Terms:
    """How to choose; UsageError for options that cannot be used."""
    epsilon = _number("--epsilon", chosen.epsilon)
    sensitivity = None if chosen.sensitivity is None else _number("--sensitivity", chosen.sensitivity)
    if sensitivity == 0:
        raise UsageError("--sensitivity must be > 0, got '0'")
    if chosen.seed is not None and chosen.seed < 0:
        raise UsageError(f"--seed must be >= 0, got {chosen.seed}")
    if chosen.split_by_share and chosen.by is None:
        raise UsageError("--split-by-share only goes with --by")
    if chosen.groups is not None and chosen.by is None:
        raise UsageError("--groups only goes with --by")
    named = [name for name in (chosen.column, chosen.score, chosen.by) if name is not None]
    if len(set(named)) != len(named):
        raise UsageError("--column, --score and --by must name different columns")
    try:
        return Terms(
            epsilon=epsilon,
            mechanism=chosen.mechanism,
            adjacency=chosen.adjacency,
            sensitivity=sensitivity,
            proportions=chosen.proportions,
            split_by_share=chosen.split_by_share,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def _number(option: str, text: str) -> float:
    """A finite number >= 0."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise UsageError(f"{option} must be a number >= 0, got {text!r}")
    return value


def _names(option: str, text: str | None) -> list[str] | None:
    """Names separated by commas, in quotes if they hold some."""
    if text is None:
        return None
    try:
        row = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise UsageError(f"{option} {text!r}: {error}") from None
    names = [name.strip() for name in row]
    if not names or "" in names:
        raise UsageError(f"{option} must be names separated by commas, got {text!r}")
    for position, name in enumerate(names):
        if name in names[:position]:
            raise UsageError(f"{option} names {name!r} twice")
    return names
