"""What strangers wrote is printed, never obeyed."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.cli.output import inert, print_json, print_page, text_of, to_json

HOSTILE = "\x1b]0;owned\x07\x1b[31mred\u202egnp.exe\u2066\x9b2J\r\n\u2028\x7f"


@given(st.text())
def test_inert_text_has_nothing_live(text: str) -> None:
    """Whatever the text, what is printed holds no control, format or separator character."""
    assert inert(text).isprintable()


def test_inert_keeps_what_people_write() -> None:
    """Letters of every script and ordinary punctuation stay as they are."""
    assert inert("Zoë, 東京 — ok") == "Zoë, 東京 — ok"


@pytest.mark.parametrize("value", [HOSTILE, [HOSTILE], {HOSTILE: HOSTILE}])
def test_values_in_tables_are_inert(value: object) -> None:
    """Strings, lists and objects from payloads cannot steer a terminal."""
    assert text_of(value).isprintable()


@given(st.text())
@example("\x7f")
def test_json_is_exact_and_printable(text: str) -> None:
    """JSON output gives back exactly what was there, in printable ASCII."""
    printed = to_json(text)

    assert json.loads(printed) == text
    assert printed.isascii()
    assert printed.isprintable()


def page(text: str) -> dict[str, object]:
    """Return a page with one item."""
    return {"items": [{"name": text}], "next": "c1"}


def test_a_table_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """A table has a heading, inert cells, and says on stderr how to go on."""
    print_page(page("a\x1bb"), {"NAME": "name"}, "table", "vouchback things list")
    out, err = capsys.readouterr()

    assert out == "NAME\na\\x1bb\n"
    assert err == "more: vouchback things list --before c1\n"


def test_ndjson_is_one_item_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Newline-delimited JSON holds nothing but the items."""
    print_page(page("x\ny"), {"NAME": "name"}, "ndjson", "")
    out, err = capsys.readouterr()

    assert (out, err) == ('{"name": "x\\ny"}\n', "")


def test_ndjson_of_one_thing_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A reader of lines gets one line a document, of single things too."""
    print_json({"a": [1]}, "ndjson")

    assert capsys.readouterr().out == '{"a": [1]}\n'


def test_an_empty_table_prints_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    """A script that counts lines counts none."""
    print_page({"items": [], "next": None}, {"NAME": "name"}, "table", "")

    assert capsys.readouterr() == ("", "none\n")
