"""policysim init: from a trial's file to a study file, with a comment on every guess.

The command line itself is not used here: `run` gets what its parser would give.
"""

import json
import shlex
import tomllib
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from policies.catalogue import CATALOGUE
from policysim.cli import init_command
from policysim.cli.main import main
from policysim.cli.options import parse
from policysim.errors import UsageError
from policysim.files.bad_rows import DataError
from policysim.logs.guess_roles import MOST_RECORDS
from policysim.logs.load_log import load_log

NAMED = ("--treatment", "arms", "--outcome", "cens")
KNOWN = ("--features", "age,wtkg,karnof,gender,strat,cd40")


def rows_of(source):
    """The log, without the seconds that it takes to estimate propensities."""
    return load_log(replace(source, propensity="equal"))


@pytest.fixture
def study(tmp_path, acids, run_init):
    """The study that init writes for the trial of AIDS drugs."""
    acids.to_csv(tmp_path / "acids.csv", index=False)
    assert run_init(tmp_path / "acids.csv", None, *NAMED, *KNOWN) == 0
    return tmp_path / "acids.toml"


def test_what_it_writes_is_a_study_of_that_trial(study, read_study, acids):
    source = read_study(study)
    assert source.files == {"table": study.with_suffix(".csv")}
    assert (source.id, source.treatment, source.propensity) == ("pidnum", "arms", "estimate")
    assert source.treatments == (("0", "arm 0"), ("1", "arm 1"), ("2", "arm 2"), ("3", "arm 3"))
    assert source.outcome == {"cens": 1.0}
    log = rows_of(source)
    for arm in range(4):
        assert log.data.rewards[log.data.actions == arm].mean() == pytest.approx(acids.cens[acids.arms == arm].mean())
    assert list(source.features) == KNOWN[1].split(",")


def test_typing_the_commands_that_it_prints_ends_in_a_study(tmp_path, acids, capsys):
    """Nothing that is later than treatment, or tells it, becomes a feature on the way."""
    path = tmp_path / "my trial.csv"
    acids.to_csv(path, index=False)
    words, asked = ["init", str(path)], []
    while (code := main(words)) == 2:
        *lines, command = capsys.readouterr().err.splitlines()
        asked.append(sorted(set(acids.columns) - {""} & {line.split(": ")[-1].split()[1] for line in lines}))
        words = shlex.split(command.partition("Type: policysim ")[2])
        words = [{"treat": "arms"}.get(word, word) for word in words]
        assert len(asked) < 5
    assert code == 0
    data = tomllib.loads(path.with_suffix(".toml").read_text(encoding="utf-8"))["data"]
    assert data["treatment"] == "arms"
    later = {"cd420", "cd496", "r", "days", "treat", "offtrt", "cens", "pidnum", "zprior"}
    assert not later & set(data["features"])
    assert {"age", "wtkg", "karnof", "gender", "cd40"} <= set(data["features"])


def test_every_guess_says_check_and_the_arms_are_counted(study):
    text = study.read_text(encoding="utf-8")
    for key in ("id", "treatment", "propensity", "outcome", "age", "cd40", "hidden_from"):
        line = next(line for line in text.splitlines() if line.startswith(f"{key} = "))
        assert "# CHECK" in line
    assert "# patients: arm 0 100, arm 1 100, arm 2 100, arm 3 100" in text
    assert text.splitlines()[-1] == f"# Type next: policysim compare {study.as_posix()}"


def test_it_has_the_sections_of_a_study(study):
    values = tomllib.loads(study.read_text(encoding="utf-8"))
    assert list(values) == ["title", "data", "privacy", "compare"]
    assert values["privacy"]["adjacency"] == "any-record"
    assert values["privacy"]["epsilon"] in values["privacy"]["epsilons"]
    assert values["privacy"]["hidden_from"]
    assert set(values["compare"]["policies"]) <= set(CATALOGUE)


def test_a_file_that_is_there_is_never_replaced(study, run_init):
    before = study.read_bytes()
    with pytest.raises(UsageError, match=r"acids\.toml exists already"):
        run_init(study.with_suffix(".csv"))
    assert study.read_bytes() == before


