"""The API as the command line calls it: stdlib `http.client`, JSON, one bearer token.

Answers are values; everything else becomes one `CommandError` with an exit code and a next step.
It follows no redirects, knows no proxies and keeps no connection.
"""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from gateway.cli.errors import CommandError, Exit

_ANSWER_BYTES_MAX = 64 << 20
_CODES: Mapping[int, Exit] = {
    HTTPStatus.UNAUTHORIZED: Exit.AUTH,
    HTTPStatus.FORBIDDEN: Exit.AUTH,
    HTTPStatus.NOT_FOUND: Exit.NOT_FOUND,
    HTTPStatus.CONFLICT: Exit.CONFLICT,
    HTTPStatus.REQUEST_TIMEOUT: Exit.TIMED_OUT,
    HTTPStatus.GATEWAY_TIMEOUT: Exit.TIMED_OUT,
}
_SERVER_ERROR = 500
_REFUSED = 400


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: status, lower-cased header names, body."""

    status: int
    headers: dict[str, str]
    body: bytes


def exchange(
    url: str,
    method: str,
    path: str,
    *,
    headers: list[tuple[str, str]],
    body: bytes | None = None,
    timeout_s: float = 15.0,
) -> Answer:
    """Send one request to `url` + `path`; any status is an answer, no answer is an error."""
    try:
        return _exchange(url, method, path, headers=headers, body=body, timeout_s=timeout_s)
    except TimeoutError:
        raise CommandError(
            f"no answer from {url} within {timeout_s:g} s", Exit.TIMED_OUT, "the same again"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        what = getattr(error, "strerror", None) or type(error).__name__
        raise CommandError(
            f"cannot reach {url}: {what}",
            Exit.UNREACHABLE,
            "start it with `vouchback serve` or `vouchback dev`, or name it with --url",
        ) from None


def _exchange(
    url: str,
    method: str,
    path: str,
    *,
    headers: list[tuple[str, str]],
    body: bytes | None,
    timeout_s: float,
) -> Answer:
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=timeout_s)
    try:
        connection.putrequest(method, parts.path.rstrip("/") + path, skip_accept_encoding=True)
        for name, value in headers:
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.putheader("Connection", "close")
        connection.endheaders(body)
        response = connection.getresponse()
        names = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, names, response.read(_ANSWER_BYTES_MAX))
    finally:
        connection.close()


class Api:
    """The internal listener's API. `token` is `None` where there is none yet."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = url
        self._token = token

    def get(self, path: str, **query: str | int | None) -> Any:
        """Return the JSON document at `path`."""
        return self._json(self.call("GET", _with(path, query)))

    def get_bytes(self, path: str) -> bytes:
        """Return the raw body at `path`."""
        return self.call("GET", path).body

    def post(self, path: str, document: Any) -> tuple[int, Any]:
        """Send a JSON document; return the status and the document that came back."""
        answer = self.call("POST", path, json.dumps(document).encode())
        return answer.status, self._json(answer) if answer.body else None

    def page(self, path: str, limit: int, **query: str | int | None) -> dict[str, Any]:
        """Return up to `limit` items, over as many pages as that takes, as one page."""
        items: list[Any] = []
        while True:
            page = self.get(path, **query, limit=min(limit - len(items), 200))
            items += page["items"]
            query["before"] = page["next"]
            if page["next"] is None or len(items) >= limit or not page["items"]:
                return {"items": items, "next": page["next"]}

    def call(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """Make one call; `CommandError` unless the answer is a success."""
        headers = [("Accept", "application/json")]
        if self._token is not None:
            headers.append(("Authorization", f"Bearer {self._token}"))
        if body is not None:
            headers.append(("Content-Type", "application/json"))
        answer = exchange(self.url, method, path, headers=headers, body=body)
        if answer.status >= _REFUSED:
            raise problem(answer, has_token=self._token is not None)
        return answer

    def _json(self, answer: Answer) -> Any:
        try:
            return json.loads(answer.body)
        except ValueError:
            raise CommandError(
                f"{self.url} answered {answer.status} with something that is no JSON",
                Exit.UNREACHABLE,
                "check that --url names the internal listener of vouchback",
            ) from None


def problem(answer: Answer, *, has_token: bool) -> CommandError:
    """Return a problem document (RFC 9457), or any refusal, as one clear line and an exit code."""
    try:
        document = json.loads(answer.body)
        told = [document.get("detail"), document.get("title")]
    except (ValueError, AttributeError):
        told = []
    texts = [text for text in told if isinstance(text, str) and text]
    line = texts[0] if texts else f"the server answered {answer.status}"
    otherwise = Exit.UNREACHABLE if answer.status >= _SERVER_ERROR else Exit.USAGE
    code = _CODES.get(answer.status, otherwise)
    return CommandError(line, code, _next_step(answer, has_token=has_token))


def _next_step(answer: Answer, *, has_token: bool) -> str | None:
    if answer.status == HTTPStatus.UNAUTHORIZED:
        if has_token:
            return "another token: --token file:PATH, or $VOUCHBACK_TOKEN"
        return "a token: --token file:PATH, $VOUCHBACK_TOKEN, or the server's admin.token"
    if answer.status == HTTPStatus.FORBIDDEN:
        return "a token with another role (`vouchback token list` shows them)"
    after = answer.headers.get("retry-after")
    return f"the same again in {after} s" if after and after.isascii() and after.isdigit() else None


def segment(text: str) -> str:
    """Return `text` as one segment of a path, whatever is in it."""
    return quote(text, safe="")


def _with(path: str, query: dict[str, str | int | None]) -> str:
    given = {name: value for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path
