"""policysim init: what it asks and writes, and that compare takes it. Nothing is guessed that may turn an answer."""

import json
import os
import pty
import shlex
import sys
import threading
import tomllib
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings

from policies.levels import level_codes
from policysim.cli import init_command
from policysim.cli.main import main
from policysim.cli.options import parse
from policysim.errors import UsageError
from policysim.files.bad_rows import DataError
from policysim.logs.column_summary import declare, round_cuts, summarise, together
from policysim.logs.data_section import binned
from policysim.logs.load_log import load_log, load_rows
from policysim.logs.log_tables import joined_columns

N = 240
OF_ARMS = "must have 2 to 20 values, each of 10 patients or more"


def trial(n=N, seed=0, **columns):
    """A trial of two arms: columns of numbers that are shuffled, or of as many as there are patients."""
    rng = np.random.default_rng(seed)
    made = {"arm": ["A", "B"], "age": range(20, 80), "sex": ["f", "m"], "cured": [0, 1], **columns}
    return pd.DataFrame(
        {name: value if len(value) == n else rng.permutation(np.resize(value, n)) for name, value in made.items()}
    )


def answers(better="higher", **changed):
    """The options that answer all questions about such a trial, or others; None leaves one out."""
    plain = {"treatment": "arm", "outcome": "cured", "id": "none", "assigned": "randomised", "features": "age,sex"}
    stated = {name.replace("_", "-"): value for name, value in (plain | changed).items() if value}
    words = [word for name, value in stated.items() for word in (f"--{name}", value)]
    return [*words, f"--{better}-is-better"] if better else words


class Init(NamedTuple):
    """What a run of init came to: its table [data] is empty where no study was written."""

    code: int
    out: str
    err: str
    data: dict

    @property
    def typed(self):
        """The words of the command that an error ends with."""
        return shlex.split(self.err.splitlines()[-1].partition("Type: policysim ")[2])

    @property
    def proposals(self):
        """Those of its words that are still open."""
        return [word for word in self.typed if word.startswith("<")]

    def completed(self, *chosen):
        """The options of its command with a choice for each proposal."""
        choice = dict(zip(self.proposals, chosen, strict=True))
        return [choice.get(word, word) for word in self.typed[2:]]


@pytest.fixture
def init(tmp_path, capsys):
    """Run init on a table."""

    def run(frame, *options, name="trial.csv"):
        path = tmp_path / name
        path.with_suffix(".toml").unlink(missing_ok=True)
        frame.to_csv(path, index=False) if isinstance(frame, pd.DataFrame) else path.write_bytes(frame)
        code = main(["init", str(path), *options])
        out, err = capsys.readouterr()
        study = path.with_suffix(".toml")
        data = tomllib.loads(study.read_text(encoding="utf-8"))["data"] if study.exists() else {}
        assert bool(data) == (code == 0)
        return Init(code, out, err, data)

    return run


@pytest.fixture
def read(tmp_path, read_study):
    """Read the log of the study that was written."""
    return lambda: load_log(read_study(tmp_path / "trial.toml"))


def test_without_answers_it_prints_the_columns_and_the_whole_command_and_guesses_nothing(init):
    asked = init(trial(death=[0, 1], pid=range(N)))
    assert asked.code == 2
    lines = asked.out.splitlines()
    assert [line.split()[0] for line in lines] == ["column", "arm", "age", "sex", "cured", "death", "pid"]
    assert [line.split()[0] for line in lines if line.endswith("a treatment, or later?")] == ["arm", "cured", "death"]
    assert "A, B" in asked.out and "20 to 79" in asked.out and "numbers the rows" in asked.out
    assert asked.proposals == [
        *("<arm|sex|cured|death>", "<age|cured|death>", "<--higher-is-better|--lower-is-better>"),
        *("<randomised|by-doctors>", "<age,sex>"),
    ]
    assert asked.typed[asked.typed.index("--id") + 1] == "pid"
    questions = [line.split()[1] for line in asked.err.splitlines()[1:-1]]
    assert questions == ["--treatment:", "--outcome:", "--higher-is-better", "--id:", "--assigned:", "--features:"]


def test_the_command_that_it_prints_works_when_it_is_completed(init):
    made = init(trial(), *init(trial()).completed("arm", "cured", "--lower-is-better", "randomised:1,1", "age,sex"))
    assert made.code == 0
    assert "Outcome: cured is 0." in made.out  # of a harm, its absence is the success
    assert made.data["outcome"] == {"cured": {"0": 1, "1": 0}}
    assert made.data["propensity"] == {"A": 1, "B": 1}
    assert list(made.data["features"]) == ["age", "sex"]
    assert made.data["treatments"] == {"A": "A", "B": "B"}


@pytest.mark.parametrize("name", ["death", "cured", "y"])
@pytest.mark.parametrize(("better", "worth"), [("higher", 1.0), ("lower", {"0": 1, "1": 0})])
def test_only_the_user_says_which_direction_is_better(init, name, better, worth):
    frame = trial().rename(columns={"cured": name})
    assert init(frame, *answers(None, outcome=name)).proposals == ["<--higher-is-better|--lower-is-better>"]
    assert init(frame, *answers(better, outcome=name)).data["outcome"] == {name: worth}


def test_the_direction_may_be_given_before_the_outcome(init):
    asked = init(trial(), "--lower-is-better", "--treatment", "arm")
    assert (asked.code, asked.proposals[0]) == (2, "<age|cured>")
    assert "--lower-is-better" in asked.typed


