"""`simulate`: replay an instance under a policy named in text, or under a policy object.

Text names a policy and a placement: ``NAME[:key=value,...][+PLACEMENT[:key=value,...]]``. ``NAME`` is that of a
registered policy or of your own class: ``MODULE:CLASS[:key=value,...]``.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from dataclasses import dataclass
from typing import Any, TypeAlias

from optsched.classes import ScheduleClass, usual_class
from optsched.errors import InputError, OptschedError
from optsched.policies import POLICIES
from optsched.policies.placements import PLACEMENTS
from optsched.problem.instance import Instance, Source, instance_of
from optsched.problem.objectives import get_objective
from optsched.registry import Registry, made, near_matches, parameters_of
from optsched.simulation.adopted import PlainPolicy, adopt, has_method, methods
from optsched.simulation.engine import Advance, play, run_policy
from optsched.simulation.placement import Placement
from optsched.simulation.policy import PLACES, BasePolicy, Knowledge, class_of, uses_of
from optsched.simulation.run import RUNS, Run

_WRITTEN = re.compile(r"\s*([^\W\d]\w*(?:\.[^\W\d]\w*)*):([^\W\d]\w*)\s*(?::(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Specification:
    """A policy, a placement, and the text of the pair."""

    text: str
    policy: BasePolicy
    placement: Placement


PolicyLike: TypeAlias = str | BasePolicy | PlainPolicy | Specification


def simulate(
    instance: Source,
    policy: PolicyLike,
    placement: str | None = None,
    *,
    progress: Advance | None = None,
) -> Run:
    """Replay ``instance`` under a policy.

    Parameters
    ----------
    instance
        Jobs and a cluster, or a SOURCE that `optsched.load` reads.
    policy
        ``NAME[:key=value,...][+PLACEMENT[:key=value,...]]``, e.g. ``"fifo:skip=true+consolidated"``, or a policy
        object (see `optsched.simulation.policy`).
    placement
        Placement if ``policy`` names none; default: the policy's own, else ``count``, any free GPUs.
    progress
        Called with (finished jobs, all jobs) from time to time.

    Returns
    -------
    Run
        ``.schedule``, ``.metrics``, ``.events``, ``.value(objective)``, ``.unfinished``.

    Raises
    ------
    InputError
        For an unknown policy, placement or parameter (with near matches), jobs whose speed is not known, or a policy
        for whole jobs if the jobs have tasks.

    Notes
    -----
    The engine and the policy see time counted from the first arrival (`Instance.relative`), so a run does not depend
    on the clock of the log. The schedule is then converted to the clock of the log.

    Examples
    --------
    >>> import optsched as osd
    >>> run = osd.simulate("rigid-06-1", "sjf")
    >>> run
    Run('sjf' on 'rigid-06-1': 6 of 6 jobs finished, total_completion_time 174)
    >>> run.jobs.select("id", "start", "jct").row(0)
    ('1', 14.0, 23.0)
    >>> osd.simulate("cluster-week", "fifo:skip=true+consolidated").unfinished
    []
    """
    # The policy comes first: an error in its name is reported before a log is read.
    chosen, instance = specify(policy, placement), instance_of(instance)
    chosen, kind = _on(instance, chosen)
    run = RUNS.of(kind.name).engine or run_policy
    done = run(instance.relative, chosen.policy, chosen.placement, name=chosen.text, progress=progress)
    return done.on_clock(instance)


def simulated_value(instance: Instance, specification: Specification, objective: str) -> tuple[float, str]:
    """Return the value of a policy's run, as `Run.value` does, and the class of its schedule.

    It takes less time than `simulate` for small instances, since no schedule is made.

    Parameters
    ----------
    instance
        Jobs and a cluster.
    specification
        Policy and placement.
    objective
        Name of the objective.

    Returns
    -------
    tuple
        The value, nan if a job did not finish; the name of the class.
    """
    chosen, kind = _on(instance, specification)
    if RUNS.of(kind.name).engine is not None:
        run = simulate(instance, specification)
        return run.value(objective), run.schedule_class
    played = play(instance.relative, chosen.policy, chosen.placement, name=chosen.text)
    value, schedule_class = played.value(objective)
    return value + float(get_objective(objective).clock_part(instance)), schedule_class


def _on(instance: Instance, chosen: Specification) -> tuple[Specification, ScheduleClass]:
    """Return the form of a policy that runs on an instance, and the class of its schedules; `InputError` if it has none."""
    form = form_on(chosen.policy, instance.relative)
    if form is not chosen.policy:  # its form has its own placement
        place = made(PLACEMENTS.get, "placement", default_placement(form))
        chosen = Specification(chosen.text, form, place)
    kind, meant = class_of(chosen.policy), usual_class(instance)
    if kind.whole and not meant.whole:
        names = ", ".join(policies_of(meant.name))
        legal = f"a policy for jobs with {meant.lacking}: {names}; where they are tasks also --job-level"
        message = f"it schedules whole jobs, these have {meant.lacking}"
        raise InputError(message, field="policy", value=chosen.text, legal=legal)
    return chosen, kind


# --- a policy and a placement from text -------------------------------------------------------------------------------


def specify(spec: PolicyLike, placement: str | None = None) -> Specification:
    """Return the policy and placement that ``spec`` names.

    Parameters
    ----------
    spec
        Text or a policy object, as in `simulate`.
    placement
        Placement if ``spec`` names none; default: the policy's ``default_placement``, else ``count``.

    Raises
    ------
    InputError
        For an unknown policy, placement or parameter (with near matches), and for an illegal value.
    """
    if isinstance(spec, Specification):
        return spec
    head, plus, tail = spec.partition("+") if isinstance(spec, str) else ("", "", "")
    if plus and placement is not None:
        raise InputError("a placement is given twice", field="policy", value=spec)
    policy: Any = spec
    if isinstance(spec, str):
        _require_one(spec)
        head, tail = _as_filed(POLICIES, head), _as_filed(PLACEMENTS, tail)
        registered = not names_a_class(head) or head.partition(":")[0].strip() in POLICIES
        policy = made(POLICIES.get, "policy", head) if registered else own_policy(head)
    _require_policy(policy)
    policy = adopt(policy)
    if plus and names_nodes(policy):
        raise InputError("the policy names its nodes itself", field="policy", value=spec, legal=f"{head}, no placement")
    usual = default_placement(policy)
    place = tail if plus else placement or usual
    text = f"{head}{plus}{tail}".strip() if isinstance(spec, str) else policy.name
    if not (plus or place == usual or (isinstance(spec, str) and names_nodes(policy))):
        text += f"+{place}"
    return Specification(text, policy, made(PLACEMENTS.get, "placement", place))


def _as_filed(known: Registry[Any], text: str) -> str:
    """Return ``text`` with the registered spelling of the name, so that a run has the same name whatever was typed."""
    name = text.partition(":")[0].strip()
    return text if names_a_class(text) else text.replace(name, known.canonical(name), 1)


def _require_one(text: str) -> None:
    """Raise `InputError` for ``fifo,sjf``: in the text of a policy, commas separate parameters."""
    parts = [part for part in re.split(r"[,;|\s]+", text) if part]
    heads = [part.partition(":")[0].partition("+")[0].lower() for part in parts]
    if len(parts) > 1 and not any("=" in head for head in heads) and all(head in POLICIES for head in heads):
        legal = f"one text each: {' '.join(f'-p {part}' for part in parts)}; in Python a list"
        raise InputError("several policies in one text", field="policy", value=text, legal=legal)


def is_policy(thing: object) -> bool:
    """Return True for an object, not a class, with one of the methods by which a policy decides.

    Parameters
    ----------
    thing
        Any object.
    """
    return not isinstance(thing, type) and has_method(thing)


def _require_policy(spec: object) -> None:
    """Raise `InputError` unless ``spec`` is a policy with a name and a knowledge that the engine understands."""
    if not is_policy(spec):
        legal = f"text, or an object with one of the methods {', '.join(methods())}"
        if isinstance(spec, type) and has_method(spec):
            legal = f"an object of it: {spec.__name__}(...)"
        raise InputError("not a policy", field="policy", value=spec, legal=legal)
    name, knowledge = getattr(spec, "name", None), getattr(spec, "knowledge", None)
    kind = type(spec).__name__
    if not isinstance(name, str) or not name.strip():
        where = {} if name is None else {"value": name}
        raise InputError("a policy has a name", field=f"{kind}.name", **where, legal="text, shown in reports")
    values = [level.value for level in Knowledge]
    if knowledge not in values:
        legal = f"one of {', '.join(values)}: the facts that it may use of jobs that have not completed"
        where = {} if knowledge is None else {"value": knowledge}
        raise InputError("a policy says what it knows", field=f"{kind}.knowledge", **where, legal=legal)


def seeded(text: str, seed: int) -> str:
    """Return ``text`` with a seed added to a placement that takes one and does not state its own.

    Parameters
    ----------
    text
        Text of a policy and a placement.
    seed
        Seed of the random numbers; 0 changes nothing.
    """
    head, plus, place = text.partition("+")
    name, _, rest = _as_filed(PLACEMENTS, place).partition(":")
    if not plus or seed == 0 or name not in PLACEMENTS or "seed" not in parameters_of(PLACEMENTS.get(name)):
        return text
    if any(part.startswith("seed=") for part in rest.split(",")):
        return text
    return f"{head}+{name}:{','.join(filter(None, [rest, f'seed={seed}']))}"


# --- a user's own class -----------------------------------------------------------------------------------------------


def names_a_class(text: str) -> bool:
    """Return True for text like ``my_module:MyPolicy`` or ``package.module:MyPolicy:key=value``; import nothing.

    Parameters
    ----------
    text
        Text of a policy.
    """
    return _WRITTEN.fullmatch(text) is not None


def own_policy(text: str) -> Any:
    """Make an object of the class that ``text`` names; modules of the current folder are also found.

    If the name is that of a policy object instead of a class, return this object.

    Parameters
    ----------
    text
        Text as in `names_a_class`.

    Raises
    ------
    InputError
        The module cannot be imported, has no such class (with near matches), or the class cannot be made from the
        parameters.
    """
    written: Any = _WRITTEN.fullmatch(text)
    module, name, parameters = written.groups()
    member = thing_in(module, name)
    if not isinstance(member, type):
        if parameters:
            raise InputError("it is made already and takes no parameters", field="policy", value=text, legal="a class")
        return member
    try:
        return made(lambda _: member, "policy", f"{name}:{parameters or ''}")
    except OptschedError:
        raise
    except Exception as error:  # any error of the user's constructor
        message = f"cannot make it: {type(error).__name__}: {error}"
        raise InputError(message, field="policy", value=text, legal="a class that is made without arguments") from error


def thing_in(module: str, name: str, kind: str = "class", field: str = "policy") -> Any:
    """Import a module and return one of its members.

    Parameters
    ----------
    module
        Name of the module, which may be in the current folder.
    name
        Name of the member.
    kind
        Noun for the member in errors; ``class``: near matches are classes only.
    field
        Field that errors report.

    Raises
    ------
    InputError
        The module cannot be imported, or it has no such member (with near matches).
    """
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)  # as `python -m` does; an installed program does not search the current folder
    try:
        imported = importlib.import_module(module)
    except Exception as error:  # any error of the user's module
        missing = isinstance(error, ModuleNotFoundError) and error.name in (module, module.partition(".")[0])
        message = "there is no such module" if missing else f"cannot import it: {type(error).__name__}: {error}"
        legal = "a module of the current folder, of PYTHONPATH, or installed"
        raise InputError(message, field="module", value=module, legal=legal) from error
    try:
        return getattr(imported, name)
    except AttributeError:
        alike = [member for member, thing in vars(imported).items() if kind != "class" or isinstance(thing, type)]
        legal = near_matches(name, sorted(alike), kind=kind)
        raise InputError(f"there is no {name!r} in {module}", field=field, value=name, legal=legal) from None


# --- properties of a policy -------------------------------------------------------------------------------------------


def form_on(policy: BasePolicy, instance: Instance) -> BasePolicy:
    """Return the policy that runs on an instance in place of a policy: its ``form(instance)``.

    Parameters
    ----------
    policy
        A policy.
    instance
        The instance of the run.
    """
    return adopt(policy.form(instance))


def serves(policy: BasePolicy, instance: Instance) -> bool:
    """Return True if a policy can schedule the jobs of an instance.

    Tasks, interference and scaling profiles need policies that use them.

    Parameters
    ----------
    policy
        A policy.
    instance
        The instance of a run.
    """
    policy = form_on(policy, instance)
    kind, meant = class_of(policy), usual_class(instance)
    if kind.only or meant.only:
        return kind is meant
    return policy.rigid or kind.suits(instance)


def policies_of(schedule_class: str) -> list[str]:
    """Return the names of the registered policies that make schedules of a class.

    Parameters
    ----------
    schedule_class
        Name of the class.
    """
    return [name for name, policy in POLICIES.items() if class_of(policy).name == schedule_class]


def names_nodes(policy: BasePolicy) -> bool:
    """Return True if a policy chooses the nodes of a job itself, so that no placement is used.

    Parameters
    ----------
    policy
        A policy.
    """
    return bool(uses_of(policy) & PLACES)


def default_placement(policy: BasePolicy) -> str:
    """Return the placement of a policy if the text names none.

    Parameters
    ----------
    policy
        A policy.
    """
    return policy.default_placement
