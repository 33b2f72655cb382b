"""Every way by which people install, each into an environment of its own: the tree arrives, and it works.

The package index is needed for the build backend and, for one `pip install .`, for all dependencies. The other ways borrow
the declared dependencies from the environment of the tests (``make install-check WHOLE=1``: each installs them). They differ
in how the package is built and put in its place, not in its dependencies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from install.archives import in_tree
from install.environments import lock, travel
from install.interpreters import newer

pytestmark = pytest.mark.install
WAYS = pytest.mark.xdist_group("ways")  # they share the repository; the newer Python runs beside them

WHOLE = bool(os.environ.get("OPTSCHED_WHOLE"))
UV = shutil.which("uv")
Report = Callable[[str], None]


def do(*command: str | Path, cwd: Path | None = None, **variables: str) -> str:
    """Run one step of a way; what it printed. No byte code is made of what is installed: it takes a third of the time."""
    environment = {**os.environ, "PIP_NO_COMPILE": "1", **variables}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}\n{done.stderr}"
    return done.stdout


class Stopwatch:
    """Seconds since it was made: on the clock, and of processors (a shared machine stretches the former)."""

    def __init__(self) -> None:
        self.begin = self.now()

    @staticmethod
    def now() -> tuple[float, float]:
        times = os.times()
        return times.elapsed, times.children_user + times.children_system

    def __str__(self) -> str:
        clock, processors = (now - then for now, then in zip(self.now(), self.begin, strict=True))
        return f"{clock:.0f} s ({processors:.0f} s of processors)"


class Environment:
    """A virtual environment with nothing but its pip; or with ``borrowed`` dependencies, and the pip of the tests."""

    def __init__(self, folder: Path, interpreter: str | Path = sys.executable, borrowed: Path | None = None) -> None:
        do(interpreter, "-m", "venv", *([] if borrowed is None else ["--without-pip"]), folder)
        self.folder, self.python = folder, folder / "bin" / "python"
        here: list[str | Path] = [sys.executable, "-m", "pip", "--python", self.python]
        self.runner = [self.python, "-m", "pip"] if borrowed is None else here
        self.site = Path(do(self.python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
        self.alone = borrowed is None
        if borrowed is not None:
            (self.site / "borrowed.pth").write_text(f"{borrowed}\n")

    def pip(self, *arguments: str | Path) -> None:
        """``pip install``, without dependencies where they are borrowed."""
        more = [] if self.alone else ["--no-deps"]
        do(*self.runner, "install", "-q", *more, *arguments)

    def uv(self, *arguments: str | Path) -> None:
        """``uv pip install`` in the same way; uv reads no configuration of pip, so it is told the index."""
        more = [] if self.alone else ["--no-deps"]
        index = do(sys.executable, "-m", "pip", "config", "list")
        known = [
            line.partition("=")[2].strip("' ") for line in index.splitlines() if line.startswith("global.index-url=")
        ]
        told = {"UV_DEFAULT_INDEX": known[0]} if known and "UV_DEFAULT_INDEX" not in os.environ else {}
        assert UV is not None
        do(UV, "pip", "install", "-q", "--python", self.python, *more, *arguments, **told)

    @property
    def megabytes(self) -> float:
        return sum(file.lstat().st_size for file in self.folder.rglob("*") if not file.is_symlink()) / 1e6


@pytest.fixture(scope="session")
def repository(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as a git repository with one commit."""
    copy = tmp_path_factory.mktemp("repository") / "optsched"
    shutil.copytree(tree, copy, symlinks=True)
    who = ("-c", "user.name=way", "-c", "user.email=way@localhost", "-c", "commit.gpgsign=false")
    do("git", "init", "-q", cwd=copy)
    do("git", "add", "-A", cwd=copy)
    do("git", *who, "commit", "-qm", "The tree as it stands", cwd=copy)
    return copy


