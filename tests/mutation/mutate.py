"""Plant small defects in modules, and print those that no test notices.

`python tests/mutation/mutate.py policies/exponential.py policysim/release/ledger.py --count 20 --seed 1` draws 20
changes of these modules: another operator, constant or sign, a negated condition, a dropped result. Each is made in a
copy of the checkout. There the examples of the module's docstrings run, and the test files that name the module or what
it defines most often (or those of `--tests`). survivors.txt lists changes that no test can notice.
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
SURVIVORS = Path(__file__).with_name("survivors.txt")
# A change that keeps these tests running for longer has been noticed.
MOST_FILES, MOST_SECONDS = 12, 1200
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Div,
    ast.And: ast.Or, ast.Or: ast.And, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
OPPOSITE_NAMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin",
    "any": "all", "all": "any",
}  # fmt: skip


def replacement(node):
    """A node of the same type that takes the place of another one; None where nothing is changed."""
    new = None
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in SWAPPED:
            new = ast.Compare(node.left, [SWAPPED[type(operator)]()], node.comparators)
        case ast.BinOp() if type(node.op) in SWAPPED:
            new = ast.BinOp(node.left, SWAPPED[type(node.op)](), node.right)
        case ast.BoolOp():
            new = ast.BoolOp(SWAPPED[type(node.op)](), node.values)
        case ast.UnaryOp(op=ast.USub()):
            new = ast.UnaryOp(ast.UAdd(), node.operand)
        case ast.UnaryOp(op=ast.Not()):
            new = ast.UnaryOp(ast.Not(), ast.UnaryOp(ast.Not(), node.operand))
        case ast.Name() if node.id in OPPOSITE_NAMES:
            new = ast.Name(OPPOSITE_NAMES[node.id], node.ctx)
        case ast.Attribute() if node.attr in OPPOSITE_NAMES:
            new = ast.Attribute(node.value, OPPOSITE_NAMES[node.attr], node.ctx)
        case ast.Constant(value=bool()):
            new = ast.Constant(not node.value)
        case ast.Constant(value=int() | float()) if node.value + 1 != node.value:
            new = ast.Constant(node.value + 1)
        case ast.Return() if node.value is not None and not isinstance(node.value, ast.Constant):
            new = ast.Return(ast.Constant(None))
        case ast.If() | ast.IfExp():
            new = type(node)(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    return new


def sites(node):
    """All nodes below a node that can be changed; none in annotations, messages and guards of types."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Assert() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.keyword(arg="frozen" | "strict"):
            return
    if replacement(node) is not None:
        yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from sites(child)


def mutant(text, number):
    """The source with a change of its numbered site: its line, the line and what becomes of it, and the new source."""
    tree = ast.parse(text)
    before, node = ast.unparse(tree), list(sites(tree))[number]
    vars(node).update(vars(replacement(node)))
    after = ast.unparse(tree)
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    old, new = next(pair for pair in pairs if pair[0] != pair[1])
    return node.lineno, f"{old.strip()}  ->  {new.strip()}", after


def tests_of(module):
    """The test files that name a module, or the functions and classes that it defines for others, most often."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    # A name that is a plain word stands in tests of anything.
    names = [name for name in defined if not name.startswith("_") and (name != name.lower() or "_" in name)]
    pattern = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in [module[:-3].replace("/", "."), *names]))
    counts = {path: len(pattern.findall(path.read_text(encoding="utf-8"))) for path in ROOT.glob("tests/**/test_*.py")}
    named = sorted((path for path, count in counts.items() if count), key=lambda path: (-counts[path], path))
    return [str(path.relative_to(ROOT)) for path in named[:MOST_FILES]]


def tests_pass(copy, module, tests):
    """Whether no test fails in the copy."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", module, *tests]
    # Without bytecode: two changes in one second would share it.
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    options = {"cwd": copy, "env": environment, "capture_output": True, "timeout": MOST_SECONDS}
    try:
        return subprocess.run(command, check=False, **options).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main():
    """Draw changes, try them, and print those that survive and are not listed; exit code 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("modules", nargs="+", help="such as policies/exponential.py")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tests", nargs="+", help="test files, in place of those that name the module")
    chosen = parser.parse_args()
    sources = {module: (ROOT / module).read_text(encoding="utf-8") for module in chosen.modules}
    everywhere = []
    for module, text in sources.items():
        everywhere += [(module, number) for number, _ in enumerate(sites(ast.parse(text)))]
    drawn = random.Random(chosen.seed).sample(everywhere, min(chosen.count, len(everywhere)))
    equivalent = {line.partition("    # ")[0] for line in SURVIVORS.read_text(encoding="utf-8").splitlines()}
    tests = {module: chosen.tests or tests_of(module) for module in sources}
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", ".venv", ".oracles", ".*cache"))
        for module in sources:
            if not tests_pass(copy, module, tests[module]):
                sys.exit(f"{module}: its tests fail without any change: {' '.join(tests[module])}")
        for module, number in drawn:
            line, change, text = mutant(sources[module], number)
            (copy / module).write_text(text, encoding="utf-8")
            if f"{module}: {change}" not in equivalent and tests_pass(copy, module, tests[module]):
                print(f"{module}:{line}: {change}", flush=True)
                survivors += 1
            (copy / module).write_text(sources[module], encoding="utf-8")
    print(f"{len(drawn)} of {len(everywhere)} changes tried, {survivors} survive that are not in {SURVIVORS.name}")
    return bool(survivors)


if __name__ == "__main__":
    sys.exit(main())
