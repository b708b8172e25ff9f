"""The page: what stands where, and what happens when. A visitor's picture is all the state there is, and the visitor's.

Everything else is a function of the exhibit, which no visitor changes, and of what stands on the page.
"""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from capsroute.errors import CapsrouteError
from capsroute.explorer import drawing, views
from capsroute.explorer.opening import Exhibit, pick
from capsroute.explorer.pictures import read_picture
from capsroute.explorer.rerouting import AS_TRAINED, KNOBS, fitting_routings, knob_start, knobs_of
from capsroute.explorer.stage import Stage
from capsroute.explorer.views import PREDICTED, Picked

HERE = Path(__file__).parent
CSS = (HERE / "page.css").read_text()
LOOK_SECONDS = 0.5
ANY = -1  # in place of a class, where a test image is picked
NO_RUN = (
    "## No run yet\nName one on the command line, `capsroute explore RUN`, or train a small net with a decoder here, "
    "on the 6,000 images of Fashion-MNIST that come with the library. It takes half a minute on two idle cores, and is "
    "kept for the next time."
)
QUIET: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}


def make_page(stage: Stage) -> gr.Blocks:
    """The page. Its form (classes, dimensions, sliders) is that of the stage's net, trained or not."""
    data = stage.exhibit.dataset
    classes = [(name, label) for label, name in enumerate(data.classes)]
    with gr.Blocks(title="capsroute explore", analytics_enabled=False) as page:
        picked = gr.State(None)
        title = gr.Markdown("# capsroute")
        with gr.Column(visible=not stage.trained) as training_part:
            gr.Markdown(NO_RUN)
            train_button = gr.Button("Train", variant="primary", elem_id="train")
            told = _html("progress")
        with gr.Column(visible=stage.trained, elem_id="exhibit") as shown:
            with gr.Row():
                with gr.Column(min_width=300):
                    gr.Markdown("## The picture")
                    picture = _html("picture")
                    with gr.Row():
                        index = gr.Number(0, label=f"Test image, 0 to {len(data) - 1}", precision=0, min_width=130)
                        of_class = gr.Dropdown([("any class", ANY), *classes], value=ANY, label="Of", min_width=130)
                    another = gr.Button("Another at random", elem_id="another")
                    with gr.Accordion("A picture of your own: open or draw", open=False):
                        own = gr.HTML(
                            html_template=(HERE / "picking.html").read_text(),
                            js_on_load=(HERE / "picking.js").read_text(),
                            elem_id="picking",
                        )
                    message = _html("message")
                with gr.Column(min_width=300):
                    gr.Markdown("## What the net says")
                    verdict = _html("verdict")
                    wanted = gr.Dropdown(
                        [("the prediction", PREDICTED), *classes], value=PREDICTED, label="Class capsule to look into"
                    )
            with gr.Tabs(overflow_behavior="wrap"):
                with gr.Tab("Routing"), gr.Row():
                    sides = [
                        _routing_side(stage, number, name)
                        for number, name in enumerate((AS_TRAINED, _another_routing(stage.exhibit)))
                    ]
                with gr.Tab("Evidence"):
                    gr.Markdown(
                        "How much each lower capsule adds to the length of the class capsule: exact, since the votes' "
                        "sum is linear. The routing is the one that the net was trained with."
                    )
                    evidence = _html("evidence")
                with gr.Tab("Dimensions"):
                    sliders, back, reconstruction, grid = _dimension_part(stage)
                with gr.Tab("Depth and run"):
                    depth, metrics = _html("depth"), _html("metrics")

        def open_page() -> tuple[Any, ...]:
            parts = gr.update(visible=not stage.trained), gr.update(visible=stage.trained)
            if not stage.trained:
                return ("# capsroute", *parts, None, "", "")
            exhibit = stage.exhibit
            first = views.from_dataset(exhibit, 0)
            return (f"# capsroute\n{exhibit.title}", *parts, first, views.depth(exhibit), views.metrics(exhibit))

        def train() -> Iterator[tuple[Any, ...]]:
            yield from _train(stage)

        def take(number: float | None) -> tuple[Picked, str]:
            return views.from_dataset(stage.exhibit, int(number or 0)), ""

        def at_random(label: int) -> tuple[int, Picked | None, str]:
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

        whole = [title, training_part, shown, picked, depth, metrics]
        page.load(open_page, None, whole, **QUIET)
        training = train_button.click(train, None, [train_button, told], concurrency_limit=None, **QUIET)
        training.then(open_page, None, whole, **QUIET)
        index.input(take, index, [picked, message], trigger_mode="always_last", **QUIET)
        gr.on([another.click, of_class.input], at_random, of_class, [index, picked, message], **QUIET)
        own.upload(take_own, picked, [picked, message], **QUIET)

        moved = [wanted.input, *(slider.input for slider in sliders)]
        shows: list[tuple[list[Any], Callable[..., Any], list[Any], list[Any]]] = [
            ([], views.overview, [], [picture, verdict]),
            ([wanted.input], views.evidence, [wanted], [evidence]),
            ([wanted.input], views.grid, [wanted], [grid]),
            (moved, _with_offsets, [wanted, *sliders], [reconstruction]),
            *(
                ([wanted.input, *turned], _with_knobs, [wanted, *choices], [routed])
                for turned, choices, routed in sides
            ),
        ]
        for events, view, choices, outputs in shows:
            show = _of_stage(stage, view, len(outputs))
            gr.on([picked.change, *events], show, [picked, *choices], outputs, trigger_mode="always_last", **QUIET)
        # Sliders that are set by the page tell nobody.
        zeros = [0.0] * len(sliders)
        still = _of_stage(stage, lambda *given: (_with_offsets(*given), *zeros), 1 + len(sliders))
        back.click(still, [picked, wanted], [reconstruction, *sliders], **QUIET)
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


