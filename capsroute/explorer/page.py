"""The page: what stands where, and what happens when. A visitor's picture is all the state there is, and the visitor's.

Everything else is a function of the exhibit, which no visitor changes, and of what stands on the page.
"""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr

from capsroute.errors import CapsrouteError
from capsroute.explorer import drawing, views
from capsroute.explorer.opening import Exhibit, pick
from capsroute.explorer.pictures import read_picture
from capsroute.explorer.rerouting import AS_TRAINED, KNOBS, fitting_routings, knob_start, knobs_of
from capsroute.explorer.training import PageTraining
from capsroute.explorer.views import PREDICTED, Picked

HERE = Path(__file__).parent
CSS = (HERE / "page.css").read_text()
LOOK_SECONDS = 0.5
ANY = -1  # in place of a class, where a test image is picked
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}


@dataclass
class Stage:
    """What the page shows now, to everybody: a trained net, or a net that is to be trained first."""

    exhibit: Exhibit
    training: PageTraining | None = None
    finish: Callable[[], Exhibit] | None = None
    trained: bool = field(default=True)


def make_page(stage: Stage) -> gr.Blocks:
    """The page. Its form (classes, dimensions, sliders) is that of the stage's net, trained or not."""
    net, data = stage.exhibit.net, stage.exhibit.dataset
    classes = [(name, label) for label, name in enumerate(data.classes)]
    with gr.Blocks(title="capsroute explore", analytics_enabled=False) as page:
        picked = gr.State(None)
        title = gr.Markdown("# capsroute")
        with gr.Column(visible=not stage.trained) as training_part:
            _training_part(stage, training_part)
        with gr.Column(visible=stage.trained, elem_id="exhibit") as shown:
            with gr.Row():
                with gr.Column(min_width=300):
                    gr.Markdown("## The picture")
                    picture = gr.HTML(elem_id="picture")
                    with gr.Row():
                        index = gr.Number(0, label=f"Test image, 0 to {len(data) - 1}", precision=0, min_width=130)
                        of_class = gr.Dropdown([("any class", ANY), *classes], value=ANY, label="Of", min_width=130)
                    another = gr.Button("Another one by lot", elem_id="another")
                    with gr.Accordion("A picture of your own: open or draw", open=False):
                        own = gr.HTML(
                            html_template=(HERE / "picking.html").read_text(),
                            js_on_load=(HERE / "picking.js").read_text(),
                            elem_id="picking",
                        )
                    message = gr.HTML(elem_id="message")
                with gr.Column(min_width=300):
                    gr.Markdown("## What the net says")
                    verdict = gr.HTML(elem_id="verdict")
                    wanted = gr.Dropdown(
                        [("the prediction", PREDICTED), *classes], value=PREDICTED, label="Class capsule to look into"
                    )
            with gr.Tabs(overflow_behavior="wrap"):
                with gr.Tab("Routing"), gr.Row():
                    sides = [
                        _routing_side(stage, picked, wanted, number, name)
                        for number, name in enumerate((AS_TRAINED, _another_routing(stage.exhibit)))
                    ]
                with gr.Tab("Evidence"):
                    gr.Markdown(
                        "How much each lower capsule adds to the length of the class capsule: exact, since the votes' "
                        "sum is linear. The routing is the one that the net was trained with."
                    )
                    evidence = gr.HTML(elem_id="evidence")
                with gr.Tab("Dimensions"):
                    sliders, reconstruction, grid = _dimension_part(stage)
                with gr.Tab("Depth and run"):
                    depth, metrics = gr.HTML(elem_id="depth"), gr.HTML(elem_id="metrics")

        def open_page() -> tuple[Any, ...]:
            exhibit = stage.exhibit
            return (
                f"# capsroute\n{exhibit.title}",
                gr.update(visible=not stage.trained),
                gr.update(visible=stage.trained),
                views.from_dataset(exhibit, 0),
                views.depth(exhibit) if stage.trained else "",
                views.metrics(exhibit) if stage.trained else "",
            )

        def take(number: float | None) -> Picked:
            return views.from_dataset(stage.exhibit, int(number or 0))

        def by_lot(label: int) -> tuple[int, Picked | None, str]:
            try:
                found = pick(data, None if label == ANY else label, random.randrange(1 << 30))
            except CapsrouteError as error:
                return 0, None, drawing.alert(str(error))
            return found, views.from_dataset(stage.exhibit, found), ""

        def take_own(now: Picked, event: gr.EventData) -> tuple[Picked, str]:
            try:
                pixels = read_picture(getattr(event, "picture", None), stage.exhibit.net.in_shape)
            except CapsrouteError as error:
                return now, drawing.alert(f"{str(error)[0].upper()}{str(error)[1:]}.")
            told = "your drawing" if getattr(event, "told", "") == "your drawing" else "your picture"
            height, width = pixels.shape[1:]
            return Picked.of(pixels, None, f"{told}, as the net sees it: {width} x {height}"), ""

        def clear_message() -> str:
            return ""

        gr.on([page.load], open_page, None, [title, training_part, shown, picked, depth, metrics], **QUIET)
        index.submit(take, index, picked, **QUIET).then(clear_message, None, message, **QUIET)
        index.blur(take, index, picked, **QUIET).then(clear_message, None, message, **QUIET)
        gr.on([another.click, of_class.input], by_lot, of_class, [index, picked, message], **QUIET)
        own.upload(take_own, picked, [picked, message], **QUIET)

        shows: list[tuple[Callable[..., Any], list[Any], list[Any]]] = [
            (views.overview, [], [picture, verdict]),
            (views.evidence, [wanted], [evidence]),
            (views.grid, [wanted], [grid]),
            (_with_offsets, [wanted, *sliders], [reconstruction]),
        ]
        for view, choices, outputs in shows:
            show = _of_stage(stage, view, len(outputs))
            changed = [picked.change, *([wanted.input] if wanted in choices else [])]
            gr.on(changed, show, [picked, *choices], outputs, trigger_mode="always_last", **QUIET)
        for slider in sliders:
            show = _of_stage(stage, _with_offsets, 1)
            slider.input(show, [picked, wanted, *sliders], reconstruction, trigger_mode="always_last", **QUIET)
        for changed_side, inputs, output, show in sides:
            gr.on(
                [picked.change, wanted.input, *changed_side], show, inputs, output, trigger_mode="always_last", **QUIET
            )
    return page


