"""What `make notebooks` asks of a notebook that ran: a cell that draws shows a picture.

nbmake executes a notebook and says whether a cell failed; a picture that nobody sees fails nothing. So the executed cells
are looked at here, in the same run.
"""

from __future__ import annotations

import base64
import contextlib
import struct
from collections.abc import Iterator
from typing import Any

import pytest
from nbmake.nb_result import NotebookError, NotebookResult
from nbmake.nb_run import NotebookRun

DRAWS = ("osd.plot.", "plt.show()", "plt.subplots")  # what a cell that shows a picture says
LEAST_SIDE = 100  # pixels; a figure without axes is smaller than any picture of ours


def missing_pictures(notebook: Any) -> list[str]:
    """What is wrong with the pictures of an executed notebook: a line a code cell, counted from 1 over all cells."""
    found = []
    for position, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code" and any(mark in cell["source"] for mark in DRAWS):
            images = [image for output in cell["outputs"] for image in _images(output)]
            if not images:
                found.append(f"cell {position} draws, and shows no picture: {cell['source'].splitlines()[-1]}")
            elif min(min(size) for size in images) < LEAST_SIDE:
                found.append(f"cell {position} shows a picture of {images} pixels")
    return found


def _images(output: Any) -> Iterator[tuple[int, int]]:
    # (width, height) of every PNG that an output holds
    content = output.get("data", {}).get("image/png")
    if content:
        head = base64.b64decode(content)[:24]
        if head.startswith(b"\x89PNG"):
            yield struct.unpack(">II", head[16:24])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Look at the notebook that runs here."""
    with looking():
        return (yield)


@contextlib.contextmanager
def looking() -> Iterator[None]:
    """Let nbmake report a picture that is missing as it reports a cell that fails."""
    execute = NotebookRun.execute

    def looked_at(self: NotebookRun) -> NotebookResult:
        result = execute(self)
        wrong = missing_pictures(result.nb)
        if result.error is not None or not wrong:
            return result
        return NotebookResult(result.nb, NotebookError(wrong[0], "\n".join(wrong), -1))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NotebookRun, "execute", looked_at)
        yield
