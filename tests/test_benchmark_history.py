"""The page that draws kept benchmarks, from two files in the form of pytest-benchmark."""

from __future__ import annotations

import json
from pathlib import Path

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
