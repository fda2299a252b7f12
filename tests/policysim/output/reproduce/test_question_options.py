"""Options of a manifest: those of a study lead to the same study again; all others are refused."""

import json
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_studies import STUDY, write_small_study

import policysim as ps
from envs.toml_reader import UNSEEN, InputFileError
from policysim.cli.reproduce_command import ask
from policysim.files.terminal import json_text
from policysim.output.manifest import KEYS, read_manifest, read_options
from policysim.output.reproduction import question_of
from policysim.question.protocol import StudyQuestion
from policysim.study.declared import OPTIONS

FEATURES = ("age", "infected", "fever", "cough", "smoker")


@pytest.fixture(scope="module", params=['adjacency = "any-record"', 'adjacency = "one-feature"', 'public = ["age"]'])
def study(request, tmp_path_factory):
    text = STUDY.replace('adjacency = "any-record"', request.param)
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("study"), text))


some = st.lists(st.sampled_from(FEATURES), unique=True)
options = st.fixed_dictionaries(
    {},
    optional={
        "epsilons": st.lists(st.floats(0, allow_nan=False), min_size=1, max_size=4),
        "policies": st.lists(st.sampled_from(["optimal", "uniform", "greedy", "optimal-safe"]), min_size=1),
        "by": some,
        "seed": st.integers(0, 2**70),
    },
)
hidden = st.one_of(
    st.just({}),
    st.sampled_from([{"adjacency": "any-record"}, {"adjacency": "one-feature"}]),
    some.filter(bool).map(lambda names: {"adjacency": "sensitive", "sensitive": names}),
)


@given(options=options, hidden=hidden)
def test_the_options_of_a_study_in_a_manifest_lead_to_the_same_study(study, options, hidden):
    asked = study.with_options(options | hidden)
    written = json.loads(json_text(asked.choices))
    assert set(written) == set(OPTIONS)
    # All options that are the study's own change nothing: what is declared public stays declared so.
    assert study.with_options(read_options(written, OPTIONS)) == asked


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(FEATURES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("death"), inner),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def copy(made, tmp_path_factory):
    return shutil.copytree(made, tmp_path_factory.mktemp("copies") / "ward")


@given(changes=st.dictionaries(st.sampled_from([*KEYS, "workers", ""]), json_values, min_size=1, max_size=3))
def test_whatever_stands_in_a_question_is_asked_or_refused_in_one_line(made, copy, changes):
    manifest = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    manifest["question"] |= changes
    (copy / "manifest.json").write_text(json_text(manifest), encoding="utf-8")
    try:
        question = question_of(read_manifest(copy / "manifest.json"), ask)
    except InputFileError as error:
        assert len(str(error).splitlines()) == 1
        assert not UNSEEN.search(str(error))
    else:
        assert isinstance(question, StudyQuestion)
        assert set(changes) <= set(question.takes)
