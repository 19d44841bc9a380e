"""Who may import whom: one table, read from the source by its syntax tree.

Layers: gateway → reconciler → verifiers. The most specific row of `RULES` counts for a module. An
import inside a function counts like any other. docs/architecture.md says what each part is for.
"""

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "reconciler", "verifiers")

#: The standard library without clock, randomness and I/O: the same input, the same output.
PURE = (
    "__future__", "base64", "binascii", "calendar", "collections", "dataclasses", "difflib", "enum",
    "functools", "hashlib", "hmac", "itertools", "json", "math", "operator", "re", "string",
    "types", "typing", "unicodedata", "urllib.parse", "zlib",
)  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """What the modules of a part may import; `std` is `None` for the whole standard library."""

    part: str
    ours: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    std: tuple[str, ...] | None = None


STORAGE = ("reconciler.storage.contract", "reconciler.storage.errors")
WORKING = ("reconciler.domain", *STORAGE, "reconciler.providers", "reconciler.logs", "verifiers")
CORE = ("reconciler.domain", *STORAGE, "reconciler.config", "reconciler.logs", "verifiers")
EDGE = ("gateway.cli", "gateway.demo")
# The presets are data files beside the code: reading them is no I/O that an input could steer.
PRESETS = ("importlib.resources", "tomllib")

RULES = (
    # Is this request what it claims? The same answer everywhere, for ever.
    Rule("verifiers", ("verifiers",), others=("cryptography", "joserfc"), std=PURE + PRESETS),
    # The durable core.
    Rule("reconciler.domain", ("reconciler.domain",), std=PURE),
    Rule("reconciler.config", others=("pydantic",)),
    Rule("reconciler.logs", others=("structlog",)),
    Rule("reconciler.storage", ("reconciler.domain", "reconciler.storage")),
    Rule(
        "reconciler.storage.sqlite", ("reconciler.domain", "reconciler.storage"), others=("apsw",)
    ),
    Rule(
        "reconciler.storage.redis", ("reconciler.domain", "reconciler.storage"), others=("redis",)
    ),
    Rule("reconciler.providers", ("reconciler.domain", "reconciler.providers", "verifiers.table")),
    # Joins a profile with the section that uses it.
    Rule(
        "reconciler.providers.provider",
        ("reconciler.domain", "reconciler.config", "reconciler.providers"),
    ),
    # The only module of the server that makes HTTP calls.
    Rule(
        "reconciler.providers.client",
        ("reconciler.domain", "reconciler.providers"),
        others=("httpx",),
    ),
    Rule("reconciler.effects", (*WORKING, "reconciler.effects")),
    Rule("reconciler.worker", (*WORKING, "reconciler.effects")),
    Rule("reconciler.upkeep", (*STORAGE, "reconciler.domain", "reconciler.logs")),
    # The HTTP edge. Nothing durable is decided here, and nothing is opened.
    Rule("gateway", ("gateway", *CORE), never=EDGE, others=("starlette",)),
    Rule("gateway.config", ("reconciler.config",), others=("pydantic",)),
    Rule("gateway.http", ("gateway.http",), others=("uvicorn", "httptools")),
    # Somebody else's system in disguise: it shares nothing with what it tries but `equal`.
    Rule("gateway.demo", ("gateway.demo", "verifiers.encoding"), others=("starlette",)),
    Rule("gateway.cli", ("gateway", *CORE), others=("click", "uvloop")),
    # The composition roots: here, and nowhere else, a ledger is opened and a worker started.
    Rule("gateway.cli.parts", ("gateway", "reconciler", "verifiers")),
    Rule("gateway.cli.ledger", ("gateway", "reconciler")),
    Rule("gateway.cli.doctor", ("gateway", "reconciler"), others=("click",)),
    Rule("gateway.cli.runtime", ("gateway", "reconciler", "verifiers")),
)


def _within(name: str, parts: tuple[str, ...]) -> bool:
    return any(name == part or name.startswith(f"{part}.") for part in parts)


def _rule(module: str) -> Rule | None:
    fitting = [rule for rule in RULES if _within(module, (rule.part,))]
    return max(fitting, key=lambda rule: len(rule.part), default=None)


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and full name of everything that is imported, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)


def _allowed(rule: Rule, name: str) -> bool:
    if _within(name, PACKAGES):
        return _within(name, rule.ours) and not _within(name, rule.never)
    if name.partition(".")[0] in sys.stdlib_module_names:
        return rule.std is None or _within(name, rule.std)
    return _within(name, rule.others)


def _faults(module: str, source: str, where: str) -> list[str]:
    """Return a sentence for each import that its rule does not allow."""
    rule = _rule(module)
    if rule is None:
        return [f"{where}: {module} has no row in RULES"]
    return [
        f"{where}:{line}: {rule.part} may not import {name} (the row {rule.part!r} of RULES)"
        for line, name in _imports(ast.parse(source))
        if not _allowed(rule, name)
    ]


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _sources() -> list[Path]:
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    return [path for path in paths if path.stat().st_size]


def test_every_import_is_allowed() -> None:
    """Every module imports only what its layer may know of."""
    faults = [
        fault
        for path in _sources()
        for fault in _faults(_module(path), path.read_text(), str(path.relative_to(ROOT)))
    ]

    assert "\n".join(faults) == ""


def test_every_row_is_about_something() -> None:
    """A row for a part that is gone does not stay behind."""
    modules = [_module(path) for path in _sources()]
    stale = [rule.part for rule in RULES if not any(_within(m, (rule.part,)) for m in modules)]

    assert stale == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("verifiers.verify", "import time"),
        ("verifiers.verify", "from datetime import datetime"),
        ("verifiers.verify", "import reconciler.domain.event"),
        ("verifiers.keys", "def f():\n    import os"),
        ("verifiers.keys", "import requests"),
        ("reconciler.domain.decide", "from random import random"),
        ("reconciler.domain.decide", "from reconciler import logs"),
        ("reconciler.storage.contract", "import apsw"),
        ("reconciler.storage.sqlite.work", "from reconciler.providers import client"),
        ("reconciler.storage.sqlite.work", "import redis"),
        ("reconciler.providers.request", "import httpx"),
        ("reconciler.providers.profile", "from reconciler.config import resolve_secret"),
        ("reconciler.providers.profile", "from verifiers import verify"),
        ("reconciler.effects.collect", "from reconciler.storage.sqlite.store import open_store"),
        ("reconciler.worker", "import gateway.config"),
        ("gateway.intake", "from reconciler.worker import Worker"),
        ("gateway.intake", "from reconciler.storage.sqlite.store import open_store"),
        ("gateway.routes.system", "from gateway.cli import parts"),
        ("gateway.cli.ops", "import httpx"),
        ("gateway.cli.ops", "if 1:\n    from reconciler.storage.sqlite import store"),
        ("gateway.app", "from .cli import runtime"),
    ],
)
def test_the_rules_bite(module: str, source: str) -> None:
    """An import across the layers is found, and the message names file, line and row."""
    [fault] = _faults(module, source, "some/file.py")

    assert fault.startswith(f"some/file.py:{source.count(chr(10)) + 1}: ")
    assert "of RULES" in fault
