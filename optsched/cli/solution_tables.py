"""The tables of ``solve`` and ``bound``."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.text import Text

from optsched.bounds import Certificate
from optsched.cli.layout import Sheet
from optsched.cli.wording import gap_text, instance_line
from optsched.problem.instance import Instance
from optsched.problem.objectives import OBJECTIVES
from optsched.rounding import Side, number
from optsched.solvers.solution import Solution

PRICES = 20  # that are shown, the largest ones


def solution_view(document: dict[str, Any], instance: Instance, *notes: str) -> Group:
    """Return the table of ``solve`` with its notes.

    Parameters
    ----------
    document
        The solution, as `Solution.to_json` writes it.
    instance
        The instance.
    *notes
        Lines below the table.
    """
    value = "value" if "value_is" in document else document["objective"]
    heads = ("status", value, "bound", "gap", "model", "solver", "rows", "columns", "nonzeros", "seconds")
    sheet = Sheet(heads, texts=("model", "solver"))
    # no side is the safe one of a program: it may maximise
    sides: tuple[Side, Side] = ("nearest", "nearest") if "value_is" in document else ("up", "down")
    if document["objective"] in OBJECTIVES and OBJECTIVES.get(document["objective"]).gain:
        sides = ("down", "up")
    sheet.add(
        document["status"],
        number(document["value"], 12, sides[0]),
        number(document["bound"], 12, sides[1]),
        gap_text(document["gap"]),
        str(document["model"] or "-"),
        str(document["solver"] or "-"),
        number(document["rows"]),
        number(document["columns"]),
        number(document["nonzeros"] or None),
        f"{document['seconds']:.2f}",
    )
    return Group(sheet, *(Text(line) for line in (instance_line(instance), *notes)))


def program_view(solution: Solution, instance: Instance) -> Group:
    """Return the table of ``solve --model`` for a program without a schedule: its optimum and its dual values.

    Parameters
    ----------
    solution
        The solution of the program.
    instance
        The instance.
    """
    lines = [f"value: {solution.meaning}", *filter(None, [solution.note])]
    if solution.opposite is not None:
        difference = "" if solution.gap is None else f", a difference of {number(100 * solution.gap, 3)} %"
        lines.append(f"its dual {solution.opposite.model}: {number(solution.opposite.value, 12)}{difference}")
    gap = None if solution.gap is None else round(solution.gap, 9)  # rounding is no gap
    parts: list[Any] = [solution_view({**solution.to_json(), "gap": gap}, instance, *lines)]
    if solution.duals:
        prices = Sheet(("dual", "value"))
        for name, value in sorted(solution.duals.items(), key=lambda dual: -abs(dual[1]))[:PRICES]:
            prices.add(name, number(value, 6))
        parts.append(prices)
        if len(solution.duals) > PRICES:
            parts.append(Text(f"... and {len(solution.duals) - PRICES} smaller ones (--json)"))
    return Group(*parts)


def certificate_view(certificate: Certificate, instance: Instance) -> Group:
    """Return the table of ``bound``.

    Parameters
    ----------
    certificate
        The certificate.
    instance
        The instance.
    """
    side = "upper bound" if certificate.gain else "lower bound"
    sheet = Sheet(("objective", side, "kind", "class of schedules"), texts=("kind", "class of schedules"))
    value = number(certificate.exact_float, 12, "up" if certificate.gain else "down")
    sheet.add(certificate.objective, value, certificate.kind, certificate.schedule_class)
    return Group(sheet, Text(instance_line(instance)), Text("re-verified from the instance in exact arithmetic"))
