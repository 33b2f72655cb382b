"""One table at the end of `make bench`: what every benchmark measured against its floor in the same process."""

from __future__ import annotations

from typing import Any

import pytest


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return str(value)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print ``benchmark.extra_info`` of every benchmark that recorded a ratio; the ratio first."""
    session = getattr(config, "_benchmarksession", None)
    measured = [bench for bench in getattr(session, "benchmarks", []) if "ratio" in bench.extra_info]
    if not measured:
        return
    width = max(len(bench.name) for bench in measured)
    terminalreporter.section("ratios to a floor in the same process")
    for bench in measured:
        rest = "  ".join(f"{name}={_shown(value)}" for name, value in bench.extra_info.items() if name != "ratio")
        terminalreporter.write_line(f"{bench.name:<{width}}  ratio {bench.extra_info['ratio']:>8.2f}  {rest}")
