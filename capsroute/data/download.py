"""Fetching a dataset's files into the cache: resumed, checked, from several mirrors, by several processes at once."""

import shutil
import time
from pathlib import Path

import pooch
import requests
from filelock import FileLock

from capsroute import __version__
from capsroute.data.files import cache_folder
from capsroute.data.progress import Progress, no_progress
from capsroute.data.table import DatasetInfo, RemoteFile
from capsroute.errors import DataError

CONNECT_SECONDS, READ_SECONDS = 10, 30
ATTEMPTS_PER_MIRROR = 4  # each goes on where the last one broke off
PAUSE_SECONDS = 1.0  # before the second attempt; doubled before each further one
CHUNK = 1 << 18

pooch.get_logger().setLevel("WARNING")  # progress is ours to show


def fetch(info: DatasetInfo, split: str, progress: Progress = no_progress) -> list[Path]:
    """The files of a split, downloaded to the cache unless they are there whole."""
    return [fetch_file(file, cache_folder() / info.folders[0], progress) for file in info.files[split]]


def fetch_file(file: RemoteFile, folder: Path, progress: Progress = no_progress) -> Path:
    """One file, in `folder` under its own name and with its own content, or a `DataError` and nothing there.

    While it comes in, it is `NAME.part` beside; that stays after a failure, and the next call goes on from it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Whoever comes second waits, and then finds the file.
        with FileLock(folder / f".{file.name}.lock"):
            return _fetch_locked(file, folder, progress)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written to ({error}); set XDG_CACHE_HOME to a folder that can") from error


def _fetch_locked(file: RemoteFile, folder: Path, progress: Progress) -> Path:
    target = folder / file.name
    if target.is_file() and pooch.file_hash(str(target)) == file.sha256:
        return target
    part = target.with_name(file.name + ".part")
    missing = file.size - (part.stat().st_size if part.is_file() else 0)
    if shutil.disk_usage(folder).free < missing:
        raise DataError(f"{folder}: {missing >> 20} MB are needed for {file.name} and less is free")
    failures = []
    for url in file.urls:
        try:
            # pooch checks the SHA-256 of what the downloader wrote and moves it into place only if it is right.
            pooch.retrieve(url, f"sha256:{file.sha256}", file.name, folder, downloader=_Resuming(file, part, progress))
            return target
        except (requests.RequestException, OSError) as error:
            failures.append(f"{url} ({_reason(error)})")
        except ValueError:  # pooch's word for a wrong checksum; the part is used up, the next mirror starts afresh
            failures.append(f"{url} (its SHA-256 is not {file.sha256}: damaged or replaced)")
    raise DataError(f"{file.name} could not be downloaded: {'; '.join(failures)}; run the command again to go on")


class _Resuming:
    """A downloader for pooch that goes on from a part of the file."""

    def __init__(self, file: RemoteFile, part: Path, progress: Progress) -> None:
        self.file, self.part, self.progress = file, part, progress

    def __call__(self, url: str, output_file: str, _: object) -> None:
        for attempt in range(ATTEMPTS_PER_MIRROR):
            before = self._have()
            try:
                self._go_on(url)
                break
            except requests.RequestException as error:
                refused = isinstance(error, requests.HTTPError)
                if refused or (attempt == ATTEMPTS_PER_MIRROR - 1 and self._have() == before):
                    raise
                time.sleep(PAUSE_SECONDS * 2**attempt)
        if self._have() != self.file.size:
            raise requests.ConnectionError(f"broke off after {self._have()} of {self.file.size} bytes")
        self.part.replace(output_file)

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.is_file() else 0

    def _go_on(self, url: str) -> None:
        start = self._have()
        if start == self.file.size:
            return
        if start > self.file.size:
            self.part.unlink()
            start = 0
        headers = {"User-Agent": f"capsroute/{__version__}", "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
        with requests.get(url, headers=headers, stream=True, timeout=(CONNECT_SECONDS, READ_SECONDS)) as answer:
            answer.raise_for_status()
            sent = answer.headers.get("Content-Range", "")
            resumed = answer.status_code == 206 and sent.startswith(f"bytes {start}-")
            if not resumed:  # the server knows no ranges and sends all of it
                start = 0
            with self.part.open("ab" if resumed else "wb") as out:
                done = start
                for chunk in answer.iter_content(CHUNK):
                    done += len(chunk)
                    if done > self.file.size:
                        raise requests.ConnectionError(f"sends more than the file's {self.file.size} bytes")
                    out.write(chunk)
                    self.progress(self.file.name, done, self.file.size)


def _reason(error: Exception) -> str:
    if isinstance(error, requests.HTTPError) and error.response is not None:
        return f"the server answers {error.response.status_code}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    text = str(error)
    return text if len(text) < 120 and "object at 0x" not in text else "no connection"
