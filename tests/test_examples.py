"""Each example runs, at its smallest, and learns more than nothing."""

import pathlib
import re
import subprocess
import sys

import pytest
import small_runs

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
CHANCE = 10  # percent, of the sample's ten classes


def run(name, *arguments):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), "--tiny", *arguments],
        env=small_runs.environment(CAPSROUTE_OFFLINE="1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_an_example_runs_and_learns(name):
    told = run(name)
    accuracy = re.search(r"accuracy ([\d.]+)% on 500 test images of the sample", told)
    assert accuracy, told
    assert float(accuracy[1]) > 2 * CHANCE


def test_every_example_explains_itself():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"learned_lambda.py", "lightning_style.py", "resnet18_head.py", "token_capsules.py"}
    for name in names:
        assert f"python examples/{name} --tiny" in (EXAMPLES / name).read_text()


def test_learned_lambda_moves_in_every_layer():
    told = run("learned_lambda.py")
    rows = [re.findall(r"layer (\d) λ ([\d.]+)", line) for line in told.splitlines() if "λ" in line]
    assert len(rows) == 4  # the start and three epochs
    assert all([number for number, _ in row] == ["1", "2"] for row in rows)
    for (_, first), (_, last) in zip(rows[0], rows[-1], strict=True):
        assert float(first) == 1
        assert float(last) != 1


@pytest.mark.parametrize("name", ["resnet18_head.py", "token_capsules.py"])
def test_the_head_takes_another_routing(name):
    assert "Dynamic(" in run(name, "--routing", "dynamic")
