"""`GuardedSchedules`: the schedules of one subject over a suite, with checks of their properties and of their starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from optsched.check.properties import PROPERTIES, broken_properties
from optsched.check.properties.executions import Executions
from optsched.errors import InputError, check_legal
from optsched.evaluation.known_schedules import known_schedules
from optsched.evaluation.suite_ratios import for_no_instance
from optsched.problem.instance import Instance
from optsched.problem.schedule import Schedule
from optsched.regression.guarded_subject import GuardedSubject, Replay
from optsched.regression.guarded_suite import GuardSettings, SuiteLike, chosen_instances, suite_of

Starts = Mapping[str, float]  # job id -> seconds


@dataclass
class GuardedSchedules:
    """Schedules of a subject over a suite. Every check returns the object, or raises `AssertionError`.

    The error names the instance, the instant and the jobs, and the command that repeats the run. ``asked``: whether a check
    was made, or `schedules` was read.
    """

    guarded_subject: GuardedSubject
    suite: str
    made: tuple[tuple[str, Instance, Schedule], ...]
    replay: Replay
    asked: bool = False

    @property
    def schedules(self) -> dict[str, Schedule]:
        """Schedules by name of the instance."""
        self.asked = True
        return {name: schedule for name, _, schedule in self.made}

    def hold(self, *names: str) -> GuardedSchedules:
        """Check that properties hold on every schedule.

        Parameters
        ----------
        *names
            Names of properties (`optsched.check.properties`). A property for exact limits is judged on the instances with
            such limits, of which there must be one.

        Raises
        ------
        InputError
            No name, an unknown name, or a schedule for which properties are not defined (a job is stopped).
        """
        __tracebackhide__ = True
        self.asked = True
        check_legal(bool(names), "hold", names, f"at least one of {', '.join(PROPERTIES.names())}")
        for name in names:
            judged = PROPERTIES.get(name)
            rows = [row for row in self.made if not judged.exact or Executions.of(row[1], row[2]).exact]
            if not rows:
                self._fail("", f"{judged.name} is defined on no instance: {judged.statement}")
            for instance_name, instance, schedule in rows:
                broken = broken_properties(instance, schedule, name)
                if broken:
                    more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
                    self._fail(instance_name, f"{judged.name} is violated on {instance_name}: {broken[0].text}{more}")
        return self

    def starts_as(self, expected: str | Mapping[str, Starts]) -> GuardedSchedules:
        """Check that every job starts when it does under a policy.

        Parameters
        ----------
        expected
            Policy of the suite ``known-schedules``: ``fcfs``, ``easy``, ``easy-sjbf``, ``first-fit`` or ``conservative``; or
            the starts themselves: name of the instance -> job id -> seconds.

        Raises
        ------
        InputError
            No starts are known for the policy, or for an instance of the suite.
        """
        __tracebackhide__ = True
        self.asked = True
        known = _known(expected) if isinstance(expected, str) else expected
        policy = f"under {expected}" if isinstance(expected, str) else "in the known schedule"
        for name, instance, schedule in self.made:
            check_legal(name in known, "starts_as", name, f"instances with known starts: {', '.join(known)}")
            executions = Executions.of(instance, schedule)
            for job, start in zip(executions.ids, executions.start.tolist(), strict=True):
                right = float(known[name][job])
                if abs(executions.on_clock(start) - right) > executions.slack:
                    self._fail(
                        name, f"on {name} job {job!r} starts at {executions.at(start)}, {policy} at {right:.15g} s"
                    )
        return self

    def _fail(self, name: str, what: str) -> None:
        __tracebackhide__ = True
        lines = [f"{self.guarded_subject.text} on {self.suite}: {what}"]
        lines += next((self.replay.written(name, instance) for made, instance, _ in self.made if made == name), [])
        raise AssertionError("\n".join(lines))


def _known(policy: str) -> dict[str, dict[str, float]]:
    known = known_schedules()
    names = list(dict.fromkeys(name for each in known.values() for name in each.starts))
    if policy not in names:
        raise InputError("no known schedules", field="starts_as", value=policy, legal=f"one of {', '.join(names)}")
    return {name: each.starts[policy] for name, each in known.items() if policy in each.starts}


def guarded_schedules(
    guarded_subject: GuardedSubject, over: SuiteLike, settings: GuardSettings | None = None
) -> GuardedSchedules:
    """Run a subject on every instance of a suite that it supports, and keep the schedules.

    The referee checks them: a schedule that starts a job before its submission, or uses more GPUs than exist, is an error.

    Parameters
    ----------
    guarded_subject
        The subject.
    over
        As for `optsched.regression.guard.guarded`.
    settings
        Settings of the project.

    Raises
    ------
    InputError
        If the suite has no instance for the subject. Errors of the subject are raised with a note on the instance.
    """
    settings = settings or GuardSettings()
    suite = suite_of(over, settings.root)
    rows = [
        (name, instance) for name, instance in chosen_instances(suite, settings) if guarded_subject.serves(instance)
    ]
    if not rows:
        raise for_no_instance(suite, guarded_subject.text)
    replay, made = Replay(guarded_subject, None, settings.test, settings.folder), []
    for name, instance in rows:
        made.append((name, instance, replay.run(name, instance, suite.name).schedule))
    return GuardedSchedules(guarded_subject, suite.name, tuple(made), replay)
