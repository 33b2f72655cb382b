"""The page of all theorems is what the registry says of them."""

from __future__ import annotations

import re

from optsched.guarantees import GUARANTEES
from optsched.guarantees.describe import page
from optsched.guarantees.family import FAMILIES
from pages.refresh import THEOREMS


def test_the_page_of_theorems_is_written_from_the_registry() -> None:
    assert THEOREMS.read_text(encoding="utf-8") == page(), "make pages writes it"


def test_every_theorem_and_every_family_has_a_section_and_every_link_leads_to_one() -> None:
    text = page()
    sections = re.findall(r"^###? (\S+)$", text, re.MULTILINE)
    assert {*GUARANTEES.names(), *FAMILIES.names()} <= set(sections)
    assert len(set(sections)) == len(sections)
    assert set(re.findall(r"\(#(.*?)\)", text)) <= set(sections)
