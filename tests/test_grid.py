"""Grids of options as a user writes them, and the runs that they stand for."""

import pathlib

import pytest

from capsroute import InputError
from capsroute.sweeps.grid import Axis, make_combinations, read_grids


def combinations(*words, seeds=1, store=pathlib.Path("store")):
    return make_combinations(read_grids(words), seeds, store)


def varied(*words):
    return [one.varied for one in combinations(*words)]


def changes(*words):
    """What the runs differ in from the defaults of `capsroute train`."""
    return [one.jobs[0].config.changes() for one in combinations(*words)]


def test_words_are_options_and_their_values():
    assert read_grids(["lam=1,2", "--batch-size=64", " flip = true"]) == [
        [Axis("lam", ("1", "2")), Axis("batch_size", ("64",)), Axis("flip", ("true",))]
    ]


def test_every_combination_of_the_values_the_last_option_first():
    assert varied("lam=1,2", "epochs=3", "preset=paper-2,paper-3") == [
        {"lam": "1", "preset": "paper-2"},
        {"lam": "1", "preset": "paper-3"},
        {"lam": "2", "preset": "paper-2"},
        {"lam": "2", "preset": "paper-3"},
    ]


def test_a_slash_starts_a_grid_on_top_of_the_first():
    """One change at a time: each further grid replaces values of the first, and no other's."""
    words = ["lr=1e-3", "epochs=5", "/", "lr=3e-4,3e-3", "/", "ema=0.99,0.999"]
    assert changes(*words) == [
        {"epochs": 5},
        {"epochs": 5, "lr": 3e-4},
        {"epochs": 5, "lr": 3e-3},
        {"epochs": 5, "ema": 0.99},
        {"epochs": 5, "ema": 0.999},
    ]
    assert varied(*words) == [
        {"lr": "1e-3"},
        {"lr": "3e-4"},
        {"lr": "3e-3"},
        {"lr": "1e-3", "ema": "0.99"},
        {"lr": "1e-3", "ema": "0.999"},
    ]


def test_what_several_grids_name_is_run_once():
    assert varied("lam=1,2", "/", "lam=2,3", "/") == [{"lam": "1"}, {"lam": "2"}, {"lam": "3"}]


def test_seeds_are_runs_of_one_combination():
    first, second = combinations("lam=1,2", seeds=3)
    assert [job.config.seed for job in first.jobs] == [0, 1, 2]
    assert {job.title for job in second.jobs} == {"lam=2"}
    folders = {job.folder for one in (first, second) for job in one.jobs}
    assert len(folders) == 6
    assert all(job.folder.name.startswith(f"lam=1-seed{job.config.seed}-") for job in first.jobs)


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("capsules=1152x10,1152x256x10", [{"capsules": (1152, 10)}, {"capsules": (1152, 256, 10)}]),
        ("flip=true,false", [{"flip": True}, {}]),
        ("shift=none,1", [{}, {"shift": 1}]),
        ("deterministic=true,False,none", [{"deterministic": True}, {"deterministic": False}, {}]),
        ("cuda_graphs=false", [{"cuda_graphs": False}]),
        ("keep=net,result", [{}, {}]),  # what is kept makes no other run
        ("lam=learned,0.5", [{"lam": "learned"}, {"lam": "0.5"}]),
        ("dataset=sample", [{"dataset": "sample"}]),
    ],
)
def test_values_are_read_as_the_command_line_would(word, values):
    assert changes(word) == values


def test_names_of_folders_are_names_of_folders():
    for one in combinations("dataset=/some/where/quarters.npz,sample", "capsules=1152x10"):
        folder = one.jobs[0].folder
        assert folder.parent == pathlib.Path("store")
        assert folder.name.startswith(("dataset=quarters.npz-seed0-", "dataset=sample-seed0-"))
    (one,) = combinations("lam=2")
    assert one.jobs[0].folder.name.startswith("run-seed0-")
    assert one.jobs[0].title == "the run"
    words = [f"{name}=0.{'1' * 30},0.2" for name in ("lr", "ema", "rise", "weight_decay", "drop_capsules")]
    assert max(len(one.jobs[0].folder.name) for one in combinations(*words)) < 200


def test_a_grown_grid_finds_the_runs_that_it_has(tmp_path):
    """What was the one value is now one of two, so that folders have other names."""
    (alone,) = combinations("epochs=2", "lam=1", store=tmp_path)
    alone.jobs[0].folder.mkdir()
    first, second = combinations("epochs=2", "lam=1,2", store=tmp_path)
    assert first.jobs[0].folder == alone.jobs[0].folder
    assert first.jobs[0].title == "lam=1"
    assert second.jobs[0].folder.name.startswith("lam=2-seed0-")


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("lam", "--grid lam: write an option and its values, like lam=1,2,3"),
        ("lam=", "write an option and its values"),
        ("lam=1,,2", "--grid lam=1,,2: a value is missing beside a comma"),
        ("lam=1,", "a value is missing beside a comma"),
        ("lamda=1", "a training run has no option 'lamda'; did you mean 'lam'?"),
        ("seed=1,2", "the sweep itself decides seed; use --store, --seeds or --quiet"),
        ("out=here", "the sweep itself decides out"),
        ("epochs=many", "--grid epochs=many: not what `capsroute train` takes"),
        ("epochs=0", "epochs=0 must be a whole number of at least 1"),
        ("preset=paper-9", "invalid choice 'paper-9'"),
        ("compile=perhaps", "not what `capsroute train` takes"),
    ],
)
def test_refusals_name_the_word(word, sentence):
    with pytest.raises(InputError) as error:
        combinations(word)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_an_option_given_twice_is_refused():
    with pytest.raises(InputError, match="lam is given twice; write all its values in one word"):
        combinations("lam=1", "lam=2")
