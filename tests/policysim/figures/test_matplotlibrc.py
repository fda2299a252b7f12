"""Figures do not depend on what a user, or a folder, has told matplotlib."""

import io
import os
import re
import subprocess
import sys

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure

from policysim import figures
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


COMMAND = """
import os, sys
from policysim.cli.main import main
assert main(["compare", "no-such-study"]) == 2
assert "matplotlib" in sys.modules and os.getcwd() == sys.argv[1]
from policysim import figures
print(figures.__name__, os.environ["MPLBACKEND"])
"""
LIBRARY = """
import os
import policysim as ps
before = dict(os.environ)
print(ps.figures.__name__)
import matplotlib
assert dict(os.environ) == before and matplotlib.rcParams["font.size"] == 40
"""


def drawn(folder, text):
    """The figure in every format, by a process that starts in a folder with this matplotlibrc."""
    folder.mkdir()
    (folder / "matplotlibrc").write_text(text)
    done = started(folder, SCRIPT)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def started(folder, script, **named):
    """A process that starts in a folder, with the environment of a user who has told matplotlib nothing but this."""
    kept = {name: value for name, value in os.environ.items() if name not in ("MATPLOTLIBRC", "MPLBACKEND")}
    outside = {**kept, "PYTHONPATH": os.pathsep.join(sys.path), **named}
    command = [sys.executable, "-c", script, str(folder)]
    return subprocess.run(command, cwd=folder, env=outside, capture_output=True, check=False, timeout=300)


def test_a_matplotlibrc_changes_no_byte_of_a_figure(tmp_path):
    assert drawn(tmp_path / "hostile", HOSTILE) == drawn(tmp_path / "plain", "")


def test_on_axes_that_are_given_the_settings_of_their_owner_hold():
    with mpl.rc_context({"font.size": 13, "lines.linewidth": 5}):
        axes = Figure(layout="constrained").subplots()
        acceptability(pd.DataFrame(TABLE), stated=2.0, one="a death", ax=axes)
        assert axes.xaxis.label.get_fontsize() == 13
        assert (mpl.rcParams["font.size"], mpl.rcParams["lines.linewidth"]) == (13, 5)


@pytest.mark.parametrize("kind", ["not UTF-8", "a pipe", "an unknown key"])
def test_the_command_line_reads_no_settings_of_the_folder_or_of_the_user(tmp_path, kind):
    settings = tmp_path / "matplotlibrc"
    if kind == "a pipe":
        os.mkfifo(settings)
    else:
        settings.write_bytes("font.family: Größe".encode("cp1252") if kind == "not UTF-8" else b"no.such.key: 1")
    done = started(tmp_path, COMMAND, MPLBACKEND="nosuch", MATPLOTLIBRC=str(settings))
    assert (done.returncode, done.stdout.decode()) == (0, "policysim.figures Agg\n"), done.stderr.decode()
    assert done.stderr.startswith(b"policysim: unknown study") and done.stderr.count(b"\n") == 1


def test_the_library_leaves_the_settings_of_the_user_alone(tmp_path):
    (tmp_path / "matplotlibrc").write_text(HOSTILE)
    done = started(tmp_path, LIBRARY)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(("draw", "name"), [(figures.trade_off, "errors"), (figures.price_bars, "prices")])
def test_a_figure_that_is_saved_later_does_not_follow_the_settings_of_then(request, draw, name):
    def saved(**settings):
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "any", **settings}):
            figure.savefig(file := io.BytesIO(), format="svg", metadata={"Date": None})
        return file.getvalue()

    figure = draw(request.getfixturevalue(name))
    assert saved(**{"font.size": 30, "xtick.color": "red", "ytick.major.size": 20, "grid.color": "red"}) == saved()


def test_numbers_below_0_have_a_minus_sign_whatever_holds_when_a_figure_is_saved(logged):
    figure = figures.frontier(logged)
    with mpl.rc_context({"axes.unicode_minus": False, "svg.fonttype": "none"}):
        figure.savefig(file := io.BytesIO(), format="svg")
    numbers = re.findall(r">([-−]?[\d.,]+)<", file.getvalue().decode())
    assert any(number.startswith("−") for number in numbers)
    assert not any(number.startswith("-") for number in numbers)
