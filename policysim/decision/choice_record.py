"""What a decision record has beside the answer: by whom it is adopted, on what terms, who pays, how it was found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from policies.catalogue import CATALOGUE, DEFINITION, REFERENCES, citing, describe
from policies.optimal.optimum import Optimal
from policies.problem import DecisionProblem
from policies.reference import BestFixed, Greedy
from policysim.decision.choose import Choices
from policysim.decision.comparison import compare_problem
from policysim.question.formats import NEGLIGIBLE, population
from policysim.question.words import ALL, level_name
from policysim.study.cells import as_cells
from policysim.study.declared import Study
from policysim.study.labels import OUTSIDE, basis, hidden, in_words
from policysim.study.options_table import DEATHS, EACH

PRIOR = ("The prior is trusted: with other patients the price differs, at the same ε.",)


@dataclass(frozen=True)
class Adoption:
    """By whom and from when to when a decision is adopted, and what is accepted for it.

    Attributes
    ----------
    institution : str
        Who decides; empty for a line to write on.
    date, valid_until : str
        YYYY-MM-DD; empty for a line to write on. Nothing is dated by the clock: the same run writes the same bytes.
    accepted_deaths : float or None
        The most expected deaths, per 100,000 patients, that the decision may cost beyond the safest treatment for all;
        None if none were accepted.
    """

    institution: str = ""
    date: str = ""
    valid_until: str = ""
    accepted_deaths: float | None = None


def record_tables(
    study: Study, problem: DecisionProblem, choices: Choices, tables: Mapping[str, pd.DataFrame], adoption: Adoption
) -> dict[str, pd.DataFrame]:
    """The tables of an answer with those of its record.

    Parameters
    ----------
    study : Study
        What was asked.
    problem : DecisionProblem
        Built from it.
    choices : Choices
        What was found.
    tables : mapping of str to DataFrame
        From `choice_tables`.
    adoption : Adoption
        By whom it is adopted.

    Returns
    -------
    dict of str to DataFrame
        Also "texts" (section, text: in their order what is listed), "names" with more of them, and "facts" with what is
        accepted and who pays most against one treatment for all, in deaths, or in utility where none are counted.
    """
    chosen = tables["lines"].loc[tables["lines"]["chosen"], "option"]
    instead = Greedy.name if EACH in set(chosen) else BestFixed.name
    policy = next((name for name in chosen if name in choices.mechanisms), instead if len(chosen) else "")
    works = describe(policy).works if policy else ()
    limit = describe(Optimal.name).works if choices.limit_proven and 0 < choices.limit < math.inf else ()
    names = {
        "institution": adoption.institution,
        "date": adoption.date,
        "valid until": adoption.valid_until,
        "hidden": hidden(study),
        "hidden from": study.hidden_from,
        "public": basis(study).public,
        "utilities": basis(study).utilities,
        "mechanism": citing(study.policy_words(policy), works) if policy else "",
        "definition": citing("", DEFINITION).strip(),
        "limit works": citing("", limit).strip(),
        "study": study.name,
        "seed": str(study.seed),
        "digest kind": "SHA-256",
    }
    facts = [] if adoption.accepted_deaths is None else [("accepted", adoption.accepted_deaths, "plain")]
    if policy in choices.mechanisms:
        names["who"], paid = _who_pays(study, problem, choices, policy)
        names["paid"] = "more deaths" if DEATHS in problem.outcomes else "units of utility lost"
        facts += paid
    cells = as_cells(pd.DataFrame(facts, columns=["row", "value", "format"]))
    added = pd.DataFrame(names.items(), columns=["key", "text"])
    known = tables["names"][~tables["names"]["key"].isin(names)]
    return {
        **tables,
        "facts": pd.concat([tables["facts"], cells], ignore_index=True),
        "names": pd.concat([known, added], ignore_index=True),
        "texts": pd.DataFrame(_texts(study, policy, {*works, *DEFINITION, *limit}), columns=["section", "text"]),
    }


def _texts(study: Study, policy: str, works: set[str]) -> Iterator[tuple[str, str]]:
    """What a record lists: what is not guaranteed, the works it cites, and the digests of what it depends on."""
    prior = PRIOR if policy and CATALOGUE[policy].uses_prior else ()
    for text in (*OUTSIDE, *prior, basis(study).not_guaranteed):
        yield "not guaranteed", text
    for work in sorted(REFERENCES[name] for name in works):
        yield "reference", work
    identity = study.identity
    yield "digest", f"study {study.name} {study.digest}"
    if "scenario" in identity:
        yield "digest", f"scenario {identity['scenario']} {identity['scenario_sha256']}"
    for name, digest in identity.get("data", {}).items():
        yield "digest", f"data {name} {digest}"


def _who_pays(
    study: Study, problem: DecisionProblem, choices: Choices, policy: str
) -> tuple[str, list[tuple[str, float, str]]]:
    """The group that a mechanism costs most, per patient of it, beyond one treatment for all; "" where none pays."""
    mechanism = choices.mechanisms[policy]
    compared = compare_problem(problem, policies=[BestFixed(), mechanism], epsilons=[mechanism.epsilon], by=study.by)
    named = in_words(compared, study.space)
    deaths = f"expected_{DEATHS}"
    measure, sign = (deaths, 1.0) if deaths in named else ("value", -1.0)
    wide = named.pivot(index=["group", "level", "share"], columns="policy", values=measure)
    extra = sign * (wide[policy] - wide[BestFixed.name]).drop(ALL, level="group").dropna()
    if extra.empty or extra.max() <= NEGLIGIBLE:
        return "", []
    most = float(extra.max())
    group, level, share = extra.index[int(extra.to_numpy().argmax())]
    count = population([most]) if measure == deaths else 1
    style = f"about {count}" if measure == deaths else "rounded"
    return level_name(group, level), [
        ("who share", share, "percent"),
        ("who pays", most, style),
        ("who of", count, "counted 1 0"),
    ]
