"""Policies made elsewhere: tables of probabilities, and how their rows are found for those of a log."""

import pandas as pd
import pytest

import policysim as ps


@pytest.fixture(scope="module")
def policy(study, problem):
    """The probabilities of a policy with the records' features."""
    space = ps.load_study(study).space
    table = space.decode(range(space.size))
    p = ps.make_policy("exponential", epsilon=10.0).probabilities(problem)
    return pd.concat([table, pd.DataFrame(p, columns=[f"p_{name}" for name in problem.actions])], axis=1)


@pytest.fixture
def log(uniform_log, tmp_path):
    """The first 2,000 rows of a log, in a file."""
    path = tmp_path / "log.csv"
    uniform_log.head(2000).to_csv(path, index=False)
    return path


@pytest.fixture
def catalogue(evaluated, study, log):
    """What the same policy from the catalogue is worth on that log."""
    return evaluated(log, "--policy", "exponential", "--epsilon", "10", "--study", study)


def same(found, expected):
    assert found["exact"] is None
    for name in ("value", "standard_error", "ess", "largest_weight"):
        assert found["estimate"][name] == pytest.approx(expected["estimate"][name], rel=1e-9)
    assert found["best_single_arm"]["value"] == pytest.approx(expected["best_single_arm"]["value"], rel=1e-7)
    # Arms stand in the order of the table's columns.
    by_name = [sorted(document["arms"], key=lambda arm: arm["arm"]) for document in (found, expected)]
    assert by_name[0] == by_name[1]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_table_by_covariates_is_the_policy_that_it_holds(evaluated, log, policy, catalogue, ending):
    path = log.with_name(f"policy.{ending}")
    # In any order of rows and columns, and with numbers as they may be written.
    shuffled = policy.sample(frac=1, random_state=1)[policy.columns[::-1]].astype({"fever": float})
    shuffled.to_csv(path, index=False) if ending == "csv" else shuffled.to_parquet(path)
    found = evaluated(log, "--table", path)
    same(found, catalogue)


def test_a_table_may_know_less_than_the_log(evaluated, log, tmp_path, uniform_log):
    path = tmp_path / "policy.csv"
    path.write_text("age,p_pill,p_none,p_syrup\nold,0.5,0.25,0.25\nyoung,0,0.5,0.5\n")
    found = evaluated(log, "--table", path, "--estimator", "ips")
    rows = uniform_log.head(2000)
    old, pill = rows["age"] == "old", rows["action"] == "pill"
    p = old * (0.25 + 0.25 * pill) + ~old * 0.5 * ~pill
    assert found["estimate"]["value"] == pytest.approx((p / rows["propensity"] * rows["reward"]).mean(), rel=1e-12)


def test_rows_may_be_those_of_the_log_in_its_order_or_found_by_an_id(evaluated, log, tmp_path, policy, catalogue):
    columns = [name for name in policy.columns if name.startswith("p_")]
    features = [name for name in policy.columns if name not in columns]
    rows = pd.read_csv(log)[["patient", *features]].merge(policy, on=features)
    rows.sort_values("patient")[columns].to_csv(tmp_path / "ordered.csv", index=False)
    rows.sample(frac=1, random_state=2)[["patient", *columns]].to_parquet(tmp_path / "by_id.parquet")
    for name in ("ordered.csv", "by_id.parquet"):
        same(evaluated(log, "--table", tmp_path / name), catalogue)


def test_an_action_that_the_log_never_takes_is_a_warning(evaluated, log, tmp_path):
    path = tmp_path / "policy.csv"
    path.write_text("age,p_pill,p_none,p_syrup,p_leech\nold,0.5,0,0,0.5\nyoung,0,0,1,0\n")
    found = evaluated(log, "--table", path)
    assert any("the log never takes leech" in warning for warning in found["estimate"]["warnings"])
    leech = found["arms"][3]
    assert (leech["arm"], leech["rows"], leech["mean"]) == ("leech", 0, None)


HEAD = "age,p_none,p_syrup,p_pill\n"


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            HEAD.replace("age", "aged") + "old,1,0,0\n",
            ["no such column in", "unknown column 'aged'; did you mean 'age'?"],
        ),
        (
            HEAD.replace("age", "outcome_death") + "1,1,0,0\n",
            ["outcome_death: an outcome is known only after treatment"],
        ),
        ("p_none,p_syrup,p_pill\n1,0,0\n", ["has only columns p_<action>", "it has 1 rows, and 2,000 of"]),
        ("age,p_none,p_pill\nold,1,0\nyoung,1,0\n", ["action: must be one of the treatments none, pill, got 'syrup'"]),
    ],
)
def test_what_is_wrong_with_a_table_is_said_in_a_line_each(run, log, tmp_path, text, messages):
    path = tmp_path / "policy.csv"
    path.write_text(text)
    code, out, err = run("evaluate", log, "--table", path)
    assert (code, out) == (3, "")
    assert all(message in err for message in messages)
    assert all(line.startswith("policysim: ") for line in err.splitlines())


def test_rows_of_the_log_without_a_row_or_with_two_are_named_once(run, log, tmp_path, uniform_log):
    path = tmp_path / "policy.csv"
    path.write_text(HEAD + "young,1,0,0\n")
    code, out, err = run("evaluate", log, "--table", path)
    assert (code, out) == (3, "")
    lines = err.splitlines()
    old = uniform_log.index[(uniform_log["age"] == "old") & (uniform_log.index < 2000)]
    where = f"policysim: {log}:{old[0] + 2}: row {old[0] + 1}"
    assert lines == [f"{where}: age: {path} has no row for old (so for {len(old):,} rows)"]
    path.write_text(HEAD + "young,1,0,0\nold,1,0,0\nold,0,1,0\n")
    assert f"{path} has more than one row for old" in run("evaluate", log, "--table", path)[2]
