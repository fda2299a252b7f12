"""The words of art that screens and pages print, at most 25, each with its meaning: the same as docs/glossary.md."""

from __future__ import annotations

GLOSSARY = {
    "ε": "How much a treatment may tell about the record: no treatment is more than e^ε times as likely for one record "
    "as for another that must look alike. A smaller ε hides more.",
}
