"""Random instances whose times are seconds, days or both, and what a model of one, as it was made, says beside the optimum.

Three roads: `osd.solve_model` of the model, `osd.solve` of the instance, and every schedule (`brute_force.optimum`), in
whole numbers.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import pyomo.environ as pyo
from brute_force import optimum

import optsched as osd
from optsched.models import FORMULATIONS
from optsched.models.formulation import REGULAR
from optsched.problem.objectives import get_objective

SECOND, MINUTE, HOUR, DAY = 1, 60, 3600, 86400
UNITS = (SECOND, MINUTE, HOUR, DAY)
LARGE = 40_000  # nonzeros: what is built in a moment


def drawn(seed: int) -> osd.Instance:
    """Two to five jobs, on one GPU or on two or three; with horizons from seconds to months."""
    rng = random.Random(seed)
    gpus, kind = rng.choice((1, 1, 1, 2, 3)), rng.choice(("alike", "mixed", "spread", "far apart"))
    kind = "alike" if gpus > 1 else kind  # models of gangs have slots
    unit = rng.choice(UNITS)
    jobs = []
    for j in range(rng.randint(2, 5 if gpus == 1 else 4)):
        own = unit if kind in ("alike", "spread") else rng.choice(UNITS)
        duration = own * rng.randint(1, 9)
        arrival = own * rng.choice((0, 0, rng.randint(0, 12)))
        if kind == "spread":
            arrival = max(unit, HOUR) * rng.randint(0, 30 * DAY // max(unit, HOUR))
        if kind == "far apart":
            duration = rng.choice((1, 7, 10**3, 10**6, 10**7)) + rng.randint(0, 4)
            arrival = rng.choice((0, 1, rng.randint(0, 10**6)))
        weight = rng.choice((1, 1, 2, 3, rng.choice((1, 10, 10**4, 10**6))))
        late = rng.choice((-1, 0, rng.randint(0, 2 * duration)))
        due = max(0, arrival + rng.choice((0, duration)) + late) if rng.random() < 0.8 else None
        jobs.append(osd.Job(f"{j}", arrival, rng.randint(1, gpus), duration, weight=weight, due=due))
    return osd.Instance(jobs, f"1x{gpus}", name=f"drawn-{seed}")


def judged(seed: int, seen: Counter[str]) -> list[str]:
    """What is wrong with a model of the instance of a seed; ``seen`` counts models and what they came to."""
    instance, rng = drawn(seed), random.Random(-seed - 1)
    apt = [
        (name, objective)
        for name in FORMULATIONS.names()
        for objective in sorted(FORMULATIONS.get(name).objectives)
        if _fits(instance, name, objective)
    ]
    name, objective = rng.choice(apt)
    of, relax = FORMULATIONS.get(name), rng.random() < 0.25
    about = f"seed {seed}, {name}, {objective}{', relaxed' if relax else ''}"
    best = Fraction(optimum(instance, objective))
    wrong = []
    try:
        model = osd.formulate(instance, name, objective, relax=relax)
        found = osd.solve_model(instance, model)
    except (osd.OptschedError, ArithmeticError) as error:
        return [f"{about}: {error}"]
    seen[f"{name}{', relaxed' if relax and of.exact else ''}: {found.status}"] += 1
    if found.bound_exact is not None and found.bound_exact > best:
        wrong.append(f"{about}: bound {found.bound!r} above the optimum {float(best)!r}")
    if relax or not of.exact:
        return wrong
    road = osd.solve(instance, objective)
    seen[f"solve: {road.status}"] += 1
    for who, each in ((about, found), (f"seed {seed}, solve, {objective}", road)):
        if each.value_exact is None or each.value_exact < best:
            wrong.append(f"{who}: value {each.value!r}, the optimum is {float(best)!r}")
        elif each.status == "optimal" and each.value_exact != best:
            wrong.append(f"{who}: {each.value!r} is called optimal, the optimum is {float(best)!r}")
        if each.bound_exact is None or each.bound_exact > best:
            wrong.append(f"{who}: bound {each.bound!r}, the optimum is {float(best)!r}")
    return wrong


def _fits(instance: osd.Instance, name: str, objective: str) -> bool:
    """Does the formulation apply, and is it built in a moment, with all starts by the horizon?"""
    of = FORMULATIONS.get(name)
    if of.applies(instance, objective) is not None:
        return False
    times = [int(time) for time in (*instance.relative.arrival, *instance.duration)]
    slots = sum(times) // math.gcd(*times)
    return of.in_seconds or slots * instance.n * max(times) // math.gcd(*times) <= LARGE


def judged_changed(seed: int, seen: Counter[str]) -> list[str]:
    """The same of a model of one GPU with a row more: one job before another, or one not before a time.

    Either is an instance of its own: an order that is left out, or a later arrival.
    """
    rng = random.Random(seed)
    instance = next(one for one in map(drawn, itertools.count(7 * seed)) if one.cluster.gpus == 1)
    objective = rng.choice(sorted(REGULAR))
    if not _fits(instance, "disjunctive", objective):
        return []
    first, second = rng.sample(instance.ids, 2)
    j, k = instance.ids.index(first), instance.ids.index(second)
    duration = instance.duration.tolist()
    late = float(instance.arrival.max()) + 2 * sum(duration)  # enough for a job that waits as long as all others take
    model = osd.formulate(instance, "disjunctive", objective, horizon=late)
    release, before = [int(time) for time in instance.arrival], (j, k)
    if kind := rng.random() < 0.5:
        model.row = pyo.Constraint(expr=model.end(first) <= model.end(second) - duration[k])
    else:
        wait, before = rng.randint(1, int(sum(duration))), None
        release[j] = min(max(release) + int(sum(duration)) - int(duration[j]), release[j] + wait)
        model.row = pyo.Constraint(expr=model.end(first) >= release[j] + duration[j])
    about = f"seed {seed}, {objective}, {'order' if kind else 'wait'}"
    best = _best_order(instance, objective, release, before)
    try:
        found = osd.solve_model(instance, model)
    except (osd.OptschedError, ArithmeticError) as error:
        return [f"{about}: {error}"]
    seen[f"changed: {found.status}"] += 1
    wrong = []
    if found.status == "infeasible":
        wrong.append(f"{about}: infeasible, {found.note}")
    value = found.value_exact
    if value is not None and (value < best or (found.status == "optimal" and value != best)):
        wrong.append(f"{about}: {found.status} {found.value!r}, the optimum is {float(best)!r}")
    if found.bound_exact is not None and found.bound_exact > best:
        wrong.append(f"{about}: bound {found.bound!r} above the optimum {float(best)!r}")
    return wrong


def _best_order(instance: osd.Instance, objective: str, release: list[int], before: tuple[int, int] | None) -> Fraction:
    """The least value over all orders, each job as early as it can; ``release`` in place of the arrivals."""
    goal, values = get_objective(objective), []
    for order in itertools.permutations(range(instance.n)):
        if before is not None and order.index(before[0]) > order.index(before[1]):
            continue
        now, end = 0, [0.0] * instance.n
        for j in order:
            now = max(now, release[j]) + int(instance.duration[j])
            end[j] = float(now)
        values.append(goal.exact_of(instance, end))
    return min(values)
