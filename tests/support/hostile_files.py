"""Files that the readers take, and the same damaged at random: Hypothesis strategies for the tests in tests/fuzz.

Files are a dictionary: the name of each, and its text, or the rows of a CSV or Parquet file as a data frame.
"""

import base64
import contextlib
import datetime as dt
import hashlib
import itertools
import json
import math
import os
import re
import resource
import signal
import socket
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from small_studies import DEPENDENT, SCENARIO, STUDY

from policysim.cli.main import said_on_purpose
from policysim.errors import OutputError, UsageError
from policysim.release.privatize_note import Randomization, note_document
from policysim.report.folder import FORMAT

ROOT = Path(__file__).parents[2]
MOST_SECONDS, MOST_BYTES = 20, 6 << 30

# What a terminal, a path, a page or a parser could take for more than text.
TEXTS = (
    "", " ", "\x00", "\x1b[2J", "a\nb", "a\rb", "\u202eabc", "\u200b", "\ufeff", "é", "名", "'", '"', "\\", "$x_1$",
    "$$", "a_b^c", "$\\frac{1$", "<script>", "&amp;", "{{ x }}", "%s{0}", "a, b", "NA", "nan", "inf", "1e999", "1_000",
    "٣", "true", "None", "..", "../..", "/", "/etc/passwd", "/dev/zero", ".", "*", "[", "-", "a" * 300, "study.toml",
    "data.csv", "all", "deaths", "death", "one for all", "equal", "estimate", "cost", "__class__", "0", "1", "-1",
)  # fmt: skip
NUMBERS = (
    0, 1, -1, 2, 3, 0.5, -0.5, -0.0, 1e-300, 5e-324, 1.0000001, 1e51, 1e308, -1e308, math.inf, -math.inf, math.nan,
    2**31, 2**53 + 1, 2**64, 10**30, 10**400, 100_000,
)  # fmt: skip
TOKENS = (
    *(json.dumps(text, ensure_ascii=False) for text in TEXTS), *map(repr, NUMBERS), "9" * 5000, "0x" + "f" * 5000,
    "true", "null", "NaN", "1979-05-27", "07:32:00", "[]", "[[]]", "[{}]", "{}", "[0.5, 0.5]", '[1, "a"]', "[nan]",
    "{ a = 1 }", '{"a": {"b": 1}}', "{ value = 0.5 }", "{ value = 0.5, interval = [0.4, 0.6] }", '"unclosed', "[1, 2",
    "{ levels = [0, 1], shares = [0.5, 0.5] }", "{ clears.fever = 0.5 }", "=", "# gone",
)  # fmt: skip
LINES = (
    "[[rules]]", "[rules]", "[features]", "[features.death]", "[death.hazard]", "set = { fever = 1, death = 1 }", "[[[",
    "x.y.z = 1", '"\\n" = 1', "gamma = {}", "baseline = 0", "fever = {}", "[events.x]", "[[death]]", "]", "},", "1,2,3",
    "multiply = { cost = 1e308, hazard_ratio.death = 1e6 }", "add = { fever = -1 }", 'combines = ["a9"]', "p000", '"',
)  # fmt: skip
# A value or a key of TOML and JSON; a cell of a table.
TOKEN = re.compile(r'"[^"\n]*"|-?\d[\d.e+-]*|\{[^{}\n]*\}|\[[^\[\]\n]*\]|[\w-]+(?= ?=)')
CELL = re.compile(r"(?<![^,\n])[^,\n]*")
ARROW_TYPES = (
    pa.int8(), pa.float16(), pa.large_string(), pa.binary(), pa.date32(), pa.time64("us"), pa.duration("s"), pa.null(),
    pa.timestamp("ns", "Europe/Berlin"), pa.decimal128(20, 3), pa.list_(pa.int64()),
    pa.dictionary(pa.int8(), pa.string()), pa.struct([("a", pa.int64())]), pa.decimal256(60, 2),
)  # fmt: skip
TYPES = (
    "int8", "uint64", "float32", "complex128", "bool", "str", "object", "category", "Int64", "boolean", "string",
    "datetime64[ns, UTC]", "timedelta64[ns]", "Sparse[float]", "period[D]", *map(pd.ArrowDtype, ARROW_TYPES),
)  # fmt: skip
CELLS = (
    *TEXTS, *NUMBERS, None, pd.NA, pd.NaT, True, b"a", 1 + 2j, [1], (), {}, {"a": 1}, dt.date(2026, 1, 1),
    pd.Timestamp("2026-01-01", tz="UTC"), pd.Timedelta(1), np.float32(0.1), np.array([1, 2]), object,
)  # fmt: skip


