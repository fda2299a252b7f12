"""CITATION.cff says what pyproject.toml says."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def citation():
    """The keys of one line; YAML is read by hand, as nothing else here needs it."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    return dict(re.findall(r"^([a-z-]+): (.+)$", text, flags=re.MULTILINE)), text


def test_the_citation_is_of_this_version():
    found, _ = citation()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert (found["version"], found["title"], found["license"]) == (
        project["version"],
        project["name"],
        project["license"],
    )


def test_it_has_what_the_format_requires_and_invents_no_identifier():
    found, text = citation()
    assert found["cff-version"] == "1.2.0"
    assert found["type"] == "software"
    assert found["message"]
    assert "\nauthors:\n  - name: policysim developers\n" in text
    for key in ("doi", "orcid", "email", "url", "repository"):
        assert f"{key}:" not in text.lower()
