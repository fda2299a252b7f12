"""policysim init: from a trial's file to a study file, with a comment on every guess.

The command line itself is not used here: `run` gets what its parser would give.
"""

import json
import tomllib

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from policies.catalogue import CATALOGUE
from policysim.cli.main import main
from policysim.files.bad_rows import DataError
from policysim.logs.load_log import load_log
from policysim.question.protocol import UsageError


@pytest.fixture
def study(tmp_path, acids, run_init):
    """The study that init writes for the trial of AIDS drugs."""
    acids.to_csv(tmp_path / "acids.csv", index=False)
    assert run_init(tmp_path / "acids.csv", None, "--outcome", "cens") == 0
    return tmp_path / "acids.toml"


def test_what_it_writes_is_a_study_of_that_trial(study, read_study, acids):
    source = read_study(study)
    assert source.files == {"table": study.with_suffix(".csv")}
    assert (source.id, source.treatment, source.propensity) == ("pidnum", "arms", "equal")
    assert source.treatments == (("0", "arm 0"), ("1", "arm 1"), ("2", "arm 2"), ("3", "arm 3"))
    assert source.outcome == {"cens": -1.0}
    log = load_log(source)
    for arm in range(4):
        assert log.data.rewards[log.data.actions == arm].mean() == pytest.approx(-acids.cens[acids.arms == arm].mean())
    assert log.space.size <= 5_000
    assert {"age", "wtkg", "cd40"} <= set(source.features)


def test_no_feature_is_known_only_after_treatment_or_tells_it(study, read_study):
    later = {"cd420", "cd496", "r", "days", "treat", "offtrt", "arms", "cens", "pidnum", "", "zprior", "str2"}
    assert not later & set(read_study(study).features)
    lines = study.read_text(encoding="utf-8").splitlines()
    for name in later - {"arms", "cens", "pidnum", ""}:
        assert any(line.startswith((f"# {name} = {{", f"# {name}: ", f"# {name}  #")) for line in lines)
    assert '# "": the column has no name' in lines
    for name in ("cd420", "cd496", "r", "days", "treat", "offtrt"):
        assert "# CHECK " in next(line for line in lines if line.startswith((f"# {name} ",)))


def test_every_guess_says_check_and_the_arms_are_counted(study):
    text = study.read_text(encoding="utf-8")
    for key in ("id", "treatment", "propensity", "outcome", "age", "cd40", "hidden_from"):
        line = next(line for line in text.splitlines() if line.startswith(f"{key} = "))
        assert "# CHECK" in line
    assert "patients by treatment: 0: 100, 1: 100, 2: 100, 3: 100" in text
    assert text.splitlines()[-1] == f"# Type next: policysim compare {study.as_posix()}"


def test_commented_features_can_be_used_by_removing_the_sign(study, read_study):
    text = study.read_text(encoding="utf-8")
    before = read_study(study).features
    further = [line for line in text.splitlines() if line.startswith(("# cd420 = ", "# gender = ", "# strat = "))]
    assert further
    for line in further:
        text = text.replace(line, line.removeprefix("# "))
    study.write_text(text, encoding="utf-8")
    assert set(read_study(study).features) - set(before) == {line.split()[1] for line in further}


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
    run_init(tmp_path / "data" / "acids.parquet", out, "--outcome", "cens")
    assert load_log(read_study(out)).n_read == 400
    assert 'file = "../data/acids.parquet"' in out.read_text(encoding="utf-8")
    assert capsys.readouterr().out.splitlines()[-1] == f"Type next: policysim compare {out.as_posix()}"
    with pytest.raises(SystemExit):
        run_init(tmp_path / "data" / "acids.parquet", tmp_path / "mine.txt")
    assert capsys.readouterr().err == f"policysim: --out must end in .toml, got '{tmp_path / 'mine.txt'}'\n"


def test_json_is_one_document(tmp_path, acids, run_init, capsys):
    acids.to_csv(tmp_path / "acids.csv", index=False)
    run_init(tmp_path / "acids.csv", None, "--outcome", "cens", json=True)
    document = json.loads(capsys.readouterr().out)
    assert (document["missing_treatments"], document["horizon"]) == (0, None)
    assert (document["treatment"], document["outcome"]) == ("arms", {"cens": -1.0})
    assert "cd420" in document["left_out"]
    assert document["records"] <= 5_000


def written(tmp_path, run_init, read_study, content, name="trial.csv"):
    """The study that init writes for a file's content."""
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    run_init(tmp_path / name)
    path = (tmp_path / name).with_suffix(".toml")
    return read_study(path), path.read_text(encoding="utf-8")


