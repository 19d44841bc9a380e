"""Who may do what over the API: every role on every route, every project and mode apart."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from gateway.app import ENDPOINTS
from reconciler.domain.token import Role
from tests.support.engines import on_both_engines, storage_of
from tests.support.installation import Installation
from tests.support.job_api import JobApi
from tests.support.waiting import until
from tests.support.wire import Answer, exchange, request

pytestmark = pytest.mark.e2e

ROUTES = [(endpoint.method, endpoint.path) for endpoint in ENDPOINTS]

READERS = {"viewer", "operator", "auditor", "admin"}
#: Who may call what, written down here a second time on purpose: a change must be made twice.
MAY = {
    ("GET", "/v1/events"): READERS | {"consumer"},
    ("GET", "/v1/events/{event_id}"): READERS | {"consumer"},
    ("GET", "/v1/events/{event_id}/body"): READERS | {"consumer"},
    ("GET", "/v1/events/{event_id}/conflicts"): READERS | {"consumer"},
    ("GET", "/v1/refusals"): {"operator", "auditor", "admin"},
    ("POST", "/v1/operations"): {"operator", "admin", "client"},
    ("GET", "/v1/operations"): READERS | {"client"},
    ("GET", "/v1/operations/{operation_id}"): READERS | {"client"},
    ("GET", "/v1/operations/{operation_id}/history"): READERS | {"client"},
    ("GET", "/v1/operations/{operation_id}/observations"): READERS | {"client"},
    ("GET", "/v1/sources"): READERS,
    ("GET", "/v1/sources/{name}"): READERS,
    ("POST", "/v1/sources/{name}/refresh-keys"): {"operator", "admin"},
    ("POST", "/v1/config/reload"): {"operator", "admin"},
    ("POST", "/v1/tokens"): {"admin"},
    ("GET", "/v1/tokens"): {"admin"},
    ("POST", "/v1/tokens/{token_id}/revoke"): {"admin"},
}


@dataclass(frozen=True)
class World:
    """A gateway with the same things in three places, and tokens for each."""

    gateway: Installation
    #: By place, such as `shop/live`: a token's text of a role, and the ids of what is there.
    tokens: dict[str, dict[str, str]]
    ids: dict[str, dict[str, str]]

    def path(self, template: str, place: str) -> str:
        """Return a route's path with the ids of a place."""
        return template.format(**self.ids[place])


PLACES = ("shop/live", "shop/test", "other/live")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory, jobs: JobApi, engine: str) -> Iterator[World]:
    """Put an event, an operation and a token into each of three places."""
    folder = tmp_path_factory.mktemp("access") / "it"
    storage = storage_of(engine, folder)
    with Installation(folder, provider_port=jobs.port, storage=storage) as gateway:
        for place in PLACES:
            project, mode = place.split("/")
            where = f'project = "{project}"\nmode = "{mode}"\n'
            gateway.profile(f"{project}-{mode}", where)
            gateway.source(f"{project}-{mode}", f"{project}-{mode}", where)
        gateway.start()
        tokens = {place: {str(r): _token(gateway, place, r) for r in Role} for place in PLACES}
        yield World(gateway, tokens, {place: _fill(gateway, place, jobs) for place in PLACES})


def _token(gateway: Installation, place: str, role: str) -> str:
    project, mode = place.split("/")
    return gateway.new_token(role, project=project, mode=mode, label=f"{role} of {place}")


def _fill(gateway: Installation, place: str, jobs: JobApi) -> dict[str, str]:
    name = place.replace("/", "-")
    jobs.job(f"job-{name}", "succeeded")
    operation = gateway.register(name, remote_job_id=f"job-{name}")
    gateway.ends(operation["operation_id"])
    signed = gateway.senders[name].about(f"job-{name}", "succeeded")
    assert gateway.post(signed.raw()).status == 200
    (event,) = gateway.events(name)
    project, mode = place.split("/")
    fields = {"role": "viewer", "project": project, "mode": mode}
    token = gateway.api("POST", "/v1/tokens", fields).json()
    gateway.secrets.append(token["token"])
    return {
        "event_id": event["event_id"],
        "operation_id": operation["operation_id"],
        "name": name,
        "token_id": token["token_id"],
    }


def _body(method: str, path: str, place: str) -> object:
    """Return a body that the route takes, so that only the role decides."""
    if (method, path) == ("POST", "/v1/operations"):
        name = place.replace("/", "-")
        return {"profile": name, "remote_job_id": f"job-{name}"}
    if (method, path) == ("POST", "/v1/tokens"):
        project, mode = place.split("/")
        return {"role": "viewer", "project": project, "mode": mode}
    return None


