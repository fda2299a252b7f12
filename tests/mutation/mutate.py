"""Mutation testing: small changes of our code, each of which some test of the changed module must notice.

`python tests/mutation/mutate.py --count 200 --seed 1` draws so many changes of the modules in `TESTED`, and runs the
tests of each module, in a fork of a process that has loaded the libraries, until the first that fails. A change that no
test notices is printed; survivors.txt lists those that are known, each with its reason.
"""

import argparse
import ast
import importlib
import importlib.abc
import importlib.machinery
import os
import random
import signal
import sys
import time
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import hypothesis  # noqa: F401 - loaded before the forks, once, as all that no test changes
import numpy  # noqa: F401
import pandas  # noqa: F401
import pyarrow.csv  # noqa: F401
import pytest
import scipy.optimize
import scipy.special  # noqa: F401

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).with_name("survivors.txt")
# A change that makes the tests so many times as slow, and slower than so many seconds, is noticed.
TIMES, LEAST_SECONDS = 5, 30
# The modules, and their tests beside their examples; of a package those tests that name a module.
TESTED = {
    "policies": (),
    "policysim.release.ledger": ("test_release_museum.py", "test_repetitions.py", "test_ledger.py"),
    "policysim.question.formats": ("test_formats.py", "test_texts_of_numbers.py"),
}
OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Div,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def changes(node):
    """The changes that a node allows, in words; none of what only types or messages say."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OTHER:
        return ["comparison"]
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OTHER:
        return ["operator"]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        return ["without the sign"]
    if isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        return ["constant"]
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        return ["return None"]
    return ["condition"] if isinstance(node, ast.If | ast.IfExp) else []


def change(node, how):
    """Make the change."""
    if how == "comparison":
        node.ops = [OTHER[type(node.ops[0])]()]
    elif how == "operator":
        node.op = OTHER[type(node.op)]()
    elif how == "without the sign":
        node.op = ast.UAdd() if isinstance(node.op, ast.USub) else ast.Not()
        node.operand = node.operand if isinstance(node.op, ast.UAdd) else ast.UnaryOp(ast.Not(), node.operand)
    elif how == "constant":
        node.value = not node.value if isinstance(node.value, bool) else node.value + 1
    elif how == "return None":
        node.value = ast.Constant(None)
    else:
        node.test = ast.UnaryOp(ast.Not(), node.test)


def sites(tree):
    """(number of the node, change) of all that may be changed; not in annotations, messages or raise statements."""
    left_out = set()
    for node in ast.walk(tree):
        parts = [node.annotation] if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation else []
        parts += [node.returns] if isinstance(node, ast.FunctionDef) and node.returns else []
        parts += [node] if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert) else []
        parts += [node] if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" else []
        left_out |= {id(inner) for part in parts for inner in ast.walk(part)}
    for number, node in enumerate(ast.walk(tree)):
        if id(node) not in left_out:
            yield from ((number, how) for how in changes(node))


class Changed(importlib.abc.MetaPathFinder, importlib.machinery.SourceFileLoader):
    """Loads one module from a changed tree."""

    def __init__(self, name, path, tree):
        super().__init__(name, str(path))
        self.tree = tree

    def find_spec(self, fullname, path=None, target=None):
        """The spec of the module; None for any other."""
        return importlib.machinery.ModuleSpec(fullname, self, origin=self.path) if fullname == self.name else None

    def get_code(self, fullname):
        """The code of the changed tree."""
        return compile(self.tree, self.path, "exec")


def modules():
    """The name, the path and the tests of each module."""
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    texts = {path: path.read_text(encoding="utf-8") for path in tests}
    for name, known in TESTED.items():
        own = [test for test in tests if test.name in known]
        place = ROOT / name.replace(".", "/")
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            naming = [test for test in tests if f"{module} import" in texts[test] or path.stem in test.stem]
            near = [test for test in naming if "tests/policies" in str(test)]
            if path.name != "__init__.py":
                yield module, path, (path, *(own or near or naming))


@cache
def most_seconds(name, path, tests):
    """How long the tests may take: by how long they do if nothing is changed; they must pass."""
    start = time.monotonic()
    if not survives(name, path, ast.parse(path.read_text(encoding="utf-8")), tests, 0):
        raise SystemExit(f"these fail, or are none: {' '.join(map(str, tests))}")
    return max(LEAST_SECONDS, round(TIMES * (time.monotonic() - start)))


def survives(name, path, tree, tests, most):
    """Whether no test notices; a fork runs them, and one that takes too long has noticed."""
    child = os.fork()
    if not child:
        sys.meta_path.insert(0, Changed(name, path, tree))
        signal.alarm(most)
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            os.dup2(nowhere.fileno(), 2)
            importlib.import_module(name)  # before pytest, which reads the examples of a file
            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "--no-header"]
            os._exit(int(pytest.main([*options, *map(str, dict.fromkeys(tests))])))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main():
    """Draw changes, try them, and print those that survive and are not known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only modules whose names hold this")
    chosen, rng, drawn = parser.parse_args(), random.Random(), []
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name, path, tests in modules():
        if tests and chosen.only in name:
            drawn += [(name, path, tests, *site) for site in sites(ast.parse(path.read_text(encoding="utf-8")))]
    rng.seed(chosen.seed)
    rng.shuffle(drawn)
    known = SURVIVORS.read_text(encoding="utf-8") if SURVIVORS.exists() else ""
    killed = equal = 0
    for count, (name, path, tests, number, how) in enumerate(drawn[: chosen.count], start=1):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        node = list(ast.walk(tree))[number]
        before, line = ast.unparse(node).splitlines()[0], node.lineno
        change(node, how)
        said = f"{name}: {before}  ->  {ast.unparse(node).splitlines()[0]}"
        if not survives(name, path, ast.fix_missing_locations(tree), tests, most_seconds(name, path, tests)):
            killed += 1
        elif said in known:
            equal += 1
        else:
            print(f"{said}    (line {line}, {how})", flush=True)
        if count % 20 == 0:
            print(f"# {count}: {killed} killed, {equal} known", flush=True)
    print(f"# of {min(chosen.count, len(drawn))} changes of {len(drawn):,}: {killed} killed, {equal} known to survive")


if __name__ == "__main__":
    main()
