"""`policysim decide`: a treatment for each patient of a file, drawn privately, once, and counted."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policysim.cli.options import Commands, add_format, add_json, add_seed, chosen_format, exact_epsilon, rows_file

if TYPE_CHECKING:
    from policysim.release.decide import Method
    from policysim.release.ledger import Ledger
    from policysim.release.patients_file import Patients

PRIVATE = "Only for the hospital: how many patients were refused, or came before, is not covered by ε."


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "decide",
        help="draw a treatment for each of your patients, privately, and count it",
        description="Draw a treatment for each row of PATIENTS, from the operating system's randomness, and charge the "
        "patient ε in the ledger. The same patient and event get the same treatment again, at no cost. OUT has id and "
        "treatment; OUT.private has the statuses, for the hospital alone, also of patients whose budget is spent. Exit "
        "code 3 (nothing is drawn) if a row does not fit the study, or another study decided for its event; 4 if the "
        "policy leaks more than ε, a decision costs more than the budget, or this shows what a release hides.",
    )
    parser.add_argument(
        "patients",
        type=Path,
        metavar="PATIENTS",
        help="a file with a row for each decision (.csv, .tsv, .txt, .dat, .parquet)",
    )
    parser.add_argument("--study", required=True, metavar="STUDY", help="a built-in study or a study.toml")
    parser.add_argument("--policy", metavar="NAME", help="the policy that draws (default: exponential-fitted)")
    parser.add_argument(
        "--epsilon",
        type=exact_epsilon,
        required=True,
        metavar="1",
        help="the ε that a patient is charged for an event",
    )
    parser.add_argument("--id", required=True, metavar="NAME", help="the column of the patient's id")
    parser.add_argument(
        "--event", required=True, metavar="NAME", help="the column that names the decision, such as an admission"
    )
    parser.add_argument(
        "--ledger", type=Path, required=True, metavar="FILE", help="the ledger that counts these people's ε"
    )
    parser.add_argument("--out", type=rows_file, metavar="OUT", help="ids and treatments, .csv or .parquet")
    parser.add_argument(
        "--missing",
        action="append",
        default=[],
        metavar="LEVEL",
        help="the level to use for a missing value, and for an unknown one of a hidden feature; or FEATURE=LEVEL; may "
        "be repeated",
    )
    parser.add_argument(
        "--seen", choices=("treatment", "publication"), help="what observers see, in place of the study's"
    )
    parser.add_argument("--keep-order", action="store_true", help="write the rows in the order of PATIENTS")
    parser.add_argument("--dry-run", action="store_true", help="draw nothing; print the cost")
    add_format(parser, "PATIENTS")
    add_seed(parser, "refused: a release takes no seed")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Draw, count and write; or with --dry-run, say what it would cost."""
    from policysim.errors import UsageError
    from policysim.files.many_files import CSV, kind_of
    from policysim.files.terminal import complain, print_json, progress_bar, say
    from policysim.release.decide import check_outputs, decide_all, output_paths, write_outputs
    from policysim.release.ledger import open_ledger
    from policysim.release.patients_file import Patients

    if chosen.seed is not None:
        raise UsageError(
            "--seed does not go with decide: with the seed anybody could draw the same treatments again and learn the "
            "records; a release draws from the operating system"
        )
    if chosen.out is None and not chosen.dry_run:
        raise UsageError("decide needs --out FILE.csv, or --dry-run")
    method, ledger = _method(chosen), open_ledger(chosen.ledger)
    paths = {} if chosen.dry_run else output_paths(chosen.out, method.seen)
    if paths:
        check_outputs(paths, chosen.patients, ledger.path)
    with progress_bar("B" if kind_of(chosen.patients) == CSV else "row") as progress:
        stated = chosen_format(chosen)
        patients = Patients(chosen.patients, method.problem, method.columns, ledger, progress, stated=stated)
    taken = next((path.as_posix() for path in reversed(paths.values()) if path.exists()), "")
    with progress_bar("patient") as progress:
        entry = decide_all(patients, ledger, method, taken=taken, dry_run=chosen.dry_run, progress=progress)
    if paths:
        write_outputs(paths, patients, method.columns, keep_order=chosen.keep_order, made_from=chosen.patients)
        if chosen.keep_order:
            complain(f"the order of {chosen.patients.name} is published: {paths['given'].name} keeps it")
    document = _document(method, ledger, paths, None if chosen.dry_run else entry)
    warnings = _warnings(patients, method)
    document["not_private"] = {"warning": PRIVATE, "statuses": patients.statuses(), "warnings": warnings}
    for warning in (*document["warnings"], *warnings):
        complain(f"warning: {warning}")
    if chosen.json:
        print_json(document)
    else:
        lines = _screen(document, method, paths) if paths else [f"Nothing is drawn: {_costs(document)}."]
        say("\n".join([*lines, *_counts(document)]) + "\n")
    return 0


