"""Studies of small logs as text, for tests."""


def keyed(text, *lines):
    """The text of a study with more lines in its table [data]."""
    table = "[data.treatments]" if "[data.treatments]" in text else "[data.features]"
    return text.replace(table, "\n".join([*lines, table]), 1)
