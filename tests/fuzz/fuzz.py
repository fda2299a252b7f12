"""The fuzzer: `make fuzz N=1000 COMMANDS=20`, or `python tests/fuzz/fuzz.py --only csv --seed 7 --inputs 1`.

A find is: an error that is none of ours, a file half written or left over, more than 20 s of CPU or 2 GB of memory, a
sign on the terminal that nobody sees, or a socket. Each input is known by its target and its number, which are printed.
`--keep` writes the finds into tests/fuzz/finds, where a test reads them again.
"""

import argparse
import base64
import contextlib
import io
import json
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support"), str(Path(__file__).parents[2])]
import drawings
from readers import TARGETS

from envs.toml_reader import UNSEEN, InputFileError
from policysim.cli import main as command_line
from policysim.cli.options import parse
from policysim.question import OutputError
from policysim.question.answer import Drawing
from policysim.question.extras import MissingExtraError
from policysim.question.protocol import UsageError

FINDS = Path(__file__).parent / "finds"
MOST_SECONDS, MOST_BYTES = 20, 2 << 30
# How many inputs one process reads before another takes its place; and exit codes that are documented.
BATCH = 500
CODES = (0, 2, 3, 4, 130)
PLACE = "/dev/shm" if Path("/dev/shm").is_dir() else None


class Find(Exception):  # noqa: N818 - no error of the program that is tested, but what was found
    """What is wrong, in a line."""


def watch():
    """From now on a socket is a find, and CPU time and memory of this process are limited."""

    def told(event, arguments):
        if event == "socket.__new__" and os.environ.get("FUZZ_SOCKETS") is None:
            raise Find(f"a socket: {arguments[1:]}")

    def late(*_):
        raise Find(f"more than {MOST_SECONDS} s of CPU time")

    sys.addaudithook(told)
    signal.signal(signal.SIGPROF, late)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + 3 * MOST_BYTES, resource.RLIM_INFINITY))


def input_of(name, number):
    """The files and the arguments of an input."""
    made = TARGETS[name].make(random.Random(f"{name} {number}"))
    return made if isinstance(made, tuple) else (made, [])


def tried(name, number, files, arguments):
    """What is found of one input, in a folder of its own, "" if nothing is; and whether it was taken."""
    here, taken = Path.cwd(), False
    with tempfile.TemporaryDirectory(dir=PLACE) as folder:
        os.chdir(folder)
        try:
            for file, content in files.items():
                Path(file).write_bytes(content)
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
            if name == "command":
                taken = run_command(arguments)
            else:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    taken = read(name, arguments, random.Random(f"read {name} {number}"))
            if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > MOST_BYTES:
                raise Find("more than 2 GB of memory")
        except Find as found:
            return str(found), False
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            os.chdir(here)
    return "", taken


def read(name, arguments, rng):
    """Read what is here: whether it was taken; Find for an error that is not said on purpose."""
    try:
        if name == "options":
            with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
                parse(arguments, command_line.ADD)
        else:
            TARGETS[name].read(rng)
    except (InputFileError, OutputError, MissingExtraError, UsageError):
        return False
    except SystemExit as stop:
        if stop.code not in CODES:
            raise Find(f"exit code {stop.code}") from None
        return stop.code == 0
    except Find:
        raise
    except Exception as error:
        if not (isinstance(error, ValueError) and command_line.said_on_purpose(error)):
            raise Find(traced(error)) from None
        return False
    return True


def traced(error):
    """An error and where it came from, in a line."""
    ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
    last = ours[-1] if ours else traceback.extract_tb(error.__traceback__)[-1]
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return f"{text[-1] if text else type(error).__name__} at {Path(last.filename).name}:{last.lineno} in {last.name}"


