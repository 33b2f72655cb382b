"""The pytest plugin: fixtures `competitive_ratio` and `schedule_properties`, a baseline of ratios under version control.

.. code-block:: python

    def test_my_policy(competitive_ratio):
        competitive_ratio(MyPolicy(), suite="rigid-small").at_most(2.0).no_worse_than_baseline()


    def test_my_backfilling(schedule_properties):
        schedule_properties(MyPolicy(), suite="known-schedules").hold("head-not-delayed").starts_as("easy")

Nothing but this file is imported before a test asks for a fixture. With pytest-xdist the processes send what they
measured along with their reports; only the one that collects them writes the baseline and reports.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from optsched.regression.guard import GuardedRatio
    from optsched.regression.guarded_suite import GuardSettings, SuiteLike
    from optsched.regression.schedule_guard import GuardedSchedules
    from optsched.regression.stale import Collected, Kept

BASELINE, FAILURES = "ratio-baseline.json", ".optsched/ratio-failures"
REPORTED = "optsched_ratios"  # the attribute of a report that carries what a test measured
GONE = "optsched_gone"  # what a process of pytest-xdist says at its end: tests of the baseline that are no longer there

_measured = pytest.StashKey["list[GuardedRatio]"]()
_scheduled = pytest.StashKey["list[GuardedSchedules]"]()


def _share(text: str) -> float:
    """``1%`` -> 0.01."""
    number = text.strip().removesuffix("%")
    try:
        value = float(number) / 100
    except ValueError:
        value = math.nan
    if not (text.strip().endswith("%") and 0 <= value < math.inf):
        raise argparse.ArgumentTypeError(f"{text!r}: not a tolerance (expected: a number >= 0 and %, such as 1%)")
    return value


def _file(*suffixes: str) -> Callable[[str], Path]:
    def path(text: str) -> Path:
        if Path(text).suffix not in suffixes:
            raise argparse.ArgumentTypeError(f"{text!r}: not the name of a file that ends with {' or '.join(suffixes)}")
        return Path.cwd() / text

    return path


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options ``--ratio-...`` and the settings for the places of files, which are set once for a project.

    Parameters
    ----------
    parser
        Parser of pytest's options.
    """
    group = parser.getgroup("competitive ratio", "competitive ratios (optsched)")
    group.addoption(
        "--ratio-update",
        action="store_const",
        const="all",
        default="",
        help="write what is measured into the baseline, compare nothing; stale entries are removed",
    )
    group.addoption(  # not a value of the option above: that would take the path behind it for its own
        "--ratio-update=lower",
        action="store_const",
        const="lower",
        dest="ratio_update",
        help="write what is new or got better; a test whose worst or mean ratio got worse at all fails",
    )
    group.addoption(
        "--ratio-compare-fail",
        type=_share,
        default=0.01,
        metavar="P%",
        help="by how much a worst or mean ratio may grow before no_worse_than_baseline() fails (default: 1%%)",
    )
    group.addoption(
        "--ratio-instance", default="", metavar="NAME", help="measure on this instance of the suite (or file) alone"
    )
    group.addoption(
        "--ratio-report",
        action="append",
        type=_file(".md", ".json"),
        default=[],
        metavar="FILE",
        help="write what was measured: a Markdown table (FILE.md), every instance (FILE.json); may be given twice",
    )
    group.addoption(
        "--ratio-badge",
        type=_file(".json"),
        metavar="FILE.json",
        help="write the worst ratio for a badge, as the endpoint of shields.io reads it",
    )
    parser.addini(
        "ratio_baseline", f"file of the baseline of ratios, from the root (default: {BASELINE})", default=BASELINE
    )
    parser.addini("ratio_failures", f"folder for instances that fail (default: {FAILURES})", default=FAILURES)


def pytest_configure(config: pytest.Config) -> None:
    """Register the object that collects the measurements of this session's tests.

    Parameters
    ----------
    config
        Configuration of the session.
    """
    config.pluginmanager.register(_Session(config), "optsched-ratios")


@pytest.fixture
def competitive_ratio(request: pytest.FixtureRequest) -> Callable[..., GuardedRatio]:
    """Return ``competitive_ratio(scheduler, suite=..., objective=None)``, which measures ratios over a suite.

    Chain ``.at_most(2.0)``, ``.keeps_guarantee()`` and ``.no_worse_than_baseline()`` on the result. A test that
    checks nothing fails. A scheduler is a policy (text or an object), a function from an instance to a schedule,
    or a command line as a list of words; see `optsched.regression.guarded_subject.guarded_subject` and
    `optsched.regression.guard.guarded`.

    Parameters
    ----------
    request
        Request of the fixture, from pytest.
    """
    from optsched.regression.guard import guarded
    from optsched.regression.guarded_subject import guarded_subject

    measured = request.node.stash[_measured] = []
    settings = _settings(request)

    def measure(
        scheduler: Any,
        *,
        suite: SuiteLike,
        objective: str | None = None,
        placement: str | None = None,
        name: str = "",
        files: bool = False,
        timeout: float = 60.0,
    ) -> GuardedRatio:
        __tracebackhide__ = True
        who = guarded_subject(scheduler, placement=placement, name=name, files=files, timeout=timeout)
        measured.append(guarded(who, suite, objective, settings))
        return measured[-1]

    return measure


