"""`Subject`: a policy under examination, its runs on the instances of its level, and what may be asked of it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from optsched.contract.levels import Level, level_of
from optsched.policies.simulate import Specification, simulate, specify
from optsched.problem.instance import Instance
from optsched.simulation.policy import Knowledge, KnownJobs, Wake
from optsched.simulation.run import Run


class Subject:
    """The policy that ``text`` names (with its placement); it is made anew for every run.

    ``base`` runs on `Level.instances` are made once and kept. ``asked`` is the instance of the last run, for whoever wants
    to show where something was raised.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.asked: Instance | None = None
        self._secret: dict[int, Run] = {}

    @cached_property
    def chosen(self) -> Specification:
        """One such policy and its placement."""
        return specify(self.text)

    @property
    def policy(self) -> Any:
        """One such policy."""
        return self.chosen.policy

    @cached_property
    def level(self) -> Level:
        """What kind of jobs it is for."""
        return level_of(self.policy)

    def run(self, instance: Instance) -> Run:
        """A new run of a new policy."""
        self.asked = instance
        return simulate(instance, self.text)

    @cached_property
    def base(self) -> tuple[Run, ...]:
        """Its runs on the instances of its level."""
        return tuple(map(self.run, self.level.instances()))

    def known_run(self, instance: Instance) -> Run:
        """As `run`; the one that there is already for an instance of the level."""
        return next((run for run in self.base if run.instance is instance), None) or self.run(instance)

    @cached_property
    def base_rows(self) -> tuple[list[tuple[Any, ...]], ...]:
        """What happened in them."""
        return tuple(map(self.level.rows, self.base))

    def secret_run(self, seed: int) -> Run:
        """Its run on an instance on which much is unknown for long (see the check ``knowledge``); made once."""
        if seed not in self._secret:
            self._secret[seed] = self.run(self.level.secretive(seed))
        return self._secret[seed]

    @property
    def knows_durations_at_arrival(self) -> bool:
        """Itself, or by an oracle."""
        if self.policy.knowledge == Knowledge.PREDICTED:
            return bool(getattr(self.policy.make_predictor(), "oracle", False))
        return bool(self.policy.knowledge == Knowledge.CLAIRVOYANT)

    @property
    def rounds(self) -> bool:
        """Is it asked at multiples of some time only?"""
        return bool(getattr(self.policy, "round", 0) or getattr(self.policy, "interval", 0))

    @cached_property
    def own_seconds(self) -> str:
        """Why another unit of time makes it another policy; empty where it does not."""
        if self.rounds:
            return "it decides in rounds of so many seconds"
        if getattr(self.policy, "restart", 0) or getattr(self.policy, "first_start", 0):
            return "a restart costs it so many seconds"
        if callable(getattr(self.policy, "order", None)):
            instance = self.level.instances()[0].relative
            order = self.policy.order(KnownJobs(instance, self.policy.knowledge)) if self.level.orders_by_jobs else None
            return "its levels have thresholds" if order is not None and order.thresholds else ""
        return "it wakes itself at times of its own" if self.wakes else ""

    @cached_property
    def wakes(self) -> bool:
        """Does it yield `Wake` on the first instance?"""
        chosen = specify(self.text)
        policy: Any = chosen.policy
        if not callable(getattr(policy, "decide", None)):
            return False
        decide = policy.decide
        woken: list[Wake] = []

        def watched(view: Any) -> Any:
            for decision in decide(view):
                each = decision if isinstance(decision, list) else [decision]
                woken.extend(one for one in each if isinstance(one, Wake))
                yield decision

        object.__setattr__(policy, "decide", watched)  # also where the fields of the policy are frozen
        simulate(self.level.instances()[0], chosen)
        return bool(woken)