def tree(folder):
    """All that is below a folder, and what it holds."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")
    }


def run_command(arguments):
    """A whole command: whether it was done; Find for a wrong exit code, what it prints, and what it leaves."""
    before, out, err = tree(Path()), *(io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    if "--figures" not in arguments:
        Drawing.at = lambda *_: drawings.Figure(figsize=(10, 0.1))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = command_line.main(arguments)
        except SystemExit as stop:
            code = stop.code
    said = [stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err)]
    if code not in CODES:
        raise Find(f"exit code {code}: {said[1].strip().splitlines()[-1:]}{where(said[1])}")
    seen = UNSEEN.search("".join(said).replace("\n", ""))
    if seen:
        raise Find(f"U+{ord(seen[0]):04X} on the terminal")
    after = tree(Path())
    left = [name for name in after if any(part.startswith(".") for part in Path(name).parts)]
    if left:
        raise Find(f"left over: {', '.join(left)}")
    if code not in (0, 4) and after != before:
        changed = [name for name in after if after[name] != before.get(name)]
        raise Find(f"exit code {code}, but files changed: {', '.join(changed)}")
    return code == 0


def where(text):
    """The last place of ours in a traceback."""
    ours = [
        line.strip() for line in text.splitlines() if line.strip().startswith("File") and "site-packages" not in line
    ]
    return f" {ours[-1]}" if ours else ""


def batch(name, numbers, given=input_of):
    """Inputs read in a process of their own: (number, what was found), how many were taken, and which are left.

    A process that ends is a find of its last input.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "w", buffering=1) as told:
            watch()
            for number in numbers:
                told.write(f"{number}\n")
                found, taken = tried(name, number, *given(name, number))
                told.write("+\n" * taken)
                if found:
                    told.write(f"!{found}\n".replace("\r", " "))
                    if "memory" in found:
                        break
        os._exit(0)
    os.close(writing)
    finds, n_taken, last = [], 0, numbers[0]
    with os.fdopen(reading) as told:
        for line in told:
            if line.startswith("!"):
                finds.append((last, line[1:].strip()))
            elif line == "+\n":
                n_taken += 1
            elif line.strip().isdigit():
                last = int(line)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        finds.append((last, f"the process ended with {status}"))
    return finds, n_taken, numbers[numbers.index(last) + 1 :]


def fuzz(name, first, count):
    """So many inputs of one target, in batches: the finds, and how many inputs were taken."""
    finds, n_taken, left = [], 0, list(range(first, first + count))
    size = 1 if name == "command" else BATCH
    while left:
        found, taken, rest = batch(name, left[:size])
        finds, n_taken, left = finds + found, n_taken + taken, rest + left[size:]
    return finds, n_taken


def as_file(name, number, files, arguments):
    """An input as a file of the finds: text where it is text."""

    def written(content):
        try:
            return content.decode() if b"\r" not in content else {"base64": base64.b64encode(content).decode()}
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(content).decode()}

    return {
        "target": name,
        "number": number,
        "arguments": arguments,
        "files": {file: written(content) for file, content in files.items()},
    }


def of_file(path):
    """The input of such a file."""
    found = json.loads(path.read_text(encoding="utf-8"))
    files = {
        file: base64.b64decode(content["base64"]) if isinstance(content, dict) else content.encode()
        for file, content in found["files"].items()
    }
    return found["target"], found["number"], files, found["arguments"]


def finds_again():
    """All finds that are kept, read again: those that are still found."""
    again = []
    for path in sorted(FINDS.glob("*.json")):
        name, number, *given = of_file(path)
        again += [(path.name, found) for _, found in batch(name, [number], lambda *_, given=given: given)[0]]
    return again


def main():
    """Fuzz the targets that are asked for; exit code 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--inputs", type=int, default=2000, help="to all readers together, or to the one of --only")
    parser.add_argument("--commands", type=int, default=20)
    parser.add_argument("--only", choices=TARGETS, help="one target, to which all inputs go")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first input")
    parser.add_argument("--keep", action="store_true", help="write the finds into tests/fuzz/finds")
    parser.add_argument("--finds", action="store_true", help="only read the finds of tests/fuzz/finds again")
    chosen = parser.parse_args()
    if chosen.finds:
        again = finds_again()
        print("".join(f"{name}: {found}\n" for name, found in again), end="")
        return bool(again)
    readers = [name for name in TARGETS if name != "command"]
    plan = {name: -(-chosen.inputs // len(readers)) for name in readers} | {"command": chosen.commands}
    plan = {chosen.only: chosen.inputs} if chosen.only else plan
    worst = 0
    for name, count in plan.items():
        start, seen = time.monotonic(), {}
        finds, n_taken = fuzz(name, chosen.seed, count)
        for number, found in finds:
            kind = found.partition(" at ")[2] or found
            seen.setdefault(kind, []).append(number)
            if len(seen[kind]) == 1:
                print(f"{name} {number}: {found}\n    make fuzz ONLY={name} SEED={number} N=1", flush=True)
                files, arguments = input_of(name, number)
                if chosen.keep and (files or arguments):
                    FINDS.mkdir(exist_ok=True)
                    text = json.dumps(as_file(name, number, files, arguments), indent=1, ensure_ascii=False)
                    (FINDS / f"{name}-{number}.json").write_text(text + "\n", encoding="utf-8")
        done = f"{count:,} inputs, {n_taken:,} taken, in {time.monotonic() - start:,.0f} s"
        print(f"{name}: {done}, {len(finds)} finds of {len(seen)} kinds", flush=True)
        worst = max(worst, bool(seen))
    return worst


if __name__ == "__main__":
    sys.exit(main())
