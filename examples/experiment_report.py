"""What the experiments beside this file leave behind: a page, its tables and figures, and a manifest.

Plain pandas, matplotlib and HTML: nothing here knows what the experiments are about.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import io
import json
import platform
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

LIBRARIES = ("policysim", "numpy", "scipy", "pandas", "matplotlib", "scikit-learn")
# The same bytes from the same numbers; no frame on the right and above, as nothing is read there.
STYLE: dict[str, Any] = {
    "svg.hashsalt": "policysim",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "savefig.dpi": 200,
}
CSS = """body { font: 1rem/1.5 sans-serif; max-width: 52rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
table { border-collapse: collapse; font-size: .9rem; } th, td { text-align: left; padding: .2rem .6rem; }
thead th { border-bottom: 1px solid #888; } .scroll { overflow-x: auto; } figure { margin: 1rem 0; }
svg { max-width: 100%; height: auto; } figcaption { color: #555; }"""


@dataclass(frozen=True)
class Part:
    """A part of the page: sentences, and a table of texts or a figure, with its numbers, if any."""

    title: str
    text: Sequence[str] = ()
    table: pd.DataFrame | None = None  # a small one, shown on the page
    figure: Callable[[pd.DataFrame], Figure] | None = None
    name: str = ""  # of the figure's files
    numbers: pd.DataFrame | None = None  # what the figure draws


@dataclass(frozen=True)
class Report:
    """All that an experiment has to say."""

    name: str
    title: str  # the question
    source: str  # who asked it
    seed: int
    lead: Sequence[str]  # the answer
    claim: Mapping[str, str]  # figure, where, source, ours, verdict, reason: what the source says, and what holds
    parts: Sequence[Part]
    assumptions: Sequence[str]


def files(report: Report, script: str) -> dict[str, bytes]:
    """Everything that is written, by relative path; the manifest names the script and holds the digests of the rest."""
    claim = {**report.claim, "low": "", "high": "", "chance": ""}
    columns = ["figure", "where", "source", "ours", "low", "high", "chance", "verdict", "reason"]
    made = {"comparison.csv": csv(pd.DataFrame([claim])[columns])}
    for part in report.parts:
        if part.numbers is not None:
            made[f"figures/{part.name}.csv"] = csv(part.numbers)
    vectors = {}
    with mpl.rc_context(STYLE):
        for part in report.parts:
            if part.figure is not None and part.numbers is not None:
                drawn = part.figure(part.numbers)
                vectors[part.name] = save(drawn, "svg")
                made[f"figures/{part.name}.svg"] = vectors[part.name]
                made[f"figures/{part.name}.png"] = save(drawn, "png")
    made["report.html"] = page(report, script, {name: vector.decode() for name, vector in vectors.items()}).encode()
    source = (Path(__file__).parents[1] / script).read_bytes()
    manifest = {
        "command": ["python", script, *(["--seed", str(report.seed)] if report.seed != 1 else [])],
        "study": {"name": report.name, "title": report.title, "sha256": hashlib.sha256(source).hexdigest()},
        "analysis": report.name,
        "seed": report.seed,
        "versions": {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}},
        "answer": re.split(r"(?<=\.) (?=[A-Z(])", " ".join(report.lead))[:2],
        "results": {name: hashlib.sha256(content).hexdigest() for name, content in made.items()},
    }
    return {**made, "manifest.json": (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode()}


def csv(table: pd.DataFrame) -> bytes:
    """Twelve digits: more are rounding, and would differ from machine to machine."""
    return table.to_csv(index=False, float_format="%.12g", lineterminator="\n").encode()


def save(figure: Figure, kind: str) -> bytes:
    """The figure as a file that does not say when, or by which version, it was made."""
    stream = io.BytesIO()
    metadata = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
    figure.savefig(stream, format=kind, metadata=metadata)
    return stream.getvalue()


def page(report: Report, script: str, vectors: Mapping[str, str]) -> str:
    """One file, nothing fetched from anywhere."""
    lines = [f"<h1>{html.escape(report.title)}</h1>", f"<p>{html.escape(report.source)}</p>", bullets(report.lead)]
    says = f"It says ({report.claim['where']}): {report.claim['figure']}: {report.claim['source']}."
    right = f"Right: {report.claim['ours']}. {report.claim['reason']}"
    lines += ["<h2>Where the source is wrong</h2>", *paragraphs([says, right])]
    for place, part in enumerate(report.parts):
        lines += [f"<h2>{html.escape(part.title)}</h2>"]
        if part.name not in vectors:
            lines += paragraphs(part.text)
        if part.table is not None:
            table = part.table.to_html(index=False, border=0, justify="unset").replace("<th>", '<th scope="col">')
            label = html.escape(part.title, quote=True)
            lines += [f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">{table}</div>']
        if part.name in vectors:
            # Identifiers of its own, so that several figures can be on one page.
            svg = re.sub(
                r'((?:id|href)="#?|url\(#)', rf"\g<1>f{place}-", vectors[part.name][vectors[part.name].index("<svg") :]
            )
            words = html.escape(" ".join(part.text), quote=True)
            note = f"The numbers are in <code>figures/{part.name}.csv</code>."
            lines += [f'<figure><div role="img" aria-label="{words}">{svg}</div>']
            lines += [f"<figcaption>{words} {note}</figcaption></figure>"]
    note = f"Made by {script}, seed {report.seed}; versions are in manifest.json."
    lines += ["<h2>What is assumed, and how this was computed</h2>", bullets([*report.assumptions, note])]
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{CSS}</style>'
    body = "\n".join(lines)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{html.escape(report.title)}</title></head>\n'
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def paragraphs(sentences: Sequence[str]) -> list[str]:
    """A paragraph each."""
    return [f"<p>{html.escape(sentence)}</p>" for sentence in sentences if sentence]


def bullets(sentences: Sequence[str]) -> str:
    """A list."""
    return "<ul>" + "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def run(make: Callable[[int], Report], script: str, arguments: Sequence[str] | None = None) -> None:
    """The command line of an experiment: make its report, print the answer and write the files."""
    parser = argparse.ArgumentParser(description=sys.modules["__main__"].__doc__)
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="for the report; reports/NAME by default")
    parser.add_argument("--seed", type=int, default=1, help="for what is drawn at random; 1 by default")
    chosen = parser.parse_args(arguments)
    if chosen.seed < 0:
        parser.error(f"seed must be a whole number >= 0, got {chosen.seed}")
    report = make(chosen.seed)
    folder = chosen.out or Path("reports") / report.name
    for name, content in files(report, script).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    sys.stdout.write(
        "\n".join([report.title, "", *report.lead, f"Report: {(folder / 'report.html').as_posix()}"]) + "\n"
    )
