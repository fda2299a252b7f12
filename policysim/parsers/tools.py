"""Commands on other files: reproduce, privatize and select."""

from __future__ import annotations

from policysim.parsers.shared import Commands, add_json


def add_reproduce(commands: Commands) -> None:
    """Reproduce: the same numbers again."""
    parser = commands.add_parser(
        "reproduce",
        help="run a study again from its manifest.json and say which numbers differ",
        description="Run a study again from its manifest.json and say which numbers differ. Exit code 4 if any does.",
    )
    parser.add_argument("manifest", metavar="MANIFEST", help="the manifest.json beside a report")
    add_json(parser)


def add_privatize(commands: Commands) -> None:
    """Privatize: randomised response on columns of a file."""
    parser = commands.add_parser(
        "privatize",
        help="randomise columns of a file so that no row reveals them; estimate from such a file",
        description="Write a copy of a CSV or Parquet file in which k-ary randomised response replaces some columns, "
        "with a note of the mechanism beside it, and print the table that can be estimated from it. A second release "
        "of the same rows adds its ε: DATA.releases.json, which is private, lists the releases of DATA, and the same "
        "content is released a second time only with --again.",
    )
    parser.add_argument("data", metavar="DATA", help="a .csv or .parquet file with one row per person")
    parser.add_argument("--column", action="append", metavar="NAME", help="a column to replace; may be repeated")
    parser.add_argument("--epsilon", metavar="1", help="the privacy loss of one row, all its columns together")
    parser.add_argument("--out", metavar="FILE", help="the private file; its note is FILE.privacy.json")
    parser.add_argument(
        "--levels", action="append", metavar="NAME=A,B", help="what a column may hold (public); may be repeated"
    )
    parser.add_argument(
        "--separately", action="store_true", help="each column by itself with an equal share of ε, not all jointly"
    )
    parser.add_argument(
        "--true", action="store_true", help="also print the true counts and the errors, which are not private"
    )
    parser.add_argument(
        "--again", action="store_true", help="release the same rows once more, or replace a release; the ε add up"
    )
    parser.add_argument(
        "--ledger", metavar="FILE", help="where releases are listed, which is private (default: DATA.releases.json)"
    )
    parser.add_argument(
        "--estimate", action="store_true", help="DATA is a private file with its note: only print the estimated table"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="simulate, repeatably; such a file is no release (default: a release)"
    )
    add_json(parser)


def add_select(commands: Commands) -> None:
    """Select: one private choice among candidates."""
    parser = commands.add_parser(
        "select",
        help="one private choice: the candidate that most people have",
        description="Choose one candidate of a table of people or of counts, privately, and print what may be "
        "published. What the choice is worth is private: --analysis shows it. Exit code 4 if the claim of ε does not "
        "hold.",
    )
    parser.add_argument("counts", metavar="COUNTS", help="a CSV file with a row per person, or --score per candidate")
    parser.add_argument("--epsilon", required=True, metavar="0.1", help="the privacy loss that is claimed")
    parser.add_argument("--column", metavar="NAME", help="the column that holds the candidates")
    parser.add_argument("--score", metavar="NAME", help="the column that counts the people of each candidate")
    parser.add_argument("--candidates", metavar="A,B", help="all possible candidates, which are public")
    parser.add_argument("--by", metavar="NAME", help="choose for each group in this column, each with the whole ε")
    parser.add_argument("--groups", metavar="A,B", help="with --by: all possible groups, which are public")
    parser.add_argument("--split-by-share", action="store_true", help="split ε between groups by their shares instead")
    parser.add_argument(
        "--mechanism",
        default="exponential",
        metavar="NAME",
        help="exponential (default), exponential-monotone, permute-and-flip or report-noisy-max",
    )
    parser.add_argument(
        "--adjacency",
        default="replace-one",
        metavar="NAME",
        help="replace-one (default; the number of people is public) or add-or-remove-one",
    )
    parser.add_argument("--sensitivity", metavar="S", help="declare it (default: the true one, from --adjacency)")
    parser.add_argument("--proportions", action="store_true", help="score shares of people instead of their number")
    parser.add_argument(
        "--analysis", action="store_true", help="also print counts and probabilities, which must not be published"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="simulate, repeatably; this is no release")
    add_json(parser)
