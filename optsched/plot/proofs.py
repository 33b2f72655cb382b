"""Pictures of proofs: the interval around an optimum during a solve, and the prices of Hadar's dual."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from optsched.errors import InputError, check_legal
from optsched.plot.canvas import Width, key_above, new_axes, new_figure, note, plain, set_labels, set_title
from optsched.plot.colours import CURVES
from optsched.plot.curves import frame, log_axis
from optsched.plot.time_axis import number, time_axis
from optsched.policies.simulate import specify
from optsched.problem.arrays import Floats
from optsched.simulation.run import Run
from optsched.solvers.solution import Solution

EARLIEST = 1e-4  # seconds: reports before it are drawn at it, on a log axis of time
FLAT = 10.0  # values that span more than this factor are drawn on a log axis
DASHES = ("-", "--", ":", "-.")
PRICE = re.compile(r"price of (.*), node ([0-9]+), round ([0-9]+)")  # as `solve_program` names what is sold


def convergence(
    solution: Solution, *, ax: Axes | None = None, width: Width | None = None, title: str | None = None
) -> Figure:
    """Draw the progress of a solve: the value of the best schedule from above, the proven bound from below.

    Time is that of the solver, without compilation. It is on a log axis if it spans more than a factor of 100; values are if
    they span more than a factor of 10. The last value and bound are written at the end.

    Parameters
    ----------
    solution
        Result of `optsched.solve`.
    ax
        Axes to draw on; by default those of a new figure.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title above the axes.

    Raises
    ------
    InputError
        If the solution has neither a value nor a bound.

    Examples
    --------
    >>> import optsched as osd
    >>> axes = osd.plot.convergence(osd.solve("rigid-12-2", "total_completion_time")).axes[0]
    >>> [line.get_label() for line in axes.lines]
    ['best schedule', 'proven bound']
    """
    if solution.value is None and solution.bound is None:
        raise InputError("neither a value nor a bound", field="solution", legal="a solution with one of them")
    reports = [(event.seconds, event.incumbent, event.bound) for event in solution.trace]
    last = [math.nan if end is None else end for end in (solution.value, solution.bound)]
    when, value, bound = np.array([*reports, (solution.seconds, *last)], dtype=np.float64).T
    ax, figure = frame(ax, 7.5, 4.0, width)
    when = np.maximum(when, EARLIEST)
    closed = last[0] == last[1]
    for level, name, colour, up in ((value, "best schedule", CURVES[1], 7), (bound, "proven bound", CURVES[0], -7)):
        ax.step(when, level, where="post", color=colour, linewidth=1.6, label=name)
        if math.isfinite(level[-1]) and not (closed and up < 0):
            said, shift = ("optimum", 0) if closed else (name, up)
            note(ax, f"{said} {number(level[-1])}", (1, level[-1]), (6, shift), "axes fraction", color=colour)
    ax.fill_between(when, bound, value, step="post", color=CURVES[0], alpha=0.08, lw=0)
    known = np.concatenate([value, bound])
    known = known[np.isfinite(known)]
    ax.yaxis.set_major_formatter(FuncFormatter(lambda level, _: number(level)))
    if known.min() > 0 and known.max() > FLAT * known.min():
        log_axis(ax, "y")
    if when[-1] > 100 * when[0]:
        log_axis(ax, "x")
        ax.set_xlim(when[0] / 1.1, when[-1] * 1.15)
    else:
        ax.set_xlim(0.0, when[-1] * 1.03)
    set_labels(ax, "seconds of the solver", solution.objective.replace("_", " "))
    on = "" if solution.schedule is None else f" on {solution.schedule.instance.name}"
    set_title(ax, f"{solution.model}{on}: {solution.status}" if title is None else title)
    key_above(ax)
    return figure


def prices(
    what: Run | Solution,
    *more: Run | Solution,
    round: float | None = None,
    ax: Sequence[Axes] | None = None,
    width: Width | None = None,
    title: str | None = None,
) -> Figure:
    r"""Draw Hadar's dual prices over time: those at which `hadar` sold GPUs, and those of the offline LP.

    Every run and solution has a panel on one time axis, with a colour for each GPU type (dashed and dotted: further nodes of
    the type). Prices of a run are the last ones, on a log axis because they rise exponentially as a round is sold out; below
    them is the share that was sold. Prices of the LP are d optimum / d GPUs: a resource that is not scarce has price zero.

    Parameters
    ----------
    what
        Run of ``hadar``, or solution of ``hadar-primal`` or ``hadar-dual`` by `optsched.solve_program`.
    *more
        Further runs and solutions.
    round
        Seconds of a round of the solutions; default: that of a run in the same picture, otherwise the axis counts rounds.
    ax
        Axes, two for each run and one for each solution; by default those of a new figure.
    width
        Width of a new figure for paper: ``"column"`` (3.33 inches), ``"page"`` (7), or inches; default: for a screen.
    title
        Title above the axes.

    Raises
    ------
    InputError
        If a run notes no prices, or a solution has no prices of rounds.

    Examples
    --------
    >>> import optsched as osd
    >>> small = osd.generate("hetero-small", seed=3, jobs=6, cluster="1x2:V100+1x2:K80", span=0.3)
    >>> run, best = osd.simulate(small, "hadar:round=4"), osd.solve_program(small, "hadar-primal:rounds=6,round=4")
    >>> [axes.get_ylabel() for axes in osd.plot.prices(run, best).axes]
    ['price of a GPU\nhadar', 'GPUs sold\nhadar', 'price of a GPU\nhadar-primal']
    """
    panels = [panel for each in (what, *more) for panel in _panels(each, round)]
    seconds = next((panel.seconds for panel in panels if panel.seconds), 0.0)
    if ax is None:
        figure = new_figure(9.0, 1.0 + 1.7 * len(panels), width, 0.5 * len(panels))
        ax = [new_axes(figure, len(panels), 1, k + 1) for k in range(len(panels))]
    check_legal(len(ax) == len(panels), "ax", len(ax), f"{len(panels)} axes")
    kinds = list(dict.fromkeys(name.partition(",")[0] for panel in panels for name in panel.levels))
    end = 0.0
    for axes, panel in zip(ax, panels, strict=True):
        plain(axes, "left", "bottom")
        seen = dict.fromkeys(kinds, 0)
        for name, level in panel.levels.items():
            kind = name.partition(",")[0]
            edges = panel.zero + np.arange(level.size + 1) * (panel.seconds or seconds or 1.0)
            colour, dashes = CURVES[kinds.index(kind) % len(CURVES)], DASHES[seen[kind] % len(DASHES)]
            label = f"_{name}" if seen[kind] else kind
            axes.stairs(level, edges, baseline=None, linewidth=1.5, color=colour, linestyle=dashes, label=label)
            end, seen[kind] = max(end, float(edges[-1])), seen[kind] + 1
        axes.set_ylabel(panel.label, fontsize=9)
        if panel.scale == "log":
            log_axis(axes, "y")
        else:
            axes.set_ylim(0, 1.04 if panel.scale == "share" else None)
        if panel.scale == "share":
            axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    for axes in ax:
        time_axis(axes, 0.0, end)
        if not seconds:
            axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
            axes.set_xlabel("round", fontsize=9)
        axes.xaxis.label.set_visible(axes is ax[-1])
        axes.tick_params(labelbottom=axes is ax[-1])
    set_title(ax[0], title or "")
    key_above(ax[0])
    return cast("Figure", ax[0].get_figure(root=True))


class Panel(NamedTuple):
    """Levels f64[rounds] by resource ("V100", or "V100, node 0"), from ``zero`` on; ``seconds`` of a round (0: unknown)."""

    label: str
    levels: dict[str, Floats]
    seconds: float
    zero: float = 0.0
    scale: Literal["log", "share", "linear"] = "linear"


def _panels(what: Run | Solution, round: float | None) -> list[Panel]:
    if not isinstance(what, Run):
        return [Panel(f"price of a GPU\n{what.model}", _prices_of_program(what), round or 0.0)]
    notes, policy = what.relative.notes, specify(what.policy).policy
    if "hadar_prices" not in notes:
        raise InputError("it notes no prices", field="run", value=what.policy, legal="a run of hadar")
    # what a price is for, by column: GPU types, or nodes of a type
    cluster, resource = what.instance.cluster, np.asarray(what.notes["hadar_resource"]).astype(np.int64)
    types, names = [cluster.nodes[g].gpu for g in cluster.node_group], []
    for h in range(int(resource.max(initial=-1)) + 1):
        nodes = np.flatnonzero(resource == h)
        names.append(types[nodes[0]] if nodes.size > 1 else f"{types[nodes[0]]}, node {nodes[0]}")
    time = float(getattr(policy, "round", 0.0)), float(notes["hadar_constants"][3])
    price = dict(zip(names, notes["hadar_prices"].T, strict=True))
    sold = dict(zip(names, (notes["hadar_sold"] / notes["hadar_capacity"]).T, strict=True))
    return [
        Panel(f"price of a GPU\n{policy.name}", price, *time, "log"),
        Panel(f"GPUs sold\n{policy.name}", sold, *time, "share"),
    ]


def _prices_of_program(solution: Solution) -> dict[str, Floats]:
    found = [PRICE.fullmatch(name) for name in solution.duals]
    named = [(match, value) for match, value in zip(found, solution.duals.values(), strict=True) if match]
    if not named:
        legal = "a solution of hadar-primal or hadar-dual with a price above 0"
        raise InputError("no prices of rounds", field="solution", value=solution.model, legal=legal)
    rounds = 1 + max(int(match[3]) for match, _ in named)
    levels: dict[str, Floats] = {}
    for match, value in named:
        levels.setdefault(f"{match[1]}, node {match[2]}", np.zeros(rounds))[int(match[3])] = value
    return levels
