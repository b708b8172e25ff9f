"""Training: one loop, exact to resume, with nothing lost."""

import math
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from capsroute import saving
from capsroute.averaging import WeightAverage
from capsroute.checkpoint import Checkpoint, load_newest
from capsroute.config import TrainConfig, refuse_changes
from capsroute.data.batches import Batches
from capsroute.data.split import load_splits
from capsroute.diagnosis import dead_net_warning
from capsroute.display import Display, epoch_line, make_display
from capsroute.errors import DivergedError, InterruptedRunError
from capsroute.evaluation import Evaluation, evaluate
from capsroute.hardware import Choice, choose, is_main_process, make_fabric, records_steps
from capsroute.initialization import IMAGES, STARTS
from capsroute.memory import keep_freed_memory
from capsroute.models import CapsNet, Decoder, parameter_count
from capsroute.provenance import provenance
from capsroute.run import RunFolder
from capsroute.schedule import learning_rate
from capsroute.settings import deterministic_operations, noted_signals
from capsroute.snapshot import random_states, restore, take
from capsroute.stats import EpochStats, state_of
from capsroute.stepping import Objective, RecordedStep, TrainingStep, set_rate
from capsroute.tensorboard import refuse_without_tensorboard, write_tensorboard

if TYPE_CHECKING:
    from lightning_fabric import Fabric

DisplayFactory = Callable[[int, int], Display]  # from epochs and steps per epoch

SHOW_EVERY_SECONDS = 0.5
# How often the loss is looked at on an accelerator, where looking waits for it; on a CPU it is at every step.
LOOK_EVERY = 20
# Images that are looked at before the first step, to tell of a net that cannot learn.
PROBED = 32
EVALUATED_AT_ONCE = {"cpu": 256, "cuda": 2048, "mps": 256}


@dataclass(frozen=True)
class Result:
    """What `fit` returns: the content of `result.json`, and the net."""

    values: dict[str, Any]
    net: CapsNet | None  # None if it was not to be kept (`keep="result"`) and the run had finished before

    @property
    def accuracy(self) -> float:
        """On the test split, or on the held-out images."""
        return float(self.values["accuracy"])

    @property
    def state(self) -> str:
        """ok, saturated or collapsed."""
        return str(self.values["state"])


def fit(config: TrainConfig, show: DisplayFactory | None = None) -> Result:
    """Train as the configuration says, in its run folder, and return the result; a finished run returns its own.

    `show(epochs, steps_per_epoch)` makes the display that is told of it; the usual ones, if not given.
    """
    choice = choose(config.device, config.precision)
    if config.tensorboard:
        refuse_without_tensorboard()
    if not is_main_process():
        return _Training(config, choice, None, show).run()
    with RunFolder(config) as folder:
        done = folder.finished()
        if done is not None:
            if not config.quiet:
                make_display(False, 1, 1).say(f"{folder.path}: this run is finished; nothing was changed")
            return Result(done, saving.load(folder.path) if (folder.path / saving.FINAL).is_file() else None)
        return _Training(config, choice, folder, show).run()


