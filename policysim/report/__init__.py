"""A report of any kind: what was found, its words, and what becomes of it: screen, page, JSON document, folder."""
