"""The egress guard against every form at the end of the security checklist, twice.

Nothing is resolved or dialled here: resolvers are plain functions.
"""
# ruff: noqa: RUF001, S104 - look-alike characters and wildcard addresses are what is tested

from collections.abc import Sequence
from ipaddress import ip_address, ip_network

import pytest

from reconciler.providers.egress import (
    ADDRESSES_MAX,
    Allowed,
    Denied,
    Policy,
    Resolver,
    Target,
    check_url,
    resolve_checked,
)
from reconciler.providers.networks import denial, embedded

STRICT = Policy()
PUBLIC = "93.184.216.34"
PUBLIC_V6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"

#: Addresses as a resolver would give them, canonical.
INSIDE = [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "192.168.1.1", "192.168.255.255",
    "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255", "100.64.0.1", "100.127.255.255",
    "100.100.100.200", "169.254.0.1", "169.254.169.254", "169.254.170.2", "168.63.129.16",
    "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1", "0:0:0:0:0:ffff:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "64:ff9b::10.0.0.1", "64:ff9b:1::", "64:ff9b:1::8.8.8.8", "2002:7f00:1::", "2002:a9fe:a9fe::",
    "2002:808:808::1", "2001:0:7f00:1::", "2001:0:808:808::f5ff:fffe", "2001:2::1", "2001:20::1",
    "fe80::1", "fe80::5efe:10.0.0.1", "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:10.0.0.1",
    "fec0::1", "fc00::1", "fd00:ec2::254", "fd20:ce::254", "ff02::1", "2001:db8::1", "3fff::1",
    "5f00::1", "100::1", "100:0:0:1::1", "4000::1", "8000::1", "e000::1",
]  # fmt: skip
#: Nothing of this is a usable spelling of a host, whatever it would resolve to.
ODD_HOSTS = [
    "127.1", "0x7f.1", "0x7f000001", "0X7F000001", "017700000001", "0177.0.0.1", "2130706433", "0",
    "127.0.0.01", "0300.0250.0.1", "192.168.257", "127.0.0.1.", "1.2.3.4.5", "256.1.1.1", "8.8.8.0x8",
    "①②⑦.⓪.⓪.①", "127。0。0。1", "１２７.0.0.1", "localhost", "LOCALHOST", "localhost.", "foo.localhost",
    "metadata.google.internal", "printer.local", "router.home.arpa", "intranet", "example.com.",
    "exa\x00mple.com", "127.0.0.1\x00.example.com", "fe80::1", "[fe80::1%eth0]", "[fe80::1%25eth0]",
    "[::1", "[]", "[1.2.3.4]", "[v1.a]", "::1]", "", ".", "..", "a..b", "-a.example", "a-.example",
    "раураl.com", "xn--" + "a" * 70 + ".com", "a." * 130 + "com", "%31%32%37.0.0.1", "ex ample.com",
    "example.com\t", "exam\nple.com", "example.com\\", "example,com", "exa*mple.com",
]  # fmt: skip
ODD_URLS = [
    f"https://user@{PUBLIC}/", f"https://user:pass@{PUBLIC}/", "https://example.com\\@127.0.0.1/",
    "https://example.com#@127.0.0.1/", "https://127.0.0.1#@example.com/", "https://example.com/@x",
    "https://exam\tple.com/", "https://exam\nple.com/", " https://example.com/", "https://example.com/ ",
    "https:///", "https:///path", "https://", "https:example.com", "https:/example.com", "//example.com/",
    "example.com", "", "https://:443/", "http:///", "http://example.com/", "file:///etc/passwd",
    "gopher://example.com/", "ftp://example.com/", "unix:///run/x.sock", "http+unix://%2Frun/x",
    "javascript:alert(1)", "ws://example.com/", "httpſ://example.com/", "https://example.com:0/",
    "https://example.com:22/", "https://example.com:25/", "https://example.com:80/",
    "https://example.com:6379/", "https://example.com:8443/", "https://example.com:99999/",
    "https://example.com:65536/", "https://example.com:0443/", "https://example.com:+443/",
    "https://example.com:-1/", "https://example.com: 443/", "https://example.com:/",
    "https://example.com:４４３/", "https://example.com:443:443/", "https://example.com:443x/",
    "https://example.com/é", "https://example.com/%zz", "https://example.com/%", "https://example.com/a|b",
    "https://example.com/<x>", 'https://example.com/"', "https://example.com/a/../b",
    "https://example.com/..", "https://example.com/./x", "https://example.com/%2e%2E/x",
    "https://example.com/.%2e/x", "https://example.com/#fragment", "https://example.com/?q=\x7f",
    "https://example.com/" + "a" * 2048, "https://example.com/\r\nHost: evil", "https://[::1]x/",
]  # fmt: skip


