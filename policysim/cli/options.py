"""What the options of the command line mean: text to studies, numbers and wishes."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from policies.catalogue import CATALOGUE
from policysim.decision.choose import Wish
from policysim.question.answer import SizeName
from policysim.question.protocol import UsageError
from policysim.report.folder import DEFAULT, FORMATS, STUDY, FigureFiles
from policysim.study.declared import ScenarioStudy, Study, require_scenario
from policysim.study.study_file import load_study, study_names

DEATHS_PER = 100_000
# Of a command line: what to run, and what changes no number; everything else that a command was given belongs to it.
APART = ("command", "study", "out", "json")


def chosen_study(chosen: argparse.Namespace) -> Study:
    """The study with the options of the command line; an option that a command does not have changes nothing."""
    study = load_study(chosen.study)
    options = vars(chosen)
    epsilons = options.get("epsilon")
    try:
        return study.with_choices(
            epsilons=None if epsilons is None else parse_epsilons(epsilons),
            policies=_chosen_policies(options.get("policy")),
            by=options.get("by"),
            adjacency=chosen.adjacency,
            sensitive=chosen.sensitive,
            seed=chosen.seed,
        )
    except ValueError as error:
        raise UsageError(str(error)) from None


def chosen_scenario_study(chosen: argparse.Namespace) -> ScenarioStudy:
    """The same, where a log will not do."""
    try:
        return require_scenario(chosen_study(chosen))
    except ValueError as error:
        raise UsageError(str(error)) from None


def _chosen_policies(names: list[str] | None) -> list[str] | None:
    return list(CATALOGUE) if names and "all" in names else names


def parse_epsilons(text: str, option: str = "--epsilon") -> list[float]:
    """Numbers separated by commas; UsageError for anything else."""
    values = []
    for part in text.split(","):
        if not part.strip():
            continue
        try:
            values.append(float(part))
        except ValueError:
            raise UsageError(f"{option} must be numbers >= 0 separated by commas, got {part.strip()!r}") from None
    return values


def output_folder(chosen: argparse.Namespace, study: Study) -> Path:
    """The folder of --out, or that of the study among the reports."""
    return Path(chosen.out) if chosen.out else Path("reports") / study.name


def chosen_figures(chosen: argparse.Namespace) -> FigureFiles:
    """What --format and --figure-size ask for; UsageError for what does not exist."""
    formats = DEFAULT.formats
    if chosen.format is not None:
        asked = tuple(part.strip() for part in chosen.format.split(","))
        wrong = [name for name in asked if name not in FORMATS]
        if wrong:
            raise UsageError(f"--format must be among {', '.join(FORMATS)}, separated by commas, got {wrong[0]!r}")
        formats = tuple(kind for kind in FORMATS if kind in asked)
    sizes: tuple[SizeName, ...] = ("page", "column", "slide")
    if chosen.figure_size is None:
        return FigureFiles(formats)
    for size in sizes:
        if chosen.figure_size == size:
            return FigureFiles(formats, size)
    raise UsageError(f"--figure-size must be one of {', '.join(sizes)}, got {chosen.figure_size!r}")


def study_command(chosen: argparse.Namespace) -> list[str]:
    """The command line that means the same in any folder: without --out, own studies as the study.toml beside.

    Examples
    --------
    >>> study_command(argparse.Namespace(command="compare", study="covid", seed=0, by=["age", "sex"], price_list=True))
    ['compare', 'covid', '--seed', '0', '--by', 'age', '--by', 'sex', '--price-list']
    """
    words = [chosen.command, chosen.study if chosen.study in study_names() else STUDY]
    for name, value in vars(chosen).items():
        if name in APART or value is None or value is False:
            continue
        option = f"--{name.replace('_', '-')}"
        for item in value if isinstance(value, list) else [value]:
            words += [option] if item is True else [option, str(item)]
    return words


def parse_whole(option: str, text: str, least: int, most: int) -> int:
    """A whole number within bounds; UsageError for anything else."""
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not digits or not least <= int(text) <= most:
        raise UsageError(f"{option} must be a whole number from {least} to {most}, got {text!r}")
    return int(text)


def chosen_wish(chosen: argparse.Namespace) -> Wish:
    """What choose was asked for; UsageError for a demand that is no number or out of range."""
    extra = _parse_number("--max-extra-deaths", chosen.max_extra_deaths)
    wish = Wish(
        keep=_parse_share("--keep", chosen.keep),
        max_loss=_parse_share("--max-loss", chosen.max_loss),
        max_extra_deaths=None if extra is None else extra / DEATHS_PER,
        max_guess=_parse_share("--max-guess", chosen.max_guess),
    )
    if wish.keep is None and wish.max_loss is None and wish.max_extra_deaths is None:
        raise UsageError("choose needs at least one of --keep, --max-loss and --max-extra-deaths")
    if wish.keep is not None and wish.keep > 1:
        raise UsageError(f"--keep must be at most 1 or 100%, got {chosen.keep!r}")
    if wish.max_loss is not None and wish.max_loss < 0:
        raise UsageError(f"--max-loss must be >= 0, got {chosen.max_loss!r}")
    if wish.max_guess is not None and not 0.5 <= wish.max_guess <= 1:
        raise UsageError(f"--max-guess must be between 50% (blind) and 100%, got {chosen.max_guess!r}")
    return wish


def _parse_share(option: str, text: str | None) -> float | None:
    """0.8 or 80%."""
    if text is None or not text.strip().endswith("%"):
        return _parse_number(option, text)
    number = _parse_number(option, text.strip()[:-1])
    return None if number is None else number / 100


def _parse_number(option: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{option} must be a number, got {text!r}")
    return number
