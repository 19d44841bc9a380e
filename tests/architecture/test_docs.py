"""What is written about the product is true: configuration, diagram, reasons, snippets, links."""

import ast
import re
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from docs.generate import PAGES
from gateway.cli.parts import Parts
from gateway.config import KeySection, Settings, load_config
from gateway.http.refusal import Refusal
from gateway.intake import Unread
from reconciler.domain import journal
from reconciler.providers.profile import read_profile
from verifiers.handshake import Unmet
from verifiers.preset import parse_preset
from verifiers.verdict import Flag, Reason

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "config.example.toml"
PAGE_FILES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SECRET = "a-secret-of-the-tests-that-is-long-enough"


def _id(path: Path) -> str:
    return str(path.relative_to(ROOT))


# ---------------------------------------------------------------- configuration


def _uncommented(text: str) -> str:
    """Switch on the settings that are off: `#name` is one, `# Text` is prose."""
    return re.sub(r"(?m)^#(?=[a-z\[])", "", text)


def _models(model: type[BaseModel], table: dict[str, Any]) -> Iterator[tuple[str, set[str]]]:
    """Yield the settings of each section and, if the table has any, what it leaves out."""
    for name, field in model.model_fields.items():
        for section in (field.annotation, *getattr(field.annotation, "__args__", ())):
            if isinstance(section, type) and issubclass(section, BaseModel):
                shown = table.get(name, {})
                tables = [shown] if isinstance(field.default, section) else list(shown.values())
                yield name, set(section.model_fields) - {key for one in tables for key in one}


def test_the_example_shows_the_defaults() -> None:
    """What config.example.toml sets is what holds without any configuration."""
    live = Settings.model_validate(tomllib.loads(EXAMPLE.read_text()))

    assert Settings() == live


def test_the_example_sets_every_default() -> None:
    """A setting with a default is written out, not left to be found in the code."""
    live = tomllib.loads(EXAMPLE.read_text())
    sections = {name: Settings.model_fields[name].annotation for name in live}
    missing = {
        name: {key for key, field in type_.model_fields.items() if field.default is not None}
        - set(live[name])
        for name, type_ in sections.items()
    }

    assert {
        name: set() for name in Settings.model_fields if name not in {"sources", "profiles"}
    } == missing


def test_the_example_shows_every_setting() -> None:
    """Also the optional settings of sources, keys and profiles have a place in the example."""
    whole = tomllib.loads(_uncommented(EXAMPLE.read_text()))
    missing = {name: left for name, left in _models(Settings, whole) if left}
    keys = [key for source in whole["sources"].values() for key in source.get("keys", ())]

    assert missing == {}
    assert set(KeySection.model_fields) == {name for key in keys for name in key}


def test_the_example_works_when_it_is_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that is commented out in the example builds, once its secrets exist."""
    monkeypatch.setenv("VOUCHBACK_EGRESS__ALLOW", '["http://127.0.0.0/8:9400"]')
    _snippet("render-farm.toml", tmp_path / "profiles")

    parts = _built(_uncommented(EXAMPLE.read_text()), tmp_path, monkeypatch)

    named = [source.name for source in parts.sources.all()]
    assert named == ["fal", "github", "render-farm", "stripe"]
    assert {"demo", "github", "render-farm", "stripe"} == set(parts.providers)


def test_every_setting_is_read() -> None:
    """A setting that no code reads does not exist."""
    sources = [*(ROOT / "gateway").rglob("*.py"), *(ROOT / "reconciler").rglob("*.py")]
    trees = [ast.parse(path.read_text()) for path in sources]
    read = {
        node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)
    }
    settings = {
        f"{section}.{key}"
        for section, field in Settings.model_fields.items()
        for kind in (field.annotation, *getattr(field.annotation, "__args__", ()))
        if isinstance(kind, type) and issubclass(kind, BaseModel)
        for key in kind.model_fields
        if key not in read
    }

    assert settings == set()


def _built(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Parts:
    """Build what a configuration describes; its secrets exist and are called `SECRET`."""
    for kind, name in re.findall(r'"(env|file|cred):([^"]+)"', text):
        if kind == "env":
            monkeypatch.setenv(name, SECRET)
        elif kind == "cred":
            monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
            (folder / name).write_text(SECRET)
        else:
            (folder / Path(name).name).write_text(SECRET)
            text = text.replace(f"file:{name}", f"file:{folder / Path(name).name}")
    file = folder / "vouchback.toml"
    file.write_text(text)
    return Parts.build(load_config(file))


# ---------------------------------------------------------------- snippets


def _blocks(path: Path, language: str) -> list[str]:
    found = re.findall(rf"(?ms)^( *)```{language}\n(.*?)^\1```", path.read_text())
    return [textwrap.dedent(block) for _, block in found]


def _snippet(name: str, folder: Path) -> None:
    """Write the profile that the how-to shows under this name."""
    page = ROOT / "docs" / "how-to" / "connect-a-provider.md"
    [text] = [block for block in _blocks(page, "toml") if block.startswith(f"# profiles/{name}")]
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)


SNIPPETS = [
    pytest.param(block, id=f"{_id(path)}-{number}")
    for path in PAGE_FILES
    for number, block in enumerate(_blocks(path, "toml"))
]


@pytest.mark.parametrize("block", SNIPPETS)
def test_every_toml_snippet_works(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A configuration, a profile or a preset that a page shows can be used as it stands."""
    if "[states]" in block:
        assert read_profile(block, "snippet.toml").states
        return
    if "[signature]" in block:
        assert parse_preset(tomllib.loads(block), "snippet.toml", block).secrets
        return
    _snippet("render-farm.toml", tmp_path / "profiles")
    parts = _built(block, tmp_path, monkeypatch)

    assert parts.sources.all() or parts.providers


