"""The embedded sample: 6,000 training and 1,000 test images of Fashion-MNIST (MIT licence), pixels as in the original.

Made by `scripts/draw_sample.py`; `positions_train` and `positions_test` in the archive tell where in the official
files each image stands.
"""

from pathlib import Path

ARCHIVE = Path(__file__).with_name("fashion-mnist-sample.npz")
