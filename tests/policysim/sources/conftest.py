"""The four studies of source documents, computed once for all tests of this folder."""

import pytest

from policysim.sources.documents import Candidates
from policysim.sources.source_question import load_source_study
from policysim.study.study_reader import FOLDER

NAMES = ("adult-age-sex", "common-disease", "marital-status", "sock-groups")


@pytest.fixture(scope="session", autouse=True)
def each_long_loss_once():
    """The exact loss over hundreds of candidates takes seconds, and many tests of this folder need the same one."""
    kept, exact = {}, Candidates.loss

    def loss(document, epsilon, adjacency, candidates=0):
        key = (document.people, document.sensitivity, document.divisor, epsilon, adjacency, candidates)
        if candidates < 100 or key not in kept:
            kept[key] = exact(document, epsilon, adjacency, candidates)
        return kept[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Candidates, "loss", loss)
        yield


@pytest.fixture(scope="session")
def studies():
    return {name: load_source_study(FOLDER / f"{name}.toml") for name in NAMES}


@pytest.fixture(scope="session")
def findings(studies):
    return {name: study.findings() for name, study in studies.items()}


@pytest.fixture
def edited(tmp_path):
    """The findings of a study whose file is changed: (name, old text, new text)."""

    def change(name, *replacements):
        text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / f"{name}.toml"
        path.write_text(text, encoding="utf-8")
        return load_source_study(path)

    return change
