"""Secrets that were used in a run stand in no log, no answer and no file of the ledger."""

import json
from collections.abc import Callable

import pytest

from tests.support.installation import Installation
from tests.support.job_api import TOKEN, JobApi, status
from tests.support.signing import Sender
from tests.support.waiting import until
from tests.support.wire import request

pytestmark = pytest.mark.e2e

BODY_SECRET = "card-4242-not-for-logs"


@pytest.mark.parametrize("level", ["info", "debug"])
def test_no_secret_of_a_whole_run_appears_anywhere(
    install: Callable[[], Installation], jobs: JobApi, level: str
) -> None:
    """Accepting, refusing, conflicts, reads, provider errors, API errors, reload: nothing leaks.

    The log is looked through when the installation is closed, as in every end-to-end test.
    """
    gateway = install()
    gateway.replace('level = "info"', f'level = "{level}"')
    gateway.profile("jobs")
    hooks = gateway.source("hooks", "jobs")
    gateway.start()
    gateway.secrets += [BODY_SECRET, "bearer-in-webhook", "cookie-in-webhook"]
    token = gateway.new_token("operator")
    jobs.job("job_1", "running", status(401), status(500), "succeeded")
    body = json.dumps({"type": "x", "data": {"job_id": "job_1"}, "card": BODY_SECRET}).encode()
    signed = hooks.sign(body)
    extra = [("Authorization", "Bearer bearer-in-webhook"), ("Cookie", "s=cookie-in-webhook")]
    headers = [*signed.headers(), *extra]
    assert gateway.post(request("POST", signed.path, headers, body)).status == 200
    forged = Sender("hooks").sign(body)
    raw = request("POST", forged.path, [*forged.headers(), *extra], body)
    assert gateway.post(raw).status == 401
    assert gateway.post(hooks.sign(body + b" ", event_id=signed.event_id).raw()).status == 200
    operation = gateway.register("jobs", remote_job_id="job_1")
    assert gateway.ends(operation["operation_id"])["state"] == "succeeded"
    gateway.api("GET", "/v1/nothing", token=token)
    gateway.api("POST", "/v1/tokens", {"role": "boss"}, token=gateway.admin)
    gateway.api("POST", "/v1/config/reload", token=token)
    gateway.config.write_text(gateway.config.read_text() + "\n[sources.x]\npreset = 'strype'")
    gateway.api("POST", "/v1/config/reload", token=token)
    until(lambda: gateway.refusals("hooks"), "the refusal is recorded")
    paths = (
        "/v1/events", "/v1/refusals", "/v1/operations", "/v1/sources", "/v1/tokens",
        f"/v1/operations/{operation['operation_id']}/history",
        f"/v1/operations/{operation['operation_id']}/observations",
    )  # fmt: skip
    answers = "".join(gateway.api("GET", path).body.decode() for path in paths)
    assert [secret for secret in gateway.secrets if secret in answers] == []
    assert gateway.stop() == 0
    kept = b"".join(file.read_bytes() for file in (gateway.folder / "data").glob("ledger*"))
    credentials = [hooks.secret, TOKEN, token, gateway.admin, "bearer-in-webhook"]
    assert [secret for secret in credentials if secret.encode() in kept] == []
    assert '"event": "first_token"' in gateway.log
    assert ("exception" in gateway.log) is False
