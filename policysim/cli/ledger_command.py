"""`policysim ledger`: a ledger of one group of people made, shown to an auditor, or taken over from an older file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policysim.cli.options import Commands, add_json

if TYPE_CHECKING:
    from policysim.release.ledger import Release

OLD_FORMAT, IMPORTED = 2, "imported from a file with the digest"


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "ledger",
        help="make, or show, the ledger that counts the releases about a group of people",
        description="One ledger is for one group of people, and counts every release about them. "
        "new makes one with a budget for each person; show lists its entries, for an auditor; import takes over a "
        "policysim-releases.json of policysim 0.1. A ledger, and the key beside it, are as private as the patients.",
    )
    parser.add_argument("action", choices=("new", "show", "import"), help="what to do")
    parser.add_argument("path", type=Path, metavar="LEDGER", help="the ledger; of import, the older file")
    parser.add_argument(
        "--budget", metavar="3", help="new: the largest ε in all for each person (default: nothing is refused)"
    )
    parser.add_argument(
        "--ledger",
        type=Path,
        metavar="LEDGER",
        help="import: the ledger that takes the entries over (default: ledger.sqlite beside the older file)",
    )
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Make a ledger, show one, or import one."""
    from policysim.errors import UsageError

    for option, action in (("budget", "new"), ("ledger", "import")):
        if getattr(chosen, option) is not None and chosen.action != action:
            raise UsageError(f"--{option} goes with: policysim ledger {action}")
    if chosen.action == "new":
        return _new(chosen.path, chosen.budget, as_json=chosen.json)
    if chosen.action == "import":
        return _import(chosen.path, chosen.ledger or chosen.path.with_name("ledger.sqlite"))
    return _show(chosen.path, as_json=chosen.json)


def _new(path: Path, budget: str | None, *, as_json: bool) -> int:
    """Make a ledger where there is none."""
    from policysim.cli.options import as_usage
    from policysim.errors import OutputError
    from policysim.files.terminal import print_json
    from policysim.release.ledger import Ledger

    if path.exists():
        raise OutputError(f"{path.as_posix()}: is there already, and its budget cannot be changed")
    with as_usage():
        ledger = Ledger(path, budget)
    if as_json:
        print_json({"budget": None if ledger.budget is None else str(ledger.budget), "entries": []})
    return 0


def _show(path: Path, *, as_json: bool) -> int:
    """Its entries, budget, and what everybody has spent: nothing that depends on a record, nor who was treated."""
    from envs.toml_reader import one_line
    from policysim.files.bad_rows import DataError
    from policysim.files.terminal import print_json, say
    from policysim.release.ledger import Ledger, amount, shown

    if not path.exists() or (path.is_file() and not path.stat().st_size):
        raise DataError(f"{path.as_posix()}: there is no such ledger; policysim ledger new makes one")
    ledger = Ledger(path)
    table, budget = ledger.releases(), None if ledger.budget is None else str(ledger.budget)
    if as_json:
        entries = table.to_dict(orient="records")
        print_json({"budget": budget, "spent_by_everybody": str(ledger.spent()), "entries": entries})
        return 0
    limit = "no budget: nothing is refused" if ledger.budget is None else f"budget {shown(ledger.budget)} a person"
    lines = [
        f"{path.name}: {_entries(len(table))}; {limit}; charged to everybody: ε = {shown(ledger.spent())}",
        "The chain of entries is whole. Compare the last number with the one in your last note.",
    ]
    for entry in table.to_dict(orient="records"):
        hides, publishes = (", ".join(map(one_line, entry[key])) for key in ("hides", "publishes"))
        each = "each patient who is drawn for" if entry["command"] == "decide" else "each of its patients"
        people = each if entry["each"] else "everybody"
        cost, public = shown(amount(entry["cost"])), f"; publishes {publishes}" if publishes else ""
        lines.append(one_line(f"{entry['number']}  {entry['date']}  {entry['command']} {entry['data']}"))
        lines.append(f"   costs {people} ε = {cost} ({entry['adjacency']}); hides {hides or 'nothing'}{public}")
        lines.extend(one_line(f"   {name}: {text}") for name, text in entry["details"].items())
        lines.append(f"   digest: {entry['digest']}")
    say("\n".join(lines) + "\n")
    return 0


def _entries(number: int) -> str:
    return f"{number:,} {'entry' if number == 1 else 'entries'}"


def _import(old: Path, path: Path) -> int:
    """Charge everybody for what an older ledger lists: it has happened, and no budget refuses it."""
    from policysim.files.bad_rows import DataError
    from policysim.files.terminal import say
    from policysim.release.ledger import Ledger, shown

    digest, releases = _old_releases(old)
    ledger = Ledger(path)
    if any(details.get(IMPORTED) == digest for details in ledger.releases()["details"]):
        raise DataError(f"{old.as_posix()}: {path.name} has its entries already")
    with ledger.transaction():
        for release in releases:
            ledger.charge(release, happened=True)
    say(f"{path.name}: {_entries(len(releases))} of {old.name}; spent by everybody: ε = {shown(ledger.spent())}\n")
    return 0


def _old_releases(old: Path) -> tuple[str, list[Release]]:
    """The digest and the entries of a policysim-releases.json; DataError if it is none."""
    import json

    from envs.toml_reader import text_of
    from policysim.files.bad_rows import DataError
    from policysim.files.many_files import file_digest

    name = old.as_posix()
    try:
        document = json.loads(text_of(old))
        if document["format"] != OLD_FORMAT:
            raise DataError(f"{name}: has format {document['format']!r}, and only {OLD_FORMAT} can be imported")
        digest = file_digest(old)
        return digest, [
            _release(entry, {"imported from": old.name, IMPORTED: digest}) for entry in document["releases"]
        ]
    except OSError as error:
        raise DataError(f"{name}: cannot be read: {error.strerror}") from None
    except DataError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise DataError(f"{name}: is not a ledger of policysim 0.1: {type(error).__name__}: {error}") from None


def _release(entry: dict[str, Any], details: dict[str, str]) -> Release:
    """One entry of an older ledger; ValueError, KeyError or TypeError for what is none."""
    from policysim.release.ledger import ADJACENCIES, REPLACE, Release, amount

    if entry["adjacency"] not in ADJACENCIES:
        raise ValueError(f"adjacency must be {' or '.join(ADJACENCIES)}, got {entry['adjacency']!r}")
    table = entry["question"].get("as") == "table"
    return Release(
        str(entry["what"]),
        str(entry["data"]),
        amount(entry["epsilon"]),
        tuple(entry["columns"]),
        tuple(entry["unchanged"]),
        entry["adjacency"],
        # A choice among counts of replaced people takes their number for public.
        shows_rows=not table and entry["adjacency"] == REPLACE,
        details={**details, "released": str(entry["released"])},
        date=str(entry["date"]),
    )
