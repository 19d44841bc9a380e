"""There is one place where secrets are compared."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "reconciler", "verifiers")

ONLY_PLACE = ("verifiers/encoding.py", "equal")

# A name is about a secret when one of its words is in the first set and none in the second:
# an idempotency token is no secret, and the size or prefix of a signature is public.
SECRET_WORDS = {"signature", "signatures", "mac", "hmac", "secret", "token", "password"}
PUBLIC_WORDS = {
    "idempotency",
    "idempotence",
    "reference",
    "prefix",
    "bytes",
    "id",
    "kind",
    "count",
    "size",
}


def _sources() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def _name(node: ast.expr) -> str:
    """Return the last name of an expression: of `self.key.secret.encode()` it is `secret`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    if isinstance(node, ast.Subscript):
        key = node.slice
        return str(key.value) if isinstance(key, ast.Constant) else _name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_secret(node: ast.expr) -> bool:
    words = set(_name(node).lower().split("_"))
    return bool(words & SECRET_WORDS) and not words & PUBLIC_WORDS


def _comparisons(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield comparisons of secret-like names with anything but a literal, and compare_digest."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "compare_digest":
            yield node
        if isinstance(node, ast.ImportFrom) and "compare_digest" in {a.name for a in node.names}:
            yield node
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            by_value = any(isinstance(op, (ast.Eq, ast.NotEq)) for op in node.ops)
            literal = any(isinstance(side, ast.Constant) for side in sides)
            if by_value and not literal and any(_is_secret(side) for side in sides):
                yield node


def _allowed(tree: ast.Module, path: str) -> set[ast.AST]:
    """Return the nodes of the one function that may compare."""
    if path != ONLY_PLACE[0]:
        return set()
    functions = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == ONLY_PLACE[1]]
    return {node for function in functions for node in ast.walk(function)}


@pytest.mark.parametrize("path", _sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_secrets_are_compared_in_one_function(path: Path) -> None:
    """Signatures, tokens and secrets are compared by `verifiers.encoding.equal` only (F11)."""
    relative = str(path.relative_to(ROOT))
    tree = ast.parse(path.read_text("utf-8"))
    allowed = _allowed(tree, relative)

    found = [f"{relative}:{n.lineno}" for n in _comparisons(tree) if n not in allowed]  # type: ignore[attr-defined]

    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        "given_signature == expected",
        "expected != self.token",
        "row['secret'] == other",
        "secret.encode() == other",
        "hmac.compare_digest(a, b)",
        "from hmac import compare_digest",
        "from secrets import compare_digest as same",
    ],
)
def test_the_rule_sees_a_comparison(text: str) -> None:
    """The test above would see each of these."""
    assert len(list(_comparisons(ast.parse(text)))) == 1


@pytest.mark.parametrize(
    "text", ["signature_bytes == 32", "idempotency_token == other", "secret is None"]
)
def test_the_rule_leaves_public_things_alone(text: str) -> None:
    """Sizes, public tokens and identity are not comparisons of secrets."""
    assert list(_comparisons(ast.parse(text))) == []


def test_the_one_function_exists() -> None:
    """The function that the rule excepts is where the rule says."""
    tree = ast.parse((ROOT / ONLY_PLACE[0]).read_text("utf-8"))

    assert any("compare_digest" in ast.dump(node) for node in _allowed(tree, ONLY_PLACE[0]))
