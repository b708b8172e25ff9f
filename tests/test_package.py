"""What the repository says of itself."""

import pathlib
import re
import subprocess
import sys

import pytest

import capsroute

ROOT = pathlib.Path(__file__).parents[1]
# Those of docs/export.md need exported files and run in the tests of exports.
PAGES_WITH_PYTHON = ["README.md", *(f"docs/{name}.md" for name in ("concepts", "data", "first", "head", "training"))]


def test_citation_and_changelog_have_the_version():
    assert re.search(rf"^version: {re.escape(capsroute.__version__)}$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert f"## {capsroute.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_public_names_exist_and_are_sorted():
    assert all(hasattr(capsroute, name) for name in capsroute.__all__)
    assert len(set(capsroute.__all__)) == len(capsroute.__all__)


@pytest.mark.parametrize("page", PAGES_WITH_PYTHON)
def test_python_on_the_page_runs(page, tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    assert blocks
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(blocks)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_no_other_page_has_python():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    having = {str(page.relative_to(ROOT)) for page in pages if "```python" in page.read_text()}
    assert having == {*PAGES_WITH_PYTHON, "docs/export.md"}


def test_readme_has_every_routing():
    table = (ROOT / "README.md").read_text()
    assert all(f"`{name}`" in table for name in capsroute.list_routings())


def imported_by(statement, names):
    script = f"{statement}; import sys; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_does_not_import_what_only_commands_need():
    commands_only = ["lightning_fabric", "matplotlib", "pooch", "requests", "rich", "scipy", "tyro"]
    assert imported_by("from capsroute import CapsNet, CapsuleHead, load_dataset, margin_loss", commands_only) == "[]"


def test_torch_is_imported_with_the_first_name_that_needs_it():
    assert imported_by("import capsroute, capsroute.cli, capsroute.predicting", ["torch"]) == "[]"
    assert imported_by("from capsroute import DATASETS, InputError", ["torch"]) == "[]"
    assert imported_by("import capsroute; capsroute.squash", ["torch"]) == "['torch']"


def test_public_names_are_those_that_tools_see():
    """What is imported for type checkers and listed, and what is found at run time."""
    source = (ROOT / "capsroute/__init__.py").read_text()
    typed = re.search(r"if TYPE_CHECKING:\n(.*?)\n\n", source, re.S)[1]
    names = [name for line in typed.splitlines() for name in line.split(" import ")[1].split(", ")]
    assert sorted(names) == sorted(capsroute.__all__)
    assert set(capsroute.__all__) < set(dir(capsroute))
    everything = {}
    exec("from capsroute import *", everything)
    assert set(capsroute.__all__) <= set(everything)
    assert capsroute.models.CapsNet is capsroute.CapsNet
    with pytest.raises(AttributeError, match="no attribute 'capsnet'"):
        capsroute.capsnet  # noqa: B018  # asking is the point
