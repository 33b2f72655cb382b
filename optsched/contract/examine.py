"""Examine a policy: every check, and what became of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optsched.contract.checks import CHECKS, Broken, Check
from optsched.contract.subject import Subject
from optsched.errors import KnowledgeError

SHOWN = 3  # of what one check finds


@dataclass(frozen=True)
class Finding:
    """What a check found: ``verdict`` is holds, broken, exempt (``said``: why nothing is asked) or not run."""

    check: str
    summary: str
    verdict: str
    said: str = ""
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True)
class Examination:
    """Every check of a policy."""

    subject: Subject
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> list[Finding]:
        """Those that do not hold."""
        return [each for each in self.findings if each.verdict == "broken"]

    def save(self, folder: Path) -> dict[str, list[str]]:
        """Write the instances that show what is broken into ``folder``; their files by check."""
        policy = re.sub(r"[^A-Za-z0-9._=-]+", "-", self.subject.text).strip("-")
        files: dict[str, list[str]] = {}
        for finding in self.broken:
            for instance in finding.broken[0].instances:
                path = folder / f"broken-{finding.check}-{policy}-{instance.digest[:8]}.json"
                instance.save(path)
                files.setdefault(finding.check, []).append(str(path))
        return files

    def to_json(self, files: dict[str, list[str]]) -> dict[str, Any]:
        """The document of ``check-policy --json``."""
        rows = [
            {
                "name": each.check,
                "summary": each.summary,
                "verdict": each.verdict,
                "said": each.said,
                "files": files.get(each.check, []),
            }
            for each in self.findings
        ]
        policy = self.subject.policy
        return {
            "policy": self.subject.text,
            "name": policy.name,
            "knowledge": str(policy.knowledge),
            "level": self.subject.level.name,
            "holds": not self.broken,
            "checks": rows,
        }


def examine(text: str, *, progress: Callable[[int, int], None] | None = None) -> Examination:
    """Run every check on the policy that ``text`` names, a registered one or ``MODULE:CLASS``.

    Where a run raises, what is wrong is the knowledge (`KnowledgeError`) or the feasibility of the policy; checks that could
    not run for it are named as such.

    Raises `InputError` when there is no such policy, or it does not say what a policy says.
    """
    subject = Subject(text)
    subject.level  # noqa: B018 - an `InputError` comes before the first check
    checks = [each for _, each in CHECKS.items()]
    findings = []
    for done, each in enumerate(checks, 1):
        findings.append(_finding(each, subject))
        if progress is not None:
            progress(done, len(checks))
    return Examination(subject, tuple(findings))


def _finding(each: Check, subject: Subject) -> Finding:
    try:
        exempt = each.exempt(subject)
        if exempt:
            return Finding(each.name, each.summary, "exempt", exempt)
        broken = tuple(_first(each.find(subject)))
    except Exception as error:  # whatever somebody's policy raises
        blamed = "knowledge" if isinstance(error, KnowledgeError) else "feasible"
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if each.name != blamed:
            return Finding(each.name, each.summary, "not run", f"see {blamed}")
        shown = () if subject.asked is None else (subject.asked,)
        return Finding(each.name, each.summary, "broken", said, (Broken(said, shown),))
    return Finding(
        each.name, each.summary, "broken" if broken else "holds", "; ".join(b.message for b in broken), broken
    )


def _first(found: Iterator[Broken]) -> Iterator[Broken]:
    for _, broken in zip(range(SHOWN), found, strict=False):
        yield broken