@pytest.mark.parametrize(
    ("assigned", "propensity"),
    [
        ("randomised", "arm shares"),
        ("randomized", "arm shares"),
        ("randomised:2,1", {"A": 2, "B": 1}),
        ("randomized:2,1", {"A": 2, "B": 1}),
        ("by-doctors", "estimate"),
        ("pscore", "pscore"),
    ],
)
def test_the_user_says_how_patients_were_assigned(init, assigned, propensity):
    frame = trial(pscore=[0.2, 0.5])
    assert init(frame, *answers(assigned=None)).proposals == ["<randomised|randomised:1,1|by-doctors|pscore>"]
    assert init(frame, *answers(assigned=assigned)).data["propensity"] == propensity


def test_our_own_logs_have_a_propensity_that_is_offered(tmp_path, init):
    log = tmp_path / "log.csv"
    simulated = ["examples/ward/study.toml", "--patients", "500", "--policy", "uniform", "--log", str(log)]
    assert main(["simulate", *simulated]) == 0
    options = ("--treatment", "action", "--outcome", "reward", "--higher-is-better", "--features", "infected,age")
    asked = init(log.read_bytes(), *options)
    assert asked.proposals == ["<randomised|randomised:1,1,1|by-doctors|propensity>"]
    assert init(log.read_bytes(), *asked.completed("propensity")).data["propensity"] == "propensity"


# What an answer may not be.


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--treatment arn", "--treatment: unknown column 'arn'; did you mean 'arm'? known: arm, age, sex, cured"),
        ("--treatment age", f"--treatment: age {OF_ARMS}; it has 60 values: 20 to 79, the rarest in 4 rows\n"),
        ("--treatment arm,age", f'--treatment: "arm, age" {OF_ARMS}; it has 106 values: words, the rarest in 1 row'),
        ("--treatment rare", f"--treatment: rare {OF_ARMS}; it has 2 values: 0, 1, the rarest in 9 rows\n"),
        ("--treatment arm --outcome arm", "--outcome: arm is the --treatment already\n"),
        ("--outcome sex", "--outcome: sex must be two or more numbers; of words say what each is worth, as in 'cur"),
        ("--outcome sex:f=1", "--outcome: sex: what is m worth?"),
        ("--outcome age,cured", "--outcome: must be NAME=VALUE, with commas between, got 'age'\n"),
        ("--outcome age=1,cured=-1 --lower-is-better", "--lower-is-better: goes with one outcome"),
        ("--outcome age=much,cured=-1", "--outcome: must be a number, got 'much'"),
        ("--outcome row", "--outcome: row must be two or more numbers"),
        ("--time age --event rare:happened=1", "--event: rare: say what each of its values means: --event rare:happ"),
        ("--time age --event sex", "--event: sex: say what each of its values means: --event 'sex:event=<f|m>,cens"),
        ("--time sex", "--time: sex must be three or more numbers; it has 2 values: f, m, the rarest in 120 rows"),
        ("--id site_id", "--id: site_id has 4 values in 240 rows. If several rows are one patient, say --cluster"),
        ("--treatment arm --assigned randomised:1,2,3", "--assigned: must have a number > 0 for each of 2"),
        ("--treatment arm --assigned random", "--assigned: unknown assignment 'random'; did you mean 'randomised'?"),
        ("--features arm,row", "--features: row must be numbers or a few words, and no id; it has 240 values: 0 to 2"),
        ("--features who", "--features: who must be numbers or a few words, and no id; it has 60 values: words, th"),
        ("--unknown age=.", "--unknown: age: '.' is read as missing anyway: leave it out\n"),
        ("--unknown age=7", "--unknown: age has no value '7'; name COLUMN=VALUE, or none"),
    ],
)
def test_answers_are_checked(init, options, said):
    frame = trial(row=range(N), site_id=range(4), who=[f"p{number}" for number in range(60)], rare=[1] * 9 + [0] * 231)
    asked = init(frame, *options.split())
    assert asked.code == 2
    assert asked.err.startswith(f"policysim: {said}"), asked.err


EVENTS = {"days": range(1, 81), "died": [0, 1]}
ABOVE_1 = {"pscore": [0.5] * 99 + [1.5] + [0.5] * 140}
NO_CHANCE = "must be a probability > 0 and <= 1, that of the treatment that"
FEW_OUTCOMES = {"arm": ["A"] * 230 + ["B"] * 10, "cured": [0.0, 1.0] * 119 + [np.nan] * 2}


@pytest.mark.parametrize(
    ("columns", "changed", "said"),
    [
        (ABOVE_1, {"assigned": "pscore"}, f"trial.csv:101: row 100: pscore: {NO_CHANCE} the row got, got '1.5'"),
        ({"pscore": [0.5] * 239 + [0]}, {"assigned": "pscore"}, "trial.csv:241: row 240: pscore: must be a"),
        ({"weight": [2, 3]}, {"assigned": "weight"}, "(so are 240 rows); it looks like a weight 1/p: give p"),
        ({"arm": ["A"] * 231 + ["B"] * 9}, {}, f"--treatment: arm {OF_ARMS}; it has 2 values: A, B, the rarest in 9"),
        (FEW_OUTCOMES, {}, "arm: B has 8 patients with an outcome, each arm needs 10"),
        ({"age": [20, 70] * 120, "cured": [0, 3] * 120}, {}, "the feature age decides it"),
        ({}, {"assigned": "randomised:1,0"}, "data.propensity.B: must be > 0, got 0"),
        (EVENTS, {"event": "died"}, "data.outcome.cured: must be 0: with time, event and horizon the outcome is"),
        (EVENTS, {"event": "died:censored=0,competing=1"}, "data.event: event is missing: it must be a number or te"),
    ],
)
def test_what_compare_would_refuse_is_not_written(init, columns, changed, said):
    followed = {"time": "days", "horizon": "50"} if columns is EVENTS else {}
    asked = init(trial(**columns), *answers(**followed, **changed))
    assert asked.code in (2, 3) and said in asked.err, asked.err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"arm,success,age\n", "has no rows"),
        (b"sex,age\n0,30\n1,40\n", f"no column can be the treatment: it {OF_ARMS}"),
    ],
)
def test_what_is_needed_is_told_in_one_line(init, content, said):
    asked = init(content)
    assert asked.code == 3 and asked.err.count("\n") == 1 and said in asked.err


