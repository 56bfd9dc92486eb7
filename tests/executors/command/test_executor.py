"""The command executor with real programs: what each ending proves."""

import hashlib
import json
import os
import resource
import signal
import time

import pytest

from executors import fence, launcher
from executors.channel import Channel, Message
from executors.command import sandbox
from executors.command.executor import CommandExecutor
from executors.contract import FenceLost
from ledger.vocabulary import Cause, Instruction, Meaning, ProbeFinding, RecoveryClass
from tests import waits
from tests.executors.command.commands import (
    PYTHON,
    a_folder,
    context_of,
    require_python,
    require_sandbox,
    run,
    text_of,
)
from tests.executors.watched import Watched, forked, read_within

READ_ONLY = {"recovery_class": RecoveryClass.READ_ONLY}


@pytest.fixture(params=["caged", "bare"])
def every_level(request, monkeypatch):
    """Once in the sandbox, once at level none."""
    if request.param == "caged":
        require_sandbox()
        return {}
    monkeypatch.setattr(sandbox, "level", lambda: sandbox.SandboxLevel("none", ["As asked."]))
    return {"require_sandbox": "none"}


@pytest.fixture
def bare(monkeypatch):
    monkeypatch.setattr(sandbox, "level", lambda: sandbox.SandboxLevel("none", ["As asked."]))
    return {"require_sandbox": "none"}


def test_a_command_that_ends_well_succeeds_with_its_output(every_level):
    outcome, context = run({"argv": ["echo", "{x}"], **every_level}, arguments={"x": "a b; id"})
    assert (outcome.cause, outcome.means) == (None, Meaning.KNOWN)
    assert text_of(outcome) == "a b; id\n"
    assert context.crossed


def test_arguments_go_to_the_input_where_that_is_configured(every_level):
    outcome, _ = run(
        {"argv": ["cat"], "stdin": "arguments", **every_level}, arguments={"x": ["ü", 1]}
    )
    assert json.loads(text_of(outcome)) == {"x": ["ü", 1]}


def test_a_command_need_not_read_its_input(every_level):
    config = {"argv": ["true"], "stdin": "arguments", **every_level}
    assert run(config, arguments={"x": "y" * 500_000})[0].cause is None


