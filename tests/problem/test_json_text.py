"""JSON that nobody vouches for."""

from __future__ import annotations

import pytest

from optsched.errors import InputError
from optsched.problem.documents import parse_json
from optsched.problem.instance import Instance

GOOD = [
    (b'{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
    (b'"\\ud83d\\ude00"', "\U0001f600"),
    (b"\xef\xbb\xbf[1]", [1]),
    (b'["' + b"[" * 300 + b'"]', ["[" * 300]),
    (b"[" + b"[]," * 300 + b"[]]", [[]] * 301),
]


@pytest.mark.parametrize(("content", "value"), GOOD)
def test_documents(content: bytes, value: object) -> None:
    assert parse_json(content, "f.json", "a list") == value


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"a": 1, "b": {"c": 1, "c": 2}}', "c: a key is given twice"),
        (b"[" * 300 + b"]" * 300, "not a JSON document that can be read: recursion limit"),
        (b'{"a":' * 300 + b"1" + b"}" * 300, "not a JSON document that can be read: recursion limit"),
        (b"[" * 100_000, "not a JSON document"),
        (b'["\\ud800"]', "not a JSON document that can be read: "),
        (b'{"\\udfff": 1}', "not a JSON document that can be read: "),
        (b"9" * 5000, "not a JSON document"),
        (b"[1, 2", "not a JSON document"),
        (b"\xff", "not a JSON document"),
        (b"", "not a JSON document"),
    ],
)
def test_what_is_refused_is_one_line(content: bytes, what: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_json(content, "f.json", "a list")
    assert str(caught.value).startswith("f.json")
    assert what in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        '"profiles": {"p": {"stages": [{"replicas": 9223372036854775808, "forward": 1, "backward": 1}]}}',
        '"profiles": {"p": {"stages": [{"replicas": 1, "forward": 1, "backward": 1}], "micro_batches": 1'
        + "0" * 400
        + "}}",
        '"scalings": {"p": {"compute": 1, "per_sample": 1, "iterations": [[1' + "0" * 400 + ", 5]]}}",
        '"scalings": {"p": {"compute": 1, "per_sample": 1, "most_local": 1' + "0" * 400 + "}}",
        '"throughputs": {"p": [{"gpu": "G", "gpus": 1' + "0" * 400 + ', "together": 1}]}',
        '"name": "a", "name": "b"',
    ],
)
def test_numbers_and_keys_of_an_instance(changes: str, tmp_path: object) -> None:
    path = f"{tmp_path}/instance.json"
    text = '{"format": "optsched-instance/1", "cluster": {"nodes": [{"gpus": 1}]}, "jobs": [{"duration": 1}], '
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text + changes + "}")
    with pytest.raises(InputError) as caught:
        Instance.load(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