def test_out_says_where_and_the_data_are_named_from_there(tmp_path, acids, run_init, read_study, capsys):
    (tmp_path / "data").mkdir()
    (tmp_path / "studies").mkdir()
    acids.drop(columns="").to_parquet(tmp_path / "data" / "acids.parquet")
    out = tmp_path / "studies" / "mine.toml"
    run_init(tmp_path / "data" / "acids.parquet", out, *NAMED, *KNOWN)
    assert rows_of(read_study(out)).n_read == 400
    assert 'file = "../data/acids.parquet"' in out.read_text(encoding="utf-8")
    assert capsys.readouterr().out.splitlines()[-1] == f"Type next: policysim compare {out.as_posix()}"
    with pytest.raises(UsageError, match=r"--out must end in .toml, got '.*mine.txt'"):
        run_init(tmp_path / "data" / "acids.parquet", tmp_path / "mine.txt")


def test_json_is_one_document(tmp_path, acids, run_init, capsys):
    acids.to_csv(tmp_path / "acids.csv", index=False)
    run_init(tmp_path / "acids.csv", None, *NAMED, *KNOWN, json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["rows"], document["treatment"], document["outcome"]) == (400, "arms", {"cens": 1.0})
    assert document["left_out"]["cd420"] == "not named"
    assert set(document["features"]) == set(KNOWN[1].split(","))


def written(tmp_path, run_init, read_study, content, name="trial.csv"):
    """The study that init writes for a file's content."""
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    run_init(tmp_path / name)
    path = (tmp_path / name).with_suffix(".toml")
    return read_study(path), path.read_text(encoding="utf-8")


@pytest.mark.usefixtures("blank_drawings", "few_trees", "one_split")
def test_time_and_event_make_a_study_that_runs_with_holes_in_overlap(tmp_path, capsys):
    rng = np.random.default_rng(9)
    n = 800
    age = rng.integers(40, 90, n)
    arm = np.where(age >= 75, 0, rng.integers(0, 2, n))  # nobody of 75 or older got arm 1
    months, left = rng.exponential(20, n), rng.uniform(5, 40, n)
    trial = pd.DataFrame({"rownames": np.arange(1, n + 1), "rx": arm, "age": age, "sex": rng.integers(0, 2, n)})
    trial["time"], trial["status"] = np.minimum(months, left).round(1), (months <= left) * 1
    data, study = tmp_path / "trial.csv", tmp_path / "trial.toml"
    trial.to_csv(data, index=False)
    assert main(["init", str(data), "--features", "age,sex"]) == 0
    section = tomllib.loads(study.read_text(encoding="utf-8"))["data"]
    assert (section["time"], section["event"], section["propensity"]) == ("time", "status", "estimate")
    assert "id" not in section
    assert list(section["features"]) == ["age", "sex"]
    at_risk = [int((trial["time"][arm == one] >= section["horizon"]).sum()) for one in (0, 1)]
    assert min(at_risk) >= 50
    capsys.readouterr()
    assert main(["compare", str(study), "--policy", "optimal", "--out", str(tmp_path / "out")]) == 0
    assert "nobody got arm 1" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "dialect", [("utf-8", ",", "."), ("utf-8-sig", ";", ","), ("cp1252", ";", "."), ("utf-16", "\t", ",")]
)
def test_a_table_is_the_same_however_it_is_written(tmp_path, run_init, read_study, dialect):
    encoding, separator, comma = dialect
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {"arm": np.arange(240) % 2, "größe": rng.normal(170, 9, 240).round(1), "cured": rng.integers(0, 2, 240)}
    )
    text = frame.to_csv(index=False, sep=separator, decimal=comma)
    source, study = written(tmp_path, run_init, read_study, text.encode(encoding))
    plain, same = written(tmp_path, run_init, read_study, frame.to_csv(index=False), "plain.csv")
    assert study.replace("trial", "plain") == same
    assert rows_of(source).raw["größe"].tolist() == rows_of(plain).raw["größe"].tolist() == frame["größe"].tolist()


