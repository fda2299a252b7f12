"""All benchmarks that compare, in one run, into RESULTS.md: make benchmark.

Each part prints to the terminal as it ends. A peer that cannot be installed is named, and left out.
"""

import tempfile
import time
from pathlib import Path

import choices
import counts
import environment
import logs
import optimum
import scaling
from side_by_side import machine

HERE = Path(__file__).parent
# Each part's heading, how it is read, its module, and the tables it makes in a folder of its own.
PARTS = (
    ("Choosing for many patients", choices),
    ("Stepping environments", environment),
    ("Patients by the billion", counts),
    ("Logs in partitions", logs),
    ("The optimum and the audit, beside libqif", optimum),
    ("What grows with what", scaling),
)


def part(heading, module):
    """One part as Markdown: its tables, or why there are none."""
    told = [f"## {heading}", f"`python benchmarks/{module.__name__}.py`"]
    with tempfile.TemporaryDirectory() as folder:
        try:
            told += module.tables(Path(folder))
        except RuntimeError as error:
            told.append(f"Not measured: {error}")
    return "\n\n".join(told)


def main():
    """Measure all, and write the file when all is there."""
    start = time.perf_counter()
    head = [
        "# Results",
        "Written by `make benchmark`, in one run. Whatever is compared ran in turn (A B A B …); the ratios are medians "
        "of pairs, and larger than 1 where ours is faster.",
        f"The machine: {machine()}",
    ]
    told = []
    for heading, module in PARTS:
        told.append(part(heading, module))
        print(told[-1], flush=True)
    took = f"This run took {(time.perf_counter() - start) / 60:.0f} minutes."
    (HERE / "RESULTS.md").write_text(
        "\n\n".join([*head, *told, took]).replace("\n\n\n", "\n\n") + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