def test_a_file_that_is_there_is_never_replaced(tmp_path, capsys):
    trial().to_csv(tmp_path / "trial.csv", index=False)
    (tmp_path / "trial.toml").write_text("mine")
    assert main(["init", str(tmp_path / "trial.csv"), *answers()]) == 2
    assert "trial.toml exists already" in capsys.readouterr().err
    assert (tmp_path / "trial.toml").read_text() == "mine"
    assert main(["init", str(tmp_path / "trial.csv"), "--out", "mine.txt"]) == 2
    assert "--out must end in .toml" in capsys.readouterr().err


def test_out_says_where_and_the_data_are_named_from_there(tmp_path, read_study):
    (tmp_path / "data").mkdir()
    trial().to_parquet(tmp_path / "data" / "trial.parquet")
    out = tmp_path / "studies" / "mine.toml"
    assert main(["init", str(tmp_path / "data" / "trial.parquet"), "--out", str(out), *answers()]) == 0
    assert load_log(read_study(out)).n_read == N
    assert 'file = "../data/trial.parquet"' in out.read_text(encoding="utf-8")


def test_json_is_one_document(init):
    made = init(trial(), *answers(), "--json")
    document = json.loads(made.out)
    assert (made.code, made.err, document["rows"], document["records"]) == (0, "", N, 8)
    # What was checked is what is written.
    assert {key: document[key] for key in made.data} == made.data
    assert init(trial(), "--json").out == ""


# On a terminal.


@pytest.fixture
def answered(tmp_path):
    """Run init on a terminal where these lines are typed: exit code, what is seen, and the table [data]."""

    def run(frame, *lines):
        frame.to_csv(tmp_path / "trial.csv", index=False)
        study = tmp_path / "trial.toml"
        study.unlink(missing_ok=True)
        master, slave = pty.openpty()
        streams, seen = (sys.stdin, sys.stdout, sys.stderr), []

        def look():
            while True:
                try:
                    seen.append(os.read(master, 4096))
                except OSError:
                    return

        with os.fdopen(os.dup(slave)) as source, os.fdopen(os.dup(slave), "w") as screen:
            reader = threading.Thread(target=look, daemon=True)
            reader.start()
            sys.stdin, sys.stdout, sys.stderr = source, screen, screen
            try:
                os.write(master, "".join(f"{line}\n" for line in lines).encode() + b"\x04")
                code = main(["init", str(tmp_path / "trial.csv")])
            finally:
                sys.stdin, sys.stdout, sys.stderr = streams
        os.close(slave)
        reader.join(60)
        data = tomllib.loads(study.read_text())["data"] if study.exists() else {}
        return code, b"".join(seen).decode(), data

    return run


def test_a_terminal_is_asked_one_question_at_a_time_until_the_answer_can_be_used(answered):
    # Enter takes the id that is shown; where there is no safe default it is asked again.
    typed = ["arn", "arm", "cured", "", "lower", "", "", "by-doctors", "", "age,sex"]
    code, seen, data = answered(trial(pid=range(N)), *typed)
    assert code == 0, seen
    for said in ("did you mean 'arm'?", "must be higher or lower, got ''", "unknown assignment ''"):
        assert said in seen
    assert (data["treatment"], data["outcome"], data["id"]) == ("arm", {"cured": {"0": 1, "1": 0}}, "pid")
    assert (data["propensity"], list(data["features"])) == ("estimate", ["age", "sex"])


def test_a_time_to_an_event_is_asked_for_on_a_terminal_and_its_end_writes_nothing(answered):
    frame, typed = trial(days=range(1, 101)), ["arm", "--time", "days", "cured", "higher"]
    code, seen, data = answered(frame, *typed, "", "none", "randomised", "age")
    assert code == 0, seen
    assert (data["time"], data["event"]) == ("days", "cured")
    assert data["horizon"] > 10
    code, seen, data = answered(frame, *typed, "0.5", "none", "randomised", "age")
    assert (code, data) == (2, {}) and "data.horizon: nobody has the event by days = 0.5" in seen
    assert "Not written. Type: policysim init" in seen and "--horizon 0.5 --id none --assigned randomised" in seen
    code, seen, data = answered(frame, "arm")
    assert (code, data) == (2, {}) and "no answer: nothing was written" in seen


def test_a_third_value_is_asked_about_once_the_outcome_is_named_on_a_terminal(answered):
    # Enter is no answer.
    typed = ["arm", "cured", "", "cured=2", "higher", "", "random", "randomized", "age"]
    code, seen, data = answered(trial(cured=[2] * 6 + [0, 1] * 117), *typed)
    assert code == 0, seen
    assert "[cured=2|none]" in seen and "must be COLUMN=VALUE, or none" in seen
    assert "unknown assignment 'random'; did you mean 'randomised'? known: randomised, randomised:1,1, by-doc" in seen
    assert (data["unknown"], data["propensity"], "range" in data) == ({"cured": [2]}, "arm shares", False)


