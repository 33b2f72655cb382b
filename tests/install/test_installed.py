"""The installed package, not the checkout: in another folder, with a site-packages in which nobody may write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from install.environments import lock, run, travel

pytestmark = [
    pytest.mark.release,
    pytest.mark.xdist_group("install"),
    pytest.mark.skipif(sys.platform == "win32", reason="rights of a folder are others there"),
]


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, installed without its dependencies: those of this environment serve."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", folder, wheel]
    subprocess.run(command, check=True)
    lock(folder)
    return folder


def test_it_lists_loads_solves_verifies_and_runs(site: Path, tmp_path: Path) -> None:
    travel(sys.executable, site, tmp_path, path=site)


def test_compiled_code_goes_to_the_cache_of_the_user(site: Path, tmp_path: Path) -> None:
    code = (
        "import numpy, optsched.compiled.heap as heap\nfrom optsched.compiled import without_interpreting\n"
        "with without_interpreting(): heap.push(numpy.zeros(4, dtype=int), 0, 0, 7)\n"
        "stats = heap.push.dispatcher().stats\n"
        "print(heap.__file__, stats.cache_path, sum(stats.cache_hits.values()))"
    )
    files = []
    for hits in ("0", "1"):
        done = run([sys.executable, "-c", code], tmp_path, path=site)
        assert done.returncode == 0, done.stderr
        file, cache, found = done.stdout.split()
        assert Path(file) == site / "optsched" / "compiled" / "heap.py"
        assert Path(cache).is_relative_to(tmp_path / ".cache" / "optsched")
        assert found == hits
        files.append(sorted(Path(cache).iterdir()))
    assert files[0] == files[1] != []


def test_its_command_says_its_version_without_the_heavy_imports(site: Path, tmp_path: Path) -> None:
    heavy = {"numpy", "scipy", "numba", "pyomo", "cvxpy", "matplotlib", "polars", "pydantic", "rich"}
    done = run([sys.executable, "-X", "importtime", site / "bin" / "optsched", "--version"], tmp_path, path=site)
    assert done.returncode == 0, done.stderr
    name, number = done.stdout.split()
    assert name == "optsched"
    metadata = next(site.glob("optsched-*.dist-info")) / "METADATA"
    assert f"Version: {number}" in metadata.read_text(encoding="utf-8").splitlines()
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert heavy & imported == set()


def test_its_pytest_plugin_is_found_and_costs_little(site: Path, tmp_path: Path) -> None:
    test = "import sys\n\ndef test_it(competitive_ratio):\n    assert competitive_ratio\n\ndef test_others():\n"
    (tmp_path / "test_it.py").write_text(f"{test}    assert 'optsched.pytest_plugin' in sys.modules\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path]
    done = run(command, tmp_path, path=site)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
