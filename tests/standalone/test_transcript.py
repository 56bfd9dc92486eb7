"""`manage.py transcript` as a person runs it: real files, real exit codes, no database."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from standalone.places import MANAGE, ROOT

Done = subprocess.CompletedProcess[bytes]

SOUND = [
    {"role": "user", "content": "When is the shop open?"},
    {
        "role": "assistant",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "nine to five"},
    {"role": "user", "content": "Thanks — merci."},
]
ORPHAN = [SOUND[0], *SOUND[2:]]
UNANSWERED = [*SOUND[:2], SOUND[3]]


def transcript(*words: str, given: bytes = b"", cwd: Path | None = None) -> Done:
    """Run the command where no database is named."""
    named = ("DATABASE_URL", "REDIS_URL", "CLEARHOUSE_TEST_DATABASE_URL")
    environ = {name: value for name, value in os.environ.items() if name not in named}
    return subprocess.run(
        [sys.executable, str(MANAGE), "transcript", *words],
        input=given, capture_output=True, env=environ | {"CLEARHOUSE_BOOTSTRAP": "0"}, cwd=cwd,
        timeout=60,
    )  # fmt: skip


def a_file(folder: Path, entries: Any, name: str = "chat.jsonl") -> Path:
    path = folder / name
    if name.endswith(".jsonl"):
        path.write_text("".join(json.dumps(each) + "\n" for each in entries))
    else:
        path.write_text(json.dumps(entries))
    return path


def lines_of(text: bytes) -> list[Any]:
    return [json.loads(line) for line in text.decode().splitlines()]


def test_a_sound_file_is_said_to_be_sound(folder: Path) -> None:
    file = a_file(folder, SOUND)

    done = transcript("check", str(file), "--format", "openai-chat", "--profile", "openai-chat")

    assert done.returncode == 0, done.stderr
    assert b"1 calls, 1 results, 0 orphans" in done.stdout
    assert b"openai-chat: sound" in done.stdout


def test_faults_are_named_for_every_provider_in_its_words(folder: Path) -> None:
    file = a_file(folder, ORPHAN)

    done = transcript("check", str(file), "--format", "openai-chat")

    assert done.returncode == 1, done.stderr
    assert b"1 orphans" in done.stdout
    assert b"entry 1, orphan_output: Invalid parameter: messages with role 'tool'" in done.stdout
    assert b"unexpected `tool_use_id` found in `tool_result` blocks" in done.stdout


def test_check_prints_the_examination_as_json(folder: Path) -> None:
    file = a_file(folder, UNANSWERED, "chat.json")

    done = transcript("check", str(file), "--format", "openai-chat", "--json")

    found = json.loads(done.stdout)
    assert done.returncode == 1
    assert found["counts"]["unanswered"] == 1
    assert not found["profiles"]["anthropic"]["sound"]


def test_repair_writes_the_mended_lines_and_its_report(folder: Path) -> None:
    file, fixed, report = a_file(folder, ORPHAN), folder / "fixed.jsonl", folder / "report.json"

    done = transcript(
        "repair", str(file), "--format", "openai-chat", "-o", str(fixed), "--report", str(report)
    )

    told = json.loads(report.read_text())
    assert done.returncode == 0, done.stderr
    assert done.stdout == b""
    assert b"before: 3 entries, 0 calls, 1 results, 1 orphans" in done.stderr
    assert b"after:  2 entries, 0 calls, 0 results, 0 orphans" in done.stderr
    assert lines_of(fixed.read_bytes()) == [SOUND[0], SOUND[3]]
    assert [each["kind"] for each in told["changes"]] == ["orphan_dropped"]
    assert file.read_text() == "".join(json.dumps(each) + "\n" for each in ORPHAN)


def test_lines_that_were_not_touched_keep_their_bytes(folder: Path) -> None:
    odd = [b'{"role":"user",  "content":"caf\\u00e9", "n":1.50}', *map(_line, UNANSWERED[1:])]
    file = folder / "chat.jsonl"
    file.write_bytes(b"\n".join(odd) + b"\n")

    done = transcript("repair", str(file), "--format", "openai-chat")

    written = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert (written[0], written[1], written[3]) == (odd[0], odd[1], odd[2])
    assert json.loads(written[2])["tool_call_id"] == "call_1"


def _line(entry: Any) -> bytes:
    return json.dumps(entry).encode()


def test_standard_input_is_read_and_standard_output_written(folder: Path) -> None:
    given = json.dumps(UNANSWERED).encode()

    done = transcript(
        "repair", "-", "--format", "openai-chat", "--profile", "anthropic", given=given
    )
    again = transcript(
        "check", "-", "--format", "anthropic", "--profile", "anthropic", given=done.stdout
    )

    assert (done.returncode, again.returncode) == (0, 0), again.stdout


def test_a_sound_input_comes_back_byte_for_byte(folder: Path) -> None:
    given = json.dumps(SOUND, indent=3).encode() + b"\n\n"

    done = transcript("repair", "-", "--format", "openai-chat", given=given)

    assert done.stdout == given


def test_in_place_keeps_the_original_beside_the_file(folder: Path) -> None:
    file = a_file(folder, UNANSWERED)
    file.chmod(0o640)
    before = file.read_bytes()

    done = transcript("repair", str(file), "--format", "openai-chat", "--in-place")

    assert done.returncode == 0, done.stderr
    assert (folder / "chat.jsonl.orig").read_bytes() == before
    assert len(lines_of(file.read_bytes())) == len(UNANSWERED) + 1
    assert file.stat().st_mode & 0o777 == 0o640
    assert {each.name for each in folder.iterdir()} == {"chat.jsonl", "chat.jsonl.orig"}


def test_in_place_leaves_a_sound_file_alone(folder: Path) -> None:
    file = a_file(folder, SOUND)
    before = file.stat()

    assert transcript("repair", str(file), "--format", "openai-chat", "--in-place").returncode == 0

    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [each.name for each in folder.iterdir()] == ["chat.jsonl"]


def test_an_earlier_original_is_never_written_over(folder: Path) -> None:
    file = a_file(folder, UNANSWERED)
    (folder / "chat.jsonl.orig").write_text("the first one")
    before = file.read_bytes()

    done = transcript("repair", str(file), "--format", "openai-chat", "--in-place")

    assert done.returncode == 2
    assert b"is there from an earlier repair" in done.stderr
    assert (folder / "chat.jsonl.orig").read_text() == "the first one"
    assert file.read_bytes() == before


def test_what_stays_refused_is_not_written(folder: Path) -> None:
    alone = {"type": "advisor_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    file = a_file(
        folder,
        [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": [alone]},
            {"role": "user", "content": "Go on."},
        ],
    )
    fixed = folder / "fixed.jsonl"

    done = transcript("repair", str(file), "--format", "anthropic", "-o", str(fixed))

    assert done.returncode == 1
    assert b"anthropic would still refuse it" in done.stderr
    assert b"server_tool_split" in done.stderr
    assert not fixed.exists()


@pytest.mark.parametrize(
    ("words", "content", "said"),
    [
        (("check", "FILE", "--format", "openai-chat"), b'{"role": "user"}\n{"a', b"Line 2"),
        (("check", "FILE", "--format", "openai-chat"), b'[{"role": "nobody"}]', b"/0/role"),
        (("check", "FILE", "--format", "esperanto"), b"[]", b"take one of anthropic"),
        (("check", "FILE", "--format", "openai-chat", "--profile", "x"), b"[]", b"x is unknown"),
        (("repair", "nothing.json", "--format", "openai-chat"), b"[]", b"No such file"),
        (("repair", "FILE"), b"[]", b"--format"),
        (("repair", "-", "--format", "openai-chat", "--in-place"), b"[]", b"neither -o nor -"),
        (("repair", "FILE", "--format", "rows"), b'[{"role": "user"}]', b"take one of"),
        ((), b"", b"required"),
    ],
)
def test_what_cannot_be_read_or_meant_ends_with_two(
    folder: Path, words: tuple[str, ...], content: bytes, said: bytes
) -> None:
    (folder / "FILE").write_bytes(content)

    done = transcript(*words, cwd=folder)

    assert done.returncode == 2
    assert said in done.stderr
    assert b"Traceback" not in done.stderr
    assert [each.name for each in folder.iterdir()] == ["FILE"]


AWAKE = """
import sys
from standalone import entry
reached = []
sys.addaudithook(lambda event, args: reached.append(event) if event == "socket.connect" else None)
for act in ("check", "repair"):
    entry.run(["transcript", act, sys.argv[1], "--format", "openai-chat"])
awake = {name.split(".")[0] for name in sys.modules} & {"django", "psycopg", "pydantic", "redis"}
print(sorted(awake), reached, file=sys.stderr)
"""


def test_check_and_repair_wake_neither_django_nor_the_network(folder: Path) -> None:
    file = a_file(folder, UNANSWERED)

    done = subprocess.run([sys.executable, "-c", AWAKE, file], capture_output=True, cwd=ROOT)

    assert done.returncode == 0, done.stderr
    assert done.stderr.endswith(b"\n[] []\n"), done.stderr
