"""The report's page as a browser shows it, on a phone and on a desk, by day and by night."""

import pathlib

import chromium
import pytest
from paper_runs import fake_plan, records_for

from capsroute.paper.run import make_report


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    """A report with everything in it: full and empty cells, states, claims of all verdicts, failures, figures."""
    folder = tmp_path_factory.mktemp("report")
    with pytest.MonkeyPatch.context() as patch:
        plan = fake_plan(patch, folder, missing=("svhn",))

    def accuracy(setting, seed):
        dead = setting.layers > 2 and (setting.routing == "dynamic" or (setting.lam or 1) < 1)
        return 10.0 if dead else 78.0 + setting.layers / 2 - 0.1 * (setting.lam or 5) + 0.05 * seed

    records = records_for(plan, accuracy)
    for one in records:
        one.result["state"] = "collapsed" if one.accuracy == 10 else "ok"
    records = [one for one in records if "mnist-2layers-dynamic" not in one.name or one.seed < 2]
    failures = [("mnist, 2 layers, DRA, seed 2", f"OSError: the disk is full; see /a/{'long' * 20}/path/train.log")]
    make_report(plan, records, folder / "report", failures, "capsroute reproduce all --profile quick --seeds 3")
    return folder / "report/report.html"


@pytest.fixture(scope="module")
def browser():
    with chromium.launched() as started:
        yield started


@pytest.mark.parametrize(("width", "scheme"), [(400, "light"), (400, "dark"), (1400, "light"), (1400, "dark")])
def test_the_page_in_a_browser(browser, page_file, width, scheme, tmp_path):
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(page_file.as_uri(), wait_until="load")
    page.screenshot(path=str(tmp_path / "page.png"), full_page=True)

    assert complaints == []
    outside = [url for url in requests if not url.startswith(("data:", page_file.as_uri()))]
    assert outside == []
    images = page.eval_on_selector_all("img", "all => all.map(i => [i.naturalWidth, i.clientWidth, i.alt.length])")
    assert len(images) == len(list(pathlib.Path(page_file.parent / "figures").glob("*.svg"))) == 3
    assert all(natural > 0 and shown >= 0.8 * natural and told > 50 for natural, shown, told in images)  # legible
    # Wide tables and figures scroll by themselves; the page does not.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("document.body.scrollWidth") <= width
    tables = page.eval_on_selector_all("table", "all => all.map(t => t.getBoundingClientRect().height)")
    assert len(tables) == 7  # four of the paper, runs beside them, claims, failures
    assert min(tables) > 40
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert (brightness(ink) < brightness(paper)) == (scheme == "light")
    assert abs(brightness(ink) - brightness(paper)) > 150
    context.close()


def brightness(colour):
    return sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3]) / 3


def test_the_page_in_print_is_dark_on_white(browser, page_file):
    page = browser.new_page(color_scheme="dark")
    page.goto(page_file.as_uri())
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()