def _with_knobs(exhibit: Exhibit, picked: Picked, wanted: int, routing: str, *values: float) -> str:
    return views.routed(exhibit, picked, wanted, routing, dict(zip(KNOBS, values, strict=True)))


def _routing_side(stage: Stage, number: int, name: str) -> tuple[list[Any], list[Any], gr.HTML]:
    """One of two routings: the events that change it, its choice and sliders, and where its work is shown."""
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
        output = _html(f"routed-{number}")

    def turn(chosen: str) -> list[Any]:
        return [gr.update(visible=option in knobs_of(chosen)) for option in KNOBS]

    routing.input(turn, routing, knobs, **QUIET)
    return [routing.input, *(knob.input for knob in knobs)], [routing, *knobs], output


def _dimension_part(stage: Stage) -> tuple[list[gr.Slider], gr.Button, gr.HTML, gr.HTML]:
    """Sliders for a class capsule, what puts them back, the reconstruction, and the grid."""
    exhibit = stage.exhibit
    if exhibit.decoder is None:
        gr.HTML(drawing.alert(views.NO_DECODER), elem_id="no-decoder")
        return [], gr.Button(visible=False), gr.HTML(visible=False), gr.HTML(visible=False)
    gr.Markdown("Move the dimensions of the class capsule and see what the decoder makes of it.")
    with gr.Row():
        with gr.Column(min_width=300):
            reconstruction = _html("reconstruction")
            back = gr.Button("All back to 0", elem_id="back")
            with gr.Group(elem_id="sliders"):
                sliders = [
                    gr.Slider(
                        -0.5,
                        0.5,
                        0,
                        step=0.01,
                        label=f"dimension {number + 1}",
                        elem_id=f"dimension-{number + 1}",
                        min_width=120,
                    )
                    for number in range(exhibit.decoder.dim)
                ]
        with gr.Column(min_width=300):
            grid = _html("grid")
    return sliders, back, reconstruction, grid


def _train(stage: Stage) -> Iterator[tuple[Any, ...]]:
    """Start the training or join it, and tell how it goes until it is over: to the button and the part below it."""
    training = stage.training
    if training is None or stage.finish is None:
        return
    if not stage.trained:
        training.start()
    while training.running:
        yield gr.update(interactive=False), drawing.progress(training.share, training.line)
        time.sleep(LOOK_SECONDS)
    if training.error:
        yield gr.update(interactive=True), drawing.alert(training.error)
        return
    if not stage.trained:
        stage.exhibit, stage.trained = stage.finish(), True
    yield gr.update(interactive=False), drawing.progress(1.0, "done")


def _html(name: str) -> gr.HTML:
    """A place for what is drawn, without Gradio's own looks of tables and figures."""
    return gr.HTML(elem_id=name, apply_default_css=False, js_on_load=None)


def launch_options() -> dict[str, Any]:
    """What the page needs of the server: looks, nothing from elsewhere, nothing beside it."""
    system, mono = ("system-ui", "sans-serif"), ("ui-monospace", "monospace")
    theme = gr.themes.Default(
        primary_hue="blue",
        font=[gr.themes.Font(name) for name in system],
        font_mono=[gr.themes.Font(name) for name in mono],
    )
    return {"theme": theme, "css": CSS, "footer_links": [], "run_history": False}
