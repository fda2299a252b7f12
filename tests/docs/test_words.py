"""The glossary of the docs, of pages and of screens is one."""

import re
from pathlib import Path

from policysim.report.glossary import GLOSSARY

DOCS = Path(__file__).parents[2] / "docs"


def test_the_glossary_of_the_docs_has_the_words_and_meanings_of_pages():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    described = re.findall(r"^\*\*(.+)\*\*\n: ((?:.+\n)+)", text, flags=re.MULTILINE)
    assert {word: " ".join(meaning.split()) for word, meaning in described} == GLOSSARY
    assert "\nglossary\n" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_the_glossary_has_at_most_25_words_of_one_or_two_sentences():
    assert len(GLOSSARY) <= 25
    for meaning in GLOSSARY.values():
        assert meaning.endswith(".") and len(re.findall(r"[.:] [A-Z]", meaning)) <= 1