def resolver_of(*answers: str) -> Resolver:
    """Make a resolver that always gives these answers."""

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        return answers

    return resolve


def url_of(address: str) -> str:
    """Write an address as a URL."""
    return f"https://[{address}]/" if ":" in address else f"https://{address}/"


def target_of(url: str, policy: Policy = STRICT) -> Target:
    """Check a URL that must be allowed."""
    target = check_url(url, policy)
    assert isinstance(target, Target), target
    return target


@pytest.mark.parametrize("address", INSIDE)
def test_inside_addresses_are_refused_when_registered(address: str) -> None:
    """SC-66: an address of the checklist is refused when its URL is registered."""
    denied = check_url(url_of(address), STRICT)

    assert isinstance(denied, Denied)
    assert denied.slug == "address"


@pytest.mark.anyio
@pytest.mark.parametrize("address", INSIDE)
async def test_inside_addresses_are_refused_when_resolved(address: str) -> None:
    """SC-66: a name that leads to an address of the checklist is refused at the call."""
    denied = await resolve_checked(target_of("https://example.com/"), STRICT, resolver_of(address))

    assert isinstance(denied, Denied)
    assert denied.slug == "address"


@pytest.mark.anyio
@pytest.mark.parametrize("address", INSIDE)
async def test_inside_literals_are_judged_again_at_the_call(address: str) -> None:
    """A literal that was registered under another policy is refused at the call."""
    target = Target("https", address, 443, "/", ip_address(address))

    assert isinstance(await resolve_checked(target, STRICT, resolver_of(PUBLIC)), Denied)


@pytest.mark.parametrize("host", ODD_HOSTS)
def test_odd_hosts_are_refused(host: str) -> None:
    """SC-66: a host has one usual spelling; every other one is refused when registered."""
    assert isinstance(check_url(f"https://{host}/", STRICT), Denied)


@pytest.mark.anyio
@pytest.mark.parametrize("host", ODD_HOSTS)
async def test_odd_hosts_are_refused_at_the_call(host: str) -> None:
    """SC-66: even if an odd host had been stored, what it resolves to is judged."""
    target = Target("https", host, 443, "/")

    for answers in (("127.0.0.1",), ("::1",), ("fe80::1%eth0",), (), ("0x7f.1",), ("127.1",)):
        denied = await resolve_checked(target, STRICT, resolver_of(*answers))
        assert isinstance(denied, Denied), answers


@pytest.mark.parametrize("url", ODD_URLS)
def test_odd_urls_are_refused(url: str) -> None:
    """SC-66, SC-69, SC-74: tricks with user names, ports, schemes and characters are refused."""
    assert isinstance(check_url(url, STRICT), Denied)


@pytest.mark.parametrize(
    ("url", "slug"),
    [
        ("https://user:hunter2@example.com/", "userinfo"),
        ("https://example.com:22/", "port"),
        ("https://example.com:0/", "bad_port"),
        ("http://example.com/", "scheme"),
        ("ftp://example.com/", "scheme"),
        ("https://2130706433/", "numeric_host"),
        ("https://localhost/", "local_name"),
        ("https://example.com./", "trailing_dot"),
        ("https://example.com/..", "dot_segment"),
        ("https://example.com/" + "a" * 2048, "too_long"),
        ("https://exam\tple.com/", "bad_character"),
        ("https://example.com/#x", "malformed"),
    ],
)
def test_refusals_say_why(url: str, slug: str) -> None:
    """Each refusal has the slug of its cause, and the detail quotes no password."""
    denied = check_url(url, STRICT)

    assert isinstance(denied, Denied)
    assert (denied.slug, "hunter2" in denied.detail) == (slug, False)