def _of_stage(stage: Stage, view: Callable[..., Any], outputs: int) -> Callable[..., Any]:
    """The view of the exhibit that is there when it is asked for, and of the visitor's picture if there is one."""

    def show(picked: Picked | None, *choices: Any) -> Any:
        if picked is None:
            return "" if outputs == 1 else ("",) * outputs
        return view(stage.exhibit, picked, *choices)

    return show


def _with_offsets(exhibit: Exhibit, picked: Picked, wanted: int, *offsets: float) -> str:
    return views.dimensions(exhibit, picked, wanted, offsets)


def _another_routing(exhibit: Exhibit) -> str:
    """One that the net was not trained with, to put beside it."""
    own = exhibit.net.config["routing"][-1]
    return next((name for name in fitting_routings(exhibit.net) if name != own), own)


def _routing_side(
    stage: Stage, picked: gr.State, wanted: gr.Dropdown, number: int, name: str
) -> tuple[list[Any], list[Any], gr.HTML, Callable[..., str]]:
    """One of two routings: its choice, its sliders, and what it does."""
    net = stage.exhibit.net
    own = ", ".join(dict.fromkeys(net.config["routing"]))
    with gr.Column(min_width=300):
        choices = [(f"{AS_TRAINED} ({own})", AS_TRAINED), *((known, known) for known in fitting_routings(net))]
        routing = gr.Dropdown(choices, value=name, label="Routing" if number == 0 else "Beside it")
        knobs = [
            gr.Slider(
                knob.low,
                knob.high,
                knob_start(net, option),
                step=knob.step,
                label=knob.label,
                visible=option in knobs_of(name),
                elem_id=f"{option}-{number}",
            )
            for option, knob in KNOBS.items()
        ]
        output = gr.HTML(elem_id=f"routed-{number}")

    def turn(chosen: str) -> list[Any]:
        return [gr.update(visible=option in knobs_of(chosen)) for option in KNOBS]

    def show(picked: Picked | None, wanted: int, routing: str, *values: float) -> str:
        if picked is None:
            return ""
        given = dict(zip(KNOBS, values, strict=True))
        return views.routed(stage.exhibit, picked, wanted, routing, given)

    routing.input(turn, routing, knobs, **QUIET)
    return [routing.input, *(knob.input for knob in knobs)], [picked, wanted, routing, *knobs], output, show


