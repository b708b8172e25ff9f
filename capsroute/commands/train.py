"""`capsroute train`."""

from pathlib import Path

from capsroute.config import TrainConfig
from capsroute.run import CONFIG, read_json


class Train(TrainConfig):
    """Train a net, in a run folder of its own: measurements, checkpoints, result.

    `--resume --out FOLDER` goes on with the run there; its options need not be given again.
    """

    def run(self) -> None:
        from capsroute.training import fit

        fit(self)


def saved_options(arguments: list[str]) -> Train:
    """The defaults for these arguments: those of the run that they resume, or else the usual ones."""
    if arguments[:1] == ["train"] and "--resume" in arguments:
        for given, value in zip(arguments, [*arguments[1:], ""], strict=True):
            folder = value if given == "--out" else given.removeprefix("--out=") if given.startswith("--out=") else None
            if folder and (Path(folder) / CONFIG).is_file():
                saved = Train.from_json(read_json(Path(folder) / CONFIG))
                assert isinstance(saved, Train)
                return saved
    return Train()