@pytest.mark.parametrize(
    ("url", "origin", "authority", "path"),
    [
        ("https://example.com", ("https", "example.com", 443), "example.com", "/"),
        (
            "HTTPS://Example.COM/A?b=%2F&c",
            ("https", "example.com", 443),
            "example.com",
            "/A?b=%2F&c",
        ),
        (
            "https://xn--bcher-kva.example/x",
            ("https", "xn--bcher-kva.example", 443),
            "xn--bcher-kva.example",
            "/x",
        ),
        (f"https://{PUBLIC}/", ("https", PUBLIC, 443), PUBLIC, "/"),
        (f"https://[{PUBLIC_V6}]/", ("https", PUBLIC_V6, 443), f"[{PUBLIC_V6}]", "/"),
        ("https://127.0.0.1.nip.io/", ("https", "127.0.0.1.nip.io", 443), "127.0.0.1.nip.io", "/"),
    ],
)
def test_public_urls_pass(
    url: str, origin: tuple[str, str, int], authority: str, path: str
) -> None:
    """An ordinary public https URL is a target, with path and query as they were written."""
    target = target_of(url)

    assert (origin, authority, path) == (target.origin, target.authority, target.path)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "answers", [(PUBLIC,), (PUBLIC_V6,), (PUBLIC_V6, PUBLIC), ("64:ff9b::8.8.8.8",)]
)
async def test_public_answers_pass(answers: tuple[str, ...]) -> None:
    """Public IPv4 and IPv6, and the DNS64 form of a public one, may be dialled in their order."""
    found = await resolve_checked(target_of("https://example.com/"), STRICT, resolver_of(*answers))

    assert found == tuple(ip_address(answer) for answer in answers)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answers", "slug"),
    [
        ((PUBLIC, "10.0.0.1"), "address"),
        ((PUBLIC, "::1"), "address"),
        (("10.0.0.1", PUBLIC), "address"),
        (("fd00::1",), "address"),
        ((), "no_address"),
        ((PUBLIC,) * (ADDRESSES_MAX + 1), "too_many_addresses"),
        ((PUBLIC,) * 99 + ("10.0.0.1",), "too_many_addresses"),
        ((f"{PUBLIC_V6}%eth0",), "bad_address"),
        (("localhost",), "bad_address"),
        (("",), "bad_address"),
    ],
)
async def test_bad_answers_close_the_way(answers: tuple[str, ...], slug: str) -> None:
    """One inside address among public ones, none, too many or a strange one: denied."""
    denied = await resolve_checked(target_of("https://example.com/"), STRICT, resolver_of(*answers))

    assert isinstance(denied, Denied)
    assert slug == denied.slug


@pytest.mark.anyio
@pytest.mark.parametrize("error", [OSError("NXDOMAIN"), TimeoutError(), UnicodeError("label")])
async def test_failing_lookups_close_the_way(error: Exception) -> None:
    """A look-up that fails is a denial, never a pass."""

    async def resolve(_host: str, _port: int) -> Sequence[str]:
        raise error

    denied = await resolve_checked(target_of("https://example.com/"), STRICT, resolve)

    assert isinstance(denied, Denied)
    assert denied.slug == "no_address"


DEV = Policy(allowed=(Allowed.parse("http://127.0.0.0/8:9000"), Allowed.parse("10.1.0.0/16:8443")))


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://127.0.0.1:9000/", True),
        ("http://127.9.9.9:9000/", True),
        ("https://127.0.0.1:9000/", False),
        ("http://127.0.0.1:9001/", False),
        ("http://127.0.0.1/", False),
        ("http://[::ffff:127.0.0.1]:9000/", False),
        ("http://[::1]:9000/", False),
        (f"http://{PUBLIC}:9000/", False),
        ("https://10.1.2.3:8443/", True),
        ("http://10.1.2.3:8443/", False),
        ("https://10.2.0.1:8443/", False),
        ("https://10.1.2.3/", False),
        (f"https://{PUBLIC}:8443/", False),
        (f"https://{PUBLIC}/", True),
        ("http://2130706433:9000/", False),
    ],
)
def test_allow_list_opens_its_network_port_and_scheme_only(*, url: str, allowed: bool) -> None:
    """An entry opens exactly one scheme and port to one network, and nothing else."""
    assert allowed == isinstance(check_url(url, DEV), Target)


