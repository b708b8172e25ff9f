"""`capsroute export`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional


@dataclass(frozen=True)
class Export:
    """Export a trained net for other programs; it is checked against the net before anything is written."""

    run_folder: Positional[Path]
    """A run folder, a final.safetensors, or a checkpoint."""
    format: Literal["onnx", "torch", "safetensors", "hub-folder"] = "onnx"
    """onnx: one file for ONNX Runtime and others (extra [export]). torch: a .pt2 that plain torch runs. safetensors:
    the weights, for this library. hub-folder: weights, config.json and a model card."""
    out: Path | None = None
    """File or folder to write; the run's name with the format's ending, here, if not given."""
    force: bool = False
    """Overwrite what is there."""
    also: tuple[Path, ...] = ()
    """With hub-folder: finished runs of other seeds, for the mean accuracy on the card."""
    quiet: bool = False
    """Print nothing but errors."""

    def run(self) -> None:
        from capsroute.export.exporting import export_run

        done = export_run(self.run_folder, self.format, self.out, force=self.force, also=self.also)
        if not self.quiet:
            print(f"{done.path}: {self.format}, {done.size:,} bytes, {done.checked}")
            print(f"SHA-256 {done.sha256}")
