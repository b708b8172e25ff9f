"""Folders for a model hub: weights, description and model card; and nets fetched from one."""

import hashlib
import json
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from capsroute.checkpoint import write_atomically
from capsroute.data.files import is_offline
from capsroute.errors import CapsrouteError, InputError
from capsroute.saving import DESCRIPTION, WEIGHTS

CARD = "README.md"
FILES = (DESCRIPTION, WEIGHTS, CARD)
LIBRARY = "capsroute"
HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def refuse_target(out: Path, force: bool) -> None:
    """Unless there is nothing, or with `force` an exported folder that holds nothing else."""
    if not out.exists():
        return
    if not out.is_dir():
        raise InputError(f"{out} is a file, and this format is a folder; give another --out")
    if not force:
        raise InputError(f"{out} is there already; overwrite it by --force, or give another --out")
    strange = sorted(entry.name for entry in out.iterdir() if entry.name not in FILES)
    if strange:
        raise InputError(f"{out} holds {strange[0]}, which is no part of an export; give another --out")


def write_folder(out: Path, weights: bytes, description: dict[str, Any], card: str) -> None:
    """Write a folder beside `out`, whole, and give it that name."""
    described = {
        "library_name": LIBRARY,
        **description,
        "weights": {"file": WEIGHTS, "sha256": hashlib.sha256(weights).hexdigest(), "bytes": len(weights)},
    }
    text = json.dumps(described, indent=2, ensure_ascii=False) + "\n"
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        fresh = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror or error})") from error
    try:
        for name, content in ((WEIGHTS, weights), (DESCRIPTION, text.encode()), (CARD, card.encode())):
            write_atomically(fresh / name, content)
        fresh.chmod(0o755)  # temporary folders are their owner's alone
        old = fresh.with_name(fresh.name + "-old")
        if out.exists():
            out.rename(old)
        try:
            fresh.rename(out)
        except OSError:
            if old.exists():
                old.rename(out)
            raise
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror or error})") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def local_folder(place: str | Path) -> Path:
    """A folder on this machine: the one of that path, or a copy of the hub's repository of that name."""
    path = Path(place).expanduser()
    if path.exists():
        return path
    name = str(place)
    if not HUB_ID.fullmatch(name):
        raise InputError(f"{name}: no such folder, and no name of a hub's repository, which looks like owner/name")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError as error:
        raise InputError(
            f"{name} is no folder here, and fetching it from a hub needs the extra [hub]: pip install 'capsroute[hub]'"
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=list(FILES), local_files_only=is_offline(None)))
    except CapsrouteError:
        raise
    except (OSError, ValueError, HfHubHTTPError) as error:  # no network, no such repository, no right to it
        first = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise InputError(f"{name}: no such folder here, and the hub did not give it ({first})") from error