def test_no_route_is_missing_from_the_table_of_roles() -> None:
    """Every route of the API has its line here; a new one cannot be forgotten."""
    assert set(MAY) == set(ROUTES)


@pytest.mark.parametrize("role", [str(role) for role in Role])
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_a_role_may_exactly_what_the_table_says(
    world: World, method: str, path: str, role: str
) -> None:
    """Each role on each route: success where it may, 403 and nothing else where it may not."""
    answer = world.gateway.api(
        method,
        world.path(path, "shop/live"),
        _body(method, path, "shop/live"),
        token=world.tokens["shop/live"][role],
    )
    if role in MAY[method, path]:
        # The world's sources have keys of their own, which nobody can fetch.
        assert answer.status in ({400} if path.endswith("/refresh-keys") else {200, 201}), answer
        if "token" in (found := json.loads(answer.body or b"{}") if path == "/v1/tokens" else {}):
            world.gateway.secrets.append(found["token"])
    else:
        assert (answer.status, answer.json()["type"]) == (403, "/problems/forbidden")


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_without_a_good_token_every_route_is_one_and_the_same_401(
    world: World, method: str, path: str
) -> None:
    """No token, a wrong one, a wrong scheme, two of them: the same refusal on every route."""
    admin = world.gateway.admin
    wrong = [
        [],
        [("Authorization", "")],
        [("Authorization", f"Basic {admin}")],
        [("Authorization", admin)],
        [("Authorization", f"Bearer {admin[:-1]}")],
        [("Authorization", f"Bearer {admin}x")],
        [("Authorization", f"Bearer {admin}"), ("Authorization", f"Bearer {admin}")],
        [("Authorization", "Bearer vbk_\xe9\xff")],
        [("Cookie", f"token={admin}")],
    ]
    target = world.path(path, "shop/live")
    with_query = f"{target}?token={admin}&access_token={admin}"
    raws = [request(method, target, headers) for headers in wrong]
    answers = [_exchange(world, raw) for raw in [*raws, request(method, with_query)]]
    assert {answer.status for answer in answers} == {401}
    assert len({answer.without_date() for answer in answers}) == 1


def _exchange(world: World, raw: bytes) -> Answer:
    return exchange(world.gateway.internal, raw)


@on_both_engines
@pytest.mark.parametrize("elsewhere", ["shop/test", "other/live"])
@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if "{" in route[1]])
def test_what_is_elsewhere_answers_like_what_does_not_exist(
    world: World, method: str, path: str, elsewhere: str
) -> None:
    """Another project's or mode's object and an unknown one get the same 404, byte for byte."""
    token = world.tokens["shop/live"]["admin"]
    unknown = path.format(event_id="evt_x", operation_id="op_x", name="nobody", token_id="tok_x")
    answers = [
        world.gateway.api(method, where, token=token)
        for where in (world.path(path, elsewhere), unknown)
    ]
    assert [answer.status for answer in answers] == [404, 404]
    assert answers[0].without_date() == answers[1].without_date()


@on_both_engines
@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/v1/events?limit=200", "event_id"),
        ("/v1/operations?limit=200", "operation_id"),
        ("/v1/sources", "name"),
        ("/v1/tokens", "token_id"),
    ],
)
@pytest.mark.parametrize(
    ("project", "mode", "seen"),
    [
        ("shop", "live", {"shop/live"}),
        ("shop", "test", {"shop/test"}),
        ("shop", "*", {"shop/live", "shop/test"}),
        ("*", "live", {"shop/live", "other/live"}),
        ("*", "*", set(PLACES)),
        ("nobody", "live", set()),
    ],
)
def test_lists_show_what_the_token_covers_and_nothing_else(
    world: World, *, path: str, key: str, project: str, mode: str, seen: set[str]
) -> None:
    """Projects and modes stay apart in every list; a star covers every name in its place."""
    token = world.gateway.new_token("admin", project=project, mode=mode)
    answer = world.gateway.api("GET", path, token=token)
    listed = {item[key] for item in answer.json()["items"]}
    assert {place for place in PLACES if world.ids[place][key] in listed} == seen


