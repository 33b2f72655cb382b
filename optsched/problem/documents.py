"""What the documents of instance files are made of: strict models of pydantic, and numbers of JSON.

JSON that nobody vouches for: read whole, without surprises, or refused in one line.

Python's reader takes more than it should: of a key given twice the last value wins without a word, halves of
surrogate pairs become text that no file can hold, and what is nested deeply enough ends in a traceback when somebody prints
it. pydantic's reader refuses the last two, but names no line.
"""

from __future__ import annotations

import codecs
import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import from_json

from optsched.errors import InputError
from optsched.registry import near_matches


class _RepeatedKey(ValueError):
    """A key is given twice in an object."""


def parse_json(
    content: bytes, path: str | os.PathLike[str], legal: str, what: str = "a JSON document", *, row: bool = False
) -> Any:
    """The value that a JSON document holds. NaN and Infinity are read as floats: who uses them says what is legal.

    Time and memory are proportional to the length of the document. ``row``: name the line where it ceases to be JSON.

    Raises `InputError`: not JSON, truncated, nested deeper than 200, an integer of more than 4,300 digits, half a surrogate
    pair, or a key that is given twice in an object: ``path``, what is the matter, and ``legal``.
    """
    try:
        document = json.loads(content, object_pairs_hook=_once)
    except _RepeatedKey as error:
        raise InputError(
            "a key is given twice in an object", file=path, field=str(error), legal="each key once"
        ) from None
    except (ValueError, RecursionError) as error:
        line = error.lineno if row and isinstance(error, json.JSONDecodeError) else None
        raise InputError(f"not {what}, or a truncated one", file=path, row=line, legal=legal) from None
    try:
        from_json(content.removeprefix(codecs.BOM_UTF8))
    except ValueError as error:  # nested too deeply, half a surrogate pair
        raise InputError(f"not {what} that can be read: {error}", file=path, legal=legal) from None
    return document


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKey(next(name for name in names if names.count(name) > 1)[:80])
    return found


MAX_INTEGER = 2**63 - 1
Number = Annotated[float, Field(allow_inf_nan=False)]  # strict: any number of JSON, but neither text nor a truth value
Integer = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]


class Document(BaseModel):
    """A part of a document: no other fields than these, and no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)


Read = TypeVar("Read")
LARGEST = 1e300  # of an integer that is read or shown: sums of legal times and weights are far below


def read_document(model: type[Read], content: bytes, path: str | os.PathLike[str], form: str) -> Read:
    """What a JSON document of the format ``form`` says; `InputError` with the first field that ``model`` refuses."""
    parse_json(content, path, form)  # what the reader of documents would pass over in silence
    try:
        return TypeAdapter(model).validate_json(content)
    except ValidationError as error:
        raise first_problem(error.errors(include_url=False, include_context=False)[0], path, form) from None


def first_problem(problem: Any, path: str | os.PathLike[str], form: str) -> InputError:
    """The line for one of the problems that pydantic found."""
    if problem["type"] == "json_invalid":
        return InputError("not a JSON document, or a truncated one", file=path, legal=f"format {form}")
    field = ".".join(str(part) for part in where(problem)) or "document"
    message, legal = told(problem)
    legal = form if field == "format" else legal
    return InputError(message, file=path, field=field, value=shown(problem["input"]), legal=legal)


def told(problem: Any, fields: Collection[str] = ()) -> tuple[str, str]:
    """What is the matter, and what is legal, in the words of all other errors; ``fields``: those that there are."""
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        return "there is no such field", near_matches(name, list(fields), kind="field") if fields else "no such field"
    if problem["type"] == "missing":
        return "missing", "a value"
    return "invalid", problem["msg"].removeprefix("Input should be ")


def where(problem: Any) -> Sequence[str | int]:
    """Keys and positions that lead to a problem."""
    return [part for part in problem["loc"] if part not in ("int", "float")]


def short_number(value: Any) -> Any:
    """An integer-valued float as int, so that files and people see ``3`` and not ``3.0``."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def stated(value: Any) -> dict[str, Any]:
    """The fields of a dataclass that have no default, or another value: as they stand in an instance file."""
    given = ((field.name, getattr(value, field.name), field.default) for field in fields(value))
    return {name: _of_json(found) for name, found, default in given if found != default}


def _of_json(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(map(_of_json, value))
    return stated(value) if is_dataclass(value) else value


class Part:
    """A frozen dataclass that is a part of an instance file, where what is not there, or null, has its default."""

    __slots__ = ()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def to_json(self) -> dict[str, Any]:
        """As it stands in an instance file."""
        return stated(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """What `to_json` wrote."""
        return cls(**{key: value for key, value in document.items() if value is not None})


def shown(value: Any) -> Any:
    """A value as a line about it may hold it; ``...`` for what is long or has parts."""
    short = isinstance(value, str | int | float | bool | type(None))
    return ... if not short or (isinstance(value, int) and abs(value) > LARGEST) else value