def _dimension_part(stage: Stage) -> tuple[list[gr.Slider], gr.HTML, gr.HTML]:
    exhibit = stage.exhibit
    if exhibit.decoder is None:
        gr.HTML(drawing.alert(views.NO_DECODER), elem_id="no-decoder")
        return [], gr.HTML(visible=False), gr.HTML(visible=False)
    gr.Markdown("Move the dimensions of the class capsule and see what the decoder makes of it.")
    with gr.Row():
        with gr.Column(min_width=300):
            reconstruction = gr.HTML(elem_id="reconstruction")
            back = gr.Button("All back to 0")
            sliders = [
                gr.Slider(-0.5, 0.5, 0, step=0.01, label=f"dimension {number + 1}", elem_id=f"dimension-{number + 1}")
                for number in range(exhibit.decoder.dim)
            ]
        with gr.Column(min_width=300):
            grid = gr.HTML(elem_id="grid")
    if True:
        back.click(lambda: [0.0] * len(sliders), None, sliders, **QUIET)
    return sliders, reconstruction, grid


def _training_part(stage: Stage, part: gr.Column) -> None:
    gr.Markdown(
        "## No run yet\nName one on the command line, `capsroute explore RUN`, or train a small net with a decoder "
        "here, on 6,000 images of Fashion-MNIST that come with the library. It takes a minute or two on two cores, and "
        "is kept for the next time."
    )
    button = gr.Button("Train", variant="primary", elem_id="train")
    told = gr.HTML(elem_id="progress")

    def train() -> Iterator[tuple[Any, ...]]:
        training = stage.training
        if training is None:
            return
        training.start()
        while training.running:
            yield gr.update(interactive=False), drawing.progress(training.share, training.line)
            time.sleep(LOOK_SECONDS)
        if training.error:
            yield gr.update(interactive=True), drawing.alert(training.error)
            return
        if not stage.trained and stage.finish is not None:
            stage.exhibit, stage.trained = stage.finish(), True
        yield gr.update(interactive=False), drawing.progress(1.0, "done")

    done = button.click(train, None, [button, told], concurrency_limit=None, **QUIET)
    # Everything on the page hangs on its being opened: opened anew, it shows the net that is there now.
    done.then(None, None, None, js="() => { if (document.querySelector('#progress progress[value=\"1.000\"]')) "
              "setTimeout(() => location.reload(), 300) }", **{**QUIET, "show_progress": "hidden"})
    _ = part


def launch_options() -> dict[str, Any]:
    """What the page needs of the server: looks, nothing from elsewhere, nothing beside it."""
    font: Sequence[str] = ("system-ui", "sans-serif")
    mono: Sequence[str] = ("ui-monospace", "monospace")
    fonts = gr.themes.Font
    theme = gr.themes.Default(font=[fonts(name) for name in font], font_mono=[fonts(name) for name in mono])
    return {"theme": theme, "css": CSS, "footer_links": [], "run_history": False}