def test_odd_names_and_values_are_quoted(tmp_path, read_study, capsys):
    header = '"the ""A"", or B","say ""yes"", success",größe,"two\nlines",a.b,"tab\there","back\\slash"\n'
    arms = ('"p\'q ""x"""', '"北\\"')
    bits = np.random.default_rng(5).integers(0, 2, (400, 7))
    rows = [f'{arms[b[0]]},{b[1]},{b[2]},é\\{b[3]},"#{b[4]}","=[{b[5]}]",{b[6]}\n' for b in bits]
    path = tmp_path / "my trial's.csv"
    path.write_text(header + "".join(rows), encoding="utf-8")
    assert main(["init", str(path)]) == 2
    command = capsys.readouterr().err.splitlines()[-1].partition("Type: policysim ")[2]
    # Its candidates are the first that could be; say the second.
    words = [{"größe": 'say "yes", success'}.get(word, word) for word in shlex.split(command)]
    assert words[:4] == ["init", str(path), "--treatment", '"the ""A"", or B"']
    assert main(words) == 0
    source = read_study(path.with_suffix(".toml"))
    assert source.treatment == 'the "A", or B'
    assert dict(source.treatments) == {'p\'q "x"': 'p\'q "x"', "北\\": "北\\"}
    assert source.outcome == {'say "yes", success': 1.0}
    # Line ends and tabs of the file's names are escaped.
    assert list(source.features) == ["größe", r"two\nlines", "a.b", r"tab\there", "back\\slash"]
    assert source.features[r"two\nlines"].levels == ("é\\0", "é\\1")
    assert rows_of(source).n_read == 400


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("arm,success,age\n", "has no rows"),
        ("sex,age\n0,30\n1,40\n", "no column can be the treatment: it needs 2 to 20 distinct values, each of 10 pat"),
        ("arm,name,ward\n0,x,a\n1,y,b\n", "no column can be the outcome: one needs numbers"),
        ("arm,success,site\n0,1,a\n1,0,a\n", "no column is left that can be a feature"),
        ("arm,success,age\n,0,30\n0,1,40\n1,,50\n", "a log needs 2 rows with arm and success, got 1"),
    ],
)
def test_what_is_needed_is_told_in_one_line(tmp_path, run_init, content, said):
    (tmp_path / "trial.csv").write_text(content)
    with pytest.raises(DataError, match=said) as error:
        run_init(tmp_path / "trial.csv")
    assert len(str(error.value).splitlines()) == 1
    assert not (tmp_path / "trial.toml").exists()


@pytest.mark.parametrize("name", ["trial.csv", "gone/trial.csv"])
def test_no_file_no_study(tmp_path, run_init, name):
    with pytest.raises(DataError, match="cannot be read"):
        run_init(tmp_path / name)


names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=8) | st.sampled_from(
    ["id", "age", "cens", "days", "death", "propensity", "x1", "x10", "cd40", "cd420", "reward", "a.b", "'", '"', "="]
)
cells = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=4),
    st.sampled_from(["", "NA", "true", "0", "1", "1.0", "2", "-7", "1e300", "5e-324", "inf", "a"]),
    st.floats(width=32).map(str),
    st.integers(-50, 50).map(str),
)


@pytest.mark.parametrize("asked", ["age,site", '" age",site', '" age","site "'])
def test_margins_of_columns_need_not_be_typed(tmp_path, read_study, run_init, asked):
    """Many files have a space behind each comma."""
    rows = [f"{number % 2}, {30 + number % 3 * 10},{'ab'[number % 2]}, {number % 4 // 2}" for number in range(60)]
    (tmp_path / "trial.csv").write_text("\n".join(["arm, age,site , success", *rows]))
    run_init(tmp_path / "trial.csv", None, "--treatment", "arm", "--outcome", "success", "--features", asked)
    assert rows_of(read_study(tmp_path / "trial.toml")).space.names == (" age", "site ")


@st.composite
def trials(draw):
    """Columns of anything, among them one that can be a treatment and one that can be an outcome."""
    n = draw(st.integers(2, 30))
    treatment = draw(st.sampled_from(["arm", "treatment", "trt"]))
    columns = {treatment: draw(st.lists(cells, min_size=n, max_size=n))}
    columns[draw(names)] = [str(draw(st.integers(0, 9))) for _ in range(n)]
    for name in draw(st.lists(names, max_size=6)):
        few = draw(st.lists(cells, min_size=1, max_size=4))
        columns[name] = draw(st.lists(st.sampled_from(few) if draw(st.booleans()) else cells, min_size=n, max_size=n))
    return pd.DataFrame(columns)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(trials())
def test_what_is_written_can_be_read_with_its_data_whatever_the_table(tmp_path, read_study, trial):
    """Whoever types the commands that it prints has a study, or one line that says why not."""
    path, out = tmp_path / "trial.csv", tmp_path / "trial.toml"
    out.unlink(missing_ok=True)
    trial.to_csv(path, index=False, quoting=1)
    words = ["init", str(path)]
    for _ in range(4):
        try:
            init_command.run(parse(words, [init_command.add]))
            break
        except DataError as error:
            assert len(str(error).splitlines()) == 1
        except UsageError as error:
            if "Type: policysim " in str(error):
                words = shlex.split(str(error).partition("Type: policysim ")[2])
                continue
            assert "one row must be one patient" in str(error) or "name" in str(error) or "--treatment" in str(error)
        assert not out.exists()
        return
    log = rows_of(read_study(out))
    assert log.n_read == len(trial)
    assert log.space.size <= MOST_RECORDS
