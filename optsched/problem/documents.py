"""Documents of instance files: strict models of pydantic, and numbers of JSON.

JSON from an untrusted file is read whole and without surprises, or refused in one line.

Python's reader accepts too much: of a key that is given twice the last value wins silently, halves of
surrogate pairs become text that no file can hold, and a deeply nested document ends in a traceback when it
is printed. pydantic's reader refuses the last two, but names no line.
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
    """Return the value that a JSON document holds.

    NaN and Infinity are read as floats; the caller decides whether they are legal. Time and memory are
    proportional to the length of the document.

    Parameters
    ----------
    content
        Bytes of the document.
    path
        File that it comes from, for the error.
    legal
        Description of a legal document, for the error.
    what
        Name of the document, for the error.
    row
        Name the line at which the document stops being JSON.

    Raises
    ------
    InputError
        If the document is not JSON or truncated, is nested deeper than 200, or has an integer of more than
        4,300 digits, half a surrogate pair, or a key that is given twice in an object.
    """
    try:
        document = loads_once(content)
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


def loads_once(content: bytes) -> Any:
    """Return the value of a JSON document in which no object has a key twice.

    Parameters
    ----------
    content
        Bytes of the document.

    Raises
    ------
    ValueError
        If it is not JSON, or a key is given twice in an object.
    """
    return json.loads(content, object_pairs_hook=_once)


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
    """Return the value of a JSON document, checked by a model.

    Parameters
    ----------
    model
        Type that pydantic validates the document as.
    content
        Bytes of the document.
    path
        File that it comes from, for the error.
    form
        Name of the format, for the error.

    Raises
    ------
    InputError
        For the first field that the model refuses.
    """
    parse_json(content, path, form)  # what the reader of documents would pass over in silence
    try:
        return TypeAdapter(model).validate_json(content)
    except ValidationError as error:
        raise first_problem(error.errors(include_url=False, include_context=False)[0], path, form) from None


def first_problem(problem: Any, path: str | os.PathLike[str], form: str) -> InputError:
    """Return the error for one of the problems that pydantic found.

    Parameters
    ----------
    problem
        Entry of ``ValidationError.errors()``.
    path
        File that the document comes from.
    form
        Name of the format.
    """
    if problem["type"] == "json_invalid":
        return InputError("not a JSON document, or a truncated one", file=path, legal=f"format {form}")
    field = ".".join(str(part) for part in where(problem)) or "document"
    message, legal = told(problem)
    legal = form if field == "format" else legal
    return InputError(message, file=path, field=field, value=shown(problem["input"]), legal=legal)


def told(problem: Any, fields: Collection[str] = ()) -> tuple[str, str]:
    """Return the message of a problem and its legal values, in the words of all other errors.

    Parameters
    ----------
    problem
        Entry of ``ValidationError.errors()``.
    fields
        Names of the fields that exist there, for near matches.
    """
    if problem["type"] == "extra_forbidden":
        name = str(problem["loc"][-1])
        return "there is no such field", near_matches(name, list(fields), kind="field") if fields else "no such field"
    if problem["type"] == "missing":
        return "missing", "a value"
    return "invalid", problem["msg"].removeprefix("Input should be ")


def where(problem: Any) -> Sequence[str | int]:
    """Return the keys and positions that lead to a problem.

    Parameters
    ----------
    problem
        Entry of ``ValidationError.errors()``.
    """
    return [part for part in problem["loc"] if part not in ("int", "float")]


def short_number(value: Any) -> Any:
    """Return an integer-valued float as int, so that files and people see ``3`` and not ``3.0``.

    Parameters
    ----------
    value
        Any value; all others are returned unchanged.
    """
    return int(value) if isinstance(value, float) and value.is_integer() else value


def stated(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass that have no default or another value, as JSON.

    Parameters
    ----------
    value
        Instance of the dataclass.
    """
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
        """Return the part of an instance file that describes the object."""
        return stated(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Return the object that a part of an instance file describes.

        Parameters
        ----------
        document
            Part of the file, as `to_json` returns it.
        """
        return cls(**{key: value for key, value in document.items() if value is not None})


def shown(value: Any) -> Any:
    """Return a value that fits into a line of an error; ``...`` for one that is long or has parts.

    Parameters
    ----------
    value
        Any value.
    """
    short = isinstance(value, str | int | float | bool | type(None))
    return ... if not short or (isinstance(value, int) and abs(value) > LARGEST) else value
