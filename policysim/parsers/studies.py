"""Commands on a study: compare, choose, audit, simulate and sensitivity."""

from __future__ import annotations

from policysim.parsers.shared import Commands, add_policies, add_study


def add_compare(commands: Commands) -> None:
    """Compare: policies over ε."""
    parser = commands.add_parser(
        "compare",
        help="compare policies over ε; prints a screen and writes a report",
        description="Compare policies over ε: prints one screen and writes table, figures and report; exactly for a "
        "scenario, with intervals for a log. A study of a source document (sock-groups, adult-age-sex, "
        "common-disease, marital-status) is set beside its source.",
    )
    add_study(parser)
    parser.add_argument("--epsilon", metavar="0.1,1,10", help="the values of ε, in place of the study's")
    add_policies(parser)
    parser.add_argument(
        "--by", action="append", metavar="FEATURE", help="report each level of this feature; may be repeated"
    )
    parser.add_argument("--out", metavar="DIR", help="where to write (default: reports/STUDY)")
    parser.add_argument("--format", metavar="svg,png,pdf", help="the kinds of figure files (default: svg,png)")
    parser.add_argument("--figure-size", metavar="NAME", help="page, column or slide: what the figures are sized for")
    parser.add_argument(
        "--price-list", action="store_true", help="also print what hiding each single feature costs at best"
    )
    parser.add_argument("--horizon", metavar="14", help="treat over so many days, within a total ε for them all")
    parser.add_argument("--total-epsilon", metavar="1,5,10", help="with --horizon: totals of the course (this default)")
    parser.add_argument("--delta", metavar="1e-6", help="with --horizon: the δ of (ε, δ)-privacy (0)")
    parser.add_argument(
        "--length-public",
        action="store_true",
        help="with --horizon: when a stay ends is public, and need not be hidden",
    )


def add_choose(commands: Commands) -> None:
    """Choose: the least ε that is good enough."""
    parser = commands.add_parser(
        "choose",
        help="the least ε of each policy that meets what you ask for",
        description="Find the least ε of each policy that meets all demands, and whether any mechanism at all can.",
    )
    add_study(parser)
    parser.add_argument("--keep", metavar="80%", help="least benefit kept: 0 is one treatment for all, 1 best for each")
    parser.add_argument("--max-loss", metavar="0.2", help="largest normalised loss: 0 is best for each, 1 uniform")
    parser.add_argument("--max-extra-deaths", metavar="5", help="most deaths per 100,000 beyond the best for each")
    parser.add_argument(
        "--max-guess", metavar="65%", help="how often the better guess may be right; sets the largest ε"
    )
    add_policies(parser)
    parser.add_argument(
        "--out", metavar="DIR", help="where a certificate or the decision record is written (default: reports/STUDY)"
    )
    parser.add_argument(
        "--decision-record", action="store_true", help="also write decision-record.html into --out: what was decided"
    )


def add_audit(commands: Commands) -> None:
    """Audit: claimed and exact privacy loss."""
    parser = commands.add_parser(
        "audit",
        help="the privacy loss that policies claim beside the exact one, and who shows it",
        description="Claimed and exact privacy loss, with the two records that attain it. Exit code 4 if one exceeds.",
    )
    add_study(parser)
    parser.add_argument("--table", metavar="FILE", help="audit the probabilities in this CSV file instead of a study")
    parser.add_argument("--actions", metavar="A,B", help="the file's action columns (default: those named p_<action>)")
    parser.add_argument(
        "--epsilon", metavar="0.1,1,10", help="in place of the study's; with --table, the one loss that is claimed"
    )
    add_policies(parser)


def add_simulate(commands: Commands) -> None:
    """Simulate: Monte Carlo beside the exact value."""
    parser = commands.add_parser(
        "simulate",
        help="treat simulated patients; their mean return beside the exact value",
        description="Monte Carlo through the vector environment: the mean return of simulated patients with its 95 % "
        "interval, beside the exact value. Exit code 4 if they are more than five standard errors apart.",
    )
    add_study(parser)
    parser.add_argument("--patients", default="100000", metavar="N", help="how many (default: 100000)")
    parser.add_argument("--policy", default="exponential", metavar="NAME", help="which (default: exponential)")
    parser.add_argument("--epsilon", default="1", metavar="E", help="of each day's decision (default: 1)")
    parser.add_argument("--horizon", default="1", metavar="H", help="days of treatment (default: 1)")
    parser.add_argument(
        "--length-public", action="store_true", help="when a stay ends is public, and need not be hidden"
    )
    parser.add_argument(
        "--log",
        metavar="FILE",
        help="also write each patient to this .csv or .parquet file: record, action, its exact propensity, reward and "
        "outcomes (one day only)",
    )


def add_sensitivity(commands: Commands) -> None:
    """Sensitivity of the expected utilities."""
    parser = commands.add_parser(
        "sensitivity",
        help="how far utilities can move between neighbours, and which two records show it",
        description="Exact sensitivity of the expected utilities, with the two records that attain it.",
    )
    add_study(parser)
