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
import re
import signal
import sys
from contextlib import redirect_stdout
from pathlib import Path

import hypothesis
import numpy  # noqa: F401 - loaded before the forks, once, as all that no test changes
import pandas  # noqa: F401
import pyarrow.csv  # noqa: F401
import pytest
import scipy.optimize
import scipy.special  # noqa: F401

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).with_name("survivors.txt")
# A test that needs so many seconds of its own has noticed a change.
MOST_SECONDS = 60
# All others beyond so many files of tests notice little more, and take most of the time.
MOST_FILES = 12
# What is loaded before pytest is not rewritten by it; all other warnings are errors, as elsewhere.
REWRITTEN = "ignore::pytest.PytestAssertRewriteWarning"
# The modules, and their tests beside their examples, the quickest first; of a package, after those that name a module.
TESTED = {
    "policies": ("test_every_policy.py", "test_museum.py", "test_notebooks.py"),
    "policies.catalogue": ("test_every_policy.py", "test_plugins.py"),
    "policysim.release.ledger": ("test_release_museum.py", "test_repetitions.py", "test_ledger.py"),
    "policysim.question.formats": ("test_formats.py", "test_texts_of_numbers.py"),
}
OTHER = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Div,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
# The other end, of what Python and NumPy call so.
OTHER_END = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin",
    "any": "all", "all": "any",
}  # fmt: skip


def changes(node):
    """The changes that a node allows, in words; none of what only types or messages say."""
    allowed = {
        "comparison": isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OTHER,
        "operator": isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OTHER,
        "other end": name_of(node) in OTHER_END,
        "without the sign": isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub),
        "constant": isinstance(node, ast.Constant)
        and type(node.value) in (bool, int, float)
        and node.value + 1 != node.value,
        "return None": isinstance(node, ast.Return)
        and node.value is not None
        and not isinstance(node.value, ast.Constant),
        "condition": isinstance(node, ast.If | ast.IfExp),
    }
    return [how for how, holds in allowed.items() if holds]


def name_of(node):
    """What a name or an attribute is called; of anything else None."""
    return getattr(node, "id", None) if isinstance(node, ast.Name) else getattr(node, "attr", None)


def change(node, how):
    """Make the change."""
    if how == "comparison":
        node.ops = [OTHER[type(node.ops[0])]()]
    elif how == "operator":
        node.op = OTHER[type(node.op)]()
    elif how == "other end":
        setattr(node, "id" if isinstance(node, ast.Name) else "attr", OTHER_END[name_of(node)])
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
    """(number of the node, change) of all that may be changed; not in annotations, messages or guards."""
    left_out = set()
    for node in ast.walk(tree):
        parts = [node.annotation] if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation else []
        parts += [node.returns] if isinstance(node, ast.FunctionDef) and node.returns else []
        parts += [node] if isinstance(node, ast.Raise | ast.JoinedStr | ast.Assert) else []
        parts += [node] if isinstance(node, ast.keyword) and node.arg in ("frozen", "strict") else []
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
        place = ROOT / name.replace(".", "/")
        beside = [test for test in tests if ROOT / "tests" / name in test.parents]
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place.with_suffix(".py")]:
            parts = path.relative_to(ROOT).with_suffix("").parts
            module = ".".join(parts)
            naming = re.compile("|".join([f"{module} import", *public(path)]))
            # First those that are named as the module, where most changes are noticed, then those that name most.
            named = {test: len(naming.findall(texts[test])) for test in beside}
            alike = {test: sum(part in str(test.relative_to(ROOT)) for part in parts[1:]) for test in beside}
            near = sorted((test for test in beside if named[test] or alike[test]), key=lambda t: (-alike[t], -named[t]))
            own = [*near[:MOST_FILES], *(test for file in known for test in tests if test.name == file)]
            elsewhere = module in TESTED and module != name
            if own and not elsewhere and path.name != "__init__.py":
                yield module, path, list(dict.fromkeys(own))


def public(path):
    """The names that a module defines for others, as patterns; none that are words of English."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [rf"\b{name}\b" for name in named if not name.startswith("_") and (name != name.lower() or "_" in name)]


class Limit:
    """Ends a process whose test takes too long: by its own seconds, and where it waits for nothing by all of them."""

    def pytest_runtest_setup(self):
        """Start to count anew."""
        signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
        signal.alarm(10 * MOST_SECONDS)


def survives(name, path, tree, tests):
    """Whether no test, nor an example of the module, notices; one that takes too long has noticed."""
    child = os.fork()
    if not child:
        Limit().pytest_runtest_setup()
        sys.meta_path.insert(0, Changed(name, path, tree))
        with Path(os.devnull).open("w") as nowhere, redirect_stdout(nowhere):
            os.dup2(nowhere.fileno(), 2)
            importlib.import_module(name)  # before pytest, which reads the examples of a file
            options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", REWRITTEN]
            os._exit(int(pytest.main([*options, *map(str, (path, *tests))], plugins=[Limit()])))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit(f"the tests of {name} cannot be run: {' '.join(map(str, tests))}")
    return code == 0


def main():
    """Draw changes, try them, and print those that survive and are not known."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--after", type=int, default=0, help="leave out so many that were drawn first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only modules whose names hold this")
    chosen, rng, drawn = parser.parse_args(), random.Random(), []
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    for name, path, tests in modules():
        if chosen.only in name:
            drawn += [(name, path, tests, *site) for site in sites(ast.parse(path.read_text(encoding="utf-8")))]
    # What fails is not made smaller, nor kept for the next change; the profile of the tests goes on from this one.
    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    hypothesis.settings.register_profile("mutation", phases=phases, database=None)
    hypothesis.settings.load_profile("mutation")
    rng.seed(chosen.seed)
    rng.shuffle(drawn)
    known = {line.partition("    # ")[0] for line in SURVIVORS.read_text(encoding="utf-8").splitlines()}
    tried = killed = equal = 0
    for name, path, tests, number, how in drawn[chosen.after : chosen.after + chosen.count]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        node = list(ast.walk(tree))[number]
        lines = ast.unparse(tree).splitlines()
        change(node, how)
        pairs = zip(lines, ast.unparse(tree).splitlines(), strict=False)
        was, became = next(pair for pair in pairs if pair[0] != pair[1])
        said = f"{name}: {was.strip()}  ->  {became.strip()}"
        tried += 1
        if not survives(name, path, ast.fix_missing_locations(tree), tests):
            killed += 1
        elif said in known:
            equal += 1
        else:
            print(said, flush=True)
        if tried % 20 == 0:
            print(f"# {tried}: {killed} killed, {equal} known", flush=True)
    share = killed / (tried - equal)
    print(
        f"# of {tried} changes of {len(drawn):,}: {killed} killed, {equal} listed as equivalent, "
        f"{tried - killed - equal} survive: {share:.0%} killed of those that a test can tell"
    )


if __name__ == "__main__":
    main()