@pytest.mark.anyio
async def test_inside_names_need_an_entry_and_allowed_addresses() -> None:
    """A name of the inside passes where an entry opens its port, and its addresses decide then."""
    target = target_of("https://billing.internal:8443/", DEV)

    allowed = await resolve_checked(target, DEV, resolver_of("10.1.0.7"))
    outside = await resolve_checked(target, DEV, resolver_of("10.2.0.7"))
    public = await resolve_checked(target, DEV, resolver_of(PUBLIC))

    assert allowed == (ip_address("10.1.0.7"),)
    assert isinstance(outside, Denied)
    assert isinstance(public, Denied)


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1", "127.0.0.0/8", "127.0.0.1/8:9000", "127.0.0.0/8:0", "127.0.0.0/8:99999",
     "fd00::/8:443", "[fd00::/8]", "ftp://127.0.0.0/8:21", "localhost:9000", "*:443"],
)  # fmt: skip
def test_bad_allow_list_entries(text: str) -> None:
    """An entry that is not a network with a port is an error, not a wide gate."""
    with pytest.raises(ValueError, match=r"."):
        Allowed.parse(text)


def test_allow_list_entries() -> None:
    """Entries name scheme, network and port; IPv6 networks stand in brackets."""
    entry = Allowed.parse("[fd00::/8]:8443")

    assert entry == Allowed(ip_network("fd00::/8"), 8443, "https")


OURS = Policy(
    allowed=(Allowed.parse("http://127.0.0.0/8:8081"), Allowed.parse("http://127.0.0.0/8:9000")),
    own_addresses=frozenset({(ip_address("127.0.0.1"), 8081), (ip_address(PUBLIC), None)}),
    own_names=frozenset({"hooks.example.com"}),
)


@pytest.mark.anyio
async def test_our_own_addresses_are_refused_whatever_is_allowed() -> None:
    """Our listeners and names are never called, allow-listed or public or behind a name."""
    behind = await resolve_checked(target_of("https://a.example/", OURS), OURS, resolver_of(PUBLIC))
    hidden = await resolve_checked(
        target_of("https://a.example/", OURS), OURS, resolver_of("64:ff9b::5db8:d822")
    )
    outcomes = [
        check_url("http://127.0.0.1:8081/v1", OURS),
        check_url(f"https://{PUBLIC}/", OURS),
        check_url("https://HOOKS.example.com/", OURS),
        behind,
        hidden,
    ]

    assert [getattr(o, "slug", None) for o in outcomes] == ["own_address"] * 5
    assert isinstance(check_url("http://127.0.0.1:9000/", OURS), Target)


@pytest.mark.parametrize(
    ("address", "inner"),
    [
        ("::ffff:10.0.0.1", ["10.0.0.1"]),
        ("::10.0.0.1", ["10.0.0.1"]),
        ("::ffff:0:10.0.0.1", ["10.0.0.1"]),
        ("64:ff9b::10.0.0.1", ["10.0.0.1"]),
        ("2002:a00:1::5", ["10.0.0.1"]),
        ("2001:0:a00:1::f5ff:fffe", ["10.0.0.1", "10.0.0.1"]),
        ("2606:4700::5efe:10.0.0.1", ["10.0.0.1"]),
        ("2606:4700::1", []),
        ("10.0.0.1", []),
    ],
)
def test_embedded_addresses_are_taken_out(address: str, inner: list[str]) -> None:
    """Each transition scheme's hidden IPv4 address is found."""
    assert inner == [str(found) for found in embedded(ip_address(address))]


def test_denials_name_the_network() -> None:
    """A denial tells the operator which network and whose rule it was."""
    reason = denial(ip_address("64:ff9b::a9fe:a9fe"))

    assert reason is not None
    assert "169.254.169.254 inside 64:ff9b::a9fe:a9fe: 169.254.0.0/16 (v4, RFC 3927" in reason
