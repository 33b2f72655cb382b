"""Objects of Kubernetes in a file, as JSON or YAML, and the GPUs that their pods ask for.

YAML is read by PyYAML's base loader, which makes nothing but text, lists and mappings: no other objects, no merges. Aliases
are refused, because a short file with nested ones is a long document.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from optsched.errors import InputError, NotInstalledError, RowProblem
from optsched.io.traces.rows import Rows
from optsched.io.traces.text_table import TextTable, read_utf8
from optsched.problem.atomic_files import MOST_JSON
from optsched.problem.documents import parse_json

WHOLE = ("nvidia.com/gpu", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe")
PARTS = re.compile(r"(nvidia\.com/(mig-.*|gpu\.shared)|volcano\.sh/(v?gpu-.*|.*vgpu.*))")
MOST_YAML = 2**26  # bytes; its parser needs some hundred times as long as one of JSON
_QUANTITY = re.compile(r"\+?(\d{1,18}(?:\.\d{0,9})?)(?:[eE](\d{1,2})|([numkMGTPE]|[KMGTPE]i)?)")
_ALIAS = re.compile(r"(^|[\s\[{,:-])\*\w", re.MULTILINE)
_POWERS = {"": 0, "n": -3, "u": -2, "m": -1, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
LEGAL = "objects of Kubernetes: kubectl get ... -o json, or -o yaml"


class OddObject(Exception):
    """A field of an object has no legal value; ``args``: its name, its value, and what is legal."""


def rows_of_objects(
    path: str | os.PathLike[str], read: Callable[[dict[str, Any]], dict[str, str]], columns: tuple[str, ...]
) -> Rows:
    """Return the objects of a file as rows, counted from 1; lists of objects are opened.

    Parameters
    ----------
    path
        The file.
    read
        Function that returns the fields of an object as text, or raises `OddObject`. A field ``reason`` that is not
        empty leaves the object out.
    columns
        Names of the fields; those that ``read`` does not return are empty.

    Raises
    ------
    InputError
        If the file holds no objects, or PyYAML is needed and not installed.
    """
    text, digest = read_utf8(path)
    objects, fields, problems = _objects(path, text), [], []
    for row, item in enumerate(objects, 1):
        try:
            fields.append(read(item if isinstance(item, dict) else {}))
        except OddObject as error:
            name, value, legal = error.args
            problems.append(RowProblem(row, name, str(value)[:80], legal))
            fields.append({})
    table = {name: [values.get(name, "") for values in fields] for name in (*columns, "reason")}
    rows = Rows(replace(TextTable.of_jobs(str(path), table, digest), problems=tuple(problems)))
    reasons = rows.text("reason", required=False)
    for reason in sorted(set(reasons.drop_nulls())):
        rows.leave_out(reasons == reason, reason)
    return rows


def _objects(path: str | os.PathLike[str], text: str) -> list[Any]:
    if text.lstrip().startswith(("{", "[")):
        if len(text) > MOST_JSON:
            raise InputError("the document is too long", file=path, legal=f"at most {MOST_JSON >> 20} MiB of JSON")
        documents = [parse_json(text.encode(), path, LEGAL, row=True)]
    else:
        documents = _yaml(path, text)
    objects = []
    for document in documents:
        for item in document if isinstance(document, list) else [document]:
            items = item.get("items") if isinstance(item, dict) else None
            objects += items if isinstance(items, list) else [item]
    if not any(isinstance(item, dict) for item in objects):
        raise InputError("no objects", file=path, legal=LEGAL)
    return [item for item in objects if item not in (None, "")]


def _yaml(path: str | os.PathLike[str], text: str) -> list[Any]:
    if importlib.util.find_spec("yaml") is None:
        legal = "pip install 'optsched[yaml]', or an export as JSON (kubectl get ... -o json)"
        raise NotInstalledError("YAML needs PyYAML", file=path, legal=legal)
    if len(text) > MOST_YAML:
        raise InputError("the document is too long", file=path, legal=f"at most {MOST_YAML >> 20} MiB of YAML, or JSON")
    import yaml

    loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        events = yaml.parse(text, Loader=loader) if _ALIAS.search(text) else ()
        aliases = any(isinstance(event, yaml.AliasEvent) for event in events)
        documents = [] if aliases else list(yaml.load_all(text, Loader=loader))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        row = None if mark is None else mark.line + 1
        raise InputError("neither YAML nor JSON, or a truncated file", file=path, row=row, legal=LEGAL) from None
    if aliases:
        raise InputError("YAML with aliases (*name)", file=path, legal="YAML as kubectl writes it: without aliases")
    return documents


def part(item: Any, *keys: str, kind: Any = None) -> Any:
    """Return the value at a path of keys of an object.

    Parameters
    ----------
    item
        The object.
    *keys
        Keys, the outermost first.
    kind
        Kind that is wanted: ``list``, ``dict`` or ``str`` (numbers become text); an absent value is then an empty one.
        None: any value, None if it is absent.

    Raises
    ------
    OddObject
        If the value is of another kind, or there is another one on the path than a mapping.
    """
    for depth, key in enumerate(keys):
        if item is None or item == "":
            break
        if not isinstance(item, dict):
            raise OddObject(".".join(keys[:depth]) or "object", item, "a mapping")
        item = item.get(key)
    if kind is None or isinstance(item, kind):
        return item
    if item is None or item == "":
        return kind()
    if kind is str and not isinstance(item, list | dict):
        return str(item)
    raise OddObject(".".join(keys), item, {list: "a list", dict: "a mapping"}.get(kind, "a text"))


text = partial(part, kind=str)
listed = partial(part, kind=list)


def name_of(item: Any) -> str:
    """Return the name of an object behind its namespace, if it states one.

    Parameters
    ----------
    item
        The object.
    """
    return "/".join(filter(None, (text(item, "metadata", "namespace"), text(item, "metadata", "name"))))


def count(item: Any, *keys: str, absent: int = 1) -> int:
    """Return the integer >= 0 at a path of keys of an object.

    Parameters
    ----------
    item
        The object.
    *keys
        Keys, the outermost first.
    absent
        Value if it is absent.

    Raises
    ------
    OddObject
        If the value is another one.
    """
    value = text(item, *keys)
    if not value:
        return absent
    if not re.fullmatch(r"\d{1,7}", value):
        raise OddObject(".".join(keys), value, "an integer from 0 to 9999999")
    return int(value)


def quantity(value: Any, field: str) -> Fraction:
    """Return a quantity of Kubernetes: a number or text with a suffix, such as 8, ``"1500m"`` or ``"200Mi"``.

    Parameters
    ----------
    value
        The quantity.
    field
        Name of the field, for the error.

    Raises
    ------
    OddObject
        If it is none.
    """
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    if match is None:
        raise OddObject(field, value, "a quantity >= 0, such as 8 or 1500m")
    number, exponent, suffix = Fraction(match[1]), int(match[2] or 0), match[3] or ""
    base = Fraction(1024 if suffix.endswith("i") else 1000)
    result: Fraction = number * 10**exponent * base ** _POWERS[suffix[:1]]
    return result


def gpus_in(resources: Any, field: str) -> tuple[Fraction, set[str]]:
    """Return the whole GPUs of a list of resources, and the names of the resources that are parts of GPUs.

    Parameters
    ----------
    resources
        Mapping of names to quantities, or None.
    field
        Name of the field, for the error.
    """
    whole = sum((quantity(part(resources, name) or 0, field) for name in WHOLE), Fraction(0))
    return whole, {name for name in resources or () if isinstance(name, str) and PARTS.fullmatch(name)}


def gpus_of_pod(template: Any) -> tuple[Fraction, set[str]]:
    """Return the whole GPUs of a pod, and the names of resources that are parts of GPUs.

    Containers add up, together with sidecars: init containers with ``restartPolicy: Always``. Another init container counts
    if it and the sidecars before it ask for more than all of them. Requests count, limits where a resource has no request.

    Parameters
    ----------
    template
        Object with ``spec``: a pod or the template of one.
    """
    parts: set[str] = set()
    total = sidecars = most = Fraction(0)
    for kind in ("initContainers", "containers"):  # in the order in which they start
        for container in listed(template, "spec", kind):
            limits, requests = (part(container, "resources", name, kind=dict) for name in ("limits", "requests"))
            whole, names = gpus_in({**limits, **requests}, "resources")
            parts |= names
            if kind == "containers":
                total += whole
            elif text(container, "restartPolicy") == "Always":
                sidecars += whole
            else:
                most = max(most, sidecars + whole)
    return max(total + sidecars, most), parts
