"""JSON files and their fields, read with a check of every type and range."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

from .refusal import UNJUDGED, VALUE, WIDEST, Refused, need, shown

MOST_BYTES = 1 << 24  # of a file
LARGEST_PRICE = (1 << 64) - 1
EXPONENT = 2200  # largest absolute exponent of a power of two

Data = dict[str, Any]


def read_file(path: str, form: str) -> Data:
    """Return the JSON object in a file.

    Parameters
    ----------
    path
        Path of the file.
    form
        Legal value of the field ``format``.

    Raises
    ------
    Refused
        If the file is missing, longer than 16 MiB, no JSON, of another format, or has a key twice in an object.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
        content = content if len(content) <= MOST_BYTES else b""
        document = json.loads(content, object_pairs_hook=_object)
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(
            f"{path}: no JSON document of at most {MOST_BYTES} bytes ({shown(str(error))})", UNJUDGED
        ) from None
    need(type(document) is dict and document.get("format") == form, f"{path}: not of the format {form}", UNJUDGED)
    return dict(document)


def _object(pairs: list[tuple[str, Any]]) -> Any:
    # False for an object that has a key twice: no object is expected to be False
    members = dict(pairs)
    return len(members) == len(pairs) and members


def read_field(
    kind: Any, part: Data, name: str, rule: str = VALUE, usual: Any = None, least: Any = 0, most: Any = WIDEST
) -> Any:
    """Return a field of a JSON object.

    Parameters
    ----------
    kind
        Legal type. An integer is legal where a float is, and is returned as a float.
    part
        JSON object.
    name
        Name of the field.
    rule
        Rule that an illegal field breaks.
    usual
        Value of a field that is absent or null; None: the field is required.
    least
        Smallest legal number.
    most
        Largest legal number.

    Raises
    ------
    Refused
        If the field has another type or is out of range.
    """
    value: Any = part.get(name) if type(part) is dict else None
    value = usual if value is None else value
    legal = type(value) is kind or (kind is float and type(value) is int)
    legal = legal and (value is usual or kind not in (int, float) or least <= value <= most)
    if not legal:
        raise Refused(f"{name}: {shown(value)} is no legal {kind.__name__}", rule)
    return float(value) + 0.0 if kind is float else value  # -0.0 becomes 0.0


def read_exponent(data: Data, name: str) -> int:
    """Return a field that is the exponent of a power of two.

    Parameters
    ----------
    data
        JSON object.
    name
        Name of the field.
    """
    return int(read_field(int, data, name, least=-EXPONENT, most=EXPONENT))


def read_ratio(text: Any, name: str, longest: int = 4000) -> Fraction:
    """Return the fraction that is written ``p/q``.

    Parameters
    ----------
    text
        Text of a document.
    name
        Name of the field, for the message.
    longest
        Number of characters that is too many.

    Raises
    ------
    Refused
        If it is no such text.
    """
    legal = type(text) is str and len(text) < longest and re.fullmatch("-?[0-9]+(/0*[1-9][0-9]*)?", text)
    if not legal:
        raise Refused(f"{name} must be a fraction written 'p/q', not {shown(text)}", VALUE)
    return Fraction(text)


def written(value: Fraction) -> str:
    """Return a fraction as the text ``p/q``.

    Parameters
    ----------
    value
        Fraction.
    """
    return f"{value.numerator}/{value.denominator}"


def whole(values: Any, most: int) -> bool:
    """Return True if all values are integers from 0 to a largest one.

    Parameters
    ----------
    values
        Iterable of JSON values.
    most
        Largest legal integer.
    """
    return all(type(value) is int and 0 <= value <= most for value in values)
