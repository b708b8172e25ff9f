"""What the page's server answers: the page and its events. No file of this machine, no other site's page, no relays.

Gradio serves more than a page needs (uploads, files by path, proxies). The explorer sends pictures inside events, so
all of that is shut, whatever a later Gradio adds to it.
"""

import json
import re
from typing import Any

MOST_BODY = 12 << 20  # a picture of 8 MB in base64, and what goes with it
ANSWERED = re.compile(
    r"/|/config/?|/theme\.css|/gradio_api/theme\.css|/favicon\.ico|/robots\.txt|/manifest\.json"
    r"|/(?:assets|static|svelte)/[\w@.+~/-]*"
    r"|/gradio_api/(?:info|startup-events|app_id|queue/join|queue/data|cancel|reset|heartbeat/[\w-]+)/?"
)
HOSTS = ("127.0.0.1", "localhost")

Message = dict[str, Any]


class Guard:
    """ASGI middleware before everything else."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        status = refusal(scope["method"], scope["path"], headers)
        body = b""
        if status is None and scope["method"] == "POST":
            body = await _whole(receive)
            status = 413 if len(body) > MOST_BODY else 400 if names_a_file(body) else None
        if status is not None:
            await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"This is not part of the page.\n"})
            return
        given = False

        async def receive_again() -> Message:
            nonlocal given
            if given or scope["method"] != "POST":
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, receive_again, send)


def refusal(method: str, path: str, headers: dict[str, str]) -> int | None:
    """The status to refuse this request with, or None."""
    host = headers.get("host", "").rsplit(":", 1)[0]
    if host not in HOSTS:  # another site's name that was made to mean this machine
        return 421
    if headers.get("origin") not in (None, f"http://{headers['host']}"):  # another site's page, in the same browser
        return 403
    if method not in ("GET", "HEAD", "POST"):
        return 405
    if ".." in path or not ANSWERED.fullmatch(path):
        return 404
    if headers.get("content-length", "0").isdigit() and int(headers.get("content-length", "0")) > MOST_BODY:
        return 413
    return None


def names_a_file(body: bytes) -> bool:
    """Whether an event claims to have a file, which none of the page's has and which Gradio would fetch."""
    try:
        waiting = [json.loads(body or b"null")]
    except (ValueError, RecursionError):
        return True
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            if "path" in value or "meta" in value:
                return True
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return False


async def _whole(receive: Any) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body") or len(body) > MOST_BODY:
            return body
