"""Downloads from a local server that misbehaves on purpose."""

import hashlib
import http.server
import multiprocessing
import threading
from pathlib import Path

import pytest

from capsroute import DataError, load_dataset
from capsroute.data import download
from capsroute.data.download import fetch_file
from capsroute.data.table import RemoteFile

CONTENT = bytes(range(256)) * 4000  # a megabyte


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, behaviour="sound"):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behaviour, self.requests = behaviour, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self, name="file.bin"):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        behaviour = self.server.behaviour
        wanted = self.headers.get("Range")
        self.server.requests.append(wanted)
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and behaviour != "no-ranges" else 0
        data = CONTENT[start:]
        if behaviour == "missing":
            self.send_error(404)
            return
        if behaviour == "corrupt":
            data = bytes([data[0] ^ 1]) + data[1:]
        if behaviour == "too-long":
            data += b"more"
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
        if behaviour != "too-long":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        first = len(self.server.requests) == 1
        if behaviour == "disconnect" or (behaviour in ("disconnect-once", "no-ranges") and first):
            data = data[: len(data) // 2]
        if behaviour == "stall":
            self.wfile.write(data[:1000])
            self.wfile.flush()
            self.server.released.wait(10)
            return
        self.wfile.write(data)


@pytest.fixture
def serve():
    servers = []

    def start(behaviour="sound"):
        server = Server(behaviour)
        server.released = threading.Event()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.released.set()
        server.shutdown()
        server.server_close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(download, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(download, "READ_SECONDS", 0.5)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def remote(*servers, name="file.bin"):
    return RemoteFile(name, len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), tuple(s.url(name) for s in servers))


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_a_file_is_fetched_once_and_tells_how_far_it_is(tmp_path, serve):
    server, told = serve(), []
    path = fetch_file(remote(server), tmp_path, lambda *progress: told.append(progress))
    assert path.read_bytes() == CONTENT
    assert told[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert fetch_file(remote(server), tmp_path) == path
    assert len(server.requests) == 1
    assert leftovers(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("behaviour", ["disconnect-once", "no-ranges"])
def test_a_broken_download_goes_on(tmp_path, serve, behaviour):
    server = serve(behaviour)
    assert fetch_file(remote(server), tmp_path).read_bytes() == CONTENT
    first, second = server.requests
    assert first is None
    assert 0 < int(second.removeprefix("bytes=").rstrip("-")) < len(CONTENT)


def test_a_later_call_goes_on_from_what_is_there(tmp_path, serve):
    (tmp_path / "file.bin.part").write_bytes(CONTENT[:700])
    server = serve()
    assert fetch_file(remote(server), tmp_path).read_bytes() == CONTENT
    assert server.requests == ["bytes=700-"]


@pytest.mark.parametrize("part", [CONTENT, CONTENT + b"more", b"x" * 700], ids=["whole", "too-long", "wrong"])
def test_a_part_that_is_whole_too_long_or_wrong(tmp_path, serve, part):
    (tmp_path / "file.bin.part").write_bytes(part)
    assert fetch_file(remote(serve(), serve()), tmp_path).read_bytes() == CONTENT
    assert leftovers(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("behaviour", ["missing", "corrupt", "too-long", "disconnect", "stall"])
def test_a_bad_mirror_is_passed_over(tmp_path, serve, behaviour):
    assert fetch_file(remote(serve(behaviour), serve()), tmp_path).read_bytes() == CONTENT
    assert leftovers(tmp_path) == ["file.bin"]


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        ("missing", "the server answers 404"),
        ("corrupt", "its SHA-256 is not .*: damaged or replaced"),
        ("too-long", "sends more than the file's 1024000 bytes"),
        ("stall", "no answer in time|no connection|timed out"),
    ],
)
def test_when_all_mirrors_fail_nothing_is_left_that_looks_whole(tmp_path, serve, behaviour, sentence):
    server = serve(behaviour)
    with pytest.raises(DataError, match=sentence) as refusal:
        fetch_file(remote(server), tmp_path)
    assert server.url() in str(refusal.value)
    assert "file.bin" not in leftovers(tmp_path)


def test_no_connection_at_all(tmp_path, serve):
    server = serve()
    file = remote(server)
    server.shutdown()
    server.server_close()
    with pytest.raises(DataError, match="could not be downloaded"):
        fetch_file(file, tmp_path)
    server.__init__()  # so that the fixture has something to close
    server.released = threading.Event()


def test_a_damaged_copy_is_fetched_anew(tmp_path, serve):
    (tmp_path / "file.bin").write_bytes(CONTENT[:-1] + b"x")
    assert fetch_file(remote(serve()), tmp_path).read_bytes() == CONTENT


def test_a_folder_that_cannot_be_written_to(tmp_path, serve):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(DataError, match="cannot be written to"):
        fetch_file(remote(serve()), tmp_path / "file")


def test_a_full_disk_is_told_beforehand(tmp_path, serve, monkeypatch):
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: type("usage", (), {"free": 100}))
    server = serve()
    with pytest.raises(DataError, match=r"are needed for file\.bin and less is free"):
        fetch_file(remote(server), tmp_path)
    assert not server.requests


def _fetch_in_process(url, folder, results):
    file = RemoteFile("file.bin", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), (url,))
    results.put(fetch_file(file, Path(folder)).read_bytes() == CONTENT)


def test_two_processes_at_once_end_with_one_good_copy(tmp_path, serve):
    server = serve()
    spawn = multiprocessing.get_context("spawn")
    results = spawn.Queue()
    both = [spawn.Process(target=_fetch_in_process, args=(server.url(), str(tmp_path), results)) for _ in range(2)]
    for process in both:
        process.start()
    assert [results.get(timeout=60) for _ in both] == [True, True]
    for process in both:
        process.join(timeout=60)
    assert len(server.requests) == 1
    assert leftovers(tmp_path) == ["file.bin"]


@pytest.mark.parametrize("way", ["argument", "variable"])
def test_offline_never_opens_a_connection(tmp_path, monkeypatch, way):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CAPSROUTE_DATA", raising=False)
    monkeypatch.setattr("capsroute.data.files.USUAL_PLACES", ())
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("a connection was opened"))
    if way == "variable":
        monkeypatch.setenv("CAPSROUTE_OFFLINE", "1")
    with pytest.raises(DataError, match="not on this machine"):
        load_dataset("mnist", tmp_path, offline=True if way == "argument" else None)