# Small inputs that failed once.


def test_a_column_that_repeats_is_no_id_and_no_rows_are_to_be_dropped(init):
    """Case 05: site_id has 4 values in 240 rows; item_id is the treatment."""
    asked = init(trial(site_id=range(4)))
    assert (asked.code, asked.typed[asked.typed.index("--id") + 1]) == (2, "none")
    assert "keep one" not in asked.err + asked.out and "id?" not in asked.out
    assert init(trial(site_id=range(4)), *answers(features="age,sex,site_id")).code == 0
    assert init(trial(item_id=range(4)), *answers(treatment="item_id")).data["treatment"] == "item_id"


def test_groups_of_patients_and_rows_of_one_patient_and_what_is_adjusted_for(init):
    frame = trial(village=[f"V{place:02}" for place in range(40)], weight=range(50, 90))
    frame["arm"] = np.where(frame["village"] < "V20", "A", "B")
    made = init(frame, *answers(features="sex", cluster="village", adjust_for="age,weight"))
    assert (made.data["cluster"], made.data["adjust_for"]) == ("village", ["age", "weight"])
    assert "240 rows, each of them a patient." in made.out and "1 feature, 2 records: sex." in made.out
    asked = init(frame, *answers(features="sex", id="village"))
    assert asked.code == 2 and "say --cluster village, too" in asked.err
    made = init(frame, *answers(features="sex", id="village", cluster="village"))
    assert (made.data["id"], made.data["cluster"]) == ("village", "village") and "240 rows, of 40 patients." in made.out
    # What is named for one thing is not taken by "all" for another.
    made = init(frame, *answers(features="all", cluster="village", adjust_for="age"))
    assert set(made.data["features"]) == {"sex", "weight"}


def test_a_feature_that_is_named_is_used_or_the_command_says_why_not(init):
    """Case 08: 45 weights are no numbers; 19 genes make too many records."""
    weights = ["?"] * 45 + list(range(50, 90)) * 10
    genes = {f"gene{number}": [0, 1] for number in range(1, 24)}
    frame = trial(400, weight=weights[:400], **genes)
    asked = init(frame, *answers(features="weight,sex"))
    assert asked.code == 2
    assert '45 of 400 values are "?" (unknown?)' in asked.out and asked.typed[-2:] == ["--unknown", "weight=?"]
    asked = init(trial(400, weight=[">89", *weights[45:444]]), *answers(features="weight,sex"))
    assert asked.code == 2
    assert asked.err.splitlines() == [
        "policysim: --features: weight must be numbers or a few words, and no id; it has 41 values: numbers and words, "
        'the rarest in 1 row; 1 of 400 values are no numbers, such as ">89"',
        "policysim: Name the others: --features sex",
    ]
    names = ["sex", *genes]
    assert list(init(frame, *answers(features=",".join(names[:20]))).data["features"]) == names[:20]
    asked = init(frame, *answers(features=",".join(names)))
    assert (asked.code, asked.err.count("\n")) == (2, 1)
    assert "= 16,777,216 records are declared, at most 2,000,000 are possible: declare fewer features" in asked.err


def test_a_nine_among_zeros_and_ones_is_asked_about(init, read):
    """Case 09: 20 of 400 outcomes are 9, some ages 999."""
    frame = trial(400, cured=[9] * 20 + [0, 1] * 190, age=[999] * 12 + list(range(20, 117)) * 4)
    asked = init(frame, *answers())
    assert asked.code == 2
    assert "20 of 400 values are 9 (unknown?)" in asked.out and "12 of 400 values are 999 (unknown?)" in asked.out
    assert (asked.typed[-2:], asked.proposals) == (["--unknown", "age=999,cured=9"], [])
    assert init(frame, *asked.completed()).code == 0
    log, used = read(), (frame["cured"] < 9) & (frame["age"] < 999)
    assert (log.n_read, log.n_untreated) == (400, 12)
    assert np.nanmean(log.outcomes["cured"]) == frame["cured"][used].mean()
    assert sum(log.missing) == 400 - 12 - used.sum()
    # Who says that they are values has them.
    data = init(frame, *answers(unknown="none")).data
    assert (data["range"], "unknown" in data) == ([0, 9], False)


@pytest.mark.parametrize("code", [9, -9, 99, -99, 999, -999])
def test_codes_for_unknown_are_seen(code):
    ages = pd.Series([*range(20, 80), code])
    assert summarise(pd.Series([0, 1, 1, code]), "x").unknown_codes == [code]
    assert summarise(pd.Series([*range(5, 8), code]), "x").unknown_codes == [code]
    assert summarise(pd.Series([*range(-20, 120, 7), code]), "x").unknown_codes == ([code] if code == 999 else [])
    assert summarise(ages, "x").unknown_codes == ([] if code == 9 else [code])
    assert summarise(ages, "patient").unknown_codes == []


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        *(([*range(6), *codes], codes) for codes in ([8, 9], [7, 8, 9], [77, 99], [-1], [-9, -8, -1], [-9, 9])),
        ([*range(101), -1], [-1]),
        (["A", "B", "Unknown", "?"], ["?", "Unknown"]),
        (["1", "2", "3", "4", "?", "unknown"], ["?", "unknown"]),
        *((values, []) for values in ([0, 1, 2], [1, 2], [0, 9], range(10), [1, 2, 3, 5, 9, 10], [1, 2, 4, 8])),
        *((values, []) for values in ([-2, -1, 0, 1, 2], [-1, 0, 1], ["a", "b", "9"], [0.5, 9])),
        (["1", "2", "3", "4", ">89"], []),
    ],
)
def test_codes_of_a_scale_are_seen_and_its_values_are_none(values, codes):
    assert summarise(pd.Series([*values], dtype=object), "x").unknown_codes == codes


