import pathlib
import subprocess
import sys

import capsroute

COMMAND = str(pathlib.Path(sys.executable).with_name("capsroute"))


def run(*arguments):
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)


def test_routings_lists_every_routing_with_its_paper():
    done = run("routings")
    assert done.returncode == 0
    assert not done.stderr
    for entry in capsroute.ROUTINGS.values():
        assert entry.name in done.stdout
        assert entry.paper.split(":")[0] in done.stdout


def test_version():
    assert run("--version").stdout == f"capsroute {capsroute.__version__}\n"


def test_unknown_command_exits_2_without_a_traceback():
    done = run("routing")
    assert done.returncode == 2
    assert "Traceback" not in done.stdout + done.stderr
