"""The command line. Each command is a file, ``run_command.py`` for ``optsched run``; the names are a public interface.

Exit status: 0 for success, 1 for a result that does not hold or is missing, 2 for a user's mistake (one line on stderr), 130
for Ctrl-C.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer import Argument, Option

from optsched import __version__
from optsched.cli.advise_command import advise
from optsched.cli.attack_command import attack
from optsched.cli.bound_command import bound
from optsched.cli.check_policy_command import check_policy
from optsched.cli.fit_command import fit
from optsched.cli.instance_commands import convert, generate
from optsched.cli.interrupt import TimeIsUp, interruptible, leave_work_behind
from optsched.cli.library_command import library
from optsched.cli.list_command import list_names
from optsched.cli.measure_command import measure
from optsched.cli.output import OutputError, refused, say, silence
from optsched.cli.parser import SETTINGS, CommandGroup, StrictCommand, parser_message
from optsched.cli.plot_command import plot
from optsched.cli.ratio_command import ratio
from optsched.cli.reproduce_command import reproduce
from optsched.cli.run_command import run
from optsched.cli.score_command import score
from optsched.cli.solve_command import solve
from optsched.cli.sweep_command import sweep
from optsched.cli.verify_command import verify
from optsched.cli.warm_up_command import warm_up
from optsched.errors import InputError, OptschedError

EXAMPLES = """\b
Examples:
  optsched run cluster-week -p fifo -p srtf
  optsched run philly:jobs.csv --cluster 64x8 -o result
  optsched solve rigid-10-1
  optsched bound cluster-week -o proof.json
  optsched verify proof.json --instance cluster-week
  optsched list policies

\b
Default policies: fifo, sjf, srtf (shared GPUs or tasks: optsched run --help)
Names of policies, instances, recipes, dialects: optsched list
"""


app = typer.Typer(
    name="optsched",
    cls=CommandGroup,
    help="Schedule jobs on GPU clusters, and certify how far each schedule is from the best possible one.",
    epilog=EXAMPLES,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"optsched {__version__}\n")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _bare(
    ctx: typer.Context,
    version: Annotated[
        bool, Option("--version", callback=_print_version, is_eager=True, help="print the version and exit")
    ] = False,
    debug: Annotated[bool, Option("--debug", help="print the traceback of errors")] = False,
) -> None:
    if ctx.invoked_subcommand is None and not ctx.resilient_parsing:
        typer.echo(ctx.get_help())


for _command in (
    run,
    score,
    advise,
    solve,
    bound,
    verify,
    ratio,
    attack,
    generate,
    convert,
    measure,
    fit,
    reproduce,
    sweep,
    plot,
    library,
):
    app.command(cls=StrictCommand, context_settings=SETTINGS)(_command)
for _name, _command in (("check-policy", check_policy), ("list", list_names), ("warm-up", warm_up)):
    app.command(name=_name, cls=StrictCommand, context_settings=SETTINGS)(_command)


@app.command(name="version", hidden=True)
def _version() -> None:
    """Print the version, like --version."""
    _print_version(True)


@app.command(name="help", hidden=True)
def _help(command: Annotated[str, Argument()] = "") -> None:
    """Print help, like --help or COMMAND --help."""
    app([*filter(None, [command]), "--help"], standalone_mode=False)


class _Notes(logging.Handler):
    """Prints messages that libraries log and nobody handles, a line each."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message.

        Parameters
        ----------
        record
            The message.
        """
        _note(record.getMessage())


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    # Warnings are for people here: one line, without the file and the line of code.
    say(f"note: {' '.join(str(message).split())}")


@contextlib.contextmanager
def _notes() -> Iterator[None]:
    handled = logging.lastResort
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="interference: ")  # reported when the source was read
        warnings.showwarning = _note
        logging.lastResort = _Notes(logging.WARNING)
        try:
            yield
        finally:
            logging.lastResort = handled


def main(arguments: list[str] | None = None) -> None:
    """Run a command, and turn errors into one line and an exit status.

    Parameters
    ----------
    arguments
        The arguments. Default: those of the process.
    """
    if sys.stdout is None:
        say("cannot write to stdout: it is closed")
        sys.exit(2)
    with _notes():
        code = _run(arguments)
    try:
        sys.stdout.flush()  # an error can still be reported here
    except BrokenPipeError:
        silence(sys.stdout)
    except OSError as error:
        say(str(refused(error)))
        code = code or 2
    sys.exit(code)


def _run(arguments: list[str] | None) -> int:
    try:
        code = interruptible(lambda: app(arguments, standalone_mode=False), own_process=arguments is None)
        return code if isinstance(code, int) else 0
    except SystemExit as end:  # the parser has completed a word, or printed the code for a shell
        return end.code if isinstance(end.code, int) else 0
    except OptschedError as error:
        if _debugs(arguments):
            raise
        say(str(error))
        return 2 if isinstance(error, InputError | OutputError) else 1
    except TimeIsUp as up:
        leave_work_behind(0, up.tell)
        raise
    except (KeyboardInterrupt, typer.Abort):
        leave_work_behind(130)
        raise
    except BrokenPipeError:
        silence(sys.stdout)
        return 0
    except OSError as error:
        if error.filename is not None:
            raise
        say(str(refused(error)))  # the parser writes help itself; `optsched.cli.output` writes all else
        return 2
    except Exception as error:
        # Errors of the parser: unknown options, missing arguments, wrong types.
        if not hasattr(error, "format_message"):
            return _of_a_policy(error, arguments)
        say(parser_message(error))
        return 2


def _of_a_policy(error: Exception, arguments: list[str] | None) -> int:
    where = [note for note in getattr(error, "__notes__", ()) if note.startswith("policy ")]
    if not where or _debugs(arguments):
        raise error
    said = " ".join(str(error).split())
    say(f"{where[0]}: {type(error).__name__}{': ' if said else ''}{said} (optsched --debug ... prints the traceback)")
    return 1


def _debugs(arguments: list[str] | None) -> bool:
    return "--debug" in (sys.argv[1:] if arguments is None else arguments)[:1]


if __name__ == "__main__":
    main()
