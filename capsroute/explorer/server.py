"""The page's server, on this machine only."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from capsroute.errors import InputError
from capsroute.explorer.stage import Stage

HOST = "127.0.0.1"


def require_gradio() -> None:
    """One sentence where the extra is missing; nothing is imported yet, which takes seconds."""
    if find_spec("gradio") is None:
        raise InputError("the explorer needs Gradio: pip install 'capsroute[explore]'")


@contextmanager
def serving(stage: Stage, port: int | None) -> Iterator[str]:
    """The page's address, for as long as it is served; on a free port from 7860, if none is given."""
    # Before the import: Gradio would tell its makers of it, and of the page.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    from starlette.middleware import Middleware

    from capsroute.explorer.guard import Guard
    from capsroute.explorer.page import launch_options, make_page

    page = make_page(stage)
    try:
        _, address, _ = page.queue(default_concurrency_limit=2).launch(
            server_name=HOST,
            server_port=port,
            inbrowser=False,
            share=False,
            quiet=True,
            prevent_thread_lock=True,
            show_error=False,
            ssr_mode=False,
            mcp_server=False,
            pwa=False,
            enable_monitoring=False,
            max_file_size=1,  # nothing is uploaded: pictures come in events
            allowed_paths=[],
            app_kwargs={"middleware": [Middleware(Guard)], "docs_url": None, "redoc_url": None, "openapi_url": None},
            **launch_options(),
        )
    except OSError as error:
        raise InputError(f"port {port or 'from 7860 on'} of {HOST} is in use; give another --port") from error
    try:
        yield address
    finally:
        page.close(verbose=False)
