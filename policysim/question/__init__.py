"""What every question has in common, whatever it is about; it knows no study.

protocol   a question knows its study, the options that it refuses, and how to answer; how work tells its progress
answer     what comes out of it: tables, drawings with their data, and what the manifest says
extras     packages that only some questions need, and the extra to install for each
formats    how a number becomes text, plain and in HTML
words      names that tables share, words that many parts say, and how wide the lines of a screen are

`policysim.output` makes screen, JSON document, page and folder of any answer.
"""

# How a run ends: a bug, a command line or study file that is wrong, data that are, a check that did not hold, Ctrl-C.
EXIT_BUG, EXIT_USAGE, EXIT_DATA, EXIT_CHECK, EXIT_INTERRUPTED = 1, 2, 3, 4, 130
# Exact planning keeps every day's Q-values: more than a year of days is surely a mistake.
MOST_DAYS = 366


class OutputError(OSError):
    """Output that cannot be written; str() is one line for the user."""

    exit_code = EXIT_USAGE
