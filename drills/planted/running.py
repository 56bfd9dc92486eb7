"""Every scene green without a bug; then each bug in its programs, and its scene red."""

import argparse
import re
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from drills.places import own_stack
from drills.planted.scenes import POLICIES, SCENES, Scene
from drills.report import Report
from drills.rows.row import Row, Test, played
from drills.stack import Stack
from drills.waits import until
from standalone.errors import Refusal
from standalone.steps import say

POOL_CHILDREN = 12
WORKSPACES = ("default", "swift")
AT_REST = {"ambiguous", "paused"}
REST_LIMIT_S = 120.0
GUARDS = re.compile(r"(IllegalTransition|django\.db\.utils\.\w*Error: [^\n]{1,200})")
AWAY = re.compile("connection|server closed|terminat|shutting down|starting up", re.IGNORECASE)
# Which programs carry a bug, and in which scene it must show.
PLANTED: Mapping[str, tuple[tuple[str, ...], str]] = {
    "no_self_fence": (("effects",), "stopped_twin"),
    "settle_without_fence": (("effects",), "late_result"),
    "late_results_dropped": (("effects",), "late_result"),
    "cross_without_lease": (("effects",), "zombie_crossing"),
    "new_key_for_each_attempt": (("effects",), "one_key"),
    "change_without_its_event": (("effects",), "ordinary_send"),
    "unknown_commit_taken_for_done": (("effects",), "lost_commits"),
    "repeat_of_a_crossed_side_effect": (("effects", "watchdog"), "killed_after_its_effect"),
    "time_over_means_failed": (("effects", "watchdog"), "hung_after_its_effect"),
    "negative_probe_believed_at_once": (("effects", "reads", "watchdog"), "early_negative"),
    "no_ringing_again": (("watchdog",), "lost_doorbell"),
    "no_watchdog": (("watchdog",), "silent_worker"),
    "deny_the_living": (("web", "watchdog"), "early_denial"),
    "key_taken_for_other_arguments": (("web",), "reused_key"),
    "carry_over_not_made_anew": (("web",), "compacted_while_it_crosses"),
    "hand_off_drops_the_unresolved": (("web",), "handed_to_another_session"),
}


def run(options: argparse.Namespace, folder: Path) -> Report:
    """Play all scenes on the product, then each bug's; raises Refusal for a name not known."""
    began = time.monotonic()
    chosen = _chosen(options.only)
    say(f"{len(chosen)} bugs to be planted, on servers of its own.")
    with own_stack(folder, points=True, linked=True, pool_children=POOL_CHILDREN) as stack:
        for tool, knobs in POLICIES.items():
            stack.desk.ask("policies", workspace="swift", tools=[tool], **knobs)
        rows = _green(stack, folder, sorted({PLANTED[name][1] for name in chosen}))
        green = {row.name for row in rows if row.passed}
        bugged: set[str] = set()
        for name in chosen:
            if PLANTED[name][1] in green:
                rows.append(_red(stack, folder, name, bugged))
    return Report(
        kind="planted",
        seconds=round(time.monotonic() - began, 1),
        figures={
            "bugs": len(chosen),
            "caught": sum(row.passed is True for row in rows if row.name in PLANTED),
        },
        rows=rows,
        again="python3 manage.py drill planted",
    )


def _chosen(only: Sequence[str] | None) -> list[str]:
    unknown = sorted(set(only or ()) - set(PLANTED))
    if unknown:
        raise Refusal(f"No bug is called {unknown[0]}. There are {', '.join(PLANTED)}.")
    return list(only or PLANTED)


def _green(stack: Stack, folder: Path, names: Sequence[str]) -> list[Row]:
    """The scenes without any bug: those that disturb nobody at once, the others one by one."""
    say("Without a bug every scene must be green.")
    scenes = [SCENES[name] for name in names]
    together = [scene for scene in scenes if not scene.alone]
    rows = []
    if together:
        with ThreadPoolExecutor(len(together)) as pool:
            playing = [pool.submit(played, _test(scene), stack, folder) for scene in together]
            while wait(playing, timeout=0.1).not_done:
                stack.tend()
        rows = [each.result() for each in playing]
    rows += [_played(stack, scene, folder) for scene in scenes if scene.alone]
    for row in rows:
        say(f"{'green' if row.passed else 'RED'}  {row.name}: {row.seen} ({row.seconds} s)")
    return rows


def _played(stack: Stack, scene: Scene, folder: Path) -> Row:
    """Play one scene; the main thread starts again what ends meanwhile.

    One that is `alone` may restart a server, which is the main thread's to do.
    """
    stack.tend()
    stack.until_ready()
    test = _test(scene)
    if scene.alone:
        return played(test, stack, folder)
    with ThreadPoolExecutor(1) as pool:
        playing = pool.submit(played, test, stack, folder)
        while wait([playing], timeout=0.1).not_done:
            stack.tend()
    return playing.result()


def _test(scene: Scene) -> Test:
    said = (scene.play.__doc__ or "").strip().splitlines()[0]
    return Test(
        number="-", name=scene.name, killed="no bug", where=said,
        expected="green", play=scene.play, stage=1,
    )  # fmt: skip


def _red(stack: Stack, folder: Path, name: str, bugged: set[str]) -> Row:
    """Plant one bug, play its scene, and turn its outcome round: red is what is wanted."""
    programs, scene = PLANTED[name]
    alone = SCENES[scene].alone
    for program in sorted(bugged if alone else bugged - set(programs)):
        stack.replace(program)
    if alone:
        _until_at_rest(stack)
    for program in programs:
        words = stack.command(program)[1:]
        wrapped = (sys.executable, "-m", "drills.planted.bugged", name, *words)
        stack.replace(program, wrapped)
    bugged.clear()
    bugged.update(programs)
    before = {program: stack.children[program].log.stat().st_size for program in programs}
    row = _played(stack, SCENES[scene], folder)
    guard = _guard(stack, before)
    caught = row.passed is False
    say(f"{'caught' if caught else 'MISSED'}  {name}: {row.seen}{guard} ({row.seconds} s)")
    return replace(
        row,
        number="+",
        name=name,
        killed=f"planted in {' and '.join(programs)}",
        where=f"scene {scene}",
        expected="the scene turns red",
        seen=f"{row.seen}{guard}",
        passed=caught,
    )


def _until_at_rest(stack: Stack) -> None:
    """Wait until no call goes on by itself: its ring would wake a worker for the scene's, too."""

    def rests() -> bool:
        stack.tend()
        return all(stack.desk.ask("unsettled", workspace=each).keys() <= AT_REST
                   for each in WORKSPACES)  # fmt: skip

    stack.until_ready()
    until(rests, "the calls of the scenes before are at rest", REST_LIMIT_S, every_s=0.5)


def _guard(stack: Stack, before: Mapping[str, int]) -> str:
    """Which guard of the product refused the bug, where one did; from the programs' logs."""
    for program, size in before.items():
        with stack.children[program].log.open("rb") as log:
            log.seek(size)
            text = log.read().decode("utf-8", "replace")
        refused = [each for each in GUARDS.findall(text) if not AWAY.search(each)]
        if refused:
            return f"; refused by a guard ({program}: {refused[0].rpartition('utils.')[2]})"
    return ""
