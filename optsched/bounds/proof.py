"""`prove`: hand a certificate to the stand-alone verifier (`optsched.check.verify_on_clusters`), in this process.

It gets the documents that files would hold. What it cannot read there it is given: the speeds of jobs that come from a
model that it does not know, or from measured steps of a scaling profile. Kinds of somebody's own relaxation or theorem come
with the function that the verifier calls in their place (`optsched.bounds.relaxation`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from copy import copy
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any

from optsched.bounds import word_verifier
from optsched.bounds.best_bound import lower_bound
from optsched.bounds.certificate import (
    RULES,
    Certificate,
    CertificateError,
    Proof,
    Verifier,
    register_kind,
    require_same,
)
from optsched.bounds.word_arithmetic import Overflow
from optsched.check import verify_case as reading, verify_certificate as plain, verify_on_clusters as clusters
from optsched.check.verify_time_prices import Speed
from optsched.problem.instance import Instance
from optsched.speeds.duration import paces
from optsched.speeds.goodput import Goodputs
from optsched.speeds.partner_rates import sharing_rates
from optsched.speeds.type_speeds import type_speeds

MOST_STEPS = 60_000_000  # of prices: some seconds; methods of this program find more than strangers may send
READ = ("duration", "throughputs", "profiles")  # models of speeds that the verifier knows, beside scalings and tasks


class GivenSpeeds:
    """What the verifier is given of an instance (`optsched.check.verify_time_prices.SpeedSource`)."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.models = [model.name for model in instance.models if model.name not in (*READ, "scalings", "tasks")]
        self.models += [] if instance.at_task_level else ["tasks"]
        self.measured = {name for name, each in instance.scalings.items() if each.measured is not None}
        profiles = instance.table["profile"].to_list() if self.measured else []
        self.jobs = {j for name in self.models for j in instance.jobs_at(name).tolist()}
        self.jobs |= {
            j for j in instance.jobs_at("scalings").tolist() if self.measured and profiles[j] in self.measured
        }

    def document(self) -> dict[str, Any]:
        """The instance as a file has it, without the parts that are given otherwise."""
        document = {name: part for name, part in self.instance.to_json().items() if name not in self.models}
        if self.measured:
            document["scalings"] = {k: part for k, part in document["scalings"].items() if k not in self.measured}
        for j in self.jobs:
            document["jobs"][j]["gpu_memory"] = float(self.instance.gpu_memory[j])  # a model may know more of it
        return document

    @cached_property
    def _types(self) -> tuple[tuple[str, ...], list[list[float]], list[float]]:
        known = type_speeds(self.instance)
        together, spread = known.reachable
        best = [
            [max(pair) for pair in zip(*rates, strict=True)]
            for rates in zip(together.tolist(), spread.tolist(), strict=True)
        ]
        return known.types, best, paces(self.instance)[0].tolist()

    @cached_property
    def _goodputs(self) -> Goodputs:
        goodputs = Goodputs(self.instance)
        goodputs.require_few()
        return goodputs

    def speed(self, job: int, *, elastic: bool) -> Speed | None:
        """Float rates become float seconds, which are taken as exact."""
        if job not in self.jobs:
            return None
        types, best, least = self._types
        pace = {name: 1.0 / rate for name, rate in zip(types, best[job], strict=True) if rate > 0}
        goodput = self._goodputs.of(job) if elastic else None
        if goodput is None:
            return Speed(pace, least[job], [] if self.instance.speeds_of(job).elastic else None)
        sizes = self.instance.cluster.node_gpus[self.instance.eligible(job)].tolist()
        places = tuple(sorted(sizes, reverse=True))
        return Speed(pace, least[job], [(r, goodput.limit(r, places)) for r in range(1, sum(places) + 1)])

    @cached_property
    def _sharing(self) -> Any:
        return sharing_rates(self.instance)

    def needs(self, job: int) -> set[tuple[Fraction, Fraction]]:
        """Of every sub-batch, the least of one node and several."""
        rates = self._sharing
        some = range(int(rates.options[job]))
        return {(Fraction(float(rates.memory[job, o])), Fraction(float(rates.stretch[job, o].min()))) for o in some}


@lru_cache(maxsize=4)  # the next certificate is of the same instance, as a rule
def _case(instance: Instance, schedule_class: str, epoch: Fraction) -> clusters.OnCluster:
    source = GivenSpeeds(instance)
    case = clusters.OnCluster(source.document(), instance.digest, schedule_class, epoch, source)
    case.most_steps = MOST_STEPS
    return case


def prove(certificate: Certificate, instance: Instance, theorem: Any = None, machine: Any = None) -> None:
    """Prove the certificate again from the instance; `CertificateError` where it does not follow.

    ``theorem``, ``machine``: functions of a `Case` and the data that take the place of those that the verifier has.
    """
    served = {certificate.objective: {certificate.kind: theorem}}
    kinds = clusters.KINDS if theorem is None else {certificate.schedule_class: served}

    def case(_: str, schedule_class: str, epoch: Fraction) -> clusters.OnCluster:
        known = _case(instance, schedule_class, epoch)
        if machine is not None:
            known = copy(known)
            known.machine = partial(machine, known)  # type: ignore[method-assign]
        return known

    try:
        if theorem is None and instance.n > word_verifier.FEW and certificate.kind in word_verifier.KINDS:
            with suppress(Overflow):  # machine words do not do it
                proof = word_verifier.word_proof(certificate.kind, certificate.objective, certificate.data, instance)
                require_same(certificate, *proof)
                return
        plain.proved(certificate.to_json(), case, kinds)
    except reading.Refused as refused:
        raise CertificateError(refused.rule if refused.rule in RULES else "value", str(refused)) from None


Find = Callable[[Instance, str, str], Proof | None]  # (instance, objective, schedule class) -> (value, data)


def proved_bound(
    name: str,
    *,
    objectives: Iterable[str],
    classes: Iterable[str],
    statement: str,
    strong: bool = False,
    verifier: Verifier = prove,
) -> Callable[[Find], Find]:
    """Decorator that files what finds a proof as a bound, and the kind of its certificates, under one name."""

    def add(find: Find) -> Find:
        @lower_bound(name, objectives=objectives, classes=classes, statement=statement, strong=strong)
        def build(instance: Instance, objective: str, schedule_class: str) -> Certificate | None:
            proof = find(instance, objective, schedule_class)
            return None if proof is None else Certificate(instance.digest, objective, schedule_class, name, *proof)

        register_kind(name, objectives=objectives, classes=classes)(verifier)
        return find

    return add
