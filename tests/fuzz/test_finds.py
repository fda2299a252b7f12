"""What the fuzzer has found is not found again; and it finds what is planted."""

import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).with_name("fuzz.py")


def fuzz(*options):
    """Exit code and output of the fuzzer."""
    done = subprocess.run([sys.executable, FUZZ, *options], stdout=subprocess.PIPE, check=False, text=True)
    return done.returncode, done.stdout


def test_no_find_is_found_again():
    assert fuzz("--finds") == (0, "")