@pytest.mark.usefixtures("blank_drawings")
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
    assert main(["init", str(data)]) == 2
    assert "--time time --event status" in capsys.readouterr().err
    assert main(["init", str(data), "--time", "time", "--event", "status"]) == 0
    section = tomllib.loads(study.read_text(encoding="utf-8"))["data"]
    assert (section["id"], section["time"], section["event"]) == ("rownames", "time", "status")
    assert list(section["features"]) == ["age", "sex"]
    at_risk = [int((trial["time"][arm == one] >= section["horizon"]).sum()) for one in (0, 1)]
    assert min(at_risk) >= 10
    capsys.readouterr()
    assert main(["compare", str(study), "--policy", "optimal", "--out", str(tmp_path / "out")]) == 0
    assert "nobody got arm 1" in " ".join(capsys.readouterr().out.split())


def test_two_rows_of_a_patient_are_told(tmp_path, run_init, capsys):
    rows = [f"{i // 2},{i // 2 % 2},{i % 3 % 2},{i % 5}" for i in range(80)]
    (tmp_path / "trial.csv").write_text("\n".join(["id,arm,cured,ward", *rows]))
    run_init(tmp_path / "trial.csv")
    assert "Values of id repeat, but one row must be one patient." in capsys.readouterr().out.splitlines()


def test_what_was_measured_again_is_not_said_to_be_the_outcome(tmp_path, acids, run_init):
    acids.drop(columns="cens").to_csv(tmp_path / "acids.csv", index=False)
    with pytest.raises(UsageError) as error:
        run_init(tmp_path / "acids.csv")
    offered = str(error.value).partition("it could be ")[2].split(", ")
    assert "cd420" in offered and "cd40" not in offered
    assert not (tmp_path / "acids.toml").exists()


def test_an_outcome_in_words_is_refused_and_no_file_written(tmp_path, capsys):
    data = tmp_path / "trial.csv"
    rows = [f"{i % 2},{i % 3 % 2},{'yes' if i % 5 else 'no'},{i}" for i in range(40)]
    data.write_text("\n".join(["arm,sex,outcome,age", *rows]))
    assert main(["init", str(data)]) == 3
    said = "outcome is named like the outcome, but it is text (no, yes): make it 0 and 1"
    assert capsys.readouterr().err == f"policysim: {data.as_posix()}: {said}\n"
    assert not data.with_suffix(".toml").exists()


def test_odd_names_and_values_are_quoted(tmp_path, run_init, read_study):
    header = '"arm of ""A"" ","say ""yes"", success",größe,"two\nlines",a.b,"tab\there","back\\slash"\n'
    arms = ('"p\'q ""x"""', '"北\\"')
    bits = [[i >> bit & 1 for bit in range(7)] for i in range(128)]
    rows = [f'{arms[b[0]]},{b[1]},{b[2]},é\\{b[3]},"#{b[4]}","=[{b[5]}]",{b[6]}\n' for b in bits]
    source, _ = written(tmp_path, run_init, read_study, header + "".join(rows), "my trial's.csv")
    assert source.treatment == 'arm of "A" '
    assert dict(source.treatments) == {'p\'q "x"': 'p\'q "x"', "北\\": "北\\"}
    assert source.outcome == {'say "yes", success': 1.0}
    # Line ends and tabs of the file's names are escaped.
    assert list(source.features) == ["größe", r"two\nlines", "a.b", r"tab\there", "back\\slash"]
    assert source.features[r"two\nlines"].levels == ("é\\0", "é\\1")
    assert load_log(source).n_read == 128


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path, run_init, read_study):
    rows = "".join(f"{i % 2},{i % 3 % 2},{i % 5}\n" for i in range(30))
    source, _ = written(tmp_path, run_init, read_study, "\ufefftreatment,success,ward\n" + rows)
    assert source.treatment == "treatment"
    assert load_log(source).n_read == 30


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("arm,success,age\n", "has no rows"),
        ("arm;success;age\n0;1;30\n", "separated by semicolons"),
        ("sex,age\n0,30\n1,40\n", "no column can be the treatment: it needs 2 to 20 distinct values"),
        ("arm,name,ward\n0,x,a\n1,y,b\n", "no column can be the outcome: one needs numbers"),
        ("arm,success,site\n0,1,a\n1,0,a\n", "no column is left that can be a feature"),
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


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(trials())
def test_what_is_written_can_be_read_with_its_data_whatever_the_table(tmp_path, run_init, read_study, trial):
    path, out = tmp_path / "trial.csv", tmp_path / "trial.toml"
    out.unlink(missing_ok=True)
    trial.to_csv(path, index=False, quoting=1)
    try:
        run_init(path)
    except DataError as error:
        assert len(str(error).splitlines()) == 1
        assert not out.exists()
        return
    except UsageError as error:
        assert all("which column is the" in line for line in str(error).splitlines())
        assert not out.exists()
        return
    source = read_study(out)
    log = load_log(source)
    assert log.n_read == len(trial)
    assert log.space.size <= 5_000
    assert np.all(log.data.propensities > 0)