def test_the_environment_is_built_from_nothing(every_level, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("ALLOWED", "yes")
    env = {"ALLOWED": None, "FIXED": "text"}
    lines = text_of(run({"argv": ["env"], "env": env, **every_level})[0]).splitlines()
    names = {line.partition("=")[0] for line in lines} - {"PWD"}
    marks = {"CLEARHOUSE_MARKER", "CLEARHOUSE_IDEMPOTENCY_KEY"}
    assert names == {"PATH", "HOME", "LANG", "ALLOWED", "FIXED"} | marks
    assert {"ALLOWED=yes", "FIXED=text", "CLEARHOUSE_IDEMPOTENCY_KEY=key-1"} <= set(lines)


def test_a_command_finds_the_trace_of_its_attempt_in_its_environment(every_level):
    sent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    outcome, _ = run({"argv": ["env"], **every_level}, assignment={"traceparent": sent})
    assert f"TRACEPARENT={sent}" in text_of(outcome).splitlines()


def test_an_exit_code_is_a_known_answer_with_the_end_of_both_outputs(every_level):
    outcome, _ = run({"argv": ["ls", "--", "/nowhere"], **every_level})
    assert (outcome.cause, outcome.means) == (Cause.TOOL_ERROR, Meaning.KNOWN)
    assert outcome.error_type == "exit_2"
    assert "No such file" in json.loads(text_of(outcome))["stderr_tail"]


def test_a_code_may_be_declared_a_success(every_level):
    assert run({"argv": ["false"], "success_codes": [0, 1], **every_level})[0].cause is None


def test_a_command_that_only_reads_does_not_cross(every_level):
    _, context = run({"argv": ["true"], **every_level}, assignment=READ_ONLY)
    assert not context.crossed


@pytest.mark.parametrize("program", ["no-such-program", "/usr/share", "/nowhere/program"])
def test_a_program_that_is_not_there_proves_that_nothing_began(every_level, program):
    outcome, context = run({"argv": [program], **every_level})
    assert (outcome.cause, outcome.means) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert not context.crossed


def test_an_exec_that_fails_after_the_crossing_proves_that_nothing_began(bare, tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/nowhere/interpreter\n")
    program.chmod(0o755)
    outcome, context = run({"argv": [str(program)], **bare})
    assert (outcome.cause, outcome.means) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert context.crossed


def test_a_sandbox_that_cannot_be_built_proves_that_nothing_began():
    require_sandbox()
    outcome, _ = run({"argv": ["true"], "readable": ["/nowhere"]})
    assert (outcome.cause, outcome.means) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert "/nowhere" in outcome.message


def test_a_sandbox_that_ended_before_it_could_be_held_says_why(monkeypatch):
    require_sandbox()
    hold = os.pidfd_open

    def late(pid, flags=0):
        waits.until(lambda: not os.path.exists(f"/proc/{pid}"), what="the sandbox to end")
        return hold(pid, flags)

    monkeypatch.setattr(os, "pidfd_open", late)
    outcome, _ = run({"argv": ["true"], "readable": ["/nowhere"]})
    assert (outcome.cause, outcome.means) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert "/nowhere" in outcome.message


def test_a_probe_whose_sandbox_cannot_be_built_knows_nothing():
    require_sandbox()
    probe = {"argv": ["true"], "exit_codes": {"0": "happened", "1": "did_not_happen"}}
    context = context_of({"argv": ["true"], "readable": ["/nowhere"], "probe": probe})
    assert CommandExecutor().probe(context.assignment, context).finding is ProbeFinding.UNKNOWN


@pytest.mark.parametrize("setting", ["cwd", "writable"])
def test_a_folder_that_is_not_there_proves_that_nothing_began(setting):
    require_sandbox()
    outcome, context = run({"argv": ["true"], setting: "/nowhere"})
    assert (outcome.cause, outcome.means) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert not context.crossed


def test_a_command_whose_executor_is_killed_at_the_crossing_never_begins():
    """bwrap takes the end of its gate for a go, and a killed process closes all it holds."""
    require_sandbox()
    with a_folder() as folder:
        config = {"argv": ["touch", "begun"], "writable": str(folder)}

        def body(channel: Channel) -> None:
            context = context_of(config)
            context.on_call = lambda verb: os.kill(os.getpid(), signal.SIGKILL)
            CommandExecutor().run(context.assignment, context)

        for _ in range(10):
            running = launcher.launch(body, fence_at_s=fence.boottime_s() + 10)
            death = running.reap(5)
            running.close()
            assert (death and death.signal) == signal.SIGKILL
            assert os.listdir(folder) == []


def test_nothing_begins_before_the_crossing_is_committed():
    require_sandbox()
    with a_folder() as folder:
        config = {"argv": ["touch", "begun"], "writable": str(folder)}
        seen: list[list[str]] = []
        context = context_of(config, on_call=lambda verb: seen.append(os.listdir(folder)))
        assert CommandExecutor().run(context.assignment, context).cause is None
        assert (seen[0], os.listdir(folder)) == ([], ["begun"])


def test_a_lost_fence_at_the_crossing_begins_nothing(monkeypatch):
    require_sandbox()
    with a_folder() as folder:
        config = {"argv": ["touch", "begun"], "writable": str(folder)}
        inits: list[Watched] = []
        built = sandbox._limit_caged
        monkeypatch.setattr(
            sandbox,
            "_limit_caged",
            lambda pid, limits: (inits.append(Watched.of(pid)), built(pid, limits)),
        )
        with pytest.raises(FenceLost):
            run(config, lose_fence_at="cross")
        assert inits[0].ends_within(5)
        assert os.listdir(folder) == []


def test_a_lost_fence_at_a_heartbeat_kills_the_command(every_level):
    began = time.monotonic()
    with pytest.raises(FenceLost):
        run({"argv": ["sleep", "60"], **every_level}, lose_fence_at="heartbeat")
    assert time.monotonic() - began < 10


def test_bad_arguments_are_refused_before_anything(every_level):
    outcome, context = run({"argv": ["rm", "{x}"], **every_level}, arguments={"x": "-rf"})
    assert (outcome.cause, outcome.means) == (Cause.VALIDATION, Meaning.REFUSED)
    assert not context.crossed


def test_a_bad_configuration_is_our_own_fault(every_level):
    outcome, _ = run({"argv": "rm -rf {x}", **every_level})
    assert (outcome.cause, outcome.means) == (Cause.INTERNAL, Meaning.NOT_BEGUN)


def test_a_side_effect_is_refused_where_there_is_no_sandbox(bare):
    outcome, context = run({"argv": ["true"]})
    assert (outcome.cause, outcome.means) == (Cause.CONNECT_FAILED, Meaning.NOT_BEGUN)
    assert "needs sandbox level partial" in outcome.message
    assert not context.crossed


def test_a_read_needs_no_sandbox_unless_it_says_so(bare):
    assert run({"argv": ["true"]}, assignment=READ_ONLY)[0].cause is None
    config = {"argv": ["true"], "require_sandbox": "full"}
    assert run(config, assignment=READ_ONLY)[0].means is Meaning.NOT_BEGUN


def test_time_over_leaves_the_effect_unknown(every_level):
    began = time.monotonic()
    outcome, _ = run({"argv": ["sleep", "60"], **every_level}, remaining=2.0)
    assert (outcome.cause, outcome.means) == (Cause.HANG, Meaning.UNKNOWN)
    assert time.monotonic() - began < 5


def test_time_over_for_a_read_has_not_begun(every_level):
    config = {"argv": ["sleep", "60"], **every_level}
    outcome, _ = run(config, assignment=READ_ONLY, remaining=2.0)
    assert (outcome.cause, outcome.means) == (Cause.HANG, Meaning.NOT_BEGUN)


def test_a_command_may_tidy_up_when_its_time_is_over(every_level):
    require_python()
    script = (
        "import signal, sys, time\n"
        "def tidy(*_):\n"
        "    print('tidied', file=sys.stderr)\n"
        "    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, tidy)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    config = {"argv": [PYTHON, "-c", script], **every_level}
    context = context_of(config)
    context.remaining = 30.0
    context.on_call = lambda verb: setattr(
        context, "remaining", 0.0 if verb == "heartbeat" else context.remaining
    )
    outcome = CommandExecutor().run(context.assignment, context)
    assert outcome.cause is Cause.HANG
    assert outcome.evidence["stderr_tail"] == "tidied\n"


@pytest.mark.parametrize("instruction", [Instruction.CANCEL, Instruction.STOP])
def test_the_ledger_can_stop_a_command(every_level, instruction):
    outcome, _ = run({"argv": ["sleep", "60"], **every_level}, instruction=instruction)
    assert outcome.means is Meaning.UNKNOWN
    assert "the ledger asked it to stop" in outcome.message


def test_a_drain_lets_a_command_finish(every_level):
    config = {"argv": ["sleep", "2.5"], **every_level}
    outcome, context = run(config, instruction=Instruction.DRAIN)
    assert outcome.cause is None
    assert "heartbeat" in context.verbs


def test_output_so_far_is_forwarded_with_the_heartbeat(every_level):
    config = {"argv": ["sh", "-c", "echo early; sleep 2.5; echo late"], **every_level}
    outcome, context = run(config)
    heartbeats = [call for call in context.calls if call[0] == "heartbeat"]
    assert heartbeats[0][2] == b"early\n"
    assert text_of(outcome) == "early\nlate\n"


def test_a_kill_for_memory_or_time_leaves_the_effect_unknown(every_level):
    outcome, _ = run({"argv": ["sh", "-c", "kill -9 $$"], **every_level})
    assert (outcome.cause, outcome.means) == (Cause.RESOURCE_KILLED, Meaning.UNKNOWN)


def test_cpu_time_is_bounded(every_level):
    config = {"argv": ["sh", "-c", "while :; do :; done"], "limits": {"cpu_s": 1}, **every_level}
    assert run(config)[0].cause is Cause.RESOURCE_KILLED


def test_output_over_the_cap_is_cut_flagged_and_hashed_whole(every_level):
    size, cap = 1_000_000_000, 1000
    config = {"argv": ["head", "-c", str(size), "/dev/zero"], "limits": {"output_bytes": cap}}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome, _ = run({**config, **every_level})
    digest = hashlib.sha256()
    for _ in range(1000):
        digest.update(bytes(size // 1000))
    assert outcome.result is not None
    assert (len(outcome.result.body), outcome.result.truncated) == (cap, True)
    assert outcome.result.full_size_bytes == size
    assert outcome.result.full_sha256 == digest.hexdigest()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KB


def test_endless_errors_neither_block_nor_fill_memory(every_level):
    config = {"argv": ["sh", "-c", "head -c 50000000 /dev/zero >&2; echo done"], **every_level}
    assert text_of(run(config)[0]) == "done\n"


def test_a_daemon_that_holds_the_output_open_does_not_hold_the_attempt(every_level):
    config = {"argv": ["sh", "-c", "setsid sleep 20 & echo done"], **every_level}
    began = time.monotonic()
    assert text_of(run(config)[0]) == "done\n"
    assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    ("code", "finding"), [("0", "happened"), ("1", "did_not_happen"), ("7", "unknown")]
)
def test_a_probe_is_answered_by_its_exit_code(every_level, code, finding):
    answers = {"0": "happened", "1": "did_not_happen"}
    argv = ["sh", "-c", 'test "$1" = "$CLEARHOUSE_MARKER" && exit "$2"', "sh", "{marker}", "{c}"]
    config = {"argv": ["true"], "probe": {"argv": argv, "exit_codes": answers}, **every_level}
    context = context_of(config, arguments={"c": code})
    answer = CommandExecutor().probe(context.assignment, context)
    assert answer.finding is ProbeFinding(finding)
    assert not context.crossed


def test_a_probe_that_cannot_run_knows_nothing(every_level):
    config = {"argv": ["true"], "probe": {"argv": ["no-such-program"]}, **every_level}
    context = context_of(config)
    assert CommandExecutor().probe(context.assignment, context).finding is ProbeFinding.UNKNOWN


def test_a_command_has_no_handle_to_ask_after():
    context = context_of({"argv": ["true"]})
    assert CommandExecutor().poll(context.assignment, context).means is Meaning.UNKNOWN
    assert CommandExecutor().cancel(context.assignment, context).means is Meaning.UNKNOWN


def test_a_command_dies_with_the_fence_of_its_attempt():
    require_sandbox()
    with a_folder() as folder:
        config = {"argv": ["sh", "-c", "echo x >> log; exec sleep 60"], "writable": str(folder)}

        def body(channel: Channel) -> None:
            context = context_of(config)
            context.on_call = lambda verb: _ask(channel, verb)
            CommandExecutor().run(context.assignment, context)

        running = launcher.launch(body, fence_at_s=fence.boottime_s() + 1.5)
        assert isinstance(running.receive(5), Message)
        running.answer({"go": True})
        death = running.reap(10)
        running.close()
        assert death is not None
        assert death.fenced


def test_descriptors_are_not_left_behind():
    require_sandbox()
    run({"argv": ["true"]})
    before = len(os.listdir("/proc/self/fd"))
    for argv in (["true"], ["false"], ["no-such-program"]):
        run({"argv": argv})
    run({"argv": ["sleep", "60"]}, remaining=2.0)
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_ordinary_user_gets_the_same_sandbox_below_the_launcher():
    require_sandbox()
    if os.geteuid() != 0:
        pytest.skip("These tests already run as an ordinary user.")
    asked, told = os.pipe()

    def body(channel: Channel) -> None:
        outcome, _ = run({"argv": ["sh", "-c", "id -u; ls /proc | grep -c '^[0-9]'"]})
        channel.request({"cause": outcome.cause, "text": outcome.result and text_of(outcome)})

    def life() -> None:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
        fence.namespaces.cache_clear()
        sandbox.level.cache_clear()
        running = launcher.launch(body, fence_at_s=fence.boottime_s() + 10)
        message = running.receive(10)
        os.write(told, json.dumps(getattr(message, "body", None)).encode())

    with forked(life):
        found = json.loads(read_within(asked, 15))
    os.close(asked)
    os.close(told)
    assert (found["cause"], found["text"].split()[0]) == (None, "65534")
    assert int(found["text"].split()[1]) < 6


def _ask(channel: Channel, verb: str) -> None:
    channel.request({"verb": verb})
