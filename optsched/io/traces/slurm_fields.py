"""Fields of ``sacct``, and rows in which a field holds the delimiter.

``sacct -P`` quotes nothing. With a comma as delimiter, lists of resources and of nodes fall apart; with any, names do.
A field whose texts have a form (times, numbers, states, resources) tells where a name ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

EXACT = (  # read to the letter: a row that could mean two of them is damaged
    *("JobID", "JobIDRaw", "State", "Submit", "Eligible", "Start", "End", "Elapsed", "ElapsedRaw", "Suspended"),
    *("Timelimit", "TimelimitRaw", "NNodes", "NCPUS", "ReqTRES", "AllocTRES", "User", "Account", "NodeList", "Reason"),
    *("Restarts", "Cluster"),
)
READ = (*EXACT, "Partition")
FREE = (
    "JobName",
    "Comment",
    "AdminComment",
    "SystemComment",
    "SubmitLine",
    "WorkDir",
    "Container",
    "Constraints",
    "Extra",
)
_WITH_COMMAS = ("JobID", "NodeList", "Flags", "ReqNodes")
_JOB = r"\d+(?:_(?:\d+|\[[^\]\n]*\]))?(?:\+\d+)?(?:\.[\w+]+)?"
_MOMENT = r"Unknown|None|\d{6,12}|[^\n]{0,24}\d:\d\d[^\n]{0,12}|"
_DURATION = r"(?:\d+-)?[\d:.]+|UNLIMITED|Partition_Limit|INVALID|"
_TRES = r"(?:[^=,\n]+=[^=,\n]*(?:,[^=,\n]+=[^=,\n]*)*)?"
_FORMS = {
    **dict.fromkeys(("JobID", "JobIDRaw"), _JOB),
    **dict.fromkeys(("Submit", "Eligible", "Start", "End"), _MOMENT),
    **dict.fromkeys(("Elapsed", "Suspended", "Timelimit", "Reserved", "Planned", "CPUTime", "TotalCPU"), _DURATION),
    **dict.fromkeys(("ReqTRES", "AllocTRES"), _TRES),
    **dict.fromkeys(("NNodes", "NCPUS", "ReqCPUS", "AllocCPUS", "AllocNodes", "UID", "GID", "Priority"), r"\d*"),
    **dict.fromkeys(("ElapsedRaw", "Restarts"), r"\d*"),
    **dict.fromkeys(("User", "Account", "Cluster"), r"[^\s|,;=]*"),
    "TimelimitRaw": r"\d*|UNLIMITED|Partition_Limit",
    "State": r"[A-Z_]+(?: by \d+)?\+?",
    "ExitCode": r"(?:\d+:\d+)?",
    "Partition": r"[\w.-]*(?:,[\w.-]+)*",
    "NodeList": r"None assigned|(?:[A-Za-z][\w.-]*(?:\[[\d,-]*\][\w.-]*)*(?:,(?!$)|$))*",
}
FIELDS = (*READ, *FREE, *_FORMS, "Flags", "ReqNodes", "ReqMem")
_FORMS_READ = {name: re.compile(form) for name, form in _FORMS.items()}
_IN_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_BEHIND_A_RESOURCE = re.compile(r"(=[^=,]*),(?=(?!billing=)[\w/:.-]+=)")
MOST_SURPLUS = 64  # delimiters inside fields of one row


def is_legal(name: str, text: str) -> bool:
    """Return True if a text may be the value of a field.

    Parameters
    ----------
    name
        Name of the field.
    text
        The text.
    """
    form = _FORMS_READ.get(name)
    if form is None:
        return True
    if form.fullmatch(text) is None:
        return False
    if "TRES" in name and "," in text:  # each resource once
        keys = [part.partition("=")[0] for part in text.split(",")]
        return len(set(keys)) == len(keys)
    return True


def with_commas_hidden(line: str) -> list[str]:
    """Return the fields of a line with the delimiter ``,``, lists of resources and of nodes in one piece.

    Parameters
    ----------
    line
        The line.
    """
    hidden = _IN_BRACKETS.sub(lambda found: found[0].replace(",", "\x1f"), line) if "[" in line else line
    hidden = _BEHIND_A_RESOURCE.sub(lambda found: found[1] + "\x1f", hidden)
    return [field.replace("\x1f", ",") if "\x1f" in field else field for field in hidden.split(",")]


def joined_again(pieces: Sequence[str], names: Sequence[str], delimiter: str) -> list[str] | None:
    """Return the fields of a row with more pieces than fields; None if no reading fits, or several that differ.

    Parameters
    ----------
    pieces
        Texts between delimiters.
    names
        Names of the fields.
    delimiter
        The delimiter.

    Notes
    -----
    A reading is a path through (field, first piece); readings may differ in fields that the dialect does not read.
    O(fields x surplus^2).
    """
    if not 0 <= len(pieces) - len(names) <= MOST_SURPLUS:
        return None
    lists = [name for name in names if name in _WITH_COMMAS or "TRES" in name] if delimiter == "," else []
    found = _reading(pieces, names, delimiter, (*FREE, *lists))
    if found is None and delimiter == ",":  # only a waiting job has several partitions
        found = _reading(pieces, names, delimiter, (*FREE, *lists, "Partition"))
    return found


def _reading(pieces: Sequence[str], names: Sequence[str], delimiter: str, open_: Sequence[str]) -> list[str] | None:
    surplus = len(pieces) - len(names)
    steps: list[dict[int, list[tuple[int, str]]]] = []  # of each field: first piece -> (first piece of the next, text)
    reached = {0}
    for k, name in enumerate(names):
        step: dict[int, list[tuple[int, str]]] = {}
        for begin in reached:
            ends = range(begin + 1, (k + 1 + surplus if name in open_ else begin + 1) + 1)
            texts = ((end, delimiter.join(pieces[begin:end])) for end in ends)
            step[begin] = [(end, text) for end, text in texts if is_legal(name, text)]
        steps.append(step)
        reached = {end for ways in step.values() for end, _ in ways}
    fields = [""] * len(names)
    leading = {len(pieces)}  # first pieces from which the rest fits
    for k in reversed(range(len(names))):
        ways = {begin: [way for way in found if way[0] in leading] for begin, found in steps[k].items()}
        leading = {begin for begin, found in ways.items() if found}
        values = {text for found in ways.values() for _, text in found}
        if not values or (len(values) > 1 and names[k] in EXACT):
            return None
        fields[k] = values.pop() if len(values) == 1 else ""
    return fields
