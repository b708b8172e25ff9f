"""What the repository says of itself."""

import pathlib
import re
import subprocess
import sys

import pytest

import capsroute

ROOT = pathlib.Path(__file__).parents[1]


def test_citation_and_changelog_have_the_version():
    assert re.search(rf"^version: {re.escape(capsroute.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert f"## {capsroute.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_public_names_exist_and_are_sorted():
    assert all(hasattr(capsroute, name) for name in capsroute.__all__)
    assert len(set(capsroute.__all__)) == len(capsroute.__all__)


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/data.md", "docs/training.md"])
def test_python_on_the_page_runs(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks or page != "README.md"
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_readme_has_every_routing():
    table = (ROOT / "README.md").read_text()
    assert all(f"`{name}`" in table for name in capsroute.list_routings())


def test_importing_does_not_import_what_only_commands_need():
    commands_only = ["lightning_fabric", "matplotlib", "pooch", "requests", "rich", "scipy", "tyro"]
    script = f"import capsroute, sys; print([name for name in {commands_only} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
