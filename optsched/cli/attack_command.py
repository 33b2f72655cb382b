"""``optsched attack``: search for instances on which a policy has a large ratio."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optsched.cli.completion import complete_policy
from optsched.cli.interrupt import due, shield_processes, telling
from optsched.cli.options import AsJson, ReportFile, Seed, Workers, argument, how_long, option, output
from optsched.cli.output import answer, others_print_to_stderr, print_json, say
from optsched.cli.report_page import check_report, write_report
from optsched.problem.atomic_files import check_writable

if TYPE_CHECKING:
    from optsched.problem.instance import Instance
    from optsched.report.page import PageTable


POLICY = "NAME[:KEY=VALUE,...][+PLACEMENT], or MODULE:CLASS of your own"
SPACE = "the kind of instances, see: optsched list spaces; default: the one for the policy"
METHOD = "search, or milp, which proves the largest ratio of a queue order on one machine; see: optsched list methods"


def attack(
    policy: Annotated[str, argument("POLICY", POLICY, complete_policy)],
    against: Annotated[str, option("--against opt|POLICY", "the optimum, or another policy")] = "opt",
    objective: Annotated[str, option("--objective NAME")] = "total_flow_time",
    space: Annotated[str, option("--space NAME[:KEY=VALUE,...]", SPACE)] = "",
    jobs: Annotated[int | None, option("--jobs N", "at most this number of jobs; default: that of the space")] = None,
    gpus: Annotated[int | None, option("--gpus G", "GPUs of the cluster; default: those of the space")] = None,
    budget: Annotated[
        str | None, option("--budget TIME", "seconds, 90s, 10min, 1h; default: 45 s without --tries")
    ] = None,
    tries: Annotated[
        int | None, option("--tries N", "number of instances to try; the result then depends on the seed alone")
    ] = None,
    method: Annotated[str, option("--method NAME", METHOD)] = "search",
    seed: Seed = 0,
    workers: Workers = None,
    file: Annotated[Path | None, output("FILE", "a file for the instance (.json, .parquet)")] = None,
    report_file: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Search for the instance with the largest ratio of a policy.

    The search then shrinks the instance and proves its ratio.

    optsched attack list --objective makespan --gpus 3 -o worst.json

    \f
    Parameters
    ----------
    policy
        NAME[:KEY=VALUE,...][+PLACEMENT], or MODULE:CLASS of your own.
    against
        The optimum, or another policy.
    objective
        Name of the objective.
    space
        The kind of instances, see: optsched list spaces; default: the one for the policy.
    jobs
        At most this number of jobs; default: that of the space.
    gpus
        GPUs of the cluster; default: those of the space.
    budget
        Time limit. Default: 45 s without ``tries``.
    tries
        Number of instances to try; the result then depends on the seed alone.
    method
        ``search``, or ``milp``, which proves the largest ratio of a queue order on one machine; see: optsched list
        methods.
    seed
        Seed of all random numbers.
    workers
        Number of processes; default: one per processor.
    file
        A file for the instance (.json, .parquet).
    report_file
        A page with the jobs, the schedules and the proof.
    as_json
        Print exactly one JSON document to stdout.
    """
    from optsched.adversary.attack_search import MORE_TIME, SECONDS, attack as search
    from optsched.cli.attack_table import attack_view
    from optsched.progress import bars

    check_writable(file, "an instance")
    check_report(report_file)
    shield_processes()
    seconds = how_long(budget, "--budget")
    if seconds is None and tries is None:
        seconds = SECONDS
    known = deque[tuple[float, "Instance"]](maxlen=1)

    def unconfirmed() -> None:
        say(_so_far(policy, against, known, file))
        if report_file is not None:
            say(f"{report_file}: not written, because there is no proof yet; give a larger --budget")

    def late() -> int:
        unconfirmed()
        if as_json:
            print_json(_unconfirmed(policy, against, objective, known))
        if not known:
            say(MORE_TIME)
        return 0 if known else 1

    with (
        bars(words=tries is None) as shown,
        others_print_to_stderr(),
        telling(unconfirmed, late=late, deadline=due(seconds)),
    ):
        name = f"attacking {policy}"
        line = shown.line(name) if tries is None else None

        def advance(done: int, _: int) -> None:
            if line is not None:
                line(f"{name}: {done:,} tries" + "".join(f", ratio {ratio:.6g}" for ratio, _ in known))

        how: dict[str, Any] = {"space": space, "jobs": jobs, "gpus": gpus, "tries": tries, "method": method}
        how |= {"seed": seed, "workers": workers, "deadline": due(seconds), "best": lambda *found: known.append(found)}
        found = search(policy, against, objective=objective, **how, progress=advance if line else shown.step(name))
    if file is not None:
        found.instance.save(file)

    def page(tables: list[PageTable], notes: list[str], command: str) -> str:
        from optsched.adversary.shown_schedules import shown_schedules
        from optsched.report.attack_page import attack_page

        return attack_page(found, shown_schedules(found), tables, notes, command)

    write_report(report_file, lambda: attack_view(found), page)
    answer(as_json, found.to_json, lambda: attack_view(found), file, report_file)


def _so_far(policy: str, against: str, known: Sequence[tuple[float, Instance]], file: Path | None) -> str:
    """Write the worst instance so far, and return a line about it."""
    if not known:
        return f"{policy}: no instance had been tried"
    ratio, instance = known[-1]
    to = "the value of another schedule" if against == "opt" else against
    if file is not None:
        instance.save(file)
    jobs = f"{instance.n} job{'s' * (instance.n != 1)}"
    wrote = "" if file is None else f"; wrote {file}"
    return f"{policy}: {ratio:.6g} times {to}, on {jobs}; not shrunk, not confirmed{wrote}"


def _unconfirmed(policy: str, against: str, objective: str, known: Sequence[tuple[float, Instance]]) -> dict[str, Any]:
    """Return the document of a search that ended before its proof; unknown fields of `Attack.to_json` are null."""
    ratio, instance = known[-1] if known else (None, None)
    return {
        "policy": policy,
        "against": against,
        "objective": objective,
        "ratio": ratio,
        "ratio_to": None,
        "instance": None if instance is None else instance.to_json(),
    }
