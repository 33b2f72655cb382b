"""What a prompt and a notebook show of results: a short line, and a page with a picture where it is small."""

from __future__ import annotations

import base64
import html.parser
import pickle
from typing import Any

import pytest

import optsched as osd

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    name = "rigid-10-1"
    shared = osd.Instance(
        [osd.Job(job, iterations=3, profile="net") for job in ("a", "b")],
        "1x1",
        tasks={"net": osd.IterationTasks(forward=1, backward=2)},
    )
    return {
        "Instance": osd.load("cluster-week"),
        "Run": osd.simulate(name, "srtf"),
        "big Run": osd.simulate("cluster-week", "srtf"),
        "SharedRun": osd.simulate("sharing-cluster", "sjf-bsbf"),
        "TaskRun": osd.simulate(shared, "srsf:k=1"),
        "Solution": osd.solve(name),
        "Certificate": osd.bound("cluster-week"),
        "Schedule": osd.simulate(name, "srtf").schedule,
        "Attack": osd.attack("fifo", against="sjf", gpus=1, jobs=3, tries=20, workers=1),
        "Report": osd.evaluate(name, ["fifo", "srtf", "sjf", "wspt", "tiresias:threshold=20"]),
    }


def test_a_repr_is_a_short_line(results: dict[str, Any]) -> None:
    for kind, result in results.items():
        line = repr(result)
        assert line.startswith(type(result).__name__ + "("), kind
        assert len(line) <= 160, line
        assert "\n" not in line
    assert repr(results["Run"]) == "Run('srtf' on 'rigid-10-1': 10 of 10 jobs finished, total_completion_time 228)"
    assert repr(results["Solution"]) == "Solution(optimal total_completion_time 234 on 'rigid-10-1')"
    assert repr(osd.bound("rigid-10-1")).startswith("Certificate(total_completion_time >= 2")


class Balanced(html.parser.HTMLParser):
    """Every tag that is opened is closed, in order; keeps the pictures."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.pictures: list[bytes] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.pictures.append(base64.b64decode(str(dict(attrs)["src"]).removeprefix("data:image/png;base64,")))
        else:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def page(result: Any) -> tuple[str, list[bytes]]:
    text = result._repr_html_()
    reader = Balanced()
    reader.feed(text)
    assert reader.open == []
    return text, reader.pictures


def test_pages_are_whole_and_small_results_have_a_picture(results: dict[str, Any]) -> None:
    drawn = {kind: page(result)[1] for kind, result in results.items()}
    assert {kind for kind, pictures in drawn.items() if pictures} == {"Run", "SharedRun", "Solution", "Schedule"}
    for pictures in drawn.values():
        assert all(picture.startswith(b"\x89PNG") and len(picture) < 200_000 for picture in pictures)
    assert "optimal" in page(results["Solution"])[0]
    assert "... and 990 more jobs" in page(results["Instance"])[0]


def test_names_are_text() -> None:
    instance = osd.Instance([osd.Job("<b>&", duration=1)], "1x1", name="<script>")
    for result in (instance, osd.simulate(instance, "fifo"), osd.solve(instance)):
        text, _ = page(result)
        assert "<script>" not in text
    assert "&lt;b&gt;&amp;" in page(instance)[0]


def small(**changes: Any) -> osd.Instance:
    return osd.Instance([osd.Job("a", duration=5, user="ann"), osd.Job("b", arrival=1, duration=3)], "1x2", **changes)


def test_instances_are_equal_by_what_is_in_them() -> None:
    one = small()
    assert one == small(name="other", recipe={"name": "hand"})
    assert hash(one) == hash(small(name="other"))
    assert {one: 1}[small()] == 1
    assert one == one.replace()
    assert one != 3
    others = [
        one.replace(jobs=[osd.Job("a", duration=5), osd.Job("b", arrival=1, duration=3)]),  # a policy may look at users
        one.with_cluster("1x4"),
        small(objective="makespan"),
        one.head(1),
        one.replace(optimum={"objective": "makespan", "class": "gang", "value": 5}),
    ]
    assert all(one != other for other in others)


@pytest.mark.parametrize("name", ["rigid-10-1", "ddl-04-1", "contention-cluster", "sharing-cluster"])
def test_an_instance_is_the_same_after_a_file_and_a_pickle(name: str, tmp_path: Any) -> None:
    instance = osd.load(name, limit=20)
    _ = instance.relative, instance.arrival, instance.job_class
    again = pickle.loads(pickle.dumps(instance))
    assert again == instance
    assert hash(again) == hash(instance)
    # what was computed does not go along: arrays are made anew, as closed as before
    assert {"relative", "arrival", "_arrays"} & set(instance.__getstate__()) == set()
    assert "relative" not in vars(again)
    assert (again.arrival == instance.arrival).all()
    assert not again.arrival.flags.writeable
    instance.save(tmp_path / "again.json")
    assert osd.Instance.load(tmp_path / "again.json") == instance
    assert osd.load(name, limit=20) == instance
