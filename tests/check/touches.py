"""What is done to the document of a schedule, and which rules it breaks then."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from optsched.check.referee import check_file
from optsched.problem.instance import Instance

Document = dict[str, Any]
Tamper = Callable[[Document], None]


def write(document: Document, folder: Path) -> Path:
    path = folder / "schedule.json"
    path.write_text(json.dumps(document))
    return path


def broken_rules(document: Document, folder: Path, instance: Instance, **options: Any) -> set[str]:
    verdict = check_file(write(document, folder), instance, **options)
    assert verdict.kind == "schedule"
    assert verdict.holds == (not verdict.violations)
    return {violation.rule for violation in verdict.violations}


def set_field(segment: int, **changes: Any) -> Tamper:
    """The tampering that overwrites fields of one segment."""
    return lambda document: document["segments"][segment].update(changes)


def state(**facts: Any) -> Tamper:
    """The tampering that overwrites what the file states beyond its segments."""
    return lambda document: document.update(facts)


def unsay(field: str) -> Tamper:
    return lambda document: document.__delitem__(field)


def drop(segment: int) -> Tamper:
    return lambda document: document["segments"].pop(segment) and None


def repeat(segment: int, **changes: Any) -> Tamper:
    """The tampering that adds a segment like another one."""
    return lambda document: document["segments"].append({**copy.deepcopy(document["segments"][segment]), **changes})


def several(*tampers: Tamper) -> Tamper:
    """One after the other."""

    def tamper(document: Document) -> None:
        for each in tampers:
            each(document)

    return tamper