@pytest.fixture
def schedule_properties(request: pytest.FixtureRequest) -> Callable[..., GuardedSchedules]:
    """Return ``schedule_properties(scheduler, suite=...)``, which makes the schedules of a suite.

    Chain ``.hold("head-not-delayed", ...)`` and ``.starts_as("easy")`` on the result. A test that checks nothing fails.
    The scheduler is as for `competitive_ratio`; the properties are those of `optsched.check.properties`.

    Parameters
    ----------
    request
        Request of the fixture, from pytest.
    """
    from optsched.regression.guarded_subject import guarded_subject
    from optsched.regression.schedule_guard import guarded_schedules

    scheduled = request.node.stash[_scheduled] = []
    settings = _settings(request)

    def schedule(
        scheduler: Any,
        *,
        suite: SuiteLike,
        placement: str | None = None,
        name: str = "",
        files: bool = False,
        timeout: float = 60.0,
    ) -> GuardedSchedules:
        __tracebackhide__ = True
        subject = guarded_subject(scheduler, placement=placement, name=name, files=files, timeout=timeout)
        scheduled.append(guarded_schedules(subject, suite, settings))
        return scheduled[-1]

    return schedule


def _settings(request: pytest.FixtureRequest) -> GuardSettings:
    from optsched.regression.guarded_suite import GuardSettings

    config = request.config
    return GuardSettings(
        test=_name(request.node),
        root=config.rootpath,
        baseline=_baseline(config),
        folder=_near(config.rootpath / config.getini("ratio_failures")),
        factor=1 + config.getoption("--ratio-compare-fail"),
        update=config.getoption("ratio_update"),
        only=config.getoption("--ratio-instance"),
    )


def _baseline(config: pytest.Config) -> Path:
    return config.rootpath / str(config.getini("ratio_baseline"))


def _name(item: pytest.Item) -> str:
    # Where pytest-xdist keeps groups together it writes their names behind that of the test.
    marks = item.iter_markers("xdist_group")
    groups = {str(mark.args[0] if mark.args else mark.kwargs.get("name", "default")) for mark in marks}
    return item.nodeid.removesuffix(f"@{'_'.join(sorted(groups))}")


def _near(path: Path) -> Path:
    # as people would type it
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that measures ratios or makes schedules and checks nothing: it would pass whatever they are.

    Parameters
    ----------
    item
        The test.
    """
    result = yield
    measured = item.stash.get(_measured, [])
    for each in measured:
        if not each.asked:
            who = f"competitive_ratio({each.record['policy']!r}, suite={each.suite!r})"
            asks = ".at_most(LIMIT), .keeps_guarantee() or .no_worse_than_baseline()"
            said = f"{who} was measured and nothing asked: call {asks} on it, or compare its .worst, .mean or .ratios"
            pytest.fail(said, pytrace=False)
    for guard in item.stash.get(_scheduled, []):
        if not guard.asked:
            who = f"schedule_properties({guard.guarded_subject.text!r}, suite={guard.suite!r})"
            asks = ".hold(PROPERTY, ...) or .starts_as(POLICY) on it, or read its .schedules"
            pytest.fail(f"{who} was run and nothing asked: call {asks}", pytrace=False)
    entries: dict[str, Any] = {}
    for label, entry in (one for each in measured for one in each.record.get("entry", {}).items()):
        if entries.setdefault(label, entry) != entry:
            pytest.fail(f"two measurements of this test are both {label!r}: give each a name=", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the measurements of a test to its report, also for another process, and to a JUnit file.

    Parameters
    ----------
    item
        The test.
    call
        The phase of the test that the report is about.
    """
    measured = item.stash.get(_measured, None)
    # What was measured when a test was set up is asked about when it is called.
    if measured is None or call.when == "teardown" or (call.when == "setup" and not call.excinfo):
        return (yield)
    from optsched.regression.ratio_report import properties

    records = [each.record for each in measured]
    item.user_properties += properties(records)
    report = yield
    setattr(report, REPORTED, records)
    return report


