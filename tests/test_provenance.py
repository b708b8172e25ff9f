"""What a result says of the source that made it."""

import subprocess
from pathlib import Path

import pytest

from capsroute import provenance


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source tree of its own, which the module takes itself to be in."""
    monkeypatch.setattr(provenance, "__file__", str(tmp_path / "capsroute" / "provenance.py"))
    monkeypatch.delenv(provenance.COMMIT_VARIABLE, raising=False)
    return tmp_path


def _git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    return subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


def test_a_tree_with_history_says_its_commit_and_whether_it_differs(package: Path) -> None:
    _git(package, "init", "-q")
    (package / "file").write_text("one")
    _git(package, "add", "file")
    _git(package, "commit", "-qm", "One")
    name = _git(package, "rev-parse", "HEAD").strip()
    assert provenance.commit() == {"id": name, "dirty": False}
    (package / "file").write_text("two")
    assert provenance.commit() == {"id": name, "dirty": True}


@pytest.mark.parametrize("broken_history", [False, True])
def test_a_copied_tree_is_told_its_commit(package: Path, monkeypatch: pytest.MonkeyPatch, broken_history: bool) -> None:
    if broken_history:
        (package / ".git").mkdir()
    assert provenance.commit() == {"id": None, "dirty": None}
    monkeypatch.setenv(provenance.COMMIT_VARIABLE, "abc123")
    assert provenance.commit() == {"id": "abc123", "dirty": False}
    monkeypatch.setenv(provenance.COMMIT_VARIABLE, "abc123-dirty")
    assert provenance.commit() == {"id": "abc123", "dirty": True}
