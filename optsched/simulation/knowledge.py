"""What a policy may know of the length of a job, and what it may do beside starting, stopping and waking."""

from __future__ import annotations

from enum import StrEnum

from optsched.errors import InputError


class Knowledge(StrEnum):
    """What a policy knows about the length of a job when it arrives."""

    CLAIRVOYANT = "clairvoyant"
    PREDICTED = "predicted"
    NON_CLAIRVOYANT = "non-clairvoyant"


class Use(StrEnum):
    """What a policy in plain Python may do beside starting, stopping and waking: its ``uses`` name it."""

    NODES = "nodes"  # say on which nodes a job runs
    SHARING = "sharing"  # say on which GPUs, perhaps beside another job
    WIDTHS = "widths"  # give a job another number of GPUs than it asks for
    COPIES = "copies"  # run a job in several copies at once
    ROUNDS = "rounds"  # be asked only every ``round`` seconds


PLACES = frozenset({Use.NODES, Use.SHARING, Use.WIDTHS, Use.COPIES})  # who uses one of these names its nodes itself


def uses_of(policy: object) -> frozenset[Use]:
    """What it says that it uses; `InputError` for what there is not, and for what no judge of schedules knows together."""
    said = getattr(policy, "uses", ())
    legal = ", ".join(Use)
    if isinstance(said, str) or not all(each in list(Use) for each in said):
        raise InputError("invalid", field=f"{type(policy).__name__}.uses", value=said, legal=f"some of {legal}")
    uses = frozenset(map(Use, said))
    apart = sorted(uses & {Use.SHARING, Use.WIDTHS, Use.COPIES})
    if len(apart) > 1:
        legal = "one of them: schedules with several are of no class that has bounds"
        raise InputError("not possible together", field=f"{type(policy).__name__}.uses", value=said, legal=legal)
    return uses
