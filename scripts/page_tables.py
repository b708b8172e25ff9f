"""Pages whose tables are made from records: each stands between `<!-- table NAME -->` and `<!-- end -->`."""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def filled(text: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """The page with its tables made anew; everything else on it stays as it is."""
    for name, make in tables.items():
        pattern = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end -->)", re.S)
        content = make()
        text, found = pattern.subn(lambda match, content=content: f"{match[1]}\n{content}\n\n{match[2]}", text)
        if found != 1:
            sys.exit(f"the page has {found} places for table {name}, not one")
    return text


def fill_page(path: Path, tables: Mapping[str, Callable[[], str]]) -> None:
    """Write the page with its tables made anew."""
    path.write_text(filled(path.read_text(), tables))
