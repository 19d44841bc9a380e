"""`vouchback token`: who may call the API."""

import click

from gateway.cli.client import segment
from gateway.cli.invocation import Invocation, server_options
from gateway.cli.output import inert, print_json, print_page, say
from reconciler.domain.token import Role

_TOKENS = {
    "TOKEN": "token_id",
    "ROLE": "role",
    "PROJECT": "project",
    "MODE": "mode",
    "LABEL": "label",
    "CREATED": "created_at",
    "EXPIRES": "expires_at",
    "REVOKED": "revoked_at",
}


@click.group()
def token() -> None:
    """Make and revoke tokens of the API."""


@token.command("create")
@click.option("--role", type=click.Choice([role.value for role in Role]), required=True)
@click.option("--project", default="default", show_default=True, help="* is every project.")
@click.option("--mode", type=click.Choice(("live", "test", "*")), default="live", show_default=True)
@click.option("--label", help="Whose it is, for people.")
@click.option(
    "--expires-in", type=click.IntRange(60), metavar="SECONDS", help="Never, if left out."
)
@server_options
@click.pass_obj
def create(
    invocation: Invocation,
    *,
    role: str,
    project: str,
    mode: str,
    label: str,
    expires_in: int | None,
) -> None:
    """Create a token. It is printed once, on stdout, and kept nowhere."""
    wanted = {
        "role": role,
        "project": project,
        "mode": mode,
        "label": label,
        "expires_in_s": expires_in,
    }
    document = {name: value for name, value in wanted.items() if value is not None}
    _, made = invocation.api().post("/v1/tokens", document)
    if invocation.format != "table":
        print_json(made, invocation.format)
        return
    click.echo(inert(made["token"]))
    say(f"{inert(made['token_id'])}: shown this once; keep it in a file that only you can read")


@token.command("list")
@server_options
@click.pass_obj
def list_tokens(invocation: Invocation) -> None:
    """List tokens, newest first; the tokens themselves are not stored."""
    page = invocation.api().get("/v1/tokens")
    print_page(page, _TOKENS, invocation.format, "vouchback token list")


@token.command("revoke")
@click.argument("token_id", metavar="TOKEN")
@server_options
@click.pass_obj
def revoke(invocation: Invocation, token_id: str) -> None:
    """Revoke a token; it stops working at once."""
    _, revoked = invocation.api().post(f"/v1/tokens/{segment(token_id)}/revoke", {})
    if invocation.format != "table":
        print_json(revoked, invocation.format)
        return
    say(f"{inert(token_id)} is revoked")
