"""The pytest plugin: the fixture `competitive_ratio`, and a baseline of ratios under version control.

.. code-block:: python

    def test_my_policy(competitive_ratio):
        competitive_ratio(MyPolicy(), suite="rigid-small").at_most(2.0).no_worse_than_baseline()

Nothing but this file is imported before a test asks for the fixture. With pytest-xdist the processes send what they
measured along with their reports; only the one that collects them writes the baseline.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from optsched.regression.guard import GuardedRatio, GuardSettings, SuiteLike

BASELINE, FAILURES = "ratio-baseline.json", ".optsched/ratio-failures"
REPORTED = "optsched_ratios"  # the attribute of a report that carries what a test measured

_measured = pytest.StashKey[list[dict[str, Any]]]()


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


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options ``--ratio-...``; the places of files are set once for a project."""
    group = parser.getgroup("competitive ratio", "competitive ratios (optsched)")
    group.addoption(
        "--ratio-update",
        action="store_const",
        const="all",
        default="",
        help="write what is measured into the baseline, compare nothing",
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
    parser.addini(
        "ratio_baseline", f"file of the baseline of ratios, from the root (default: {BASELINE})", default=BASELINE
    )
    parser.addini("ratio_failures", f"folder for instances that fail (default: {FAILURES})", default=FAILURES)


def pytest_configure(config: pytest.Config) -> None:
    """Somebody collects what the tests of this session measure."""
    config.pluginmanager.register(_Session(config), "optsched-ratios")


@pytest.fixture
def competitive_ratio(request: pytest.FixtureRequest) -> Callable[..., GuardedRatio]:
    """``competitive_ratio(scheduler, suite=..., objective=None)``: its ratios over a suite, to be asked about.

    ``.at_most(2.0)``, ``.keeps_guarantee()``, ``.no_worse_than_baseline()`` can be chained. A scheduler is a policy (text or
    an object), a function from an instance to a schedule, or a command line as a list of words; see
    `optsched.regression.guarded_subject.guarded_subject` and `optsched.regression.guard.guarded`.
    """
    from optsched.regression.guard import guarded
    from optsched.regression.guarded_subject import guarded_subject

    records = request.node.stash.setdefault(_measured, [])
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
        found = guarded(who, suite, objective, settings)
        records.append(found.record)
        return found

    return measure


def _settings(request: pytest.FixtureRequest) -> GuardSettings:
    from optsched.regression.guard import GuardSettings

    config = request.config
    root = config.rootpath
    return GuardSettings(
        test=_name(request.node),
        root=root,
        baseline=root / config.getini("ratio_baseline"),
        folder=_near(root / config.getini("ratio_failures")),
        factor=1 + config.getoption("--ratio-compare-fail"),
        update=config.getoption("ratio_update"),
        only=config.getoption("--ratio-instance"),
    )


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
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test measured goes with its report, also to another process."""
    report = yield
    measured = item.stash.get(_measured, [])
    if measured:
        setattr(report, REPORTED, list(measured))
        measured.clear()
    return report


class _Session:
    """What arrives with the reports of all processes, shown at the end and, when asked, written into the baseline."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.records: list[dict[str, Any]] = []
        self.entries: dict[str, dict[str, Any]] = {}
        self.said = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Only a test that passed says what the baseline is to be."""
        found: list[dict[str, Any]] = getattr(report, REPORTED, [])
        self.records += found
        for record in found:
            if report.passed and "entry" in record:
                self.entries.setdefault(record["test"], {}).update(record["entry"])

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Written once, by the process that collects; a process of pytest-xdist leaves it to that one."""
        if not (self.config.getoption("ratio_update") and self.entries) or getattr(self.config, "workerinput", None):
            return
        from optsched.errors import InputError
        from optsched.regression.baseline_file import update

        place = self.config.rootpath / self.config.getini("ratio_baseline")
        try:
            changed = update(place, self.entries, self.config.rootpath)
            self.said = f"{_near(place)}: {changed} entr{'y' if changed == 1 else 'ies'} changed"
        except InputError as error:
            self.said = str(error)
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """A row a measurement."""
        if self.records:
            terminalreporter.section("competitive ratios")
            for line in [*table(self.records), *([self.said] if self.said else [])]:
                terminalreporter.write_line(line)


# The table at the end of a session: what was measured, what was asked of it, and what changed.

HEADS = ("policy", "suite", "objective", "worst", "on", "mean", "limit", "baseline", "change", "guarantee", "test")
SEEN = 0.005  # percent: less is the rounding of what was kept
LEFT = frozenset({"policy", "suite", "objective", "on", "guarantee", "test"})


def table(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """Lines of a table, a row a measurement, without the columns in which nothing stands."""
    cells = [_cells(each) for each in records]
    shown = [head for head in HEADS if any(row[head] for row in cells)]
    wide = {head: max(len(head), *(len(row[head]) for row in cells)) for head in shown}

    def line(row: Mapping[str, str]) -> str:
        parts = (row[head].ljust(wide[head]) if head in LEFT else row[head].rjust(wide[head]) for head in shown)
        return "  ".join(parts).rstrip()

    return [line({head: head for head in shown}), *map(line, cells)]


def _cells(record: Mapping[str, Any]) -> dict[str, str]:
    worst, before = record["worst"], record.get("before")
    grown = 100 * (worst / before - 1) if worst is not None and before else None
    change = "" if grown is None else f"{grown:+.2f} %" if abs(grown) >= SEEN else "none"
    ratios = {"worst": worst, "mean": record["mean"], "limit": record.get("limit"), "baseline": before}
    return {
        **{name: record[name] for name in ("policy", "suite", "objective", "test")},
        **{name: "" if value is None else f"{value:.4f}" for name, value in ratios.items()},
        "on": record["worst_instance"] or "",
        "change": change,
        "guarantee": record.get("guarantee", ""),
    }
