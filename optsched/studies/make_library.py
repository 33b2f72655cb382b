"""The instance library, made and proved: from ``instances/recipes.toml`` to the index and the archives of proofs.

``python -m optsched.studies.make_library`` (``make library``) makes every instance again from its recipe, solves it by the
methods that its suite names, referees the best schedule, verifies the certificate, and writes ``instances/index.csv``, the
archives in ``instances/proofs`` and the files of the suites that are stored. Results go into a working folder
(``build/library``) one by one, so that it resumes where it was stopped; a fresh folder proves everything again. A better
schedule or certificate that the library already has, say a submitted one, is kept; an optimum that two methods disagree on,
or that the library refutes, is an error, and nothing is written. ``--accept FILE`` takes a submission that improves it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

from optsched.bounds import bound
from optsched.classes import CLASSES
from optsched.deadline import Deadline
from optsched.errors import InputError, OptschedError
from optsched.guarantees.optimum import stating
from optsched.io import index
from optsched.io.index import SEPARATOR, LibraryEntry, entries, instances_folder
from optsched.io.library import ROUNDED, BestKnown, class_for, in_library, read_proof
from optsched.io.sources import load, made
from optsched.io.submission import check_submission
from optsched.policies.simulate import simulate
from optsched.problem.atomic_files import write_atomic
from optsched.problem.instance import Instance
from optsched.progress import bars
from optsched.registry import written
from optsched.solvers.lp_bound import lp_bound
from optsched.solvers.method import PREFERRED
from optsched.solvers.solve import solve

RECIPES, WORK, RESULT = "recipes.toml", Path("build/library"), ".result.json"
LP_CLASS, MOST_LP, LP_SECONDS = "gang-nonpreemptive", 200, 3.0  # jobs and time of an LP whose prices are a certificate
SUBMITTED, BEST = "submitted", "best"  # instead of a method: somebody else found it; the one that `solve` chooses
KEYS = "name problem recipe objective class methods seconds policies parameters vary jobs seeds members prefix stored alone"


@dataclass(frozen=True)
class Planned:
    """An instance of the library before it is proved: its entry without results, and who is to prove it.

    ``methods``: models of `optsched.solve`, each allowed ``seconds``; ``policies``: whose schedules are tried, too.
    """

    entry: LibraryEntry
    methods: tuple[str, ...] = ()
    policies: tuple[str, ...] = ()
    seconds: float = 5.0


def recipes() -> Iterator[Planned]:
    """Every instance of the library, in the order of ``recipes.toml``.

    A suite has ``jobs`` times ``seeds``, or ``members`` [jobs, seed]; its k-th member takes the k-th combination of what the
    lists of ``vary`` say, over and over. ``alone``: one member, whose name is that of the suite.
    """
    text = (Path(str(instances_folder())) / RECIPES).read_text(encoding="utf-8")
    for table in tomllib.loads(text)["suite"]:
        for key in table.keys() - set(KEYS.split()):
            raise InputError("unknown key", file=RECIPES, field=key, legal=KEYS)
        given: dict[str, list[Any]] = table.get("vary", {})
        varied = [dict(zip(given, each, strict=True)) for each in product(*given.values())]
        suite, asked = table["name"], {key: table[key] for key in ("methods", "policies") if key in table}
        for k, (n, seed) in enumerate(table.get("members") or product(table.get("jobs", [None]), table["seeds"])):
            own = {} if n is None else {"jobs": n}
            own |= table.get("parameters", {}) | varied[k % len(varied)]
            name = suite if table.get("alone") else f"{table.get('prefix', suite)}-{n:02d}-{seed}"
            entry = LibraryEntry(
                name,
                suite,
                table["problem"].format(**own),
                objective=table.get("objective", ""),
                schedule_class=table.get("class", LP_CLASS),
                recipe=table["recipe"],
                seed=seed,
                parameters=SEPARATOR.join(f"{key}={written(value)}" for key, value in own.items()),
                file=f"{name}.json" if table.get("stored") else "",
            )
            yield Planned(entry, seconds=table.get("seconds", 5.0), **{key: tuple(each) for key, each in asked.items()})


def prove(asked: Planned, instance: Instance) -> BestKnown:
    """Return the best that the methods and policies of the suite find and prove.

    Parameters
    ----------
    asked
        Entry of the instance, and the methods and policies to use.
    instance
        The instance.

    Raises
    ------
    OptschedError
        If methods disagree.
    """
    found, wanted = BestKnown(asked.entry, instance), asked.entry.schedule_class
    goal, optima = found.goal.name, dict[str, Fraction | None]()
    for method in asked.methods:
        solution = solve(instance, goal, model=None if method == BEST else method, time_limit=asked.seconds)
        found.offer(solution.schedule, solution.model)
        found.offer_certificate(solution.certificate)
        if not class_for(wanted).alone and method not in PREFERRED.of(class_for(wanted).name):
            continue  # it minimised over a smaller class: a schedule, and no bound
        found.raise_bound(solution.bound_exact, solution.model)
        who, low = solution.model, solution.certificate
        if low is not None and solution.bound_by == "certificate" and not solution.size.columns:
            # it solved no program: the certificate had closed the gap, or all of it that float64 can tell
            who = "" if low.value == solution.value_exact else low.kind + ROUNDED
        if solution.status == "optimal" and who:
            optima[who] = solution.value_exact
    for policy in asked.policies:
        found.offer(simulate(instance, policy).schedule, policy)
    if found.certificate is None:
        found.offer_certificate(bound(instance, goal, next(each for each in found.classes if each in CLASSES)))
    elif wanted == LP_CLASS and found.certificate.value != found.value and instance.n <= MOST_LP:
        deadline = Deadline.after(LP_SECONDS)
        found.offer_certificate(lp_bound(instance, goal, schedule=found.schedule, deadline=deadline))
    if (
        wanted in CLASSES
        and CLASSES.get(wanted).rigid
        and found.certificate is not None
        and found.certificate.value != found.value
    ):
        found.offer_certificate(bound(instance, goal, wanted, strong=True))
    return found.settled(optima)


def prove_all(every: Sequence[Planned], work: Path) -> None:
    """Prove every instance that has no result in the working folder.

    A result for the same digest of the instance stays unchanged.

    Parameters
    ----------
    every
        Instances to prove.
    work
        Working folder; it is created if it is missing.
    """
    work.mkdir(parents=True, exist_ok=True)
    with bars() as shown:
        step = shown.step("proving")
        for k, asked in enumerate(every):
            step(k, len(every))
            instance, kept = made(asked.entry), work / f"{asked.entry.name}{RESULT}"
            if kept.is_file() and _result(kept).digest == instance.digest:
                continue
            began = sum(os.times()[:4])  # CPU time, with that of CP-SAT, which works in a process of its own
            found = prove(asked, instance)
            found.save(work)
            write_atomic(kept, json.dumps(asdict(found.row(sum(os.times()[:4]) - began))))


def _result(file: Path) -> LibraryEntry:
    document = json.loads(file.read_text(encoding="utf-8"))
    return LibraryEntry(**{**document, "proved_by": tuple(document["proved_by"])})


def check(each: LibraryEntry) -> BestKnown:
    """Make the instance again, and referee and verify the results that the library stores for it.

    Parameters
    ----------
    each
        Entry of the index.

    Raises
    ------
    OptschedError
        If the files and the index differ.
    """
    found = in_library(each, load(each.name))
    if found.row(each.seconds or 0.0) != each:
        raise OptschedError(f"{each.name}: the index says {each}, the files {found.row(each.seconds or 0.0)}")
    return found


def assemble(every: Iterable[Planned], work: Path, folder: Path, suite: str | None = None) -> list[LibraryEntry]:
    """Join the results with those of the library, each refereed and verified, and write the index and the archives.

    The better of both is kept.

    Parameters
    ----------
    every
        Instances of the library.
    work
        Working folder with the results.
    folder
        Folder of the library, in which the index and the archives are written.
    suite
        Only this suite changes: rows and archives of other suites stay as they are. None: all suites.

    Returns
    -------
    list
        Rows of the index.
    """
    known = {each.name: each for each in entries()}
    rows, archives = list[LibraryEntry](), dict[str, dict[str, bytes]]()
    with tempfile.TemporaryDirectory() as place:
        for asked in every:
            kept, old = work / f"{asked.entry.name}{RESULT}", known.get(asked.entry.name)
            if old is None and not kept.is_file():
                continue  # not proved yet
            if old is not None and suite not in (None, asked.entry.suite):
                rows.append(old)
                continue
            instance = made(asked.entry)
            proofs = []
            if kept.is_file():
                new = _result(kept)
                files = (path for path in work.glob(f"{asked.entry.name}.*") if path != kept)
                proofs.append((new, read_proof(new, instance, files)))
            if old is not None and old.digest == instance.digest:
                proofs.append((old, in_library(old, instance)))
            found = proofs[0][1] if len(proofs) == 1 else proofs[0][1].joined(proofs[1][1])
            found.entry = asked.entry
            rows.append(found.row(proofs[0][0].seconds or 0.0))
            saved = {path.name: path.read_bytes() for path in found.save(Path(place))}
            archives.setdefault(asked.entry.suite, {}).update(saved)
            if asked.entry.file:
                _store(instance, rows[-1], folder)
    for suite, contents in archives.items():
        index.write_proofs(suite, contents, folder)
    index.write_index(rows, folder)
    return rows


def _store(instance: Instance, each: LibraryEntry, folder: Path) -> None:
    if each.value is not None and each.solved:
        searches = (name for name in each.proved_by if name != each.certificate)
        instance = instance.replace(optimum=stating(each.value, each.objective, each.schedule_class, *searches))
    file = folder / each.file
    if not file.is_file() or (kept := Instance.load(file)).digest != each.digest or kept.optimum != instance.optimum:
        instance.save(file)


def accept(file: Path, folder: Path) -> str:
    """Take a submission that improves the library into its archive and index, and return the verdict.

    Parameters
    ----------
    file
        A schedule or certificate.
    folder
        Folder of the library.

    Raises
    ------
    InputError
        If the submission breaks a rule or does not improve the library.
    """
    found = check_submission(file)
    if found.violations or not found.improves:
        why = "; ".join(f"{each.rule}: {each.message}" for each in found.violations[:1]) or found.verdict
        raise InputError(f"not taken: {why}", file=file, legal="a schedule or certificate that improves the library")
    theirs = replace(found.entry, found_by=SUBMITTED, bound=None, solved=False, proved_by=())
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        read_proof(theirs, load(theirs.name), [file]).save(work)
        (work / f"{theirs.name}{RESULT}").write_text(json.dumps(asdict(theirs)))
        assemble(recipes(), work, folder)
    return found.verdict


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m optsched.studies.make_library", description=__doc__)
    parser.add_argument("--work", type=Path, default=WORK, help="where results lie until all are there: %(default)s")
    parser.add_argument("--suite", help="prove only this suite anew")
    parser.add_argument("--check", action="store_true", help="referee and verify what the library has; no search")
    parser.add_argument("--accept", type=Path, metavar="FILE", help="take a submission that improves the library")
    asked, folder = parser.parse_args(), Path(str(instances_folder()))
    if asked.accept:
        try:
            print(accept(asked.accept, folder))
        except OptschedError as error:
            parser.exit(1, f"{error}\n")
        return
    if asked.check:
        count = len([check(each) for each in entries()])
    else:
        every = list(recipes())
        prove_all([each for each in every if asked.suite in (None, each.entry.suite)], asked.work)
        rows = assemble(every, asked.work, folder, asked.suite)
        count = sum(asked.suite in (None, each.suite) for each in rows)
    print(f"{count} instances: every schedule refereed, every certificate verified")


if __name__ == "__main__":
    main()
