"""`vouchback ops`: operations, and the story of one."""

from http import HTTPStatus

import click

from gateway.cli.client import segment
from gateway.cli.errors import CommandError, Exit
from gateway.cli.invocation import Invocation, page_options, server_options
from gateway.cli.output import inert, print_json, print_page, say
from gateway.cli.story import print_story

_OPERATIONS = {
    "OPERATION": "operation_id",
    "PROFILE": "profile",
    "STATE": "state",
    "PERSON": "attention",
    "REMOTE": "remote_state",
    "JOB": "remote_job_id",
    "UPDATED": "updated_at",
    "NEXT": "next_at",
}


@click.group()
def ops() -> None:
    """Look at operations: long-running work at a provider."""


@ops.command("list")
@click.option("--profile", help="Only this provider profile.")
@click.option("--state", help="Only this state, e.g. observing.")
@click.option("--job", help="The one with this job id.")
@click.option("--reference", help="The one with this client reference.")
@page_options
@server_options
@click.pass_obj
def list_operations(
    invocation: Invocation,
    *,
    profile: str | None,
    state: str | None,
    job: str | None,
    reference: str | None,
    limit: int,
    before: str | None,
) -> None:
    """List operations, newest first; PERSON says whether only a person can go on."""
    page = invocation.api().page(
        "/v1/operations",
        limit,
        profile=profile,
        state=state,
        job=job,
        reference=reference,
        before=before,
    )
    print_page(page, _OPERATIONS, invocation.format, "vouchback ops list")


@ops.command("show")
@click.argument("operation_id", metavar="OPERATION")
@server_options
@click.pass_obj
def show(invocation: Invocation, operation_id: str) -> None:
    """Tell an operation's story: who registered it, what arrived, was read and moved."""
    api = invocation.api()
    path = f"/v1/operations/{segment(operation_id)}"
    operation = api.get(path)
    story = {
        "operation": operation,
        "history": api.get(f"{path}/history")["items"],
        "observations": api.get(f"{path}/observations")["items"],
        "events": api.page("/v1/events", 1000, operation=operation["operation_id"])["items"],
    }
    if invocation.format == "table":
        print_story(story)
    else:
        print_json(story, invocation.format)


@ops.command("create")
@click.option("--profile", required=True, help="The provider profile that can read its status.")
@click.option("--job", help="The provider's id of the job.")
@click.option("--reference", help="The reference that you gave the provider.")
@server_options
@click.pass_obj
def create(invocation: Invocation, profile: str, job: str | None, reference: str | None) -> None:
    """Register a job that already runs at a provider, so that it is watched to its end."""
    if job is None and reference is None:
        raise CommandError(
            "an operation is named by --job, --reference or both", Exit.USAGE, "--job ID"
        )
    wanted = {"profile": profile, "remote_job_id": job, "client_reference": reference}
    document = {name: value for name, value in wanted.items() if value is not None}
    status, operation = invocation.api().post("/v1/operations", document)
    if status == HTTPStatus.OK:
        say("it is registered already")
    if invocation.format == "table":
        click.echo(inert(operation["operation_id"]))
    else:
        print_json(operation, invocation.format)
    say(f"next: vouchback ops show {inert(operation['operation_id'])}")
