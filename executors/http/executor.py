"""The executor of tools that are HTTP requests.

A read is sent freely and may follow redirects. An effect crosses the boundary after its
connection stands and before its first byte is handed over, so a connection that never stood
is proof that nothing began; it goes out once, on a connection of its own, and is never sent
to a second place. One executor may run many attempts at a time: it keeps nothing between
them.
"""

from collections.abc import Mapping

from executors.contract import Assignment, Context, Outcome, ProbeAnswer
from executors.http import handles, outcomes, probes
from executors.http.client import Answer, exchange, follow
from executors.http.config import Cancel, HttpTool, Poll, UnfitConfig, load
from executors.http.outcomes import Sent
from executors.http.requests import asking_request, call_request, filling_of
from executors.http.secrets import EnvironmentSecrets, Revealed, SecretMissing
from executors.http.targets import UnfitUrl
from executors.http.templates import Unfillable
from executors.http.wire import Network, Traffic, Unanswered
from executors.network import proof_of_status
from ledger.vocabulary import Boundary, Cause, Meaning, RecoveryClass

NEVER_SENT: Mapping[type[Exception], Cause] = {
    UnfitConfig: Cause.INTERNAL,
    SecretMissing: Cause.AUTH,
    Unfillable: Cause.VALIDATION,
    UnfitUrl: Cause.VALIDATION,
}
"""Why no request came about."""

NOT_SENT: tuple[type[Exception], ...] = tuple(NEVER_SENT)
SILENT: tuple[type[Exception], ...] = (*NOT_SENT, Unanswered)


class HttpExecutor:
    """Runs, polls, probes and cancels HTTP tools.

    `secrets` maps names to values (by default the environment); `network` says how the
    outside is reached (by default the system's resolver, TCP and trusted certificates).
    """

    def __init__(
        self, *, secrets: Mapping[str, str] | None = None, network: Network | None = None
    ) -> None:
        self._secrets = EnvironmentSecrets() if secrets is None else secrets
        self._network = Network() if network is None else network

    def run(self, assignment: Assignment, context: Context) -> Outcome:
        """Send the tool's request once; raises only what the context raises."""
        try:
            tool = load(assignment.executor_config)
            sent = self._working(tool, assignment, context)
        except NOT_SENT as unfit:
            return _never_sent(unfit, Meaning.NOT_BEGUN)
        if assignment.boundary == Boundary.AT_START and not sent.reads:
            context.cross()
        try:
            answer = self._send(sent, tool)
        except Unanswered as failure:
            return outcomes.unanswered(sent, failure)
        return _outcome(sent, answer, tool, assignment, context)

    def poll(self, assignment: Assignment, context: Context) -> Outcome:
        """Ask once after the handle of the assignment."""
        handle = assignment.handle
        if handle is None:
            return _no_handle()
        try:
            tool = load(assignment.executor_config)
            ask = _poll_of(tool)
            sent = self._asking(tool, ask.url, ask.method, assignment, context.remaining_s())
        except NOT_SENT as unfit:
            # A poll that cannot be made says nothing about the work.
            return _never_sent(unfit, Meaning.UNKNOWN)
        try:
            answer = self._send(sent, tool)
        except Unanswered as failure:
            return handles.still_going(handle, f"{sent.name}: the poll got no answer. {failure}")
        return handles.polled(sent, answer, ask, handle, filling_of(assignment))

    def probe(self, assignment: Assignment, context: Context) -> ProbeAnswer:
        """Ask once whether the effect of this call happened."""
        seconds = min(probes.PROBE_S, context.remaining_s())
        try:
            tool = load(assignment.executor_config)
            if tool.probe is None:
                return probes.unknown("This tool names no probe, so the outside was not asked.")
            ask = tool.probe
            sent = self._asking(tool, ask.url, ask.method, assignment, seconds)
            answer = self._send(sent, tool)
        except SILENT as silent:
            return probes.unknown(f"The probe brought no answer. {silent}")
        return probes.found(sent, answer, ask, filling_of(assignment))

    def cancel(self, assignment: Assignment, context: Context) -> Outcome:
        """Ask the outside to end the work; what became of it is for the next poll to say."""
        handle = assignment.handle
        if handle is None:
            return _no_handle()
        try:
            tool = load(assignment.executor_config)
            ask = _cancel_of(tool)
            if ask is None:
                return handles.still_going(handle, "This tool names no way to end its work.")
            sent = self._asking(
                tool, ask.url, ask.method, assignment, context.remaining_s(), reads=False
            )
            answer = self._send(sent, tool)
        except SILENT as silent:
            return handles.still_going(handle, f"The request to end the work failed. {silent}")
        if answer.status in handles.UNKNOWN_HANDLE:
            return handles.vanished(sent, answer)
        return handles.still_going(
            handle, f"The outside was asked to end the work and answered {answer.status}."
        )

    def _working(self, tool: HttpTool, assignment: Assignment, context: Context) -> Sent:
        revealed = Revealed(self._secrets)
        request = call_request(tool, assignment, revealed)
        reads = assignment.recovery_class == RecoveryClass.READ_ONLY
        before = _nothing if reads else context.cross
        traffic = Traffic.within(context.remaining_s(), before)
        return Sent(request=request, traffic=traffic, revealed=revealed, reads=reads)

    def _asking(
        self,
        tool: HttpTool,
        url: str,
        method: str,
        assignment: Assignment,
        seconds: float,
        reads: bool = True,
    ) -> Sent:
        revealed = Revealed(self._secrets)
        request = asking_request(tool, url, method, assignment, revealed)
        traffic = Traffic.within(seconds)
        return Sent(request=request, traffic=traffic, revealed=revealed, reads=reads)

    def _send(self, sent: Sent, tool: HttpTool) -> Answer:
        if sent.reads:
            return follow(
                sent.request, rules=tool.rules, network=self._network, traffic=sent.traffic
            )
        return exchange(
            sent.request,
            rules=tool.rules,
            network=self._network,
            traffic=sent.traffic,
            reset_on_close=True,
        )


def _outcome(
    sent: Sent, answer: Answer, tool: HttpTool, assignment: Assignment, context: Context
) -> Outcome:
    if tool.job is not None and answer.status in tool.job.accepted:
        return handles.taken(sent, answer, tool.job, context)
    if answer.status in tool.success:
        return outcomes.succeeded(sent, answer)
    proof = proof_of_status(
        answer.status,
        later_attempt=assignment.fence > 1 or assignment.crossed,
        refused_statuses=tool.refused_statuses,
    )
    return outcomes.not_succeeded(sent, answer, proof)


def _poll_of(tool: HttpTool) -> Poll:
    if tool.job is None:
        raise UnfitConfig("This tool has no job in its configuration, so it cannot be asked after.")
    return tool.job.poll


def _cancel_of(tool: HttpTool) -> Cancel | None:
    return tool.job.cancel if tool.job else None


def _never_sent(unfit: Exception, means: Meaning) -> Outcome:
    return Outcome.ended(NEVER_SENT[type(unfit)], means, str(unfit), error_type="http.not_sent")


def _no_handle() -> Outcome:
    return Outcome.ended(
        Cause.VANISHED,
        Meaning.UNKNOWN,
        "This call has no handle, so the outside cannot be asked after its work. "
        "Look for it at the provider and attach its handle.",
        error_type="http.handle_missing",
    )


def _nothing() -> None:
    """A read has no boundary."""
