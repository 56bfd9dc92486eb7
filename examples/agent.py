#!/usr/bin/env python3
"""An agent's side of Clearhouse in one file: plain HTTP, standard library only.

    CLEARHOUSE_URL=http://127.0.0.1:8000 CLEARHOUSE_API_KEY=clh_... python3 examples/agent.py

It opens a session and a turn, asks for the five tools of the sandbox as a model would, waits
for each, and prints the verdict: did it start, did its effect happen, what did the model see.
The sign-in is left to itself, and closes at its bound; with `--approve` it is completed.
"""

import argparse
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any

TOOL_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("sandbox.lookup", {"name": "opening-hours"}),
    ("sandbox.write_artifact", {"path": "notes/hours.txt", "text": "We open at nine."}),
    ("sandbox.send_mail", {"to": "ada@example.com", "subject": "Hours", "body": "From nine."}),
    ("sandbox.render", {"frames": 5, "seconds": 2}),
    ("sandbox.device_login", {"expires_in_s": 8, "interval_s": 1}),
]
WAIT_S = 25  # the server holds a request for at most 30 s
OPEN_FOR_S = 120
PERSONS_TURN = ("ambiguous", "paused")


class Clearhouse:
    """The few addresses that an agent needs."""

    def __init__(self, url: str, key: str) -> None:
        self.url, self.key = url.rstrip("/"), key

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Send one request and return its JSON; a refusal ends the program with its sentence."""
        request = urllib.request.Request(  # noqa: S310 the address is the caller's own
            f"{self.url}/api/v1{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.key}",
                "Content-Type": "application/json",
                **headers,
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S + 15) as answer:  # noqa: S310
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            sys.exit(f"{method} {path} was refused: {json.load(refusal)['detail']}")

    def submit(self, tool: str, arguments: dict[str, Any], **place: Any) -> dict[str, Any]:
        """Record a tool call; once this returns, it cannot be lost.

        The key names the intent: asked again with it, after a cut line say, the call is the same.
        """
        wanted = {"tool": tool, "arguments": arguments, **place}
        call: dict[str, Any] = self.ask(
            "POST", "/calls", wanted, **{"Idempotency-Key": uuid.uuid4().hex}
        )
        return call

    def outcome(self, call_id: str) -> dict[str, Any]:
        """Wait until the call is settled or a person's turn: the server answers when it is."""
        until = time.monotonic() + OPEN_FOR_S
        while True:
            call: dict[str, Any] = self.ask("GET", f"/calls/{call_id}?wait={WAIT_S}")
            if call["settled"] or call["state"] in PERSONS_TURN or time.monotonic() > until:
                return call


def main() -> None:
    options = read_options()
    clearhouse = Clearhouse(options.url, options.key)

    session = clearhouse.ask("POST", "/sessions", {"label": "example", "model": "example-1"})
    turns = f"/sessions/{session['id']}/turns"
    # The key names the prompt: sent again after a cut line, it gives the same turn.
    prompt = {"role": "user", "content": "Find our hours, note them, tell Ada, and film it."}
    turn = clearhouse.ask(
        "POST", turns, {"key": uuid.uuid4().hex, "format": "openai-chat", "message": prompt}
    )
    place = {"session": session["id"], "turn": turn["id"]}

    # Everything is recorded first, as one reply of a model would ask for it.
    calls = [
        clearhouse.submit(tool, arguments, tool_call_id=f"tool_call_{position}", position=position,
                          **place)
        for position, (tool, arguments) in enumerate(TOOL_CALLS)
    ]  # fmt: skip
    if options.approve:
        approve(clearhouse, calls[-1]["id"])
    outcomes = []
    for call in calls:
        outcomes.append(clearhouse.outcome(call["id"]))
        tell(clearhouse, outcomes[-1])
    # A turn is answered when every call of it is settled; what is not goes on without it.
    closed_as = "answered" if all(each["settled"] for each in outcomes) else "interrupted"
    clearhouse.ask("POST", f"{turns}/{turn['id']}/end", {"closed_as": closed_as})
    print(f"\nThe turn is closed. All of it stands at {clearhouse.url}.")


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", default=os.environ.get("CLEARHOUSE_URL"))
    parser.add_argument("--key", default=os.environ.get("CLEARHOUSE_API_KEY"))
    parser.add_argument("--approve", action="store_true", help="complete the sign-in")
    options = parser.parse_args()
    if not options.url or not options.key:
        parser.error("say where and who: set CLEARHOUSE_URL and CLEARHOUSE_API_KEY")
    return options


def tell(clearhouse: Clearhouse, call: dict[str, Any]) -> None:
    """Print what became of a call: its state, the three answers, and what decided."""
    verdict = clearhouse.ask("GET", f"/calls/{call['id']}/verdict")
    print(f"\n{call['tool']} is {call['state']}; next: {call['next_action']}")
    print(f"  Did it start?           {verdict['started']['sentence']}")
    print(f"  Did the effect happen?  {verdict['effect']['sentence']}")
    print(f"  What did the model see? {verdict['model_saw']['sentence']}")
    print(f"  {verdict['decided']}")
    if call["result"]:
        print(f"  Result: {json.dumps(call['result']['json'])[:100]}")


def approve(clearhouse: Clearhouse, call_id: str) -> None:
    """Complete the sign-in, as a person with a browser would: the code is in the partial output."""
    until = time.monotonic() + OPEN_FOR_S
    while time.monotonic() < until:
        attempts = clearhouse.ask("GET", f"/calls/{call_id}/attempts")["items"]
        shown = re.search(r"user_code=(\S+) to (\S+)", invitation(attempts))
        if shown:
            form = urllib.parse.urlencode({"user_code": shown[1]}).encode()
            urllib.request.urlopen(shown[2], form, timeout=10).close()  # noqa: S310 the sandbox's own
            return
        time.sleep(0.2)
    sys.exit("The sign-in showed no code, so there is nothing to approve. Look at its attempts.")


def invitation(attempts: list[dict[str, Any]]) -> str:
    return "".join(each["partial_output"] or "" for each in attempts)


if __name__ == "__main__":
    main()
