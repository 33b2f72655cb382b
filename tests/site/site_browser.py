"""A site on the loopback interface, and a headless Chromium that may look at nothing else."""

from __future__ import annotations

import contextlib
import shutil
import threading
from collections.abc import Iterator
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address at which the files of a folder are served."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


STARTED = contextlib.ExitStack()  # the browser that all tests share, once one of them has started it


@cache
def started() -> Any:
    """The browser of this machine, which takes seconds to start; it runs until `STARTED` is closed."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser: none of {', '.join(PROGRAMS)} is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="the extra optsched[docs] is not installed")
    tools = STARTED.enter_context(playwright.sync_playwright())
    browser = tools.chromium.launch(executable_path=program, args=OPTIONS)
    STARTED.callback(browser.close)
    return browser


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """The browser, without the pages of other tests; the test is skipped, and says so, where there is none."""
    browser = started()
    try:
        yield browser
    finally:
        for context in browser.contexts:
            context.close()


def search_results(page: Any, address: str, words: str) -> list[str]:
    """Return the links that the site's search finds for some words, once the search has finished.

    Sphinx lists the results one after the other, and changes the heading after the last of them.
    """
    page.goto(f"{address}search.html?q={words}")
    page.wait_for_selector("#search-results h2:text-is('Search Results')")
    return [str(link.get_attribute("href")) for link in page.query_selector_all("#search-results li a")]
