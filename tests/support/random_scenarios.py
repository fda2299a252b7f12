"""Small random scenarios in everything that the language can say, as the text of their files."""

from hypothesis import strategies as st

FLAGS = ("cough", "fever", "rash")
EVENTS = ("stroke", "bleeding")
# Levels that a condition may name.
LEVELS = {"cough": (0, 1), "fever": (0, 1), "rash": (0, 1), "asthma": (0, 1), "age": ("young", "old")}


def share(low=0.0, high=1.0):
    """Numbers with few digits, so that the file has them as they are."""
    return st.integers(round(1000 * low), round(1000 * high)).map(lambda n: n / 1000)


def stated(numbers, low=0.0, high=1e3):
    """A number as it stands in a file: bare, or with an interval around it."""

    @st.composite
    def draw(draw):
        value = draw(numbers)
        if draw(st.integers(0, 3)):
            return f"{value}"
        return f"{{ value = {value}, interval = [{max(low, value - 0.1)}, {min(high, value + 0.1)}] }}"

    return draw()


@st.composite
def condition(draw, most=2):
    """`{ age = ["young", "old"], fever = 1 }`."""
    names = draw(st.lists(st.sampled_from(sorted(LEVELS)), min_size=1, max_size=most, unique=True))
    parts = []
    for name in names:
        among = draw(st.lists(st.sampled_from(LEVELS[name]), min_size=1, max_size=2, unique=True))
        parts.append(f"{name} = {quoted(among)}")
    return "{ " + ", ".join(parts) + " }"


def table(names, numbers):
    """`{ fever = 0.2 }` of some of the names."""
    some = st.lists(st.sampled_from(names), max_size=len(names), unique=True)
    return some.flatmap(lambda some: st.tuples(*(numbers for _ in some)).map(lambda found: inline(some, found)))


def inline(names, values):
    """An inline table."""
    return "{ " + ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True)) + " }"


@st.composite
def rule(draw, treatment, hazards):
    """A rule of a treatment, which may take a number out of its range."""
    lines = [f"[[treatments.{treatment}.rules]]"]
    if draw(st.integers(0, 4)):
        lines.append(f"when = {draw(condition())}")
    targets = [f"{effect}.{flag}" for effect in ("clears", "side_effects") for flag in FLAGS]
    targets += ["cost", *(f"hazard_ratio.{name}" for name in hazards)]
    steps = {}
    for target in draw(st.lists(st.sampled_from(targets), min_size=1, max_size=4, unique=True)):
        operation = draw(st.sampled_from(["set", "add", "multiply"]))
        numbers = {"set": share(0.001, 1.0), "add": share(0.0, 0.3), "multiply": share(0.2, 1.4)}[operation]
        low = 0.0 if operation == "add" else 0.001
        steps.setdefault(operation, []).append((target, draw(stated(numbers, low=low, high=1.4))))
    lines += [f"{operation} = {inline(*zip(*found, strict=True))}" for operation, found in steps.items()]
    return "\n".join(lines)


@st.composite
def treatment(draw, name, parts, hazards):
    """One treatment, which may combine others."""
    lines = [f"[treatments.{name}]", f"cost = {draw(stated(share(0.0, 0.2)))}"]
    lines.append(f"clears = {draw(table(FLAGS, stated(share(0.0, 0.8), high=1.0)))}")
    lines.append(f"side_effects = {draw(table(FLAGS, stated(share(0.0, 0.5), high=1.0)))}")
    lines.append(f"hazard_ratio = {draw(table(hazards, stated(share(0.3, 2.0), low=0.01)))}")
    if draw(st.booleans()):
        lines.append(f"contraindicated = [{', '.join(draw(st.lists(condition(), min_size=1, max_size=2)))}]")
    if parts and draw(st.booleans()):
        some = draw(st.lists(st.sampled_from(parts), min_size=1, max_size=2, unique=True))
        lines.append(f"combines = {quoted(some)}")
    lines += draw(st.lists(rule(name, hazards), max_size=2))
    return "\n".join(lines)


def quoted(values):
    """A list as TOML has it."""
    return str(list(values)).replace("'", '"')


@st.composite
def hazards(draw, *, least):
    """Baseline, hazards, relative risks and acute of an event or of death."""
    risks = {name: draw(st.tuples(*(share(0.3, 3.0) for _ in LEVELS[name]))) for name in draw(condition_names())}
    lines = [
        f"baseline = {draw(stated(share(least, 0.4), low=0.001))}",
        f"hazard = {draw(table(FLAGS, stated(share(0.0, 2.0))))}",
        f"relative_risk = {inline(risks, map(list, risks.values()))}",
        "more_than_half = true",
    ]
    if draw(st.booleans()):
        lines.append(f"acute = {draw(condition())}")
    return "\n".join(lines)


def condition_names():
    """Some features."""
    return st.lists(st.sampled_from(sorted(LEVELS)), max_size=2, unique=True)


@st.composite
def scenario_texts(draw):
    """A scenario of 32 records, up to three treatments beside none, and up to two events."""
    shares = {flag: draw(share(0.1, 0.6)) for flag in (*FLAGS, "asthma")}
    events = EVENTS[: draw(st.integers(0, 2))]
    parts = [
        "[features]\ncough = {}\nasthma = {}\nfever = {}",
        'age = { levels = ["young", "old"], shares = [0.7, 0.3] }\nrash = {}',
        f"[[rules]]\nset = {inline([*shares, 'death'], [*shares.values(), draw(share(0.01, 0.2))])}",
        "[[rules]]\nwhen = { fever = 1 }\nset = { rash = 0.5 }",
        f"[natural_clearing]\n{chr(10).join(f'{flag} = {draw(stated(share(), high=1.0))}' for flag in FLAGS)}",
        "[onset]\nfever = 0.5\nrash = 0.8",
        # The first treatment is the one called untreated, even if it does something.
        f"[treatments.none]\nhazard_ratio = {draw(table([*events, 'death'], stated(share(0.5, 1.5), low=0.01)))}",
        f"[[treatments.none.rules]]\nwhen = {draw(condition())}\nmultiply = {{ hazard_ratio.death = 1.5, cost = 2 }}",
    ]
    names = ("pill", "drip", "both")[: draw(st.integers(1, 3))]
    parts += [draw(treatment(name, names[:place], [*events, "death"])) for place, name in enumerate(names)]
    parts += [f"[events.{name}]\n{draw(hazards(least=0.01))}" for name in events]
    parts.append(f"[death]\n{draw(hazards(least=0.1))}")
    weights = {name: draw(share(0.0, 2.0)) for name in (*FLAGS, *events, "death")}
    parts.append("[weights]\n" + "\n".join(f"{name} = {weight}" for name, weight in weights.items()))
    return "\n\n".join(parts) + "\n"
