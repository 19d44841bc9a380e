"""The command line: `vouchback COMMAND`.

Data goes to stdout, talk to stderr. Exit codes: 0 ok, 1 negative verdict or failed check, 2 usage,
3 not found, 4 conflict, 5 authentication, 69 server unreachable, 75 timed out, 78 configuration.
This module imports click and the standard library only; a command's module is imported when it
runs.
"""

import click

from gateway.cli.invocation import Invocation, check_environment, server_options
from gateway.cli.lazy import Entry, LazyGroup

_ENTRIES = {
    "dev": Entry(
        "gateway.cli.dev.command:dev", "Everything on this machine with a demo provider, live."
    ),
    "serve": Entry("gateway.cli.serve:serve", "Start the gateway and the reconciler."),
    "send": Entry("gateway.cli.send:send", "Send a signed request, or one of its wrong twins."),
    "verify": Entry("gateway.cli.verification:verify", "Say offline whether a request is genuine."),
    "sign": Entry("gateway.cli.verification:sign", "Print the headers that sign a body."),
    "vectors": Entry("gateway.cli.verification:vectors", "Run files of test vectors."),
    "preset": Entry("gateway.cli.preset:preset", "Signature schemes: list, show, new, check."),
    "events": Entry("gateway.cli.events:events", "What arrived: list, show, raw, refused."),
    "ops": Entry("gateway.cli.ops:ops", "Operations: list, show, create."),
    "source": Entry("gateway.cli.source:source", "Senders: list, show, rotate, refresh keys."),
    "config": Entry("gateway.cli.configuration:config", "The configuration: check, show, reload."),
    "doctor": Entry(
        "gateway.cli.doctor.command:doctor", "Is this node fit, and its store? One line a check."
    ),
    "token": Entry("gateway.cli.token:token", "Tokens of the API: create, list, revoke."),
    "version": Entry("gateway.cli.version:version", "Print the version."),
}


class Root(LazyGroup):
    """The top of the command line."""

    entries = _ENTRIES


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"]})
@server_options
@click.pass_context
def root(context: click.Context) -> None:
    """Receive webhooks, prove them, and ask the provider before anybody acts on them."""
    context.ensure_object(Invocation)
    check_environment()


def main() -> None:
    """Run the command line that the process was started with, and end the process."""
    root.main(prog_name="vouchback")
