"""The verifiers' side where jobs share GPUs: charges are tried on every pair again, and the machine is built in fractions.

Nothing is shared with `shared_machine` and `shared_pairs`, whose docstrings tell the theorem, but the numbers of the
physics: ratios, stretches, speeds.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

from optsched.bounds.certificate import Certificate, CertificateError
from optsched.bounds.menu_verifier import ExactSpeeds, Menu, MenuTwin
from optsched.problem.instance import Instance
from optsched.speeds.gpu_sharing import sharing_rates

CHARGE_UNIT = 1 << 30
MOST_CLASSES = 100  # all pairs of classes are tried; of more only where there are as many kinds of jobs
ROOM = 1 + Fraction(
    1, 1 << 29
)  # memory that the referee lets pass (RELATIVE of `optsched.check.feasibility`), and more


class SharedTwin(MenuTwin):
    """``charge[j]``: type to c_jt, proved: no two jobs on a GPU can be paid too little.

    ``beside[j]``: type to the largest speed (alone: 1) at which j runs beside another job on a GPU; 0: it never is.
    """

    def _menus(self) -> list[Menu]:
        certificate, instance, speeds = self.certificate, self.instance, self.speeds
        if instance.interference is None:
            raise CertificateError("kind", f"{certificate.kind} is no bound for this instance: it has no interference")
        class_of, charges = _stated(certificate, instance, speeds)
        classes = _read_classes(instance, speeds, class_of)
        fastest = [_try_pairs(instance, classes, t, charges[name]) for t, name in enumerate(speeds.types)]
        whole = [charges[name] for name in speeds.types]
        self.stated = {name: certificate.data[name] for name in ("classes", "charges")}
        self.charge = [
            {t: Fraction(whole[t][c], CHARGE_UNIT) for t in paces}
            for paces, c in zip(speeds.pace, class_of, strict=True)
        ]
        self.beside = [{t: fastest[t][c] for t in paces} for paces, c in zip(speeds.pace, class_of, strict=True)]
        known, menus = dict[Any, Menu](), []
        for gang, paces, c, charge in zip(speeds.gang, speeds.pace, class_of, self.charge, strict=True):
            key = gang, id(paces), c
            if key not in known:
                known[key] = tuple((t, a, gang * charge[t]) for t, a in paces.items())
            menus.append(known[key])
        return menus


@dataclass
class _Class:
    kind: str | None
    jobs: int
    node_groups: set[int]
    needs: set[tuple[Fraction, Fraction]]  # memory, stretch


def _stated(
    certificate: Certificate, instance: Instance, speeds: ExactSpeeds
) -> tuple[list[int], dict[str, list[int]]]:
    class_of, charges = certificate.data.get("classes"), certificate.data.get("charges")
    if not isinstance(charges, dict) or sorted(charges) != sorted(speeds.types):
        raise CertificateError("dual-feasibility", f"data.charges must name the GPU types {', '.join(speeds.types)}")
    lengths = {len(row) if isinstance(row, list) else -1 for row in charges.values()}
    count = lengths.pop()
    if lengths or count < 0:
        raise CertificateError("dual-feasibility", "data.charges must be lists of the same length")
    for name, row in charges.items():
        for k, charge in enumerate(row):
            if type(charge) is not int or not 0 <= charge <= CHARGE_UNIT:
                found = str(charge)[:80]
                raise CertificateError(
                    "dual-feasibility",
                    f"data.charges[{name!r}][{k}] must be an integer in 0..{CHARGE_UNIT}, not {found}",
                )
    if (
        not isinstance(class_of, list)
        or len(class_of) != instance.n
        or any(type(c) is not int or not 0 <= c < count for c in class_of)
    ):
        legal = f"a list of {instance.n} positions in data.charges"
        raise CertificateError("dual-feasibility", f"data.classes must be {legal}")
    most = max(MOST_CLASSES, len(set(instance.kinds)))
    if len(set(class_of)) > most:
        raise CertificateError("dual-feasibility", f"data.classes has more than {most} classes: too many pairs to try")
    return class_of, charges


def _read_classes(instance: Instance, speeds: ExactSpeeds, class_of: list[int]) -> dict[int, _Class]:
    rates, groups = sharing_rates(instance), instance.cluster.nodes
    names = [name.casefold() for name in speeds.types]
    type_of = [names.index(group.gpu.casefold()) for group in groups]
    limited = any(group.gpu_memory is not None for group in groups)
    found: dict[int, _Class] = {}
    suiting: dict[tuple[Any, ...], set[int]] = {}
    columns = (instance.table["gpu_types"].to_list(), instance.gpu_memory.tolist())
    for j, c in enumerate(class_of):
        types, memory = columns[0][j], columns[1][j]
        key = (None if types is None else tuple(types), memory)
        if key not in suiting:
            suiting[key] = {g for g, group in enumerate(groups) if group.suits(types, memory)}
        kind = instance.kinds[j]
        mine = found.setdefault(c, _Class(kind, 0, set(), set()))
        if mine.kind != kind:
            raise CertificateError(
                "dual-feasibility", f"data.classes: class {c} mixes the kinds {mine.kind} and {kind}"
            )
        mine.jobs += 1
        mine.node_groups |= {g for g in suiting[key] if type_of[g] in speeds.pace[j]}
        for o in range(int(rates.options[j]) if limited else 1):
            needs = float(rates.memory[j, o]) if limited else 0.0
            mine.needs.add((Fraction(needs), Fraction(float(rates.stretch[j, o].min()))))
    return found


def _try_pairs(instance: Instance, classes: dict[int, _Class], t: int, charge: list[int]) -> dict[int, Fraction]:
    # Returns the largest speed of every class beside another job.
    cluster, interference = instance.cluster, instance.interference
    fastest = dict.fromkeys(classes, Fraction(0))
    assert interference is not None  # `charges_of` looked
    name = cluster.gpu_types[t]
    rooms = {g: group.gpu_memory for g, group in enumerate(cluster.nodes) if group.gpu.casefold() == name.casefold()}
    for a, one in classes.items():
        for b, other in classes.items():
            slow, slowed = interference.slowdown(one.kind, other.kind), interference.slowdown(other.kind, one.kind)
            both = rooms.keys() & one.node_groups & other.node_groups
            if b < a or not both or math.inf in (slow, slowed) or (a == b and one.jobs < 2):
                continue
            unlimited = any(rooms[g] is None for g in both)
            room = None if unlimited else max(Fraction(rooms[g] or 0) for g in both) * ROOM
            paid = _most_paid(one, other, room, (charge[a] / Fraction(slow), charge[b] / Fraction(slowed)))
            if paid > CHARGE_UNIT:
                raise CertificateError(
                    "dual-feasibility",
                    f"data.charges: classes {a} and {b} pay {float(paid / CHARGE_UNIT):.12g} > 1 on a shared GPU {name}",
                )
            fastest[a] = max(fastest[a], _fastest(one, other, room) / Fraction(slow))
            fastest[b] = max(fastest[b], _fastest(other, one, room) / Fraction(slowed))
    return fastest


def _fastest(one: _Class, other: _Class, room: Fraction | None) -> Fraction:
    least = min(memory for memory, _ in other.needs)
    return max((1 / s for memory, s in one.needs if room is None or memory + least <= room), default=Fraction(0))


def _most_paid(one: _Class, other: _Class, room: Fraction | None, paid: tuple[Fraction, Fraction]) -> Fraction:
    # over all sub-batches that fit together; of those that fit beside one the least stretched pays most
    needs = sorted(other.needs)
    memory, least = [k for k, _ in needs], list(accumulate((r for _, r in needs), min))
    most = Fraction(0)
    for m, s in one.needs:
        fit = len(needs) if room is None else bisect_right(memory, room - m)
        if fit:
            most = max(most, paid[0] / s + paid[1] / least[fit - 1])
    return most