def test_of_many_words_none_is_compared_with_all_others():
    many = summarise(pd.Series([f"p{number}" for number in range(100_000)]), "name")
    assert (many.unknown_codes, many.remark(), many.shown()) == ([], "an id?", "words")


RATS = pd.DataFrame(
    {
        "rx": np.arange(150) % 3 == 0,
        "litter": np.arange(150) // 3 + 1,
        "time": np.r_[[34], np.repeat([50, 70, 80, 90, 104], 30)[1:]],
        "status": np.r_[[1], np.arange(1, 150) % 4 == 0] * 1,
    }
)


def of_rats(better="higher", **changed):
    """The options that answer all questions about rats but for the horizon."""
    followed = {"treatment": "rx", "outcome": None, "time": "time", "event": "status", "features": "litter"}
    return answers(better, **(followed | changed))


def test_no_horizon_is_taken_before_anything_happens(init):
    """Case 13: of 150 rats 1 had a tumour before the horizon that was taken."""
    asked = init(RATS, *of_rats())
    horizon = float(asked.typed[asked.typed.index("--horizon") + 1])
    known = RATS[(RATS["status"] == 1) & (RATS["time"] <= horizon)].groupby("rx").size()
    at_risk = RATS[RATS["time"] >= horizon].groupby("rx").size()
    assert asked.proposals == [] and known.min() >= 10 and at_risk.min() >= 10
    # No later round time has that.
    for later in sorted({time for time in RATS["time"] if time > horizon}):
        late = RATS["time"] >= float(f"{later:.2g}")
        assert RATS[late].groupby("rx").size().min() < 10 or later == 104
    asked = init(RATS, *of_rats(horizon="33"))
    assert asked.code == 2
    assert "data.horizon: nobody has the event by time = 33: 38 rows have it, the first at 34" in asked.err
    assert init(RATS, *of_rats(horizon="70")).data["horizon"] == 70
    # With few events there is none to take, and it is said how many there are.
    asked = init(RATS.assign(status=(np.arange(150) % 30 == 0) * 1), *of_rats())
    assert asked.proposals == ["<TIME>"] and "No time has 10 of each." in asked.err


def test_times_are_asked_for_their_direction_and_events_for_their_codes(init):
    frame, coded = RATS.assign(status=RATS["status"] + 1), "status:event=2,censored=1"
    asked = init(frame, *of_rats(None))
    assert asked.code == 2 and "'status:event=<1|2>,censored=<1|2>'" in asked.err
    assert "<--higher-is-better|--lower-is-better>" in init(frame, *of_rats(None, event=coded)).proposals
    data = init(frame, *of_rats(event=coded, horizon="90")).data
    assert data["event"] == {"column": "status", "event": [2], "censored": [1]}
    asked = init(frame, *of_rats("lower", event=coded, horizon="90"))
    assert asked.code == 2 and "--lower-is-better: an event that is wanted, such as recovery" in asked.err


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("event=2", "say what each of its values means: --event 'status:event=2,censored=<1|3>,competing=<1|3>'"),
        (
            "event=2+3,censored=1",
            "'2+3' is none of its values; say what each of its values means: --event "
            "'status:censored=1,event=<2|3>,competing=<2|3>'",
        ),
        ("event=2,event=3", "say what each of its values means: --event status:event=2,event=3,censored=1"),
    ],
)
def test_a_value_of_an_event_that_is_left_is_proposed_for_what_it_may_mean(init, typed, said):
    frame = RATS.assign(status=np.where(RATS["status"] == 1, 2, np.resize([1, 3], 150)))
    asked = init(frame, *of_rats(event=f"status:{typed}", horizon="90"))
    assert asked.code == 2 and f"--event: status: {said}" in asked.err


@pytest.mark.parametrize("third", [-1, 2, 5, 88])
def test_a_third_value_of_an_outcome_of_zeros_and_ones_is_the_users_word(init, read, third):
    frame = trial(cured=[third] * 6 + [0, 1] * 117, age=[999, *range(20, 79)])
    for unknown in (None, "age=999"):
        asked = init(frame, *answers(unknown=unknown))
        assert asked.code == 2
        assert asked.typed[-1] in (f"age=999,<cured={third}|none>", f"age=999,cured={third}")
        assert f"cured: 6 of 240 values are {third} (unknown?)" in asked.err
    assert init(frame, *answers(unknown="cured=1")).code == 2
    data = init(frame, *answers(unknown=f"age=999,cured={third}")).data
    assert (data["unknown"], "range" in data) == ({"age": [999], "cured": [third]}, False)
    lacking = frame[(frame["cured"] == third) & (frame["age"] != 999)]
    assert read().missing == tuple((lacking["arm"] == arm).sum() for arm in "AB")
    data = init(frame, *answers(unknown="age=999,none")).data
    assert (data["range"], data["unknown"]) == (sorted([third, 0 if third > 0 else 1]), {"age": [999]})
    data = init(frame, *answers(outcome=f"cured:0=0,1=1,{third}=0.5", unknown="age=999")).data
    assert (data["outcome"]["cured"][str(third)], "range" in data) == (0.5, False)


