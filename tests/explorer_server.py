"""The command in a process of its own that notes whom it asks for or connects to: NOTES explore [RUN] ...

With TINY in the environment, what the page trains is trained in seconds.
"""

import os
import sys

from capsroute.cli import main
from capsroute.explorer import training

HERE = ("127.0.0.1", "localhost", "::1", "0.0.0.0", None)


def note(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    host = host.decode() if isinstance(host, bytes) else host
    if host not in HERE:
        with open(sys.argv[1], "a") as notes:
            notes.write(f"{event} {host}\n")


if __name__ == "__main__":
    sys.addaudithook(note)
    if "TINY" in os.environ:
        training.RECIPE |= {"limit": 256, "epochs": 1, "batch_size": 64}
    sys.exit(main(sys.argv[2:]))
