"""The page that draws kept benchmarks, and the table of two checkouts."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import compare
from benchmarks.history import main, measurements


def keep(folder: Path, number: int, when: str, ratio: float) -> None:
    benchmarks = [
        {"name": "test_fifo[300]", "extra_info": {"ratio": ratio}},
        {"name": "test_without_a_floor", "extra_info": {}},
    ]
    document = {
        "machine_info": {"machine": "x86_64", "cpu": {"brand_raw": "a processor"}},
        "commit_info": {"id": f"{number}" * 40},
        "datetime": when,
        "benchmarks": benchmarks,
    }
    (folder / f"{number:04d}.json").write_text(json.dumps(document))


def test_ratios_are_drawn_from_the_oldest_to_the_newest(tmp_path: Path) -> None:
    keep(tmp_path, 2, "2026-02-01T00:00:00", 3.0)
    keep(tmp_path, 1, "2026-01-01T00:00:00", 4.0)
    history = measurements(tmp_path)
    assert [(point.commit, point.ratio) for point in history["test_fifo[300]"]] == [
        ("11111111", 4.0),
        ("22222222", 3.0),
    ]
    assert list(history) == ["test_fifo[300]"]
    main(str(tmp_path), str(tmp_path / "new" / "page.html"))
    text = (tmp_path / "new" / "page.html").read_text()
    assert text.count("<figure>") == 1
    assert 'alt="test_fifo[300]"' in text


def test_a_row_compares_two_checkouts() -> None:
    for row in compare.rows(long=True):
        assert {"point", "name"} < row.keys()
        assert ("command" in row) != ("code" in row)
        compile(row.get("code", ""), row["name"], "exec")
    assert (
        compare.line({"point": "p", "name": "n"}, None, compare.Cost(1.0, 10.0))
        == "| p | n | failed | 1 s, 10 MB |  |  |"
    )
    shown = compare.line({"point": "p", "name": "n"}, compare.Cost(3.0, 30.0), compare.Cost(1.5, 10.0))
    assert shown == "| p | n | 3 s, 30 MB | 1.5 s, 10 MB | 2.00 | 3.00 |"


def test_only_what_is_marked_is_measured(tmp_path: Path) -> None:
    row = {"code": "waste = sum(range(100))\n# measured\nassert waste == 4950\nprint('x')\n"}
    found = compare.cost(compare.words(row), tmp_path, tmp_path)
    assert found is not None
    assert found.memory > 1
    assert compare.cost(compare.words({"code": "assert False"}), tmp_path, tmp_path) is None
