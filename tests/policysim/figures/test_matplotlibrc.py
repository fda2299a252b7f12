"""Figures do not depend on what a user, or a folder, has told matplotlib."""

import os
import subprocess
import sys

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from policysim.figures.acceptability import acceptability

HOSTILE = "text.usetex: True\nfont.size: 40\nlines.linewidth: 9\naxes.facecolor: red\nsavefig.bbox: tight\n"
TABLE = {"weight": [1.0, 2.0, 3.0], "better": [0.1, 0.5, 0.9]}
SCRIPT = f"""
import sys
import pandas as pd
from policysim import figures
from policysim.figures.acceptability import acceptability
made = acceptability(pd.DataFrame({TABLE}), stated=2.0, one="a death")
for part in (figures.to_svg(made).encode(), figures.to_png(made), figures.to_pdf(made)):
    sys.stdout.buffer.write(part)
"""


def drawn(folder, text):
    """The figure in every format, by a process that starts in a folder with this matplotlibrc."""
    folder.mkdir()
    (folder / "matplotlibrc").write_text(text)
    kept = {name: value for name, value in os.environ.items() if name not in ("MATPLOTLIBRC", "MPLBACKEND")}
    outside = {**kept, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=folder, env=outside, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_a_matplotlibrc_changes_no_byte_of_a_figure(tmp_path):
    assert drawn(tmp_path / "hostile", HOSTILE) == drawn(tmp_path / "plain", "")


def test_on_axes_that_are_given_the_settings_of_their_owner_hold():
    with mpl.rc_context({"font.size": 13, "lines.linewidth": 5}):
        axes = Figure(layout="constrained").subplots()
        acceptability(pd.DataFrame(TABLE), stated=2.0, one="a death", ax=axes)
        assert axes.xaxis.label.get_fontsize() == 13
        assert (mpl.rcParams["font.size"], mpl.rcParams["lines.linewidth"]) == (13, 5)
