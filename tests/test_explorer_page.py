"""The explorer's page as a browser shows it, on a small run."""

import base64
import contextlib
import http.client
import importlib.util
import io
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import chromium
import pytest
from PIL import Image
from small_runs import environment, options, write_dataset

from capsroute import TrainConfig, fit

if importlib.util.find_spec("gradio") is None:
    pytest.skip("gradio is not installed: pip install 'capsroute[explore]'", allow_module_level=True)

SERVER = pathlib.Path(__file__).with_name("explorer_server.py")
SECONDS = 30_000  # milliseconds; the machine may be busy


class Server:
    """The command in a process of its own, at `url`."""

    def __init__(self, folder, *words, **variables):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url, self.notes, self.log = f"http://127.0.0.1:{self.port}/", folder / "notes", folder / "log"
        command = [sys.executable, SERVER, self.notes, "explore", *words, "--port", self.port, "--no-browser"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [*map(str, command)], env=environment(**variables), cwd=folder, stdout=log, stderr=subprocess.STDOUT
            )
        until = time.monotonic() + 60
        while self.url not in self.log.read_text():
            assert self.process.poll() is None, self.log.read_text()
            assert time.monotonic() < until, "the server does not start"
            time.sleep(0.1)

    def ask(self, method, path, body=None, **headers):
        """The status and the content that this very path gives, as it stands here."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(20) == 0, self.log.read_text()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored")
    run = folder / "run"
    fit(TrainConfig(**options(write_dataset(folder), run, epochs=2, reconstruct=True, keep="net")))
    started = Server(folder, run)
    yield started
    started.stop()
    assert "Traceback" not in started.log.read_text()
    assert not started.notes.exists(), started.notes.read_text()  # nobody was asked for, nobody connected to


@pytest.fixture(scope="module")
def browser():
    with chromium.launched() as started:
        yield started


@pytest.fixture
def visit(browser):
    """Opens pages; at the end none may have complained, or asked for anything that is not of its server."""
    contexts, complaints = [], []

    def open_page(url, width=1300, wait="#routed-1 figure", **choices):
        contexts.append(browser.new_context(viewport={"width": width, "height": 900}, **choices))
        page = contexts[-1].new_page()
        page.set_default_timeout(SECONDS)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: request.url.startswith((url, "data:")) or complaints.append(request.url))
        page.goto(url)
        page.wait_for_selector(wait)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def until(page, selector, told, attribute="innerText"):
    """Wait until what the selector finds has this text in it."""
    page.wait_for_function(
        "([selector, told, kind]) => document.querySelector(selector)?.[kind].includes(told)",
        arg=[selector, told, attribute],
    )


def choose(page, label, name):
    page.get_by_label(label, exact=True).click()
    page.get_by_role("option", name=name, exact=True).click()


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (400, "dark"), (1300, "light")])
def test_every_part_fits_and_is_legible(server, visit, width, scheme, tmp_path):
    page = visit(server.url, width, color_scheme=scheme)
    for tab, part in (("Routing", "#routed-0 figure"), ("Evidence", "#evidence svg"), ("Dimensions", "#grid image")):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_selector(part)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.get_by_role("tab", name="Depth and run").click()
    page.wait_for_selector("#metrics table")
    page.get_by_role("button", name="A picture of your own").click()
    page.wait_for_selector("canvas")
    page.screenshot(path=str(tmp_path / "page.png"), full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#depth tbody tr").count() == 3
    assert page.locator("#metrics tbody tr").count() == 2
    assert page.get_by_role("link", name="Save metrics.csv").get_attribute("href").startswith("data:text/csv")
    assert page.eval_on_selector_all("img", "all => all.every(i => i.alt.length > 3 && i.naturalWidth > 0)")
    assert page.eval_on_selector_all("svg[role=img]", "all => all.every(i => i.getAttribute('aria-label').length > 10)")
    ink, paper = (
        sum(map(int, re.findall(r"\d+", page.evaluate(f"getComputedStyle({place}).{kind}"))[:3])) / 3
        for place, kind in (("document.querySelector('#verdict td')", "color"), ("document.body", "backgroundColor"))
    )
    assert (ink < paper) == (scheme == "light")
    assert abs(ink - paper) > 120
    assert str(server.log.parent) not in page.content()  # no path of the machine is told


def test_picking_test_images_and_classes(server, visit):
    page = visit(server.url)
    until(page, "#picture", "test image 0: 0")
    page.get_by_label("Test image, 0 to 39").fill("7")
    until(page, "#picture", "test image 7: 3")
    assert page.locator("#verdict tr.true, #verdict tr.right").count() == 1
    assert page.locator("#verdict tr.longest, #verdict tr.right").count() == 1
    choose(page, "Of", "2")
    until(page, "#picture", ": 2")
    page.get_by_role("tab", name="Evidence").click()
    choose(page, "Class capsule to look into", "1")
    until(page, "#evidence", "Contributions û·v̂ to 1")
    total, factor, norm = map(
        float, re.findall(r"\d+\.?\d*", page.inner_text("#evidence .cr-sum").split("they sum")[1])[:3]
    )
    assert total * factor == pytest.approx(norm, abs=2e-4)


def test_two_routings_side_by_side_by_keyboard(server, visit):
    page = visit(server.url)
    assert "adaptive-lambda: v = squash" in page.inner_text("#routed-0")
    assert page.locator("#routed-1 figure svg[aria-label^=iteration]").count() == 3
    assert "Coupling coefficients" in page.inner_text("#routed-1")
    slider = page.locator("#iterations-1 input[type=range]")
    slider.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelectorAll('#routed-1 svg[aria-label^=iteration]').length == 4")
    choose(page, "Beside it", "adaptive")
    until(page, "#routed-1", "adaptive: s = ")
    assert "Coupling coefficients" not in page.inner_text("#routed-1")
    assert page.locator("#step-1").is_visible()
    choose(page, "Routing", "adaptive-lambda")
    before = page.inner_text("#routed-0 td:last-child")
    page.locator("#lam-0 input[type=range]").focus()
    page.keyboard.press("End")
    page.wait_for_function(
        "before => document.querySelector('#routed-0 td:last-child').innerText != before", arg=before
    )


def test_dimensions_move_the_reconstruction(server, visit):
    page = visit(server.url)
    page.get_by_role("tab", name="Dimensions").click()
    page.wait_for_selector("#reconstruction img")
    still = page.get_attribute("#reconstruction img", "src")
    page.locator("#dimension-16 input[type=range]").focus()
    page.keyboard.press("Home")
    until(page, "#reconstruction", "1 dimension moved")
    assert page.get_attribute("#reconstruction img", "src") != still
    page.get_by_role("button", name="All back to 0").click()
    page.wait_for_function("still => document.querySelector('#reconstruction img').src == still", arg=still)


def png(image):
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def test_pictures_of_ones_own(server, visit):
    page = visit(server.url)
    page.get_by_role("button", name="A picture of your own").click()

    def open_file(name, content):
        page.set_input_files("#picking input[type=file]", {"name": name, "mimeType": "", "buffer": content})

    open_file("mine.png", png(Image.new("RGB", (300, 200), "white")))
    until(page, "#picture", "your picture, as the net sees it: 20 x 20")
    assert page.locator("#verdict tr.true, #verdict tr.right").count() == 0  # nobody knows its class
    open_file("no.png", b"<html>not an image</html>")
    until(page, "#message", "not a readable PNG or JPEG")
    open_file("no.txt", b"text")
    until(page, "#message", "Only PNG and JPEG images can be opened.")
    open_file("vast.png", png(Image.new("1", (9000, 9000))))
    until(page, "#message", "9000x9000 pixels, over the limit of 64 megapixels")
    assert "your picture" in page.inner_text("#picture")  # the one before stays
    open_file("heavy.png", b"0" * (9 << 20))
    until(page, ".cr-said", "larger than 8 MB")
    open_file("mine.png", png(Image.new("L", (20, 20))))
    page.wait_for_function("document.querySelector('#message').innerText.trim() == ''")


def test_drawing_with_keys_and_with_a_pointer(server, visit):
    page = visit(server.url)
    page.get_by_role("button", name="A picture of your own").click()
    canvas, use = page.locator("canvas"), page.get_by_role("button", name="Use the drawing")

    def bright():
        """How much of the picture that the net sees is white, in the middle row and in the middle column."""
        return page.evaluate(
            """async () => {
                const image = document.querySelector('#picture img');
                await image.decode();
                const canvas = document.createElement('canvas');
                canvas.width = canvas.height = 20;
                const shown = canvas.getContext('2d', {willReadFrequently: true});
                shown.drawImage(image, 0, 0);
                return [[0, 10, 20, 1], [10, 0, 1, 20]].map(box =>
                    [...shown.getImageData(...box).data].filter((value, at) => at % 4 == 0 && value > 128).length);
            }"""
        )

    canvas.focus()
    page.keyboard.press(" ")
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.keyboard.press(" ")
    page.keyboard.press("ArrowDown")
    use.click()
    until(page, "#picture", "your drawing")
    row, column = bright()
    assert row >= 6
    assert column <= 4
    page.get_by_role("button", name="Clear").click()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 20, steps=5)
    page.mouse.up()
    before = page.get_attribute("#picture img", "src")
    use.click()
    page.wait_for_function("before => document.querySelector('#picture img').src != before", arg=before)
    row, column = bright()
    assert row <= 4
    assert column >= 14


def test_visitors_do_not_mix(server, visit):
    first, second = visit(server.url), visit(server.url)
    for turn in range(3):
        first.get_by_label("Test image, 0 to 39").fill(str(4 + turn))
        second.get_by_label("Test image, 0 to 39").fill(str(20 + turn))
        until(first, "#picture", f"test image {4 + turn}:")
        until(second, "#picture", f"test image {20 + turn}:")
    choose(first, "Beside it", "adaptive")
    until(first, "#routed-1", "adaptive: s = ")
    assert "dynamic" in second.inner_text("#routed-1")
    assert "test image 6:" in first.inner_text("#picture")
    assert "test image 22:" in second.inner_text("#picture")


@pytest.mark.parametrize(
    "path",
    [
        "/gradio_api/file=/etc/passwd",
        "/gradio_api/file=../../../../etc/passwd",
        "/gradio_api/file=%2Fetc%2Fpasswd",
        "/gradio_api/file=..%2f..%2f..%2fetc%2fpasswd",
        "/gradio_api/file//etc/passwd",
        "/file=/etc/passwd",
        "/static/../../../../../../../etc/passwd",
        "/static/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/assets/..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "/static//etc/passwd",
        "/assets//etc/passwd",
        "/svelte//etc/passwd",
        "/gradio_api/proxy=http://127.0.0.1/etc/passwd",
    ],
)
def test_no_file_of_the_machine_is_served(server, path):
    status, content = server.ask("GET", path)
    assert status in (403, 404)
    assert b"root:" not in content


def test_events_with_files_uploads_and_other_sites_are_refused(server):
    post = {"Content-Type": "application/json"}
    file = '{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}'
    event = f'{{"data": [null, {file}], "fn_index": 1, "session_hash": "abc"}}'
    assert server.ask("POST", "/gradio_api/queue/join", event, **post)[0] == 400
    assert server.ask("POST", "/gradio_api/queue/join", "x" * (13 << 20), **post)[0] == 413
    assert server.ask("POST", "/gradio_api/upload", "x", **post)[0] == 404
    assert server.ask("POST", "/gradio_api/run/show", event, **post)[0] == 404
    assert server.ask("GET", "/", Host="elsewhere.example")[0] == 421
    assert base64.b64encode(str(server.log.parent).encode()) not in server.ask("GET", "/config")[1]
    assert str(server.log.parent).encode() not in server.ask("GET", "/config")[1]


def test_without_a_run_the_page_trains_one_and_keeps_it(visit, tmp_path):
    server = Server(tmp_path, TINY="1")
    page = visit(server.url, 400, wait="#train")
    assert not page.locator("#verdict").is_visible()
    page.get_by_role("button", name="Train").click()
    page.wait_for_selector("#progress progress")
    page.wait_for_selector("#verdict table")
    assert not page.locator("#train").is_visible()
    until(page, "h1 + p", "on the test split")
    page.get_by_role("tab", name="Dimensions").click()
    page.wait_for_selector("#grid image")
    assert (tmp_path / "runs/explorer/result.json").is_file()
    later = visit(server.url, 400, wait="#verdict table")
    assert not later.locator("#train").is_visible()
    server.stop()
    assert "Traceback" not in server.log.read_text()
    assert not server.notes.exists()
