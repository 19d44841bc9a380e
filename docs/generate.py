"""Writes the pages of this folder that are made from the code: `make docs`.

A test compares the pages with what this module would write, so they never tell an old story.
"""

from pathlib import Path

from reconciler.domain.operation import RULES, TRANSITIONS, Rule, State, Trigger
from verifiers.catalogue import PROVEN, Entry, catalogue, counts

FOLDER = Path(__file__).parent

HEAD = """\
# The states of an operation

This page is generated from `reconciler/domain/operation.py` (`make docs`); a test compares the two.

An operation is one long-running piece of work at a provider. It moves only on *evidence*: what a
status read showed, what a call was answered, a deadline, a person's decision. A webhook is none of
these: it makes a status read due, nothing more. A pair of state and evidence that is not in the
table below moves nothing; it is recorded and shown as a conflict.

In this release operations begin in `accepted` (they already run at a provider and are registered),
and a status read is the only call that is made. The rows for creating, cancelling and for a
person's decisions are here because stored names are for ever; what uses them comes later.

## The picture

Evidence that leaves a state as it is (a read that shows "still running") is left out here and
listed in the table.

"""


def state_machine() -> str:
    """Return the page `state-machine.md`."""
    return HEAD + _diagram() + "\n## The table\n\n" + _table()


def _moves(state: State) -> dict[State, list[Trigger]]:
    """Return, for each next state, the evidence that leads there."""
    moves: dict[State, list[Trigger]] = {}
    for trigger, following in TRANSITIONS[state].items():
        moves.setdefault(following, []).append(trigger)
    return moves


def _diagram() -> str:
    lines = ["stateDiagram-v2", "    [*] --> create_pending", "    [*] --> accepted"]
    for state in State:
        lines += [
            f"    {state} --> {following}: {', '.join(triggers)}"
            for following, triggers in _moves(state).items()
            if following is not state
        ]
        if RULES[state].final:
            lines.append(f"    {state} --> [*]")
    return "```mermaid\n" + "\n".join(lines) + "\n```\n"


def _table() -> str:
    lines = ["| state | while it lasts | evidence → next state |", "|---|---|---|"]
    for state in State:
        moves = "<br>".join(
            f"{', '.join(f'`{trigger}`' for trigger in triggers)} → {_next(state, following)}"
            for following, triggers in _moves(state).items()
        )
        lines.append(f"| `{state}` | {_standing(RULES[state])} | {moves or 'nothing'} |")
    return "\n".join(lines) + "\n"


def _next(state: State, following: State) -> str:
    return "stays" if following is state else f"`{following}`"


def _standing(rule: Rule) -> str:
    if rule.final:
        return "final: only late evidence is added"
    parts = ["waits for a person"] if rule.waits_for_person else []
    if rule.effect is not None:
        when = " when a late event hints at it" if rule.waits_for_person else ""
        parts.append(f"work: `{rule.effect}`{when}")
    if rule.deadline is not None:
        parts.append(f"until `{rule.deadline}`")
    return ", ".join(parts)


PRESETS = """\
# All presets

This page is generated from `verifiers/presets/` (`make docs`); a test compares the two. What a
preset may say is in [its grammar](preset-grammar.md); `vouchback preset show NAME` says more of
one.

*Proof* is what a preset's vectors come from: **sdk** (requests accepted and refused by the
provider's own library), **published** (examples that the provider publishes), **reference** (an
independent checker), or only **documented** (the formula on the provider's page, by openssl).
*Handshake* is what is answered when a webhook is registered. *Status read* is the call that
confirms what an event says.

"""


def presets() -> str:
    """Return the page `reference/presets.md`."""
    entries = catalogue()
    found = counts(entries)
    by_proof = ", ".join(f"{found[proof]} {proof}" for proof in (*PROVEN, "documented"))
    lines = [
        f"**{found['total']} presets, {found['proven']} of them proven** ({by_proof}).",
        "",
        "| preset | kind | algorithm | proof | handshake | status read |",
        "|---|---|---|---|---|---|",
        *(_row(entry) for entry in entries),
    ]
    return PRESETS + "\n".join(lines) + "\n"


def _row(entry: Entry) -> str:
    name = f"[{entry.provider}]({entry.docs})" if entry.docs else entry.provider
    cells = (name, entry.kind, entry.algorithm, entry.proof, entry.handshake, entry.status_read)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


PAGES = {"state-machine.md": state_machine, "reference/presets.md": presets}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), "utf-8")
