"""Notes under the tables of requests."""

from __future__ import annotations

from optsched.classes.kv_cache.problem.requests import requests_of
from optsched.cli.run_table import NOTES
from optsched.problem.instance import Instance


def _request_notes(instance: Instance) -> list[str]:
    requests = requests_of(instance)
    times = (
        "times are seconds, rounds have affine length" if requests.affine else "times count rounds, written as seconds"
    )
    return [f"a cache of {requests.cells:,} cells; {times}; time to first token: mean_ttft and p95_ttft of --json"]


NOTES.register("kv-cache", _request_notes)