def arrived(environment: Environment, tree: Path, *, editable: Path | None = None) -> None:
    """The files of the tree are in site-packages, or an editable install leads to them."""
    if editable is None:
        package = environment.site / "optsched"
        found = {file for file in package.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
        assert {file.relative_to(environment.site).as_posix() for file in found} == in_tree(tree)
    else:
        assert not (environment.site / "optsched").exists()
    command = environment.folder / "bin" / "optsched"
    assert do(command, "--version", cwd=environment.folder).startswith("optsched ")
    code = (
        "import importlib.util; print(importlib.util.find_spec('optsched.models').origin)"  # found, not imported: quick
    )
    file = Path(do(environment.python, "-c", code, cwd=environment.folder).strip()).resolve()
    expected = editable / "models" if editable else environment.site / "optsched" / "models"
    assert file.parent == expected.resolve()


def whole_journey(environment: Environment, tree: Path, folder: Path) -> None:
    arrived(environment, tree)
    lock(environment.site / "optsched")
    travel(environment.python, environment.site, folder)


@pytest.fixture(scope="session")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The declared dependencies of this environment and theirs, without extras: links to what pip has installed."""
    folder, names, waiting = tmp_path_factory.mktemp("dependencies"), {"optsched"}, ["optsched"]
    while waiting:
        distribution = metadata.distribution(waiting.pop())
        requirements = map(Requirement, distribution.requires or ())
        needed = {each.name for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})}
        waiting += needed - names
        names |= needed
        for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            if distribution.name != "optsched" and not (folder / top).is_symlink():
                (folder / top).symlink_to(Path(str(distribution.locate_file(top))))
    return folder


@pytest.fixture(scope="session")
def borrowed(request: pytest.FixtureRequest) -> Path | None:
    """The folder of declared dependencies; None where every way installs its own."""
    folder: Path | None = None if WHOLE else request.getfixturevalue("declared")
    return folder


def installed(tree: Path, folder: Path, report: Report, python: str | Path, borrowed: Path | None) -> None:
    """``pip install .``, the journey, and whether pip finds every declared dependency there."""
    watch = Stopwatch()
    environment = Environment(folder / "env", python, borrowed)
    # byte code of all that is installed would be half of the time; a user has it made, and so does WHOLE=1
    environment.pip(*([] if WHOLE else ["--no-compile"]), tree)
    took = str(watch)
    report(f"{Path(python).name} -m pip install .: {took}, {environment.megabytes:.0f} MB")
    do(*environment.runner, "check")
    (folder / "elsewhere").mkdir()
    whole_journey(environment, tree, folder / "elsewhere")


@WAYS
def test_pip_install(tree: Path, borrowed: Path | None, tmp_path: Path, report: Report) -> None:
    # one Python installs all dependencies; `make setup` has just installed them for this one
    installed(tree, tmp_path, report, sys.executable, borrowed if newer() else None)


def test_pip_install_with_a_newer_python(tree: Path, tmp_path: Path, report: Report) -> None:
    python = newer()
    if python is None:
        pytest.skip("there is no newer Python than the one that runs the tests")
    installed(tree, tmp_path, report, python, None)


def pip_wheel(environment: Environment, source: Path, work: Path) -> None:
    do(*environment.runner, "wheel", "-q", "--no-deps", "-w", work / "wheels", source)
    environment.pip(*(work / "wheels").iterdir())


@pytest.fixture(scope="session")
def built(repository: Path, borrowed: Path | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``python -m build`` makes: the sdist, and the wheel from it."""
    work = tmp_path_factory.mktemp("build")
    environment = Environment(work / "env", borrowed=borrowed)
    do(*environment.runner, "install", "-q", "build")
    do(environment.python, "-m", "build", "--outdir", work / "dist", repository)
    return work / "dist"


def pip_archive(environment: Environment, source: Path, work: Path) -> None:
    environment.pip(source)


def pip_git_url(environment: Environment, source: Path, work: Path) -> None:
    environment.pip(f"git+{source.as_uri()}")


def without_links(source: Path, work: Path) -> Path:
    clone = work / "clone"
    do("git", "clone", "-q", "-c", "core.symlinks=false", source, clone)
    assert (clone / "optsched" / "models").read_text() == "../models"
    return clone


def pip_without_links(environment: Environment, source: Path, work: Path) -> None:
    environment.pip(without_links(source, work))


def oldest_backend(environment: Environment, source: Path, work: Path) -> None:
    system = tomllib.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]
    (stated,) = system["requires"]
    do(*environment.runner, "install", "-q", stated.replace(">=", "=="))
    environment.pip("--no-build-isolation", source)


def uv_install(environment: Environment, source: Path, work: Path) -> None:
    environment.uv(source)


BUILT = {"python -m build, the sdist": ".tar.gz", "python -m build, the wheel from the sdist": ".whl"}
COPIES = {
    "pip wheel .": pip_wheel,
    **dict.fromkeys(BUILT, pip_archive),
    "pip install git+file://": pip_git_url,
    "pip install ., without symbolic links": pip_without_links,
    "pip install ., the oldest backend": oldest_backend,
    "uv pip install .": uv_install,
}
EDITABLE = ["pip install -e .", "pip install -e ., without symbolic links", "uv pip install -e ."]


def environment_of(way: str, tmp_path: Path, borrowed: Path | None) -> Environment:
    if way.startswith("uv") and UV is None:
        pytest.skip("uv is not installed")
    return Environment(tmp_path / "env", borrowed=borrowed)


@WAYS
@pytest.mark.parametrize("way", COPIES)
def test_a_road_brings_the_tree(
    way: str,
    repository: Path,
    tree: Path,
    borrowed: Path | None,
    tmp_path: Path,
    report: Report,
    request: pytest.FixtureRequest,
) -> None:
    source = repository
    if way in BUILT:
        (source,) = request.getfixturevalue("built").glob(f"*{BUILT[way]}")
    environment = environment_of(way, tmp_path, borrowed)
    watch = Stopwatch()
    COPIES[way](environment, source, tmp_path)
    report(f"{way}: {watch}, {environment.megabytes:.0f} MB")
    arrived(environment, tree)
    if WHOLE:
        whole_journey(environment, tree, tmp_path)


@WAYS
@pytest.mark.parametrize("way", EDITABLE)
def test_an_editable_install_leads_to_the_tree(
    way: str, repository: Path, tree: Path, borrowed: Path | None, tmp_path: Path, report: Report
) -> None:
    environment = environment_of(way, tmp_path, borrowed)
    source = without_links(repository, tmp_path) if "without" in way else repository
    watch = Stopwatch()
    (environment.uv if way.startswith("uv") else environment.pip)("-e", source)
    report(f"{way}: {watch}, {environment.megabytes:.0f} MB")
    arrived(environment, tree, editable=source)
    if WHOLE:
        travel(environment.python, source, tmp_path, writable=True)