TRIAL = """\
title = "A trial"
[data]
file = "data.csv"
id = "patient"
treatment = "arm"
propensity = "equal"
outcome = { cured = 1.0 }
range = [0, 1]
missing = "exclude"
[data.treatments]
pill = "the pill"
placebo = "nothing"
drip = "a drip"
[data.features]
age = { cuts = [40, 60] }
sex = { levels = ["m", "f"] }
[privacy]
epsilons = [1.0, 4.0]
[compare]
policies = ["best-fixed", "exponential"]
by = ["sex"]
"""
FOLLOW_UP = TRIAL.replace("outcome = { cured = 1.0 }\nrange = [0, 1]", 'time = "days"\nevent = "cured"\nhorizon = 40')
COHORT = """\
title = "A cohort"
lead = "deaths"
[cohort]
file = "data.csv"
redraws = "redraws.csv"
features = ["gene", "age"]
treatment = "dose"
patients = "patients"
[privacy]
sensitive = ["gene"]
epsilons = [1.0, 4.0]
[compare]
policies = ["best-fixed", "optimal"]
by = ["age"]
[utility]
weights = { wrong = 1, deaths = 20 }
costs = { high = 0.1 }
"""
REDRAWN = SCENARIO.replace('title = "Two symptoms"', 'title = "Two symptoms"\nredraws = "redraws.csv"')
PATIENTS = pd.read_csv(ROOT / "examples/trial.csv").drop(columns="severity")[:40].assign(days=range(10, 90, 2))
LOG = PATIENTS.rename(columns={"arm": "action", "cured": "reward"}).assign(propensity=0.5)
PEOPLE = pd.DataFrame({"disease": ["Diabetes", "Hepatitis"] * 2, "ward": list("aabb"), "people": [24, 8, 0, 3]})
POLICY = pd.DataFrame({"sex": ["m", "f"], "p_pill": [0.75, 0.25], "p_placebo": [0.25, 0.5], "p_drip": [0.0, 0.25]})
DOSES = pd.DataFrame(itertools.product("AB", ("young", "old"), ("low", "high")), columns=["gene", "age", "dose"])
DOSES = DOSES.assign(patients=[5, 5, 3, 3, 2, 2, 1, 1], wrong=[0.1, 0.2, 0.3, 0.05, 0.6, 0.4, 0.2, 0.1], allowed=1)
DOSES["deaths"] = DOSES["wrong"] / 100
REDRAWN_DOSES = pd.concat([DOSES.assign(draw=draw) for draw in range(20)])
REDRAWN_NUMBERS = pd.DataFrame({"draw": range(20), "treatments.syrup.clears.cough": 0.5, "weights.death": 11.0})
WARD = {name: (ROOT / f"examples/ward/{name}").read_text(encoding="utf-8") for name in ("study.toml", "scenario.toml")}
OTHER_SCENARIOS = ("examples/own-disease/scenario.toml", "tests/envs/data/small.toml", "tests/envs/data/language.toml")
SCENARIO_TEXTS = [SCENARIO, DEPENDENT, REDRAWN]
SCENARIO_TEXTS += [(ROOT / name).read_text(encoding="utf-8") for name in OTHER_SCENARIOS]
RELEASE = {
    "what": "privatize", "data": "data.csv", "sha256": ["0" * 64], "columns": ["sex"], "unchanged": ["age"],
    "epsilon": 0.5, "adjacency": "replace-one", "released": "out.csv", "question": {"by": "age"},
    "date": "2026-11-23T00:00:00+00:00",
}  # fmt: skip
SELECTION = RELEASE | {"what": "select", "sha256": ["a" * 64], "adjacency": "add-or-remove-one"}
BESIDE = {"made_by": "policysim simulate", "study": "study.toml", "sha256": hashlib.sha256(STUDY.encode()).hexdigest()}
NOTE = note_document(
    Randomization({"sex": ("m", "f")}, 1.0), ["patient", "arm", "age", "cured", "days"], 40, release=True
)
MANIFEST = json.loads((ROOT / "reports/warfarin/manifest.json").read_text(encoding="utf-8"))
MANIFEST |= {"format": FORMAT, "command": ["compare", "warfarin", "--epsilon", "0.1,1", "--price-list"]}


