"""Every block of every page is run, as written, in an empty folder; what a page says it prints, it prints.

``make site`` plays the pages under docs/ that draw pictures (`docs/build.py`), and these tests play all others.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pages.page import README, Page, name_of, page_files
from pages.player import WIDTH, Played, command, difference, play, same, shell

pytestmark = pytest.mark.release


PLAYED_HERE = [path for path in page_files() if path == README or not Page(path).draws]


@pytest.mark.parametrize("path", PLAYED_HERE, ids=name_of)
def test_snippets(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", WIDTH)
    for played in play(Page(path), tmp_path):
        assert not difference(played)


def test_a_page_cannot_show_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="exit code 2"):
        command(["run", "no-such-instance"])
    with pytest.raises(AssertionError, match="nothing but optsched"):
        shell("rm -r result\n", tmp_path)
    assert not same("ratio 1.1\n", "ratio 1.2\n")


def test_a_page_is_played_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "```bash\ncat > a.txt <<'END'\n7\nEND\n```\n\n```python\nprint(open('a.txt').read())\n```\n\n```text\n7\n```\n"
    )
    first, second = play(Page(page), tmp_path)
    assert first.said is None
    assert same(second.printed, second.said.text)
    assert not difference(first)
    assert not difference(second)
    assert "make pages" in difference(Played(second.block, "8\n", second.said))
