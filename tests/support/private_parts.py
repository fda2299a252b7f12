"""Many files to privatise, and work on them that goes wrong, in a module that other processes can import."""

import os
import signal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from private_files import people

from policysim.release.privatize_part import privatize_part

NAMES = ["person", "age_band", "sex", "note"]


def write_parts(folder, n_parts, n=140, ending=".csv"):
    """So many people in so many files of a folder, whose parents are made; returns the folder."""
    folder.mkdir(parents=True)
    rows = people(n)
    for number in range(n_parts):
        own = rows[n * number // n_parts : n * (number + 1) // n_parts]
        write_part(folder / f"{number:04}{ending}", own)
    return folder


def write_part(path, rows, names=NAMES):
    """One file of these rows; cells of CSV without breaks and quotes."""
    if path.suffix == ".csv":
        clean = [[cell.replace("\n", " ").replace('"', "").replace(",", ";") for cell in row] for row in rows]
        path.write_text("".join(f"{','.join(row)}\n" for row in [names, *clean]))
    else:
        columns = list(map(list, zip(*rows, strict=True))) or [pa.array([], pa.string())] * len(names)
        pq.write_table(pa.table(columns, names=names), path)


def draw_and_tell(told, drawing, part):
    """Draw a file, and copy what was drawn of it to a folder, as a spy would."""
    found = privatize_part(drawing, part)
    drawn = found["drawn"][0]
    (Path(told) / f"{part.name}-{drawn}").write_bytes((drawing.stage / part.name / drawn).read_bytes())
    return found


def die_after(name, told, drawing, part):
    """The same; but the first time that this file is drawn, its worker is killed before it can say so."""
    found = draw_and_tell(told, drawing, part)
    mark = Path(told) / "killed"
    if part.name == name and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return found


def die_within(name, told, drawing, part):
    """The same, but the worker is killed while it writes."""
    mark = Path(told) / "killed"
    if part.name == name and not mark.exists():
        mark.touch()
        (drawing.stage / part.name).mkdir()
        (drawing.stage / part.name / "half").write_text("age_band\nold\n")
        os.kill(os.getpid(), signal.SIGKILL)
    return draw_and_tell(told, drawing, part)


def stop_at(name, told, drawing, part):
    """Like somebody who presses Ctrl-C while this file is drawn."""
    if part.name == name:
        raise KeyboardInterrupt
    return draw_and_tell(told, drawing, part)


def change_after(name, drawing, part):
    """The rows of this file change after it was read, while others are."""
    found = privatize_part(drawing, part)
    if part.name != name:
        other = part.with_name(name)
        other.write_text(other.read_text() + "9999,old,1,x\n")
    return found


def draws(told):
    """What was drawn of each file, in any order: {name: [bytes, ...]}."""
    found = {}
    for path in sorted(Path(told).iterdir()):
        if path.name != "killed":
            found.setdefault(path.name.partition("-")[0], []).append(path.read_bytes())
    return found
