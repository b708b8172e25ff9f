"""Pictures that a visitor sends, and pictures that the page shows: both as data URLs, so that no file is served."""

import base64
import binascii
import io
import re
import tempfile
from pathlib import Path

import numpy as np
from jaxtyping import UInt8

from capsroute.data.folders import read_image
from capsroute.errors import DataError, InputError

MOST_BYTES = 8 << 20
ACCEPTED = ("image/png", "image/jpeg")

Pixels = UInt8[np.ndarray, "c h w"]


def read_picture(url: object, shape: tuple[int, int, int]) -> Pixels:
    """A picture as the page sends it, brought to this shape as training images are; one sentence if it cannot be."""
    kinds = " and ".join(kind.removeprefix("image/").upper() for kind in ACCEPTED)
    head, _, body = url.partition(",") if isinstance(url, str) else ("", "", "")
    if head not in [f"data:{kind};base64" for kind in ACCEPTED]:
        raise InputError(f"only {kinds} images can be opened")
    if len(body) > MOST_BYTES * 4 / 3 + 4:
        raise InputError(f"the picture is larger than {MOST_BYTES >> 20} MB; make it smaller")
    try:
        content = base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise InputError("the picture arrived damaged; open it again") from error
    channels, height, width = shape
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture"
        path.write_bytes(content)
        try:
            return read_image(path, channels, (height, width))
        except DataError as error:
            # The reader's sentence, without the place where the picture lay for a moment.
            told = re.sub(r"'[^']*picture'", "its bytes", str(error).replace(str(path), "this picture"))
            raise DataError(told) from error


def png_url(pixels: UInt8[np.ndarray, "h w *c"]) -> str:
    """Grey or colour pixels as a data URL."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def image_url(pixels: Pixels) -> str:
    """One image of a dataset as a data URL."""
    return png_url(np.ascontiguousarray(pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)))
