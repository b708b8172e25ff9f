"""The datasets that have a name: what they are, where their files come from, how to know them when read."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

DIGITS = tuple("0123456789")
CLOTHES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@dataclass(frozen=True)
class RemoteFile:
    """A file to download: its name, size, SHA-256, and the addresses that have it."""

    name: str
    size: int
    sha256: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class DatasetInfo:
    """A named dataset."""

    name: str
    title: str
    shape: tuple[int, int, int]  # channels, height, width
    classes: tuple[str, ...]
    counts: Mapping[str, int]  # by split
    licence: str
    citation: str
    homepage: str
    family: str  # how its files are laid out and read: "idx", "cifar", "svhn" or "sample"
    folders: tuple[str, ...]  # names under which a collection of datasets keeps it
    files: Mapping[str, tuple[RemoteFile, ...]]  # what to download, by split
    # SHA-256 of images [n, c, h, w] and then labels, as bytes, by split: knows the data whatever file it came in.
    content: Mapping[str, str]
    advice: tuple[str, ...] = ()  # further ways of getting it
    # Whether its files' names are no other dataset's, so that they count in a folder that several datasets share.
    telling_names: bool = False


def _idx_files(mirrors: tuple[str, ...], *files: tuple[str, int, str]) -> tuple[RemoteFile, ...]:
    return tuple(RemoteFile(name, size, sha, tuple(mirror + name for mirror in mirrors)) for name, size, sha in files)


_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
_FASHION = (
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
)
_CIFAR = RemoteFile(
    "cifar-10-binary.tar.gz",
    170_052_171,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    ("https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",),
)
_SVHN = "http://ufldl.stanford.edu/housenumbers/"

_ENTRIES = (
    DatasetInfo(
        name="mnist",
        title="MNIST",
        shape=(1, 28, 28),
        classes=DIGITS,
        counts={"train": 60_000, "test": 10_000},
        licence="CC BY-SA 3.0, as commonly given",
        citation="LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, 1998",
        homepage="http://yann.lecun.com/exdb/mnist/",
        family="idx",
        folders=("mnist", "MNIST/raw", "MNIST"),
        files={
            "train": _idx_files(
                _MNIST,
                (
                    "train-images-idx3-ubyte.gz",
                    9_912_422,
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                ),
                (
                    "train-labels-idx1-ubyte.gz",
                    28_881,
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                ),
            ),
            "test": _idx_files(
                _MNIST,
                (
                    "t10k-images-idx3-ubyte.gz",
                    1_648_877,
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                ),
                (
                    "t10k-labels-idx1-ubyte.gz",
                    4_542,
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                ),
            ),
        },
        content={
            "train": "edc0d1098aa497be14ace79ddd5171e5a3dcf9c4d196c015389203eb3ba1f59b",
            "test": "c3f9adf9c66efb572b1f9326c3a511b45910c7173b97be66ceceeeeaef6b802b",
        },
    ),
    DatasetInfo(
        name="fashion-mnist",
        title="Fashion-MNIST",
        shape=(1, 28, 28),
        classes=CLOTHES,
        counts={"train": 60_000, "test": 10_000},
        licence="MIT",
        citation="Xiao, Rasul, Vollgraf: Fashion-MNIST, a novel image dataset for benchmarking, 2017",
        homepage="https://github.com/zalandoresearch/fashion-mnist",
        family="idx",
        folders=("fashion-mnist", "FashionMNIST/raw", "FashionMNIST"),
        files={
            "train": _idx_files(
                _FASHION,
                (
                    "train-images-idx3-ubyte.gz",
                    26_421_880,
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                ),
                (
                    "train-labels-idx1-ubyte.gz",
                    29_515,
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                ),
            ),
            "test": _idx_files(
                _FASHION,
                (
                    "t10k-images-idx3-ubyte.gz",
                    4_422_102,
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                ),
                (
                    "t10k-labels-idx1-ubyte.gz",
                    5_148,
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                ),
            ),
        },
        content={
            "train": "16d82e2b505296aa2b78bd5ea0992634f30419a4c97def7c907d154a35ac6157",
            "test": "9f1ec356a747bfe4ebab3cfb722d3694c9ca737e2570f6f90cf31d7b6fd689d4",
        },
        advice=("apt-get install dataset-fashion-mnist    (Debian and Ubuntu)",),
    ),
    DatasetInfo(
        name="svhn",
        title="SVHN, cropped digits",
        shape=(3, 32, 32),
        classes=DIGITS,
        counts={"train": 73_257, "test": 26_032},
        licence="non-commercial use only",
        citation="Netzer, Wang, Coates, Bissacco, Wu, Ng: Reading digits in natural images, 2011",
        homepage=_SVHN,
        family="svhn",
        folders=("svhn", "SVHN"),
        files={
            "train": (
                RemoteFile(
                    "train_32x32.mat",
                    182_040_794,
                    "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
                    (_SVHN + "train_32x32.mat",),
                ),
            ),
            "test": (
                RemoteFile(
                    "test_32x32.mat",
                    64_275_384,
                    "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
                    (_SVHN + "test_32x32.mat",),
                ),
            ),
        },
        # Not listed: copies cropped anew from the full-number release differ by a grey level in places.
        content={},
        telling_names=True,
    ),
    DatasetInfo(
        name="cifar10",
        title="CIFAR-10",
        shape=(3, 32, 32),
        classes=THINGS,
        counts={"train": 50_000, "test": 10_000},
        licence="none stated",
        citation="Krizhevsky: Learning multiple layers of features from tiny images, 2009",
        homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
        family="cifar",
        folders=("cifar10", "CIFAR10", "cifar-10"),
        files={"train": (_CIFAR,), "test": (_CIFAR,)},
        content={
            "train": "1e91790dbaf241617ca1f29a9aba08eb9a62df84cc90676b47edd05ad2ab3c94",
            "test": "9a4c74f5c8b6f2c4e13d3a1dfb43a5a8cda8a9da515e99fd620d2013a1a6287a",
        },
        telling_names=True,
    ),
    DatasetInfo(
        name="sample",
        title="Sample of Fashion-MNIST",
        shape=(1, 28, 28),
        classes=CLOTHES,
        counts={"train": 6_000, "test": 1_000},
        licence="MIT",
        citation="Xiao, Rasul, Vollgraf: Fashion-MNIST, a novel image dataset for benchmarking, 2017",
        homepage="https://github.com/zalandoresearch/fashion-mnist",
        family="sample",
        folders=(),
        files={},
        content={
            "train": "38a7d079b3bf6318127b091b109a32ad10eab9033a805f89586de0ced2a6cc5a",
            "test": "614afb1ae07646d479483610adbabc4a1fcb94f91f2fcd30680b784c7d63ca98",
        },
    ),
)

DATASETS: MappingProxyType[str, DatasetInfo] = MappingProxyType({entry.name: entry for entry in _ENTRIES})