def test_codes_of_treatments_and_scales_are_proposed_as_unknown(init):
    frame = trial(arm=["A", "B"] * 112 + ["Unknown"] * 16, mrs=[*range(7)] * 32 + [9] * 16)
    asked = init(frame, *answers(outcome="mrs"))
    assert (asked.typed[-1], asked.proposals) == ("arm=Unknown,mrs=9", [])
    data = init(frame, *asked.completed()).data
    assert (data["treatments"], data["range"], data["missing"]) == ({"A": "A", "B": "B"}, [0, 6], "exclude")


def test_arms_that_differ_in_capitals_are_not_declared_as_two(init):
    asked = init(trial(arm=["A", "B", "a"]), *answers())
    assert asked.code == 2
    assert asked.err.startswith("policysim: --treatment: arm: A and a differ in capitals or spaces only: write them")


def test_all_takes_no_column_that_sounds_as_if_it_came_after_treatment(init):
    frame = trial(arm2=["x", "y"], cd40=range(60), cd420=range(60), death28=[0, 1], row=range(N))
    asked = init(frame, *answers(features="all"))
    assert (asked.code, asked.err.count("\n")) == (2, 2)
    assert "all would take arm2, cd420, death28, which by name came after treatment" in asked.err
    assert list(init(frame, *asked.completed()).data["features"]) == ["age", "sex", "cd40"]
    # Whoever names one has it.
    assert list(init(frame, *answers(features="age,cd420")).data["features"]) == ["age", "cd420"]


def test_each_value_of_an_event_can_be_typed_as_it_is_proposed(init):
    words = ["Dead, other", 'Dead "ill"', "lost"]
    frame = RATS.assign(status=np.where(RATS["status"] == 1, words[0], np.resize(words[1:], 150)))
    choice = '<"Dead ""ill"""|"Dead, other"|lost>'
    asked = init(frame, *of_rats(horizon="90,104"))
    assert f"'status:event={choice},censored={choice},competing={choice}'" in asked.err
    typed = 'status:event="Dead, other",censored=lost'
    asked = init(frame, *of_rats(horizon="90,104", event=typed))
    proposed = shlex.split(asked.err.partition("--event: ")[2].partition("means: ")[2])
    # What the last value means is not guessed: it may be another event, too, or censoring.
    assert (asked.code, proposed) == (2, ["--event", f'{typed},<event|censored|competing>="Dead ""ill"""'])
    chosen = proposed[1].replace("<event|censored|competing>", "competing")
    data = init(frame, *of_rats(horizon="90,104", event=chosen)).data
    states = {state: [word] for state, word in zip(("event", "competing", "censored"), words, strict=True)}
    assert data["event"] == {"column": "status", **states}
    assert data["horizon"] == [90, 104]


@pytest.mark.parametrize("patients", [range(1, N), [f"P{number}" for number in range(1, N)]])
def test_a_row_of_totals_is_refused_before_anything_is_asked(init, patients):
    asked = init(trial(patient=[*patients, "Total"]))
    assert (asked.code, asked.out) == (3, "")
    assert "trial.csv: row 240: patient: 'Total': a row of totals is no patient" in asked.err


def test_a_missing_value_costs_a_row_or_is_a_level_and_never_the_feature(init, read):
    """Case 15: one age of 240 is missing, and 77 answers on smoking."""
    ages = [None, *range(20, 79), *range(20, 80), *range(20, 80), *range(20, 80)]
    frame = trial(age=ages, smoker=["yes", "no", None])
    made = init(frame, *answers(features="all"))
    assert made.out.startswith("240 rows, each of them a patient. Left out: 1 without a treatment or a feature.\n")
    assert (list(made.data["features"]), made.data["missing"]) == (["age", "sex", "smoker"], "exclude")
    assert made.data["features"]["smoker"]["levels"] == ["no", "yes", "NA"]
    assert "missing" not in made.data["features"]["age"]
    log, kept = read(), frame[frame["age"].notna()].reset_index(drop=True)
    assert (log.n_read, log.n_untreated, log.data.n_rows) == (N, 1, N - 1)
    assert (log.space.decode(log.records)["smoker"] == kept["smoker"].fillna("NA")).all()
    assert (log.data.rewards == kept["cured"]).all()


def test_outcomes_are_no_features_unless_the_user_names_them(init):
    """Case 21: QALYs and costs."""
    frame = trial(qaly=np.linspace(0.2, 1, N), cost=range(100, 100 + 3 * N, 3)).drop(columns="cured")
    asked = init(frame)
    assert asked.code == 2
    assert "several columns and their weights, such as qaly=20000,cost=-1" in asked.err
    later = [line.split()[0] for line in asked.out.splitlines() if line.endswith("or later?")]
    assert (later, asked.proposals[-1]) == (["arm", "qaly", "cost"], "<age,sex>")
    data = init(frame, *answers(None, outcome="qaly=20000,cost=-1")).data
    assert data["outcome"] == {"qaly": 20000.0, "cost": -1.0}
    assert data["range"] == pytest.approx([20000 * 0.2 - 100 - 3 * (N - 1), 20000 - 100])
    assert list(data["features"]) == ["age", "sex"]
    frame["cost"] = frame["cost"].sample(frac=1, random_state=1).to_numpy()
    made = init(frame, *answers(outcome="qaly", features="age,cost"))
    assert "No features, if they came after treatment: cost.\n" in made.out


