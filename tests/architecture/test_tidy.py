"""The form of the house: sizes, names, docstrings, and a few things that are never written.

The aims (a module of 250 lines, a function of 25) are for people; the limits here are for everybody.
Whoever needs more room adds a line to `LONGER` with the reason, in a commit of its own.
"""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT = ("gateway", "reconciler", "verifiers")
CODE = (*PRODUCT, "tests", "bench", "docs")

MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60

#: "path" or "path::function": (lines, reason).
LONGER: dict[str, tuple[int, str]] = {}

#: What a module is called when nobody knows what it is for.
NAMELESS = re.compile(
    r"(utils?|helpers?|common|managers?|services?|handlers?|misc|base)", re.IGNORECASE
)
LEFT_BEHIND = re.compile(r"#\s*(TODO|FIXME|XXX|HACK)\b")

Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Takes a file's name and source; returns what is wrong, each with file and line.
Check = Callable[[str, str], list[str]]


def _sources(parts: tuple[str, ...]) -> list[str]:
    paths = [path for part in parts for path in sorted((ROOT / part).rglob("*.py"))]
    return [str(path.relative_to(ROOT)) for path in paths]


def _functions(tree: ast.AST) -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node


def _lines(node: Function) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def _too_long(name: str, source: str) -> list[str]:
    sizes = {name: (1, len(source.splitlines()), MODULE_LINES_MAX)} | {
        f"{name}::{node.name}": (node.lineno, _lines(node), FUNCTION_LINES_MAX)
        for node in _functions(ast.parse(source))
    }
    return [
        f"{name}:{line}: {what} has {size} lines, {LONGER.get(what, (most,))[0]} are allowed"
        for what, (line, size, most) in sizes.items()
        if size > LONGER.get(what, (most,))[0]
    ]


def _swallowed(name: str, source: str) -> list[str]:
    """Find `except:` and `except Exception: pass`: errors that nobody will ever hear of."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.ExceptHandler):
            continue
        everything = node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"}
        silent = all(isinstance(step, ast.Pass) for step in node.body)
        if node.type is None or (everything and silent):
            found.append(f"{name}:{node.lineno}: name the exception, or let it go on")
    return found


def _left_behind(name: str, source: str) -> list[str]:
    return [
        f"{name}:{number}: file an issue instead: {line.strip()}"
        for number, line in enumerate(source.splitlines(), start=1)
        if LEFT_BEHIND.search(line)
    ]


def _promises(name: str, source: str) -> list[str]:
    """Find tests whose docstring does not begin with one sentence."""
    return [
        f"{name}:{node.lineno}: {node.name} needs one sentence that states the promise"
        for node in _functions(ast.parse(source))
        if node.name.startswith("test_") and not _is_sentence(ast.get_docstring(node))
    ]


def _is_sentence(text: str | None) -> bool:
    """Whether the first paragraph is one sentence; what a reader must know besides may follow."""
    promise = (text or "").partition("\n\n")[0]
    return promise.endswith(".") and not re.search(r"[.]\s", promise)


def _openings(name: str, source: str) -> list[str]:
    """Find a module without a docstring that says what it is for."""
    if not source or ast.get_docstring(ast.parse(source)):
        return []
    return [f"{name}:1: say what the module is for, what it promises, what it does not do"]


def _faults(check: Check, parts: tuple[str, ...]) -> str:
    """Return what `check` finds in these parts, a line each."""
    found = [check(name, (ROOT / name).read_text()) for name in _sources(parts)]
    return "\n".join(fault for faults in found for fault in faults)


def test_modules_and_functions_are_short() -> None:
    """A module fits in a head and a function on a screen."""
    assert _faults(_too_long, CODE) == ""


def test_modules_have_names_that_say_something() -> None:
    """A module is called after what it is or does."""
    names = [part for name in _sources(CODE) for part in Path(name).with_suffix("").parts]

    assert sorted({name for name in names if NAMELESS.fullmatch(name.removeprefix("test_"))}) == []


def test_modules_say_what_they_are_for() -> None:
    """Every module of the product opens with a docstring."""
    assert _faults(_openings, PRODUCT) == ""


def test_tests_state_their_promise() -> None:
    """Every test says in one sentence what it holds us to."""
    assert _faults(_promises, ("tests",)) == ""


def test_nothing_is_left_behind() -> None:
    """What is still to do stands in an issue, not in the code."""
    assert _faults(_left_behind, CODE) == ""


def test_no_error_is_swallowed() -> None:
    """No exception of unknown kind ends in silence."""
    assert _faults(_swallowed, CODE) == ""


def test_exceptions_are_still_needed() -> None:
    """A longer limit that nobody uses any more is taken back."""
    unused = [what for what in LONGER if not _is_long(what)]

    assert unused == []


def _is_long(what: str) -> bool:
    name, _, function = what.partition("::")
    if not (ROOT / name).exists():
        return False
    source = (ROOT / name).read_text()
    if not function:
        return len(source.splitlines()) > MODULE_LINES_MAX
    nodes = [node for node in _functions(ast.parse(source)) if node.name == function]
    return any(_lines(node) > FUNCTION_LINES_MAX for node in nodes)


LONG = "def f() -> None:\n" + "    print()\n" * FUNCTION_LINES_MAX


@pytest.mark.parametrize(
    ("check", "source"),
    [
        (_too_long, LONG),
        (_too_long, "x = 1\n" * (MODULE_LINES_MAX + 1)),
        (_swallowed, "try:\n    f()\nexcept:\n    raise\n"),
        (_swallowed, "try:\n    f()\nexcept Exception:\n    pass\n"),
        (_left_behind, "x = 1  # TO" + "DO later\n"),
        (_promises, "def test_it() -> None:\n    assert True\n"),
        (_promises, 'def test_it() -> None:\n    """Two. Sentences."""\n'),
        (_openings, "x = 1\n"),
    ],
)
def test_the_rules_bite(check: Check, source: str) -> None:
    """Each of these rules finds an offence, and names file and line."""
    [fault] = check("some/file.py", source)

    assert re.match(r"some/file\.py:\d+: ", fault)
