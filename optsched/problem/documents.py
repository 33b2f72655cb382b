"""What the documents of instance files are made of: strict models of pydantic, and numbers of JSON."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from optsched.errors import InputError
from optsched.problem.json_text import parse_json

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
    return InputError("invalid", file=path, field=field, value=shown(problem["input"]), legal=problem["msg"])


def where(problem: Any) -> Sequence[str | int]:
    """Keys and positions that lead to a problem."""
    return [part for part in problem["loc"] if part not in ("int", "float")]


def shown(value: Any) -> Any:
    """A value as a line about it may hold it; ``...`` for what is long or has parts."""
    short = isinstance(value, str | int | float | bool | type(None))
    return ... if not short or (isinstance(value, int) and abs(value) > LARGEST) else value