class _Training:
    """A run in this process: alone, or one of several that share each batch."""

    def __init__(
        self, config: TrainConfig, choice: Choice, folder: RunFolder | None, show: DisplayFactory | None
    ) -> None:
        self.config, self.choice, self.folder, self.make_display = config, choice, folder, show
        self.fabric: Fabric = make_fabric(config, choice)
        self.fabric.launch()
        world, rank, device = self.fabric.world_size, self.fabric.global_rank, self.fabric.device
        self.train, self.test, self.evaluated_on = load_splits(config)
        share: dict[str, Any] = {"device": device, "rank": rank, "world": world}
        self.batches = Batches(
            self.train.images,
            self.train.labels,
            config.batch_size,
            shift=config.shift_pixels(),
            shift_at=config.shift_at,
            flip=config.flip,
            seed=config.seed,
            **share,
        )
        at_once = EVALUATED_AT_ONCE[device.type] * world
        self.test_batches = Batches(self.test.images, self.test.labels, at_once, shuffle=False, **share)
        torch.manual_seed(config.seed)
        classes = len(self.train.classes)
        self.net = config.make_net(self.train.shape, classes).channels_last_()
        STARTS[config.init](self.net.to(device), self.train.images[:IMAGES].to(device).float() / 255)
        self.decoder = Decoder(classes, self.net.dims[-1], self.train.shape) if config.reconstruct else None
        objective = Objective(self.net, self.decoder).to(device)
        recorded = records_steps(config, choice, device.type, world)
        self.optimizer = torch.optim.AdamW(
            objective.parameters(),
            lr=torch.tensor(config.lr, device=device) if recorded else config.lr,
            weight_decay=config.weight_decay,
            fused=device.type in ("cpu", "cuda"),
            capturable=recorded,
        )
        compiled: Any = torch.compile(objective) if config.compile else objective
        self.objective, wrapped_optimizer = self.fabric.setup(compiled, self.optimizer)
        self.average = WeightAverage(objective, config.ema) if config.ema else None
        self.stats = EpochStats(device)
        plain = TrainingStep(
            self.fabric,
            self.objective,
            self.net,
            wrapped_optimizer,
            self.batches,
            self.stats,
            self.average,
            config.clip,
        )
        self.take_step = RecordedStep(plain, config.batch_size) if recorded else plain
        self.epoch = self.step = 0  # where the run is; `step` within the epoch
        self.rows: list[dict[str, Any]] = []
        self.seconds = 0.0  # of training, earlier sittings included
        self.evaluation: Evaluation | None = None  # of the last epoch
        self.unwritten: list[tuple[int, Tensor]] = []
        self.display = Display()
        self.complaints: list[str] = []  # about checkpoints that were passed over
        # As it was when this sitting began, whatever happens to the source tree meanwhile; one for each sitting.
        self.sittings: list[dict[str, Any]] = [provenance()]

    def run(self) -> Result:
        """From where the run is to its end."""
        if self.choice.device == "cpu":
            keep_freed_memory()
        per_epoch, epochs = len(self.batches), self.config.epochs
        self._begin()
        if self.make_display is not None and self.folder is not None:
            self.display = self.make_display(epochs, per_epoch)
        else:
            self.display = make_display(self.config.quiet or self.folder is None, epochs, per_epoch)
        result: dict[str, Any] | None = None
        try:
            self._introduce()
            with noted_signals() as caught, deterministic_operations(self._deterministic()):
                self._train(caught)
                evaluation = self.evaluation or self._evaluate()
            result = self._finish(evaluation)
        finally:
            self.display.close(result)
        return Result(result, self.net.eval())

    def _train(self, caught: list[int]) -> None:
        """The loop."""
        config, per_epoch = self.config, len(self.batches)
        every_epochs, every_seconds = config.checkpoint_interval()
        saved_at = shown_at = began = time.monotonic()
        while self.epoch < config.epochs:
            for pick in self.batches.picks(self.epoch, start=self.step):
                number = self.epoch * per_epoch + self.step
                rate = learning_rate(
                    config.schedule, config.lr, number, per_epoch, config.epochs, config.warmup, config.rise
                )
                set_rate(self.optimizer, rate)
                # Of a batch that does not divide, each process has its share of the mean, not a mean of its own.
                whole = min(config.batch_size, len(self.train) - self.step * config.batch_size)
                report = self.take_step(pick, len(pick.chosen) * self.fabric.world_size / whole)
                self.unwritten.append((number, report))
                if self.choice.device == "cpu" or number % LOOK_EVERY == 0:
                    self._refuse_divergence()
                self.step += 1

                now = time.monotonic()
                if now - shown_at > SHOW_EVERY_SECONDS:
                    shown_at = now
                    self._show(now - began, number)
                due = every_seconds is not None and now - saved_at > every_seconds
                stop, due = self._agree(bool(caught), due)
                if stop or due:
                    self._count(began)
                    self._save()
                    saved_at = began = time.monotonic()
                if stop:
                    raise InterruptedRunError(caught[0] if caught else signal.SIGTERM, str(config.folder()))
            self._count(began)
            self._end_epoch()
            if every_epochs is not None and self.epoch % every_epochs == 0 and self.epoch < config.epochs:
                self._save()
                saved_at = time.monotonic()
            began = time.monotonic()

    def _begin(self) -> None:
        """Take up the newest checkpoint, or start the folder."""
        if self.folder is not None:
            parameters = sum(p.numel() * p.element_size() for p in self.objective.parameters())
            self.folder.start(self.config, 3 * parameters)
        self.fabric.barrier()
        saved, complaints = load_newest(self.config.folder()) if self.config.resume else (None, [])
        self.complaints = complaints
        if saved is not None:
            self._restore(saved)
        if self.folder is not None:
            self.folder.cut_steps(self.epoch * len(self.batches) + self.step)

    def _introduce(self) -> None:
        config, dataset = self.config, self.train
        for complaint in self.complaints:
            self._say(f"warning: {complaint}; going on from the one before")
        told = "verified" if dataset.verified else "own content, not an official dataset's"
        self._say(f"{dataset.title}: {len(dataset):,} training images ({told}) from {dataset.source}")
        self._say(f"evaluated on {self.evaluated_on}, {len(self.test):,} images")
        self._say(f"{self.choice.device}, {self.choice.precision} ({self.choice.reason}); seed {config.seed}")
        self._say(repr(self.net))
        where = f", from epoch {self.epoch + 1} step {self.step}" if self.epoch or self.step else ""
        if not (self.epoch or self.step):
            images, labels = self.train.images[:PROBED], self.train.labels[:PROBED]
            warning = dead_net_warning(self.net, images, labels, config.init)
            if warning:
                self._say(f"warning: {warning}")
        self._say(f"{config.epochs} epochs of {len(self.batches)} steps{where}; {config.folder()}")

    def _say(self, line: str) -> None:
        self.display.say(line)
        if self.folder is not None:
            self.folder.log(line)

    def _refuse_divergence(self) -> None:
        """Stop if the newest loss or gradient is no number: before anything made of it is saved."""
        if not self.unwritten:  # saved a moment ago, and looked at then
            return
        number, report = self.unwritten[-1]
        loss, _, _, gradient = report.tolist()
        if math.isfinite(loss) and math.isfinite(gradient):
            return
        summary = self.stats.summary()
        last = f"the last good state is {self.config.folder()}/last.ckpt" if self.epoch else "no epoch was complete"
        raise DivergedError(
            f"step {number}: loss {loss}, class lengths {summary['shortest']:.3g} to {summary['longest']:.3g} in this "
            f"epoch, norm of Conv1's gradient {gradient:.3g}: the run diverged and was stopped, {last}; "
            "try a longer --warmup, a lower --lr, a smaller --lam, or --clip 1"
        )

    def _agree(self, stop: bool, due: bool) -> tuple[bool, bool]:
        """What any process wants, all do, and at the same step."""
        if self.fabric.world_size == 1:
            return stop, due
        wishes = torch.tensor([float(stop), float(due)], device=self.fabric.device)
        agreed = self.fabric.all_reduce(wishes, reduce_op="sum")
        assert isinstance(agreed, Tensor)
        return bool(agreed[0] > 0), bool(agreed[1] > 0)

    def _deterministic(self) -> bool:
        return self.choice.device == "cpu" if self.config.deterministic is None else self.config.deterministic

    def _count(self, began: float) -> None:
        self.seconds += time.monotonic() - began

    def _show(self, elapsed: float, number: int) -> None:
        summary = self.stats.summary()
        _, low, high, _ = self.unwritten[-1][1].tolist()
        speed = (number + 1) * self.config.batch_size / max(1e-9, self.seconds + elapsed)
        line = (
            f"loss {summary['train_loss']:.4f}, accuracy {summary['train_accuracy']:.2%}, lengths true "
            f"{summary['true_length']:.2f} others {summary['other_length']:.2f}, "
            f"conv1 gradient {low:.1e} to {high:.1e}, {speed:.0f} img/s"
        )
        self.display.step(self.epoch, self.step, line)

    def _end_epoch(self) -> None:
        """Evaluate, and write the epoch down."""
        self._refuse_divergence()
        summary = self._reduced(self.stats).summary()
        evaluation = self.evaluation = self._evaluate()
        self.epoch, self.step = self.epoch + 1, 0
        row = {
            "epoch": self.epoch,
            **{name: float(f"{value:.6g}") for name, value in summary.items()},
            "evaluated_on": self.evaluated_on,
            "accuracy": evaluation.accuracy,
            "loss": float(f"{evaluation.loss:.6g}"),
            "state": state_of(summary),
            "seconds": round(self.seconds, 2),
            "images_per_s": round(self.epoch * len(self.train) / max(1e-9, self.seconds), 1),
        }
        self.rows.append(row)
        self.stats.clear()
        line = epoch_line(row, self.config.epochs)
        self.display.epoch(row, line)
        if self.folder is not None:
            self.folder.log(line)
            self.folder.write_metrics(self.rows)
            self._write_steps()
            if self.config.tensorboard:
                write_tensorboard(self.folder.path, row)

    def _evaluate(self) -> Evaluation:
        with self._averaged():
            return evaluate(self.net, self.test_batches, self.net.classes, self.fabric)

    def _averaged(self) -> AbstractContextManager[None]:
        """The net as it is judged and saved: with averaged weights, if they are averaged."""
        return nullcontext() if self.average is None else self.average.applied()

    def _reduced(self, stats: EpochStats) -> EpochStats:
        """The statistics of all processes together."""
        if self.fabric.world_size == 1:
            return stats
        whole = EpochStats(self.fabric.device)
        whole.sums = torch.as_tensor(self.fabric.all_reduce(stats.sums, reduce_op="sum"))
        whole.most = torch.as_tensor(self.fabric.all_reduce(stats.most, reduce_op="max"))
        return whole

    def _write_steps(self) -> None:
        if self.folder is not None and self.unwritten:
            values = torch.stack([value for _, value in self.unwritten]).tolist()
            self.folder.add_steps([(number, row) for (number, _), row in zip(self.unwritten, values, strict=True)])
        self.unwritten = []

    def _save(self) -> None:
        """Write a checkpoint of this very moment."""
        self._refuse_divergence()
        whole, random = self._reduced(self.stats), random_states(self.fabric)
        if self.folder is None:
            self.unwritten = []
            return
        self._write_steps()
        place = {"epoch": self.epoch, "step": self.step, "rows": self.rows, "seconds": self.seconds}
        meta = {
            **place,
            "sittings": self.sittings,
            "config": self.config.to_json(),
            "dataset": self.train.describe(),
        }
        self.folder.save(take(self.net, self.decoder, self.optimizer, self.average, whole, meta, random))

    def _restore(self, saved: Checkpoint) -> None:
        """Be where the checkpoint was taken."""
        path = self.config.folder()
        refuse_changes(TrainConfig.from_json(saved.meta["config"]), self.config)
        place = {"rank": self.fabric.global_rank, "world": self.fabric.world_size}
        restore(path, saved, self.net, self.decoder, self.optimizer, self.average, **place)
        self.epoch, self.step = saved.meta["epoch"], saved.meta["step"]
        self.rows, self.seconds = saved.meta["rows"], saved.meta["seconds"]
        self.sittings = [*saved.meta["sittings"], *self.sittings]
        if self.fabric.global_rank == 0:  # the sums of all processes, counted once
            self.stats.sums.copy_(saved.tensors["stats.sums"])
            self.stats.most.copy_(saved.tensors["stats.most"])

    def _finish(self, evaluation: Evaluation) -> dict[str, Any]:
        """Write the net and the result."""
        result = {
            **evaluation.to_json(),
            "evaluated_on": self.evaluated_on,
            "state": self.rows[-1]["state"],
            "epochs": self.epoch,
            "steps": self.epoch * len(self.batches),
            "wall_s": round(self.seconds, 1),
            "images_per_s": round(self.epoch * len(self.train) / max(1e-9, self.seconds), 1),
            "parameters": parameter_count(self.net),
            "device": self.choice.device,
            "processes": self.fabric.world_size,
            "precision": self.choice.precision,
            "seed": self.config.seed,
            "dataset": self.train.describe(),
            "folder": str(self.config.folder()),
            **self.sittings[-1],
            "earlier_commits": [sitting["commit"] for sitting in self.sittings[:-1]],
            "config": self.config.to_json(),
        }
        if self.config.keep == "all":
            self._save()
        if self.folder is not None:
            self._write_steps()
            meta = {name: result[name] for name in ("dataset", "accuracy", "evaluated_on")}
            meta["config"] = {name: result["config"][name] for name in ("dataset", "image_size")}
            if self.config.keep != "result":
                with self._averaged():
                    saving.save_net(self.folder.path / saving.FINAL, self.net, self.decoder, meta)
            self.folder.write_result(result)
            if self.config.keep != "all":
                self.folder.drop_checkpoints()
        return result
