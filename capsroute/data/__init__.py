"""Datasets: found or fetched, read strictly, checked, and served in batches on the device."""

from capsroute.data.files import Dataset, load_dataset
from capsroute.data.table import DATASETS, DatasetInfo

__all__ = ["DATASETS", "Dataset", "DatasetInfo", "load_dataset"]