class _Session:
    """Collector of the measurements in the reports of all processes; it shows and writes them at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.collects = not hasattr(config, "workerinput")  # not a process of pytest-xdist
        self.records: list[dict[str, Any]] = []
        self.failed: list[pytest.TestReport] = []  # of tests that use the fixture
        self.passed: set[str] = set()
        self.entries: dict[str, dict[str, Any]] = {}
        self.kept: Kept = {}
        self.collected: Collected | None = None
        self.gone: set[str] = set()
        self.said: list[str] = []
        self.wrong: list[str] = []

    def pytest_sessionstart(self) -> None:
        """Entries may be stale where everything is collected and measured."""
        alone = self.config.getoption("--ratio-instance") or self.config.getoption("lf", False)
        if alone or self.config.getoption("collectonly") or not _baseline(self.config).is_file():
            return
        from optsched.regression.stale import Collected, kept_in

        self.kept, self.collected = kept_in(_baseline(self.config)), Collected()

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Record the collected tests before other plugins leave some out."""
        report = yield
        if self.collected is not None and report.passed:
            self.collected.add(collector.nodeid, [each.nodeid for each in report.result or ()])
        return report

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A process of pytest-xdist ends; it has collected what there is, this one has not."""
        self.gone |= set((getattr(node, "workeroutput", None) or {}).get(GONE, ()))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Only a test that passed says what the baseline is to be."""
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)
        found: list[dict[str, Any]] | None = getattr(report, REPORTED, None)
        if found is None or str(report.outcome) == "rerun":  # of pytest-rerunfailures: there comes another
            return
        self.records += [{**record, "outcome": report.outcome, "nodeid": report.nodeid} for record in found]
        if report.failed:
            self.failed.append(report)
        for record in found:
            if report.passed and "entry" in record:
                self.entries.setdefault(record["test"], {}).update(record["entry"])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Files are written once, by the process that collects."""
        if self.collected is not None:
            self.gone |= set(self.collected.gone(self.kept, self.config.rootpath))
        if not self.collects:
            self.config.workeroutput[GONE] = sorted(self.gone)  # type: ignore[attr-defined]
            return
        stale, baseline = self._stale(), _near(_baseline(self.config))
        if any(record.get("undated") for record in self.records):
            self.said.append(
                f"{baseline}: instances without digests, a change of them is not seen: pytest --ratio-update"
            )
        self.wrong = self._update(stale) if self.config.getoption("ratio_update") else list(stale.values())
        self.wrong += self._publish([*self.said, *self.wrong])
        if self.wrong and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _stale(self) -> dict[tuple[str, str], str]:
        """Stale entries -> what to say of them."""
        if not self.kept:
            return {}
        from optsched.regression.stale import stale

        place, found = _near(_baseline(self.config)), stale(self.kept, self.gone, self.passed, self.entries)
        return {
            (test, label): f"{place}: stale entry {test}, {label!r}: {why} (pytest --ratio-update removes it)"
            for (test, label), why in found.items()
        }

    def _update(self, stale: Mapping[tuple[str, str], str]) -> list[str]:
        """Write the baseline; what is wrong with it."""
        if not (self.entries or stale):
            return []
        from optsched.errors import InputError
        from optsched.regression.baseline_file import update

        place = _baseline(self.config)
        try:
            changed = update(place, self.entries, self.config.rootpath, stale.keys())
        except InputError as error:
            return [str(error)]
        self.said.append(f"{_near(place)}: {changed} entr{'y' if changed == 1 else 'ies'} changed")
        return []

    def _publish(self, notes: Sequence[str]) -> list[str]:
        """Write reports, the badge and the summary of a job of GitHub Actions; what could not be written."""
        reports, badge = self.config.getoption("--ratio-report"), self.config.getoption("--ratio-badge")
        summary = os.environ.get("GITHUB_STEP_SUMMARY") if self.records or self.failed or notes else None
        if not (reports or badge or summary):
            return []
        from optsched.regression import ratio_report as made

        records = sorted(self.records, key=lambda record: str(record["test"]))
        without = sorted({each.nodeid for each in self.failed} - {record["nodeid"] for record in records})
        told = records, without, notes
        files = [(path, "w", (made.document if path.suffix == ".json" else made.markdown)(*told)) for path in reports]
        if badge:
            files.append((badge, "w", made.badge(records, [*without, *self.wrong])))
        if summary:
            files.append((Path(summary), "a", made.markdown(*told)))
        wrong = []
        for path, mode, text in files:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open(mode, encoding="utf-8") as file:
                    file.write(text)
            except OSError as error:
                wrong.append(f"{path}: cannot write: {error.strerror or error}")
        return wrong

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """A row a measurement; what fails is marked in a pull request."""
        lines = [*self.said, *self.wrong]
        if self.records or lines:
            terminalreporter.section("competitive ratios")
        if self.records:
            from optsched.regression.ratio_report import table

            lines = [*table(self.records), *lines]
        if os.environ.get("GITHUB_ACTIONS") == "true":
            lines += self._annotations()
        for line in lines:
            terminalreporter.write_line(line)

    def _annotations(self) -> list[str]:
        from optsched.regression.ratio_report import annotation

        root = self.config.rootpath
        base = Path(os.environ.get("GITHUB_WORKSPACE") or root)

        def seen(path: Path) -> str:
            return (path.relative_to(base) if path.is_relative_to(base) else path).as_posix()

        found = []
        for report in self.failed:
            file, line, _ = report.location
            traced = getattr(getattr(report.longrepr, "reprtraceback", None), "reprentries", [])
            places = [place for each in traced if (place := getattr(each, "reprfileloc", None)) is not None]
            inside = [place.lineno for place in places if Path.cwd() / place.path == root / file]
            message = getattr(getattr(report.longrepr, "reprcrash", None), "message", None) or str(report.longrepr)
            at = inside[-1] if inside else (line or 0) + 1
            found.append(annotation("error", seen(root / file), at, report.nodeid, message))
        return found + [annotation("error", seen(_baseline(self.config)), 1, "baseline", each) for each in self.wrong]
