"""What the documents of instance files are made of: strict models of pydantic, and numbers of JSON."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MAX_INTEGER = 2**63 - 1
Number = Annotated[float, Field(allow_inf_nan=False)]  # strict: any number of JSON, but neither text nor a truth value
Integer = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]


class Document(BaseModel):
    """A part of a document: no other fields than these, and no conversions."""

    model_config = ConfigDict(extra="forbid", strict=True)