def test_the_journal_page_shows_real_bytes() -> None:
    """The example entry of docs/journal.md is what the code writes and reads."""
    page = ROOT / "docs" / "journal.md"
    [block] = _blocks(page, "hex")
    entry = bytes.fromhex("".join(line[:40] for line in block.splitlines()))
    _, fields = journal.decode(entry)

    assert fields == {"digest": b"\x00\xff", "reason": None, "size": -2, "text": "hé"}
    assert journal.encode("example", fields) == entry


# ---------------------------------------------------------------- words


def test_generated_pages_are_current() -> None:
    """The state machine's page is made from the table; `make docs` writes it."""
    for name, page in PAGES.items():
        assert page() == (ROOT / "docs" / name).read_text()


def test_every_reason_is_documented() -> None:
    """docs/reasons.md has a row for each slug that a person can meet, and none for another."""
    page = (ROOT / "docs" / "reasons.md").read_text().partition("## Why a status read")[0]
    rows = re.findall(r"(?m)^\| `([a-z_]+)` \|", page)
    slugs = [*Reason, *Unread, *Unmet, *(refusal.slug for refusal in Refusal), *Flag, "weak"]

    assert sorted(str(slug) for slug in slugs) == sorted(rows)


# ---------------------------------------------------------------- pages


def test_the_readme_shows_both_commands() -> None:
    """The first page says how to see it run and how to test it."""
    commands = {line for block in _blocks(ROOT / "README.md", "sh") for line in block.splitlines()}

    assert {"make dev", "make test"} <= {line.partition("#")[0].strip() for line in commands}


def test_ci_runs_what_people_run() -> None:
    """.ci/run calls the targets of the Makefile, so CI and people see the same."""
    script = (ROOT / ".ci" / "run").read_text()

    assert re.findall(r"(?m)^\s*make (\w+)", script) == ["check", "test"]


@pytest.mark.parametrize("path", PAGE_FILES, ids=_id)
def test_links_lead_somewhere(path: Path) -> None:
    """Every relative link of a page names a file, and every anchor a heading, that exists."""
    broken = [link for link in _links(path) if not _leads_somewhere(path, link)]

    assert broken == []


def _links(path: Path) -> list[str]:
    prose = re.sub(r"(?ms)^( *)```.*?^\1```", "", path.read_text())
    links = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", prose)
    return [link for pair in links for link in pair if link and ":" not in link]


def _leads_somewhere(path: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = (path.parent / name).resolve() if name else path
    if not target.exists():
        return False
    return not anchor or anchor in {_anchor(line) for line in _headings(target)}


def _headings(path: Path) -> list[str]:
    return re.findall(r"(?m)^#+ (.*)$", path.read_text())


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_nothing_names_the_host_of_a_package_registry() -> None:
    """Where packages come from is the installation's choice, not the repository's."""
    hosts = [a + b for a, b in (("pypi.", "org"), ("python", "hosted.org"), ("npm", "js.org"))]
    found = [
        _id(path)
        for path in _files(ROOT)
        if any(host in path.read_text(errors="replace") for host in hosts)
    ]

    assert found == []


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            skipped = path.name.startswith(".") and path.name != ".ci"
            if not skipped and path.name not in {"__pycache__", "results", "dist"}:
                yield from _files(path)
        elif path.suffix != ".pyc":
            yield path
