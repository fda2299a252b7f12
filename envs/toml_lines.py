"""The line of every key in a TOML text, by tree-sitter (tomllib has no positions)."""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from tree_sitter import Node

KeyPath: TypeAlias = tuple[str | int, ...]


def line_numbers(text: str) -> dict[KeyPath, int]:
    """The line, from 1, of each key and each list entry; tables of an array are numbered from 0."""
    # A second parser that only a bad file needs.
    import tree_sitter_toml  # noqa: PLC0415
    from tree_sitter import Language, Parser  # noqa: PLC0415

    tree = Parser(Language(tree_sitter_toml.language())).parse(text.encode())
    lines: dict[KeyPath, int] = {}
    arrays: Counter[KeyPath] = Counter()
    for node in tree.root_node.children:
        if node.type == "pair":
            _note_pair(node, (), lines)
        elif node.type in ("table", "table_array_element"):
            # With the current position in every array of tables on its way; its own last part stays bare.
            key: KeyPath = ()
            for part in _key_of(node):
                key = (*key, arrays[key] - 1, part) if arrays[key] else (*key, part)
            if node.type == "table_array_element":
                arrays[key] += 1
                key = (*key, arrays[key] - 1)
            _note(key, node, lines)
            for pair in node.children:
                if pair.type == "pair":
                    _note_pair(pair, key, lines)
    return lines


def _note_pair(pair: Node, parent: KeyPath, lines: dict[KeyPath, int]) -> None:
    key = (*parent, *_key_of(pair))
    _note(key, pair, lines)
    # A comment after the value is a child of the pair, too.
    value = [child for child in pair.named_children if child.type != "comment"][-1]
    _note_value(value, key, lines)


def _note_value(value: Node, key: KeyPath, lines: dict[KeyPath, int]) -> None:
    if value.type == "inline_table":
        for pair in value.children:
            if pair.type == "pair":
                _note_pair(pair, key, lines)
    elif value.type == "array":
        entries = [entry for entry in value.named_children if entry.type != "comment"]
        for position, entry in enumerate(entries):
            _note((*key, position), entry, lines)
            _note_value(entry, (*key, position), lines)


def _note(key: KeyPath, node: Node, lines: dict[KeyPath, int]) -> None:
    for length in range(1, len(key) + 1):
        lines.setdefault(key[:length], node.start_point.row + 1)


def _key_of(node: Node) -> tuple[str, ...]:
    """The parts of the key with which a pair or a table header begins, quotes undone."""
    key = next(child for child in node.children if child.type.endswith("_key"))
    # The key alone, read as TOML, nests its parts; this undoes quotes and escapes just as tomllib did in the file.
    nested = tomllib.loads(f"{(key.text or b'').decode()} = 0")
    parts: list[str] = []
    while isinstance(nested, dict):
        part, nested = next(iter(nested.items()))
        parts.append(part)
    return tuple(parts)
