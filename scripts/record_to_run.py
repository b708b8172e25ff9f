"""A run's `config.json`, `result.json` and `metrics.csv` from its record, for those who want to read one run:

python scripts/record_to_run.py RECORDS.jsonl FOLDER OPTION=VALUE ...      # the first record with these options

A record keeps the accuracy by epoch and nothing else of `metrics.csv`, so that has these two columns only.
"""

import csv
import sys
from pathlib import Path

from capsroute.config import TrainConfig
from capsroute.run import CONFIG, METRICS, RESULT, write_json
from capsroute.sweeps.records import load_records


def main(records: str, folder: str, *wanted: str) -> None:
    """Write the three files of the first record whose options are as wanted."""
    for record in load_records(Path(records)):
        told = {**record.config, "seed": record.seed}
        if all(str(told.get(name)) == value for name, value in (word.split("=", 1) for word in wanted)):
            break
    else:
        sys.exit(f"{records}: no record with {' '.join(wanted)}")
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    config = TrainConfig(**record.config).to_json()
    write_json(place / CONFIG, config)
    write_json(place / RESULT, {**record.result, "config": config})
    with (place / METRICS).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["epoch", "accuracy"])
        writer.writerows(enumerate(record.accuracy_by_epoch, start=1))


if __name__ == "__main__":
    main(*sys.argv[1:])
