"""What can be wrong with a node: its configuration, folder, addresses, and what answers there."""

import errno
import ipaddress
import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from gateway.cli.client import exchange
from gateway.cli.errors import CommandError
from gateway.cli.invocation import addresses
from gateway.cli.output import inert, to_json
from gateway.cli.parts import Parts
from gateway.config import Config, split_listen
from gateway.http.server import ListenError, bind
from reconciler.config import ConfigError
from reconciler.storage.finding import Finding, Level

#: nginx, AWS and Google load balancers keep idle connections for 60 s or 10 min towards us at most;
#: 60 s is what most are set to.
PROXY_IDLE_S = 60
_ANSWER_S = 5.0
_OTHERS = 0o077


def configuration(config: Config) -> Iterator[Finding]:
    """Yield whether everything compiles that a start would compile, secrets included."""
    try:
        parts = Parts.build(config)
    except ConfigError as error:
        for line in str(error).splitlines():
            yield Finding("configuration", Level.FAILED, line)
        return
    count = f"{len(parts.sources.all())} sources, {len(parts.profiles)} profiles"
    yield Finding("configuration", Level.OK, f"{config.where()}: {count}, every secret is there")


def folder(config: Config) -> Iterator[Finding]:
    """Yield whether others can read what this node keeps."""
    place = config.data_folder()
    if not place.is_dir():
        yield Finding("folder", Level.OK, f"{place} is not there yet; the first start makes it")
        return
    open_to_others = [path for path in (place, place / "admin.token") if _is_open(path)]
    for path in open_to_others:
        level = Level.WARNING if path.is_dir() else Level.FAILED
        mode = "700" if path.is_dir() else "600"
        text = f"{path} can be read by others on this machine"
        yield Finding("folder", level, text, f"chmod {mode} {path}")
    if not open_to_others:
        yield Finding("folder", Level.OK, f"{place} is private")


def _is_open(path: Path) -> bool:
    return path.exists() and bool(path.stat().st_mode & _OTHERS)


def keep_alive(config: Config) -> Iterator[Finding]:
    """Yield whether a proxy in front closes idle connections before we do."""
    seconds = config.settings.limits.keep_alive_s
    text = (
        f"limits.keep_alive_s is {seconds:g}; proxies reuse connections idle for {PROXY_IDLE_S} s"
    )
    if seconds > PROXY_IDLE_S:
        yield Finding("keep-alive", Level.OK, text)
        return
    mend = "set it to 75, or shorter idle times in the proxy: a request is lost in the crossing"
    yield Finding("keep-alive", Level.WARNING, text, mend)


def urls(config: Config) -> Iterator[Finding]:
    """Yield whether providers can reach what they were given, and nobody else the inside."""
    settings = config.settings
    url, parts = settings.public.url, urlsplit(settings.public.url)
    if _is_local(parts.hostname or ""):
        text = f"public.url is {url}, which no provider can reach"
        mend = "set it to the address that providers were given, as they call it"
        yield Finding("public.url", Level.WARNING, text, mend)
    elif parts.scheme != "https":
        text = f"public.url is {url}: events and tokens travel readable"
        mend = "put a TLS proxy in front and write https://"
        yield Finding("public.url", Level.WARNING, text, mend)
    else:
        yield Finding("public.url", Level.OK, url)
    host, _ = split_listen(settings.internal.listen)
    if not _is_loopback(host):
        text = f"internal.listen is {settings.internal.listen}, which is more than this machine"
        mend = "see that only your own network reaches it, without TLS tokens travel readable"
        yield Finding("internal.listen", Level.WARNING, text, mend)


def _is_local(host: str) -> bool:
    """Tell whether a host is one that the internet does not know."""
    try:
        return not ipaddress.ip_address(host.strip("[]")).is_global
    except ValueError:
        return host == "localhost" or host.endswith((".local", ".internal", ".localhost"))


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listeners(config: Config) -> Iterator[Finding]:
    """Yield for each address whether it is free or ours, and what a running node says of itself."""
    settings = config.settings
    url = addresses(config).get("internal") or f"http://{settings.internal.listen}"
    is_served = _status(url, "/livez") == "ok"
    for name, listen in (
        ("public", settings.public.listen),
        ("internal", settings.internal.listen),
    ):
        yield _listener(f"{name}.listen", listen, is_served=is_served)
    if is_served:
        yield _ready(url)


def _listener(setting: str, listen: str, *, is_served: bool) -> Finding:
    try:
        bind(*split_listen(listen), setting=setting).close()
    except ListenError as error:
        taken = getattr(error.__cause__, "errno", None) == errno.EADDRINUSE
        if taken and is_served:
            return Finding(setting, Level.OK, f"{listen} is served")
        mend = f"stop what listens there, or change {setting}" if taken else f"change {setting}"
        return Finding(setting, Level.FAILED, str(error), mend)
    return Finding(setting, Level.OK, f"{listen} is free")


def _ready(url: str) -> Finding:
    told = _document(url, "/readyz")
    if told.get("status") == "ok":
        return Finding("readyz", Level.OK, f"the node at {url} is ready: it can write durably")
    reasons = inert(to_json(told.get("reasons", "no answer")))
    mend = "its log says in a sentence what to change (storage_unready)"
    return Finding("readyz", Level.FAILED, f"the node at {url} is not ready: {reasons}", mend)


def _status(url: str, path: str) -> object:
    return _document(url, path).get("status")


def _document(url: str, path: str) -> dict[str, object]:
    try:
        found = json.loads(exchange(url, "GET", path, headers=[], timeout_s=_ANSWER_S).body)
    except (CommandError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