def test_a_second_treatment_is_no_feature_unless_the_user_names_it(init):
    """Case 22: a SMART with a1, response1, a2 and y."""
    frame = trial(a1=["x", "y"], response1=[0, 1], a2=["x", "y"], y=np.linspace(-1, 2, N))
    frame = frame.drop(columns=["arm", "cured"])
    asked = init(frame, "--treatment", "a1")
    assert asked.code == 2
    assert "no second treatment (rules over several stages are not learned here: see docs/trials.md)" in asked.err
    assert list(init(frame, *answers(treatment="a1", outcome="y")).data["features"]) == ["age", "sex"]
    made = init(frame, *answers(treatment="a1", outcome="y", features="age,a2"))
    assert "No features, if they came after treatment: a2.\n" in made.out


@pytest.mark.parametrize("better", ["higher", "lower"])
def test_words_are_worth_what_the_user_says_in_the_direction_that_the_user_says(init, read, better):
    frame, success = trial(died=["Yes", "No"]), "Yes" if better == "higher" else "No"
    data = init(frame, *answers(better, outcome="died:Yes=1,No=0")).data
    assert data["outcome"] == {"died": {word: int(word == success) for word in ("Yes", "No")}}
    assert (read().data.rewards == (frame["died"] == success)).all()
    worth = {"Yes": -5, "No": 2} if better == "higher" else {"Yes": 5, "No": -2}
    assert init(frame, *answers(better, outcome="died:Yes=-5,No=2")).data["outcome"] == {"died": worth}


# Names and values.


@pytest.mark.parametrize("asked", ["age,site", '" age",site', '" age","site "'])
def test_margins_of_columns_need_not_be_typed(init, asked):
    """Many files have a space behind each comma."""
    frame = trial(site=["n", "s"]).rename(columns={"age": " age", "site": "site "})
    assert list(init(frame, *answers(features=asked)).data["features"]) == [" age", "site "]


def test_names_that_begin_with_a_dash_are_no_options(init):
    frame = trial().rename(columns={"arm": "-5", "cured": "--x"})
    options = ["--outcome=--x", *answers(treatment=None, outcome=None)]
    assert "--outcome=--x" in init(frame, *options).typed
    assert init(frame, "--treatment=-5", *options).data["treatment"] == "-5"


def test_odd_names_and_values_are_quoted(init, tmp_path, read_study):
    header = '"the ""A"", or B","say ""yes"", success",größe,"two\nlines",a.b,"tab\there","back\\slash"\n'
    arms = ('"p\'q ""x"""', '"北\\"')
    bits = np.random.default_rng(5).integers(0, 2, (400, 7))
    rows = [f'{arms[b[0]]},{b[1]},{b[2]},é\\{b[3]},"#{b[4]}","=[{b[5]}]",{b[6]}\n' for b in bits]
    content = (header + "".join(rows)).encode()
    chosen = ['"the ""A"", or B"', '"say ""yes"", success"', "--lower-is-better", "randomised", "all"]
    data = init(content, *init(content, name="my trial's.csv").completed(*chosen), name="my trial's.csv").data
    assert (data["treatment"], data["outcome"]) == ('the "A", or B', {'say "yes", success': {"0": 1, "1": 0}})
    source = read_study(tmp_path / "my trial's.toml")
    assert dict(source.treatments) == {'p\'q "x"': 'p\'q "x"', "北\\": "北\\"}
    # Line ends and tabs of the file's names are escaped.
    assert list(source.features) == ["größe", r"two\nlines", "a.b", r"tab\there", "back\\slash"]
    assert source.features[r"two\nlines"].levels == ("é\\0", "é\\1")
    assert load_log(source).n_read == 400


def test_a_control_is_the_reference_and_columns_make_a_treatment_together(init):
    frame = trial(arm=["drug A", "drug B", "Placebo pill"], aspirin=["Y", "N"], dose=[0, 10])
    assert next(iter(init(frame, *answers()).data["treatments"])) == "Placebo pill"
    data = init(frame, *answers(treatment="aspirin,dose")).data
    assert data["treatment"] == ["aspirin", "dose"]
    assert set(data["treatments"]) == {"N, 0", "N, 10", "Y, 0", "Y, 10"}


# Levels and cuts.


@settings(max_examples=30)
@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 2.5, "a", "b c", ""])] * 3), min_size=2, max_size=12))
def test_joined_columns_are_the_same_as_in_the_log(rows):
    frame = pd.DataFrame(rows, columns=["x", "y", "z"]).astype(str)
    found = together([summarise(frame[name], name) for name in frame])
    texts = joined_columns([frame[name] for name in frame])
    assert [None if code < 0 else found.values[code] for code in found.codes] == texts.tolist()
    assert found.name == "x, y, z"


@given(st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=13, max_size=60, unique=True))
def test_cuts_are_rising_and_leave_no_end_empty(values):
    cuts = round_cuts(summarise(pd.Series(values), "x"))
    assert 1 <= len(cuts) <= 3
    assert cuts == sorted(set(cuts))
    assert min(values) < cuts[0]
    assert cuts[-1] <= max(values)


@given(st.integers(1, 3), st.integers(0, 10**6))
def test_cuts_are_close_to_the_quartiles_of_many_values(power, seed):
    values = np.random.default_rng(seed).normal(10**power, 10**power / 5, 500)
    cuts = round_cuts(summarise(pd.Series(values), "x"))
    quartiles = np.quantile(values, [0.25, 0.5, 0.75])
    # Steps are at most a third of the middle half's width, and a cut is at most half a step away.
    assert np.abs(np.array(cuts) - quartiles).max() <= (quartiles[2] - quartiles[0]) / 6 + 1e-9
    # And round: at most three digits.
    assert all(float(f"{cut:.3g}") == cut for cut in cuts)