def json_file(name, document):
    """A document as a file of some lines."""
    return {name: json.dumps(document, indent=1, ensure_ascii=False, default=list) + "\n"}


# Files that are read together, of each kind.
SCENARIOS = [{"scenario.toml": text, "redraws.csv": REDRAWN_NUMBERS} for text in SCENARIO_TEXTS]
STUDIES = [WARD, *({"study.toml": STUDY, "scenario.toml": text} for text in (SCENARIO, DEPENDENT))]
TRIALS = [{"study.toml": text, "data.csv": PATIENTS} for text in (TRIAL, FOLLOW_UP)]
COHORTS = [{"study.toml": COHORT, "data.csv": DOSES, "redraws.csv": REDRAWN_DOSES}]
NOTES = [{"data.csv": PATIENTS} | json_file("data.csv.privacy.json", NOTE)]
LEDGERS = [json_file("policysim-releases.json", {"private": "P", "format": 2, "releases": [RELEASE, SELECTION]})]
MANIFESTS = [json_file("manifest.json", MANIFEST)]
BESIDES = [{"study.toml": STUDY, "scenario.toml": SCENARIO} | json_file("data.csv.study.json", BESIDE)]


def hostile(few, slower=1):
    """Settings: few inputs, always the same; `make fuzz N=1000` draws 1000 at random, or fewer of slower ones."""
    many = int(os.environ.get("FUZZ_INPUTS", "0"))
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    return settings(max_examples=math.ceil(many / slower) or few, derandomize=not many, suppress_health_check=slow)


def finds(*kinds):
    """Cases of tests/fuzz/finds of these kinds: the kind, the bytes of the files, and arguments of a command line.

    Each is a JSON file with these three; a file of it that is no text stands in base64.
    """
    cases = []
    for path in sorted((ROOT / "tests/fuzz/finds").glob("*.json")):
        find = json.loads(path.read_text(encoding="utf-8"))
        if find["kind"] in kinds:
            files = {
                name: content.encode() if isinstance(content, str) else base64.b64decode(content["base64"])
                for name, content in find["files"].items()
            }
            cases.append(pytest.param(find["kind"], files, find.get("arguments"), id=path.stem))
    return cases


@contextlib.contextmanager
def in_folder(files):
    """A new folder with these files, in which little time, little memory and no network is there for what is run."""

    def fail(*reason):
        raise AssertionError(f"more than {MOST_SECONDS} s of processor time, or a connection: {reason}")

    memory = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
    limits, handler = resource.getrlimit(resource.RLIMIT_AS), signal.signal(signal.SIGPROF, fail)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        for name, content in files.items():
            Path(name).write_bytes(content)
        patch.setattr(socket.socket, "connect", fail)
        resource.setrlimit(resource.RLIMIT_AS, (memory + MOST_BYTES, limits[1]))
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, handler)
            resource.setrlimit(resource.RLIMIT_AS, limits)


def is_read(read):
    """Whether something is read; else it is refused on purpose, in words. All other errors are raised."""
    try:
        read()
    except (ValueError, OutputError, UsageError) as error:
        if isinstance(error, ValueError) and not said_on_purpose(error):
            raise
        assert str(error).strip()
        return False
    return True


