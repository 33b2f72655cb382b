"""The examination of a policy: the results of the checks of the policy contract."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from optsched.contract.checks import CHECKS, Broken, Check
from optsched.contract.levels import Subject
from optsched.errors import KnowledgeError
from optsched.problem.atomic_files import file_name

SHOWN = 3  # of what one check finds


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    Parameters
    ----------
    check
        Name of the check.
    summary
        The rule in one line.
    verdict
        ``holds``, ``broken``, ``exempt`` or ``not run``.
    said
        The violations, or why the policy is exempt.
    broken
        The violations, with the instances that show them.
    """

    check: str
    summary: str
    verdict: str
    said: str = ""
    broken: tuple[Broken, ...] = ()


@dataclass(frozen=True)
class Examination:
    """The results of all checks of a policy.

    Parameters
    ----------
    subject
        The policy.
    findings
        One result a check.
    """

    subject: Subject
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> list[Finding]:
        """The results of the checks that fail."""
        return [finding for finding in self.findings if finding.verdict == "broken"]

    def save(self, folder: Path) -> dict[str, list[str]]:
        """Write the instances on which a check fails.

        Parameters
        ----------
        folder
            The folder of the files.

        Returns
        -------
        dict
            The files by check.
        """
        policy = file_name(self.subject.text)
        files: dict[str, list[str]] = {}
        for finding in self.broken:
            for instance in finding.broken[0].instances:
                path = folder / f"broken-{finding.check}-{policy}-{instance.digest[:8]}.json"
                instance.save(path)
                files.setdefault(finding.check, []).append(str(path))
        return files

    def to_json(self, files: dict[str, list[str]]) -> dict[str, Any]:
        """Return the document of ``check-policy --json``.

        Parameters
        ----------
        files
            The files that `save` has written, by check.
        """
        rows = [
            {
                "name": finding.check,
                "summary": finding.summary,
                "verdict": finding.verdict,
                "said": finding.said,
                "files": files.get(finding.check, []),
            }
            for finding in self.findings
        ]
        return {
            "policy": self.subject.text,
            "name": self.subject.policy.name,
            "knowledge": self.subject.knowledge,
            "level": self.subject.level.name,
            "holds": not self.broken,
            "checks": rows,
        }


def examine(text: str, *, progress: Callable[[int, int], None] | None = None) -> Examination:
    """Run every check on a policy.

    An exception in a run is reported under ``knowledge`` (a `KnowledgeError`) or ``feasible`` (any other); the
    other checks are then ``not run``.

    Parameters
    ----------
    text
        A registered policy, or ``MODULE:CLASS``, with parameters and placement.
    progress
        Called with (checks done, all checks).

    Raises
    ------
    InputError
        There is no such policy, or it does not declare its name, knowledge or uses correctly.
    """
    subject = Subject(text)
    subject.level  # noqa: B018 - an `InputError` comes before the first check
    checks = [registered for _, registered in CHECKS.items()]
    findings = []
    for done, next_check in enumerate(checks, 1):
        findings.append(_finding(next_check, subject))
        if progress is not None:
            progress(done, len(checks))
    return Examination(subject, tuple(findings))


def _finding(checked: Check, subject: Subject) -> Finding:
    finding = partial(Finding, checked.name, checked.summary)
    try:
        exempt = checked.exempt(subject)
        if exempt:
            return finding("exempt", exempt)
        broken = tuple(islice(checked.find(subject), SHOWN))
    except Exception as error:  # any exception of a user's policy
        blamed = "knowledge" if isinstance(error, KnowledgeError) else "feasible"
        said = f"{type(error).__name__}: {' '.join(str(error).split())}"
        if checked.name != blamed:
            return finding("not run", f"see {blamed}")
        shown = () if subject.asked is None else (subject.asked,)
        return finding("broken", said, (Broken(said, shown),))
    return finding("broken" if broken else "holds", "; ".join(b.message for b in broken), broken)
