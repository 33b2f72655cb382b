"""Labels of runs in pictures: the names of their policies, with parameters only if two share a name."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optsched.policies import POLICIES
from optsched.policies.simulate import names_a_class


def policy_labels(policies: Sequence[str]) -> list[str]:
    """Return a label for each policy, all different.

    Parameters
    ----------
    policies
        Policies as runs write them, ``NAME[:key=value,...][+PLACEMENT]`` or ``MODULE:CLASS[:key=value,...]``. Parameters and
        placement distinguish equal names, and a number distinguishes equal texts.

    Examples
    --------
    >>> policy_labels(["a-srpt:tau=0", "fifo", "fifo:skip=true"])
    ['a-srpt', 'fifo', 'fifo:skip=true']
    """
    named = [_own_name(text) for text in policies]
    names = Counter(name for name, _ in named)
    labels = [name + more if names[name] > 1 else name for name, more in named]
    again, count = Counter(labels), Counter[str]()
    for k, label in enumerate(labels):
        if again[label] > 1:
            count[label] += 1
            labels[k] = f"{label} ({count[label]})"
    return labels


def by_label(runs: Mapping[str, Any] | Iterable[Any]) -> dict[str, Any]:
    """Return runs by label: the given names, otherwise those of their policies (`policy_labels`).

    Parameters
    ----------
    runs
        Runs by name, or runs.
    """
    if isinstance(runs, Mapping):
        return dict(runs)
    several = list(runs)
    return dict(zip(policy_labels([_policy(run) for run in several]), several, strict=True))


def _policy(run: Any) -> str:
    # of a run or schedule; a solution is of an exact method
    return str(getattr(run, "policy", None) or getattr(run, "model", None) or type(run).__name__)


def _own_name(text: str) -> tuple[str, str]:
    """(the name of the policy itself, what is written behind it)."""
    head, plus, place = text.partition("+")
    name, _, parameters = head.partition(":")
    if name.strip() not in POLICIES and names_a_class(head):
        module, (kind, _, parameters) = name.strip(), parameters.partition(":")
        # a file that somebody sent must not decide what is imported: only what is there already is asked for its name
        own = getattr(getattr(sys.modules.get(module), kind, None), "name", None)
        name = own if isinstance(own, str) and own.strip() else kind
    return name.strip(), (f":{parameters}" if parameters.strip() else "") + (f"+{place}" if plus else "")
