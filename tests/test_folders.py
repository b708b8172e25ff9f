import numpy as np
import pytest
from PIL import Image

from capsroute import DataError, InputError, load_dataset
from capsroute.data import folders


def save(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)


def make(root, size=(10, 10), classes=("cat", "dog"), splits=("train", "test"), colour=False, count=2):
    generator = np.random.default_rng(0)
    for split in splits:
        for name in classes:
            for number in range(count):
                shape = (*size, 3) if colour else size
                save(root / split / name / f"{number}.png", generator.integers(0, 256, shape, dtype=np.uint8))
    return root


def test_images_of_one_size_are_read_as_they_are(tmp_path):
    make(tmp_path)
    train = load_dataset(tmp_path)
    assert train.images.shape == (4, 1, 10, 10)
    assert train.classes == ("cat", "dog")
    assert train.labels.tolist() == [0, 0, 1, 1]
    assert np.array_equal(train.images[2, 0].numpy(), np.asarray(Image.open(tmp_path / "train/dog/0.png")))
    assert not train.verified
    assert load_dataset(tmp_path, split="test").labels.tolist() == [0, 0, 1, 1]


def test_images_of_several_sizes_become_32_or_what_is_asked(tmp_path):
    make(tmp_path, (20, 30), ("cat",))
    make(tmp_path, (50, 40), ("dog",), colour=True)
    assert load_dataset(tmp_path).images.shape == (4, 3, 32, 32)
    assert load_dataset(tmp_path, image_size=12).images.shape == (4, 3, 12, 12)
    plain = np.asarray(Image.open(tmp_path / "train/dog/0.png").resize((12, 12), Image.Resampling.BILINEAR))
    assert np.array_equal(load_dataset(tmp_path, image_size=12).images[2].permute(1, 2, 0).numpy(), plain)


def test_the_training_images_decide_the_shape_of_all(tmp_path):
    make(tmp_path, (16, 16), splits=("train",))
    make(tmp_path, (40, 40), splits=("val",), colour=True)
    assert load_dataset(tmp_path, split="test").images.shape == (4, 1, 16, 16)


def test_jpeg_transparency_and_deep_grey(tmp_path):
    save(tmp_path / "train/a/1.JPG", np.full((9, 9, 3), 200, np.uint8), quality=95)
    clear = np.zeros((9, 9, 4), np.uint8)
    clear[..., 0] = 255
    clear[:4, :, 3] = 255
    save(tmp_path / "train/a/2.png", clear)
    save(tmp_path / "train/a/3.png", np.full((9, 9), 0x8001, np.uint16))
    images = load_dataset(tmp_path).images
    assert abs(int(images[0, 1, 4, 4]) - 200) < 3
    assert images[1, :, 0, 0].tolist() == [255, 0, 0]
    assert images[1, :, 8, 8].tolist() == [0, 0, 0]
    assert images[2, :, 4, 4].tolist() == [128, 128, 128]


def test_a_sideways_photograph_is_turned(tmp_path):
    pixels = np.zeros((10, 10), np.uint8)
    pixels[:, :5] = 255
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned a quarter clockwise
    save(tmp_path / "train/a/1.jpg", pixels, exif=exif, quality=100)
    image = load_dataset(tmp_path).images[0, 0]
    assert image[:4].min() > 200
    assert image[6:].max() < 50


def test_hidden_files_are_passed_over(tmp_path):
    make(tmp_path)
    for name in (".DS_Store", "Thumbs.db"):
        (tmp_path / "train/cat" / name).write_bytes(b"x")
    (tmp_path / "train/.cache").mkdir()
    assert len(load_dataset(tmp_path)) == 4


def test_what_is_wrong_is_named(tmp_path, monkeypatch):
    make(tmp_path)
    odd = tmp_path / "train/cat/notes.txt"
    odd.write_text("hello")
    with pytest.raises(DataError, match=r"notes\.txt: not a \.png or \.jpg file"):
        load_dataset(tmp_path)
    odd.unlink()
    fake = tmp_path / "train/cat/fake.png"
    fake.write_bytes(b"hello")
    with pytest.raises(DataError, match=r"fake\.png: not a readable PNG or JPEG image"):
        load_dataset(tmp_path)
    fake.write_bytes((tmp_path / "train/cat/0.png").read_bytes()[:-40])
    with pytest.raises(DataError, match=r"fake\.png: a damaged image"):
        load_dataset(tmp_path)
    fake.unlink()
    with monkeypatch.context() as patched:
        patched.setattr(folders, "MOST_PIXELS", 99)
        with pytest.raises(DataError, match="10x10 pixels, over the limit"):
            load_dataset(tmp_path)
    (tmp_path / "train/empty").mkdir()
    with pytest.raises(DataError, match=r"train/empty: the class 'empty' has no images"):
        load_dataset(tmp_path)


def test_folders_that_are_no_datasets(tmp_path):
    with pytest.raises(DataError, match=r"train: no such folder; images belong in"):
        load_dataset(tmp_path)
    (tmp_path / "train").mkdir()
    with pytest.raises(DataError, match=r"train: has no class folders"):
        load_dataset(tmp_path)
    make(tmp_path, splits=("train",))
    make(tmp_path, classes=("cow",), splits=("test",))
    with pytest.raises(DataError, match=r"class 'cow' is not among those of"):
        load_dataset(tmp_path, split="test")
    with pytest.raises(InputError, match=r"image_size=4 must lie between 8 and 1024"):
        load_dataset(tmp_path, image_size=4)
