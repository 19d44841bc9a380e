"""The guard over all URLs: total, and what it lets through goes out as it was checked."""

import httpx
from hypothesis import given
from hypothesis import strategies as st

from reconciler.providers.egress import Allowed, Denied, Policy, Target, check_url

POLICY = Policy(allowed=(Allowed.parse("http://127.0.0.0/8:9000"),))

_TAIL = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7F), max_size=40)
_HOST = st.sampled_from(
    ["a.example", "93.184.216.34", "[2606:4700::1111]", "127.0.0.1:9000", "0x7f.1"]
)
_URL = st.one_of(
    st.text(max_size=60),
    st.builds("{}://{}/{}".format, st.sampled_from(["https", "http", "HTTPS"]), _HOST, _TAIL),
    st.builds("https://{}/{}".format, _TAIL, _TAIL),
)


@given(_URL)
def test_the_guard_is_total_and_what_passes_is_unchanged(url: str) -> None:
    """Any text is a target or a denial; a target's path reaches the wire byte for byte."""
    outcome = check_url(url, POLICY)

    assert isinstance(outcome, Target | Denied)
    if isinstance(outcome, Target):
        sent = httpx.URL(
            scheme=outcome.scheme,
            host="93.184.216.34",
            port=outcome.port,
            raw_path=outcome.path.encode(),
        )
        assert sent.raw_path == outcome.path.encode()
        assert httpx.URL(url).host == outcome.host.strip("[]")
