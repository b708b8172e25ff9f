"""The figures of one finished run: its net drawn and looked into, and its gradient over training."""

from collections.abc import Iterator
from pathlib import Path

from capsroute.data.files import load_dataset
from capsroute.errors import DataError
from capsroute.figures.architecture import draw_architecture
from capsroute.figures.couplings import draw_couplings
from capsroute.figures.drawing import Drawing
from capsroute.figures.gradients import draw_gradients
from capsroute.figures.iterations import draw_iterations
from capsroute.figures.saturation import draw_saturation
from capsroute.run import read_config
from capsroute.saving import FINAL, load_all
from capsroute.sweeps.records import Record, read_run

IMAGES = 200  # test images that a figure looks at


def draw_run(folder: Path, data_dir: Path | None = None, images: int = IMAGES) -> Iterator[Drawing]:
    """Every figure for which the run kept what it shows: without its net, only the gradient's."""
    record = read_run(folder)
    if record is None:
        raise DataError(f"{folder}: holds no finished run; name a folder with a result.json")
    source = describe_run(record)
    if record.gradient:
        title = "Range of Conv1's gradient"
        yield draw_gradients({folder.name: record}, title, source, "gradient")
    if not (folder / FINAL).is_file():
        return
    net = load_all(folder / FINAL)[0]
    config = read_config(folder)
    place = data_dir or config.data_dir
    dataset = load_dataset(config.dataset, place, "test", offline=True, image_size=config.image_size)
    pixels, labels = dataset.images[:images].float() / 255, dataset.labels[:images]
    yield draw_architecture(net, source)
    yield draw_couplings(net, pixels, labels, source)
    yield draw_iterations(net, pixels[:1], int(labels[0]), source)
    yield draw_saturation(net, pixels, source)


def describe_run(record: Record) -> str:
    """What a caption says of a run: data, routing, length, seed and accuracy."""
    result, config = record.result, record.config
    routing = config.get("routing", "adaptive-lambda")
    options = "".join(f", {name} {config[name]}" for name in ("lam", "iterations", "step") if name in config)
    return (
        f"{result['dataset']['title']}, {routing}{options}, {result['epochs']} epochs, seed {record.seed}: "
        f"{record.accuracy:.2f} % on {result['evaluated_on']}."
    )
