"""Pages with measured tables say what the records say."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["depth_page", "results_page"])
def test_the_pages_tables_are_made_from_the_records(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    page = importlib.import_module(name)
    page_tables = sys.modules["page_tables"]
    written = page.PAGE.read_text()
    assert page_tables.filled(written, page.TABLES) == written


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_pictures_and_pages_that_a_page_names_exist(page):
    text = page.read_text()
    targets = [part.split(")")[0].split("#")[0] for part in text.split("](")[1:]]
    for target in targets:
        if target and "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} names {target}"
