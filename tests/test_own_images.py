"""docs/own-images.md, followed to the letter on a folder of drawn shapes."""

import pathlib
import re
import shlex

import numpy as np
import small_runs
from PIL import Image, ImageDraw

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "own-images.md"


def draw_images(root, counts):
    generator = np.random.default_rng(0)
    for split, count in counts.items():
        for shape in ("circle", "square"):
            folder = root / split / shape
            folder.mkdir(parents=True)
            for number in range(count):
                image = Image.new("RGB", (40, 36), "white")
                x, y = generator.integers(2, 12, 2).tolist()
                draw = getattr(ImageDraw.Draw(image), {"circle": "ellipse", "square": "rectangle"}[shape])
                draw((x, y, x + 20, y + 20), fill="black" if shape == "circle" else None, outline="black")
                image.save(folder / f"{number}.png")


def test_the_page_followed_to_the_letter(tmp_path, monkeypatch):
    draw_images(tmp_path / "my-images", {"train": 40, "test": 10})
    monkeypatch.chdir(tmp_path)
    said = {}
    for line in "\n".join(re.findall(r"```sh\n(.*?)```", PAGE.read_text(), re.S)).split("\n"):
        if not line:
            continue
        program, *words = shlex.split(line)
        assert program == "capsroute"
        done = small_runs.run(words)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        said[words[0]] = done.stdout
    assert set(said) == {"data", "train", "evaluate", "predict", "figures"}
    (accuracy,) = re.findall(r"([\d.]+)% of 20", said["evaluate"])
    assert float(accuracy) >= 90
    assert "circle" in said["predict"]
    made = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.png")}
    assert {"sheet.png", "confusion.png", "figures/mine/couplings.png"} <= made
