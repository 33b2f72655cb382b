"""What the verifiers that need nothing of optsched say of a certificate, and what optsched does."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from bounds.tampering import Document

from optsched.bounds import Certificate
from optsched.check.verify_case import UNJUDGED, Refused
from optsched.errors import OptschedError
from optsched.problem.instance import Instance


def written(document: Any) -> Document:
    """As a file gives it back."""
    return dict(json.loads(json.dumps(document)))


def exit_code(alone: ModuleType, doc: Document, instance: Instance | Document) -> int:
    """That of a verifier for a certificate's document."""
    if doc["format"] != "optsched-certificate/1":
        return 2
    try:
        alone.verify(written(doc), written(instance.to_json() if isinstance(instance, Instance) else instance))
    except Refused as refused:
        return 2 if refused.rule == UNJUDGED else 1
    return 0


def holds_for_optsched(doc: Document, instance: Instance) -> bool:
    try:
        Certificate.of_document(doc, "c.json").verify(instance)
    except OptschedError:
        return False
    return True