@st.composite
def damaged_text(draw, text, tokens, odd):
    """A text after some edits of its tokens and lines, as bytes."""
    edits = ("token", "token", "token", "delete", "repeat", "insert", "swap")
    for edit in draw(st.lists(st.sampled_from(edits), max_size=4)):
        lines, spots = text.split("\n"), list(tokens.finditer(text))
        first, second = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        if edit == "token" and spots:
            spot = draw(st.sampled_from(spots))
            new = draw(st.sampled_from(odd) | st.sampled_from(spots).map(lambda other: other[0]))
            text = text[: spot.start()] + new + text[spot.end() :]
            continue
        if edit == "delete":
            del lines[first]
        elif edit == "repeat":
            lines[first:first] = [lines[first]] * draw(st.sampled_from((1, 2, 50)))
        elif edit == "insert":
            lines.insert(first, draw(st.sampled_from(LINES)))
        else:
            lines[first], lines[second] = lines[second], lines[first]
        text = "\n".join(lines)
    return draw(spoiled(text.encode("utf-8", "replace")))


@st.composite
def spoiled(draw, content):
    """Bytes, most often as they are; or cut, with other bytes, ends of lines or encoding, or with more at the end."""
    spot = draw(st.integers(0, len(content)))
    changes = (
        content[:spot],
        content[:spot] + draw(st.binary(max_size=2)) + content[spot + 1 :],
        content.replace(b"\n", draw(st.sampled_from((b"\r\n", b"\r", b"\n\n", b" ")))),
        b"\xef\xbb\xbf" + content,
        content.decode(errors="replace").encode("utf-16"),
        content + draw(st.sampled_from((content, b'"', b"\x00" * 9, b"[" * 3000, b"{" * 90_000))),
    )
    return draw(st.sampled_from((*[content] * 12, *changes)))


@st.composite
def changed_frame(draw, frame):
    """A data frame with other cells, types, names, rows or columns."""
    frame = frame.copy()
    for change in draw(st.lists(st.sampled_from(("cell", "type", "name", "rows", "drop")), max_size=3)):
        if not frame.size:
            break
        row, number = (draw(st.integers(0, size - 1)) for size in frame.shape)
        column, names = frame.iloc[:, number], list(frame.columns)
        if change == "cell":
            cells = column.astype(object)
            cells.iat[row] = draw(st.sampled_from(CELLS))
            frame.isetitem(number, cells)
        elif change == "type":
            kind = draw(st.sampled_from(TYPES))
            with contextlib.suppress(Exception):  # pandas has many for values that are not of this type
                frame.isetitem(number, column.astype(kind))
        elif change == "name":
            names[number] = draw(st.sampled_from((*TEXTS, *names, 0, 1.5, None, ("a", "b"), math.nan)))
            frame.columns = pd.Index(names, dtype=object)
        elif change == "rows":
            frame = draw(st.sampled_from((frame[:0], frame[:1], pd.concat([frame, frame]), frame[::-1])))
        else:
            frame = frame.iloc[:, [other for other in range(len(names)) if other != number]]
    return frame


def file_bytes(name, content):
    """A file's bytes; where Parquet cannot hold a data frame, those of a text."""
    if isinstance(content, str):
        return content.encode()
    if name.endswith(".parquet"):
        with contextlib.suppress(Exception):
            return content.to_parquet()
    return content.to_csv(index=False).encode("utf-8", "replace")


@st.composite
def damaged_files(draw, *alternatives):
    """The bytes of the files of one of these dictionaries, of which one or more are damaged."""
    files = draw(st.sampled_from(alternatives))
    damaged = {name: file_bytes(name, content) for name, content in files.items()}
    for name in sorted(draw(st.sets(st.sampled_from(sorted(files)), min_size=1))):
        content = files[name]
        if isinstance(content, str):
            damaged[name] = draw(damaged_text(content, TOKEN, TOKENS))
        elif name.endswith(".parquet"):
            damaged[name] = draw(spoiled(file_bytes(name, draw(changed_frame(content)))))
        else:
            text = draw(changed_frame(content)).to_csv(index=False, sep=draw(st.sampled_from(",,,;\t|")))
            damaged[name] = draw(damaged_text(text, CELL, TEXTS))
    return damaged
