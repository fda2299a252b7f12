"""A report of any kind: its findings and words, as screen, page, JSON document and folder."""
