"""``optsched bound``: a certified lower bound on the optimum."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from optsched.cli.options import AsJson, Objective, Reading, Source, Strong, option, output, reading_source
from optsched.cli.output import answer, say_if_plain
from optsched.problem.atomic_files import check_writable

CLASSES = "gang, gang-nonpreemptive, forking, gpu-sharing, task-sharing, elastic; default: that of the instance"


@reading_source
def bound(
    source: Source,
    reading: Reading,
    objective: Objective = None,
    schedule_class: Annotated[str | None, option("--class CLASS", CLASSES)] = None,
    strong: Strong = False,
    file: Annotated[Path | None, output("FILE", "a file for the certificate")] = None,
    as_json: AsJson = False,
) -> None:
    """Compute a certified lower bound on the optimum.

    No schedule of the class is better than the bound; the certificate proves it.

    optsched bound cluster-week -o certificate.json

    \f
    Parameters
    ----------
    source
        An instance file (.json, .parquet), a shipped instance, or DIALECT:PATH.
    reading
        The options that decide how the SOURCE is read.
    objective
        Name of the objective. Default: that of the instance, else ``total_flow_time``.
    schedule_class
        The class of schedules. Default: that of the instance.
    strong
        For rigid gangs compute a stronger bound, too, which takes up to a minute.
    file
        A file for the certificate.
    as_json
        Print exactly one JSON document to stdout.
    """
    reading.look(source)
    from optsched.bounds import bound as best_bound
    from optsched.cli.solution_tables import certificate_view
    from optsched.progress import bars

    loaded = reading.load(source)
    check_writable(file)
    with bars() as progress:
        progress.step("bounding")
        certificate = best_bound(loaded.instance, objective, schedule_class, strong=strong)
        progress.step("verifying")
        certificate.verify(loaded.instance)
    say_if_plain(strong, certificate.kind)
    if file is not None:
        certificate.save(file)
    answer(
        as_json,
        lambda: {**certificate.to_json(), "float": certificate.exact_float},
        lambda: certificate_view(certificate, loaded.instance),
        file,
    )