@pytest.mark.parametrize(("n_of_an_arm", "n_bins"), [(200, 4), (79, 3), (59, 2), (15, 2)])
def test_numbers_are_cut_into_bins_of_about_twenty_patients_of_each_arm(n_of_an_arm, n_bins):
    arm = summarise(pd.Series([0, 1] * n_of_an_arm), "arm")
    ages = pd.Series(np.random.default_rng(2).permutation(2 * n_of_an_arm) / 10)
    found = declare(summarise(ages, "age"), arm, missing=True)
    assert (len(found["cuts"]), found["missing"]) == (n_bins - 1, True)
    few = declare(summarise(pd.Series([3, 1, 2] * n_of_an_arm)[: 2 * n_of_an_arm], "grade"), arm, missing=True)
    assert few == {"levels": [1, 2, 3, "NA"]}


def test_bins_are_half_open_and_named_by_their_ends():
    age = binned("age", (28, 34.5, 41))
    assert age.levels == ("< 28", "28 to < 34.5", "34.5 to < 41", "≥ 41")
    column = pd.Series(["27.999", "28", "34.4", "34.5", "40", "41", "1e9", "-3"])
    assert level_codes(age, column).tolist() == [0, 1, 1, 2, 2, 3, 3, 0]
    assert level_codes(age, pd.Series(["inf", "-inf", "nan", "", "young"])).tolist() == [-1] * 5
    assert level_codes(age, pd.Series([np.inf, -np.inf, np.nan])).tolist() == [-1] * 3


# Whatever the table.

names = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1, max_size=8) | st.sampled_from(
    ["id", "age", "cens", "days", "death", "propensity", "x1", "x10", "cd420", "a.b", "'", '"', "=", "a=1", "b:c", "-x"]
)
cells = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=4),
    st.sampled_from(["", "NA", "true", "0", "1", "1.0", "2", "9", "999", "?", "-7", "1e300", "5e-324", "inf", "a"]),
    st.floats(width=32).map(str),
    st.integers(-50, 50).map(str),
)


@st.composite
def tables(draw):
    """Columns of anything, one of which may be the treatment; and which of them is which, for whoever is asked."""
    n = draw(st.integers(20, 60))
    columns = {"arm": [draw(st.sampled_from("xy")) for _ in range(n)]}
    for name in draw(st.lists(names, min_size=1, max_size=6, unique_by=str.strip)):
        few = draw(st.lists(cells, min_size=1, max_size=4))
        columns[name] = draw(st.lists(st.sampled_from(few) if draw(st.booleans()) else cells, min_size=n, max_size=n))
    columns["y"] = [str(draw(st.integers(0, 9))) for _ in range(n)]
    return pd.DataFrame(columns), draw(st.integers(0, 10**6))


def completed(error, rng):
    """The command of an error with one of its candidates for each proposal; or with the features that it lists."""
    if "Type: policysim " not in error:
        return None
    words = shlex.split(error.partition("Type: policysim ")[2])
    for place, word in enumerate(words):
        if word.startswith("<--"):
            words[place] = rng.choice(["--higher-is-better", "--lower-is-better"])
        elif words[place - 1] == "--unknown":
            # What may be one of the outcome's numbers stands in <>, behind codes that are proposed.
            codes, _, choices = word.removesuffix(">").rpartition("<")
            choice = rng.choice([*choices.split("|"), "none"])
            words[place] = f"{codes}{choice}" if word.endswith("|none>") else rng.choice([word, "none"])
        elif word.startswith("<") and words[place - 1] == "--features":
            words[place] = word[1:].removesuffix("|all>")
        elif word.startswith("<"):
            words[place] = rng.choice([choice for choice in word[1:-1].split("|") if choice != "..."])
    return words


def complete(path, words, rng):
    """Type what init prints, completed, until there is a study: whether there is one, else it says why not."""
    for _ in range(4):
        try:
            init_command.run(parse([*words, "--json"], [init_command.add]))
        except DataError:
            return False
        except UsageError as error:
            words = completed(str(error), rng)
            if words is None:
                return False
        else:
            return True
        assert not path.with_suffix(".toml").exists()
    raise AssertionError(f"it asks for ever: {words}")


@pytest.mark.usefixtures("blank_drawings", "few_trees", "one_split")
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(tables())
def test_compare_takes_what_is_written_whatever_the_table(tmp_path, read_study, capsys, table):
    """Whoever completes the command that it prints has a study that compare takes, or a line that says why not."""
    frame, seed = table
    path, out = tmp_path / "trial.csv", tmp_path / "trial.toml"
    out.unlink(missing_ok=True)
    frame.to_csv(path, index=False, quoting=1)
    words = ["init", str(path), "--treatment", "arm", "--outcome", "y"]
    if not complete(path, words, np.random.default_rng(seed)):
        return
    source = read_study(out)
    assert 0 < load_rows(source, show=False).data.n_rows <= len(frame)
    assert list(source.features) == list(tomllib.loads(out.read_text(encoding="utf-8"))["data"]["features"])
    asked = ["--brief", "--policy", "uniform", "--epsilon", "1", "--out", str(tmp_path / "out")]
    assert main(["compare", str(out), *asked]) == 0, capsys.readouterr().err
