"""Dialect philly on a small file."""

from __future__ import annotations

from collections.abc import Callable

from optsched.io.traces import TraceRead


def test_columns_and_units(read: Callable[..., TraceRead]) -> None:
    found = read(
        "philly",
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:01:55,66.0,1,66.0,11cb48\n"
        "2017-10-08 23:59:59,2951.5,16,47224.0,6214e9\n"
        "\n",
    )
    assert found.table.to_dict(as_series=False) == {
        "arrival": [7 * 3600 + 116.0, 0.0],
        "duration": [66.0, 2951.5],
        "gpus": [1, 16],
        "group": ["11cb48", "6214e9"],
        "id": ["2", "3"],
    }
    instance = found.instance()
    assert instance.objective is None
    assert instance.cluster.spec == "8x8"
