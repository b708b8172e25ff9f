"""Datasets: found or fetched, read strictly, checked, and served in batches on the device."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capsroute.data.files import Dataset, load_dataset
    from capsroute.data.table import DATASETS, DatasetInfo

__all__ = ["DATASETS", "Dataset", "DatasetInfo", "load_dataset"]

_HOMES = {"DATASETS": "table", "Dataset": "files", "DatasetInfo": "table", "load_dataset": "files"}


def __getattr__(name: str) -> Any:
    """A public name, from its module when first asked for: images are read without torch, which datasets need."""
    if name in _HOMES:
        return getattr(import_module(f"capsroute.data.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'capsroute.data' has no attribute {name!r}")