def test_registering_with_a_profile_of_elsewhere_is_404(world: World) -> None:
    """A client of one project cannot make operations of another, nor learn that it exists."""
    token = world.tokens["shop/live"]["client"]
    answers = [
        world.gateway.api(
            "POST", "/v1/operations", {"profile": name, "remote_job_id": "j"}, token=token
        )
        for name in ("other-live", "shop-test", "no-such-one")
    ]
    texts = {
        answer.body.replace(name.encode(), b"NAME")
        for answer, name in zip(answers, ("other-live", "shop-test", "no-such-one"), strict=True)
    }
    assert [answer.status for answer in answers] == [404] * 3
    assert len(texts) == 1


def test_a_project_named_by_the_caller_has_no_say(world: World) -> None:
    """Project and mode come from the token alone; headers and parameters cannot choose."""
    token = world.tokens["shop/live"]["viewer"]
    headers = [("Authorization", f"Bearer {token}"), ("X-Project", "other"), ("X-Mode", "test")]
    listed = _exchange(world, request("GET", "/v1/events", headers)).json()["items"]
    assert {(item["project"], item["mode"]) for item in listed} == {("shop", "live")}
    assert _exchange(world, request("GET", "/v1/events?project=other", headers)).status == 400


def test_an_admin_of_one_project_cannot_reach_beyond_it(world: World) -> None:
    """It makes no token for elsewhere or for everything, and revokes none of elsewhere."""
    token = world.tokens["shop/live"]["admin"]
    wanted = [("other", "live"), ("shop", "test"), ("*", "live"), ("shop", "*"), ("*", "*")]
    statuses = [
        world.gateway.api(
            "POST", "/v1/tokens", {"role": "viewer", "project": p, "mode": m}, token=token
        ).status
        for p, m in wanted
    ]
    assert statuses == [403] * 5


@on_both_engines
def test_a_revoked_token_stops_with_the_next_request(world: World) -> None:
    """After the revocation the token is as good as none, for ever."""
    made = world.gateway.api("POST", "/v1/tokens", {"role": "viewer"}).json()
    world.gateway.secrets.append(made["token"])
    revoke = f"/v1/tokens/{made['token_id']}/revoke"
    before = world.gateway.api("GET", "/v1/events", token=made["token"]).status
    revoked = [world.gateway.api("POST", revoke) for _ in range(2)]
    after = world.gateway.api("GET", "/v1/events", token=made["token"])
    unknown = world.gateway.api("GET", "/v1/events", token="vbk_" + "A" * 43)
    assert (before, after.status) == (200, 401)
    assert after.without_date() == unknown.without_date()
    assert [answer.status for answer in revoked] == [200, 200]
    assert revoked[0].json()["revoked_at"] == revoked[1].json()["revoked_at"]


def test_an_expired_token_is_none(world: World) -> None:
    """A token that was given a second works for a second."""
    token = world.gateway.new_token("viewer", expires_in_s=1)
    begun = time.monotonic()

    def status() -> int:
        return world.gateway.api("GET", "/v1/events", token=token).status

    assert status() == 200
    until(lambda: status() == 401, "the token expires", 5)
    assert time.monotonic() - begun >= 0.9


def test_a_tokens_text_is_shown_once_and_kept_nowhere(world: World) -> None:
    """Not in lists, not in the ledger's files: only the answer that made it holds the text."""
    answer = world.gateway.api("POST", "/v1/tokens", {"role": "viewer"})
    text = answer.json()["token"]
    world.gateway.secrets.append(text)
    assert answer.header("cache-control") == "no-store"
    assert text not in world.gateway.api("GET", "/v1/tokens").body.decode()
    kept = [path for path in (world.gateway.folder / "data").rglob("*") if path.is_file()]
    assert kept
    for file in kept:
        assert text.encode() not in file.read_bytes(), file


def test_the_first_token_stands_in_a_private_file(world: World) -> None:
    """Ledger and first token can be read by their owner only."""
    modes = {f.name: f.stat().st_mode & 0o777 for f in (world.gateway.folder / "data").iterdir()}
    assert modes["admin.token"] == modes["ledger.db"] == 0o600
    assert {mode & 0o077 for mode in modes.values()} == {0}


def test_the_api_is_not_on_the_public_listener(world: World) -> None:
    """No route of the API answers there, token or not."""
    statuses = {
        world.gateway.post(
            request(
                method,
                world.path(path, "shop/live"),
                [("Authorization", f"Bearer {world.gateway.admin}")],
            )
        ).status
        for method, path in ROUTES
    }
    assert statuses == {404}


def test_health_needs_no_token_and_tells_nothing(world: World) -> None:
    """Liveness and readiness name no source, no count, no address."""
    answers = [_exchange(world, request("GET", path)).json() for path in ("/livez", "/readyz")]
    assert answers == [{"status": "ok"}, {"status": "ok"}]