def _method(chosen: argparse.Namespace) -> Method:
    """How to draw; UsageError for options that do not fit the study."""
    from policysim.errors import UsageError
    from policysim.files.bad_rows import DataError
    from policysim.release.decide import make_method

    try:
        return make_method(
            chosen.study,
            chosen.patients,
            policy=chosen.policy,
            epsilon=chosen.epsilon,
            id=chosen.id,
            event=chosen.event,
            missing=chosen.missing,
            seen=chosen.seen,
        )
    except DataError:
        raise
    except ValueError as error:
        raise UsageError(str(error)) from None


def _document(method: Method, ledger: Ledger, paths: dict[str, Path], entry: int | None) -> dict[str, Any]:
    """What an auditor may see: nothing of it depends on a record."""
    release, conflict = method.release, ledger.conflict(method.release)
    keys = {"given": "out", "private": "private_file", "published": "published_file"}
    return {
        **release.details,
        "epsilon": str(release.epsilon),
        "cost": "inf" if conflict else str(release.cost),
        "warnings": [*method.doubts, *([f"ε is infinite for everybody: {conflict}"] if conflict else [])],
        "hides": list(release.hides),
        "publishes": list(release.publishes),
        "ledger": ledger.path.name,
        "budget": None if ledger.budget is None else str(ledger.budget),
        "entry": entry,
        "head": ledger.head,
        **{key: paths[kind].as_posix() if kind in paths else None for kind, key in keys.items()},
    }


def _costs(document: dict[str, Any]) -> str:
    """What a new decision costs a patient, and what of."""
    from policysim.release.ledger import amount, shown

    budget = document["budget"]
    limit = "no budget: nothing is refused" if budget is None else f"budget {shown(amount(budget))} a person"
    return f"each new decision costs its patient ε = {shown(amount(document['cost']))} ({limit})"


def _warnings(patients: Patients, method: Method) -> list[str]:
    """What a hospital should look into before it hands anything out; private."""
    features, lines = {feature.name: feature for feature in method.columns.features}, []
    for name, count in (+patients.replaced).items():
        level = features[name].levels[method.columns.missing[name]]
        lines.append(f"{name} is missing or unknown in {count:,} rows, which count as {level}: are they mistyped?")
    return lines


def _counts(document: dict[str, Any]) -> list[str]:
    """What came of the rows, or would come of them, line by line: for the hospital alone."""
    from policysim.release.decide import DRAWN

    drawn = "to be drawn" if document["out"] is None else DRAWN
    statuses = document["not_private"]["statuses"].items()
    return [*(f"{count:8,}  {drawn if name == DRAWN else name}" for name, count in statuses), PRIVATE]


def _screen(document: dict[str, Any], method: Method, paths: dict[str, Path]) -> list[str]:
    """What is in which file, and what it cost, line by line."""
    hidden, ledger = ", ".join(document["hides"]), document["ledger"]
    names = {kind: path.name for kind, path in paths.items()}
    public = f"; {', '.join(document['publishes'])} are public" if document["publishes"] else ""
    drawn = f"the treatments of {method.release.data}, by {document['policy']}"
    drawn_file, best = names["given"], []
    if "published" in names:
        drawn_file = names["published"]
        best = [f"{names['given']}: the best treatment for each patient. NOT for publication: it shows {hidden}."]
    entry = f"entry {document['entry']} of {ledger}"
    if document["entry"] is None:
        entry = f"all was drawn before, and {ledger} has no new entry; its last is {document['head']}"
    return [
        *best,
        f"{drawn_file}: {drawn}.",
        f"  They hide {hidden}{public}.",
        f"{names['private']}: what became of each row. Only for the hospital.",
        f"Counted: {entry}; {_costs(document)}.",
        f"Keep private: {method.release.data}, {ledger} and {ledger}.key.",
    ]
