"""`Check`: one thing that every policy keeps; `Broken`: where one does not, with the instance that shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from optsched.contract.subject import Subject
from optsched.problem.instance import Instance
from optsched.registry import Registry


@dataclass(frozen=True)
class Broken:
    """What is wrong, in a line, and the instances that show it: one, or two whose runs should agree."""

    message: str
    instances: tuple[Instance, ...] = ()


@dataclass(frozen=True)
class Check:
    """``find(subject)`` yields what is broken; ``exempt(subject)`` says why nothing is asked of a policy, or nothing."""

    name: str
    summary: str
    find: Callable[[Subject], Iterator[Broken]]
    exempt: Callable[[Subject], str] = lambda subject: ""


CHECKS: Registry[Check] = Registry("check", package="optsched.contract.checks")


def check(
    name: str, summary: str, exempt: Callable[[Subject], str] = lambda subject: ""
) -> Callable[[Callable[[Subject], Iterator[Broken]]], Callable[[Subject], Iterator[Broken]]]:
    """Files a function as the check of that name."""

    def filed(find: Callable[[Subject], Iterator[Broken]]) -> Callable[[Subject], Iterator[Broken]]:
        CHECKS.register(name)(Check(name, summary, find, exempt))
        return find

    return filed
