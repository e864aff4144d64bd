"""The answers of the API. Written by scripts/generate_types.py from the server's OpenAPI document: do not edit.

Times are texts (RFC 3339); what ends in ``_ms`` is in milliseconds, what ends in ``_bytes`` in bytes. A field is None where the answer left it out.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """An object of the API.

    Attributes:
        text: One sentence, independent of any client program
        command: Command line that does it
        do: API operation that does it
        kind: Kind of the object
        name: ID or name of that object
    """

    text: str
    command: str | None = None
    do: str | None = None
    kind: str | None = None
    name: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An object of the API.

    Attributes:
        answer: Value, with the defaults of the form filled in
        at: When it was given, by the clock of the database
        by: Person who answered, as stated by the caller; empty for a default
        declined: accept is false for this answer, so the execution failed with code declined
        defaulted: No answer came in time, so the default of the question was used
        note: Note of the person
        via: api or link; absent for a default
    """

    answer: Any
    at: str
    by: str
    declined: bool | None = None
    defaulted: bool | None = None
    note: str | None = None
    via: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BatchEntry:
    """An object of the API.

    Attributes:
        existing: The same submission was accepted before with this idempotency key
        id: ID of the execution, if accepted
        problem: Why it was refused
    """

    existing: bool | None = None
    id: str | None = None
    problem: Problem | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """An object of the API.

    Attributes:
        accepted: Number accepted, including executions that already existed
        refused: Number refused
        results: One result per submission, in order
    """

    accepted: int
    refused: int
    results: list[BatchEntry]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CancelOrder:
    """An object of the API.

    Attributes:
        as_: Status with which it will end
        at: When the order was given
        code: Error code with which it will end
        cleanup_until: Workflows only: latest end of the clean-up; a second cancel ends it at once
        reason: Reason, shown to people
    """

    as_: str
    at: str
    code: str
    cleanup_until: str | None = None
    reason: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseDigest:
    """An object of the API.

    Attributes:
        cells: One letter for each case, in their order: P passed, U passed and compared with nothing, W
            wrong_answer, T timeout, C cpu_timeout, M oom, O output_limit, X nonzero_exit, S signal, K
            killed, E checker_error, I infra_error, N skipped, ? any other
        cpu_ms: Sum over all cases, in milliseconds
        passed: Cases with the verdict ok
        peak_memory_bytes: Highest of any case
        total: Number of cases
        wall_ms: Sum over all cases, in milliseconds
        names: Start of a SHA-256 over the case names; absent if all are numbered
    """

    cells: str
    cpu_ms: float
    passed: int
    peak_memory_bytes: int
    total: int
    wall_ms: float
    names: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseMismatch:
    """An object of the API.

    Attributes:
        got: Line or word that was written, quoted and shortened
        want: Line or word that was expected
        line: Line of the output, from 1
        path: Place in a returned value, for example [2].name; absent for the whole value
    """

    got: str
    want: str
    line: int | None = None
    path: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """An object of the API.

    Attributes:
        cpu_ms: User and system time of all processes, in milliseconds
        held_memory_bytes: Highest memory use without page_cache_bytes
        name: Name of the case, or its number
        peak_memory_bytes: Highest memory use; the memory limit applies to it
        stdout: First 4 KB of stdout; less if all cases together have more than 256 KB
        stdout_bytes: Bytes written to stdout in all
        verdict: Verdict of the run, or wrong_answer, checker_error or skipped
        wall_ms: Time from start to exit, in milliseconds
        child_oom: A child process was killed for exceeding the memory limit; the program itself was not
        exit_code: Exit code; absent when a signal ended the program or Pawl stopped it
        limits_hit: Limits that were reached: wall, cpu, memory, pids, output, disk
        message: Why the case did not pass, or the message of the checker
        mismatch: First difference, with verdict wrong_answer
        page_cache_bytes: Memory of the kernel's page cache for files that this run read first
        pinned_cpus: Processor numbers of the host that the run was pinned to
        returned: Value that the called function returned, if it has at most 4 KB
        runs: All runs, if rerun_near_limit repeated the case
        shared_cpus: Another run was pinned to one of these processors at the same time
        signal: Signal that ended the program, for example SIGSEGV
        starved_ms: Part of wall_ms in which the program was ready but had no processor
        stderr: First 1 KB of stderr
        stderr_base64: The same bytes in base64, if they are not UTF-8
        stderr_bytes: Bytes written to stderr in all
        stderr_truncated: stderr was longer; the rest is not kept
        stdout_base64: The same bytes in base64, if they are not UTF-8
        stdout_truncated: stdout was longer; the rest is not kept
        transcript: With an interactor: what both wrote, in order; the first and the last 2 KB
        uncompared: The case has no expected output and no checker, so nothing was compared
    """

    cpu_ms: float
    held_memory_bytes: int
    name: str
    peak_memory_bytes: int
    stdout: str
    stdout_bytes: int
    verdict: str
    wall_ms: float
    child_oom: bool | None = None
    exit_code: int | None = None
    limits_hit: list[str] | None = None
    message: str | None = None
    mismatch: CaseMismatch | None = None
    page_cache_bytes: int | None = None
    pinned_cpus: list[int] | None = None
    returned: Any = None
    runs: list[CodeRun] | None = None
    shared_cpus: bool | None = None
    signal: str | None = None
    starved_ms: float | None = None
    stderr: str | None = None
    stderr_base64: str | None = None
    stderr_bytes: int | None = None
    stderr_truncated: bool | None = None
    stdout_base64: str | None = None
    stdout_truncated: bool | None = None
    transcript: list[CaseTurn] | None = None
    uncompared: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """An object of the API.

    Attributes:
        failed: Cases that neither passed nor were skipped
        passed: Cases with verdict ok
        total: Number of cases
        skipped: Cases not run because an earlier case did not pass
        uncompared: Passed cases whose output was not compared with anything
    """

    failed: int
    passed: int
    total: int
    skipped: int | None = None
    uncompared: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseTurn:
    """An object of the API.

    Attributes:
        by: Who wrote it: program or interactor
        text: What it wrote; bytes that are not UTF-8 are shown as U+FFFD
        base64: The same bytes in base64, if they are not UTF-8
        omitted: Bytes of the dialogue before this turn that were not kept
    """

    by: str
    text: str
    base64: str | None = None
    omitted: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseVerdict:
    """An object of the API.

    Attributes:
        name: Name of the case, or its number
        verdict: Verdict of the case, for example ok, wrong_answer or timeout
    """

    name: str
    verdict: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CodeLimits:
    """An object of the API.

    Attributes:
        cpu: User and system time of all processes together
        cpus: Processors, for example 1 or 0.5; default: all that are free
        disk: Bytes of the working directory and /tmp together
        memory: Memory of all processes together
        output: Bytes of stdout and stderr together
        pids: Processes and threads at the same time
        stack: Bytes of the stack of each process's first thread; default: the memory limit, up to 1GiB
        wall: Time from start to exit
    """

    cpu: str | None = None
    cpus: float | None = None
    disk: Any = None
    memory: Any = None
    output: Any = None
    pids: int | None = None
    stack: Any = None
    wall: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CodeResult:
    """An object of the API.

    Attributes:
        cpu_ms: User and system time of all processes, in milliseconds
        held_memory_bytes: Highest memory use without page_cache_bytes
        peak_memory_bytes: Highest memory use; the memory limit applies to it
        stderr: First 100 KB of stderr; bytes that are not UTF-8 are shown as U+FFFD
        stderr_bytes: Bytes written to stderr in all
        stdout: First 100 KB of stdout; bytes that are not UTF-8 are shown as U+FFFD
        stdout_bytes: Bytes written to stdout in all
        verdict: How it ended: ok, nonzero_exit, signal, timeout, cpu_timeout, oom, output_limit, idle,
            killed, infra_error, compile_error or syntax_error; of cases that of the first that did not pass
        wall_ms: Time from start to exit, in milliseconds
        cases: Results of the cases, in order; times above are sums, memory is the highest
        cause: With infra_error, if known: node_lost, node_shutdown, preempted, evicted or deleted
        child_oom: A child process was killed for exceeding the memory limit; the program itself was not
        compile: Run of the compiler, for compiled languages
        enforcement: How limits were enforced: cgroup-v1, cgroup-v2, hybrid, rlimit+watchdog or none
        exit_code: Exit code, with verdict ok, nonzero_exit or syntax_error
        files: Files that collect matched
        limits: Limits in force: those submitted, completed by the defaults
        limits_hit: Limits that were reached: wall, cpu, memory, pids, output, disk
        page_cache_bytes: Memory of the kernel's page cache for files that this run read first
        pinned_cpus: Processor numbers of the host that the run was pinned to
        reason: One sentence: which limit was exceeded, or why the program was killed
        refused: Files that were not returned, and patterns that matched nothing, with the reason
        result: JSON value that the program wrote to the file named by $PAWL_OUTPUT
        result_error: Why the content of that file was not accepted, for example invalid JSON
        runs: All runs, if rerun_near_limit repeated the program
        runtime: Runtime that isolated the program, for example sandbox
        shared_cpus: Another run was pinned to one of these processors at the same time
        signal: Signal that ended the program, for example SIGSEGV; with verdict signal
        starved_ms: Part of wall_ms in which the program was ready but had no processor
        stderr_base64: The same bytes in base64, if they are not UTF-8
        stderr_truncated: stderr was longer; the log has all of it
        stdout_base64: The same bytes in base64, if they are not UTF-8
        stdout_truncated: stdout was longer; the log has all of it
        summary: Counts of the cases
        tool: Interpreter or compiler
        tool_version: Version of the tool, if known
    """

    cpu_ms: float
    held_memory_bytes: int
    peak_memory_bytes: int
    stderr: str
    stderr_bytes: int
    stdout: str
    stdout_bytes: int
    verdict: str
    wall_ms: float
    cases: list[CaseResult] | None = None
    cause: str | None = None
    child_oom: bool | None = None
    compile: CodeResult | None = None
    enforcement: str | None = None
    exit_code: int | None = None
    files: list[ResultFile] | None = None
    limits: CodeLimits | None = None
    limits_hit: list[str] | None = None
    page_cache_bytes: int | None = None
    pinned_cpus: list[int] | None = None
    reason: str | None = None
    refused: list[str] | None = None
    result: Any = None
    result_error: str | None = None
    runs: list[CodeRun] | None = None
    runtime: str | None = None
    shared_cpus: bool | None = None
    signal: str | None = None
    starved_ms: float | None = None
    stderr_base64: str | None = None
    stderr_truncated: bool | None = None
    stdout_base64: str | None = None
    stdout_truncated: bool | None = None
    summary: CaseSummary | None = None
    tool: str | None = None
    tool_version: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CodeRun:
    """An object of the API.

    Attributes:
        cpu_ms: User and system time of all processes, in milliseconds
        peak_memory_bytes: Highest memory use
        verdict: Verdict of this run
        wall_ms: Time from start to exit, in milliseconds
        counts: This run's result is the one reported
        starved_ms: Part of wall_ms in which the program was ready but had no processor
    """

    cpu_ms: float
    peak_memory_bytes: int
    verdict: str
    wall_ms: float
    counts: bool | None = None
    starved_ms: float | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """An object of the API.

    Attributes:
        statuses: Executions by status; a status without executions is absent
        total: Number of executions
        unfinished: Executions that have not ended; all of them are counted
        verdicts: Ended executions by verdict: ok, or the error code
        more: More than 10,000 match: of the ended ones only the newest were counted
    """

    statuses: dict[str, int]
    total: int
    unfinished: int
    verdicts: dict[str, int]
    more: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """An object of the API.

    Attributes:
        at: When the limit is reached
        of: Limit; gap: an expected event did not arrive
    """

    at: str
    of: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defined:
    """An object of the API.

    Attributes:
        definitions: Result for each document, in order
        warnings: Accepted, but perhaps not intended: for example, a task names a retired action
    """

    definitions: list[DefinedVersion]
    warnings: list[FieldError] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefinedVersion:
    """An object of the API.

    Attributes:
        created: Whether this version is new; false if it was registered before
        kind: workflow, action, queue, schedule, trigger or rule
        name: Name of the definition
        version: Version of the definition, from 1; 0 in a validation
        latest: Version that the name alone stands for, if it is not the newest
    """

    created: bool
    kind: str
    name: str
    version: int
    latest: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """An object of the API.

    Attributes:
        enforcements: Decisions by rule name; empty if the signal existed, or many rules still run
        signal: ID of the signal; begins with sg_
        existing: The same signal was emitted before with this trigger and key
    """

    enforcements: list[Enforcement]
    signal: str
    existing: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EnforceReason:
    """An object of the API.

    Attributes:
        code: if, input, action, loop, too_deep or storm
        message: Message for people
        path: Place in the rule's document
    """

    code: str
    message: str
    path: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """An object of the API.

    Attributes:
        at: When the rule was applied
        rule: Name of the rule
        signal: ID of the signal; begins with sg_
        state: ran: it has started an execution; held: it waits in the window of a debounce or a batch;
            folded: one that was there stands for it; refused: a bound of the rule kept it from starting
            one; failed: it could not be evaluated
        version: Version of the rule
        execution: Execution that was started for the signal, or covers it
        reason: Why nothing was started
    """

    at: str
    rule: str
    signal: str
    state: str
    version: int
    execution: str | None = None
    reason: EnforceReason | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Error:
    """An object of the API.

    Attributes:
        code: Stable code, for programs
        message: Message for people; cut at 1,000 bytes in lists
        details: Fields that depend on the code
    """

    code: str
    message: str
    details: Any = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An object of the API.

    Attributes:
        at: When it happened
        attempt: Number of the attempt, from 1
        seq: 1, 2, 3 … over all attempts, without gaps
        type: Type of the event (docs/states.md)
        data: Fields that depend on the type
    """

    at: str
    attempt: int
    seq: int
    type: str
    data: Any = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EventPage:
    """An object of the API.

    Attributes:
        events: Events in order, without gaps
        more: More events are available now
        next_cursor: Value for after to continue; present even if there is nothing more yet
        status: State of the execution; completed, failed, cancelled and timed_out are final
    """

    events: list[Event]
    more: bool
    next_cursor: str
    status: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """An object of the API.

    Attributes:
        action: A registered name, or the kind of ad-hoc work
        attempt: Number of the attempt, from 1
        id: Id of the execution; begins with ex_
        status: State of the execution; completed, failed, cancelled and timed_out are final
        alias: Alias by which the version was chosen; absent if by number or by name alone
        cached: The task did not run: the cached result of reused_of was used
        cancel_order: The worker was told to stop it and has not confirmed yet
        case_verdicts: Verdict of each case, in order; only in lists with cases=true
        claimed_at: When the attempt was handed to its worker
        cpu_ms: Code only: processor time, in milliseconds
        created_at: When it was accepted; absent in the answer to a submission without wait
        digest: Case results, one letter per case; only in lists with digest=true
        error: Why it did not complete
        existing: Answer to a submission only: the idempotency key was known
        exit_code: Exit code; absent when a signal ended the program or Pawl stopped it
        fair_by: Fairness group among executions that wait for the key
        finished_at: When it ended
        given_by: Who supplied the output of this task in a rerun; on the rerun, who supplied any
        index: Item of a foreach task or round of a repeated task, from 0
        input: Input; left out in lists
        inquiry: Open question that it, or a task below it, waits for
        key: Concurrency key
        key_limit: Executions that may hold the key at the same time
        kind: Kind of work, for example code, http or workflow, or the name of a handler
        labels: Labels by name; lists, counts and waits can select by them
        no_cache: Cached results are not used for its tasks
        not_before: Earliest start
        only: Reruns only: tasks, or items as task[3], that it is limited to
        output: Result of the execution; for code with verdict, stdout, times and files
            (docs/evaluations.md)
        paused: Present while the workflow is paused: it starts no tasks
        peak_memory_bytes: Code only: highest memory use
        priority: -1000 to 1000; higher goes first
        queue: Queue in which it waits for a worker
        queue_timeout: Longest time that an attempt may wait for a worker
        queued_at: When the attempt became ready to be claimed
        rate: How often executions with its rate key may begin
        rerun_of: ID of the execution that this one reruns
        retry: When a failed attempt is repeated
        retry_of: ID of the execution whose request this one repeats
        reused_of: Execution whose result this task took, in a rerun or from the cache, without running
        rules: Rules in the chain that led to it; the last one started it
        runtime: Runtimes that a worker needs, separated by commas; code:NAME is a language
        seq: Number of its latest event; a copy with higher attempt and seq is newer
        signal: Signal for which a rule started it; begins with sg_
        started_at: When the first attempt began to run
        summary: Counts of its test cases
        task: Name of the task in that workflow
        timeout: Time limit of one attempt, counted from its claim by a worker
        total_timeout: Time limit for all attempts together
        traceparent: W3C trace context
        verdict: Ended code only: ok, or the error code
        version: Version of the definition; absent for ad-hoc work
        waiting: What it waits for, as far as its own row tells; absent after the end
        wake_at: End of a sleep, or of the delay before the next attempt
        wall_ms: Code only: time from start to exit, in milliseconds
        weight: Share of its group compared with others
        worker: Session of the worker that holds the attempt; begins with ws_
        worker_labels: Labels that a worker must have to run it
        workflow: ID of the workflow execution that this is a task of
    """

    action: str
    attempt: int
    id: str
    status: str
    alias: str | None = None
    cached: bool | None = None
    cancel_order: CancelOrder | None = None
    case_verdicts: list[CaseVerdict] | None = None
    claimed_at: str | None = None
    cpu_ms: float | None = None
    created_at: str | None = None
    digest: CaseDigest | None = None
    error: Error | None = None
    existing: bool | None = None
    exit_code: int | None = None
    fair_by: str | None = None
    finished_at: str | None = None
    given_by: str | None = None
    index: int | None = None
    input: Any = None
    inquiry: str | None = None
    key: str | None = None
    key_limit: int | None = None
    kind: str | None = None
    labels: dict[str, str] | None = None
    no_cache: bool | None = None
    not_before: str | None = None
    only: list[str] | None = None
    output: Any = None
    paused: Pause | None = None
    peak_memory_bytes: int | None = None
    priority: int | None = None
    queue: str | None = None
    queue_timeout: str | None = None
    queued_at: str | None = None
    rate: Rate | None = None
    rerun_of: str | None = None
    retry: Retry | None = None
    retry_of: str | None = None
    reused_of: str | None = None
    rules: list[str] | None = None
    runtime: str | None = None
    seq: int | None = None
    signal: str | None = None
    started_at: str | None = None
    summary: CaseSummary | None = None
    task: str | None = None
    timeout: str | None = None
    total_timeout: str | None = None
    traceparent: str | None = None
    verdict: str | None = None
    version: int | None = None
    waiting: str | None = None
    wake_at: str | None = None
    wall_ms: float | None = None
    weight: int | None = None
    worker: str | None = None
    worker_labels: dict[str, str] | None = None
    workflow: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPage:
    """An object of the API.

    Attributes:
        executions: Newest first
        next_cursor: Pass it as cursor to get the next page; absent on the last one
        searched_to: Executions created before this time were not searched; use next_cursor
        unfinished: With wait: executions that have not ended
    """

    executions: list[Execution]
    next_cursor: str | None = None
    searched_to: str | None = None
    unfinished: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """An object of the API.

    Attributes:
        message: Description of the error
        column: Column in characters, from 1
        file: body, or the name of the document
        fix: How to fix it
        line: Line, from 1
        path: Place of the error, for example labels.team, executions[3].timeout or ?limit
        value: Value that is wrong, shortened
    """

    message: str
    column: int | None = None
    file: str | None = None
    fix: str | None = None
    line: int | None = None
    path: str | None = None
    value: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """An object of the API.

    Attributes:
        asked_at: When the question was last asked
        execution: Execution that waits for the answer, or was the last to wait
        id: ID of the question; begins with iq_
        purpose: Key of the question: a workflow asks once per purpose, over all its attempts
        state: open, answered, expired or withdrawn
        title: Question in one line
        accept: Expression that must be true for an answer to be accepted
        answer: Answer; absent while there is none
        assignees: People, and groups as group:NAME, who may answer; absent: everyone
        closed_at: When the question was answered, expired or withdrawn
        default: Answer used after due; absent: the execution times out then
        due: When the question expires; absent: never
        exclude: People who may not answer
        form: JSON Schema of the answer; absent: any JSON value is accepted
        text: Details of the question
        workflow: Workflow execution that asks; absent outside workflows
    """

    asked_at: str
    execution: str
    id: str
    purpose: str
    state: str
    title: str
    accept: str | None = None
    answer: Answer | None = None
    assignees: list[str] | None = None
    closed_at: str | None = None
    default: Any = None
    due: str | None = None
    exclude: list[str] | None = None
    form: Any = None
    text: str | None = None
    workflow: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class InquiryPage:
    """An object of the API.

    Attributes:
        inquiries: Newest first
        next_cursor: Pass it as cursor to get the next page; absent on the last one
    """

    inquiries: list[Inquiry]
    next_cursor: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LackingWorker:
    """An object of the API.

    Attributes:
        lacks: What it lacks, in words
        worker: Name of the worker
    """

    lacks: list[str]
    worker: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """An object of the API.

    Attributes:
        at: When it was written
        attempt: Number of the attempt, from 1
        offset: Offset of the first byte in the stream
        seq: 1, 2, 3 … over all streams of the attempt
        size: Size in bytes
        stream: stdout, stderr or log
        data: Content, if it is not UTF-8
        text: Content, if it is UTF-8
    """

    at: str
    attempt: int
    offset: int
    seq: int
    size: int
    stream: str
    data: str | None = None
    text: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    """An object of the API.

    Attributes:
        chunks: Chunks in order
        more: More chunks are available now
        next_cursor: Value for after to continue; present even if there is nothing more yet
        status: State of the execution; completed, failed, cancelled and timed_out are final
        prev_cursor: Value for before to read further back; absent at the start of the log
    """

    chunks: list[LogChunk]
    more: bool
    next_cursor: str
    status: str
    prev_cursor: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An object of the API.

    Attributes:
        action: A registered name, or the kind of ad-hoc work
        attempt: Number of the attempt, from 1
        cursor: Value for ?after= to get the outcomes after this one
        id: Id of the execution; begins with ex_
        status: State of the execution; completed, failed, cancelled and timed_out are final
        alias: Alias by which the version was chosen; absent if by number or by name alone
        cached: The task did not run: the cached result of reused_of was used
        cancel_order: The worker was told to stop it and has not confirmed yet
        case_verdicts: Verdict of each case, in order; only in lists with cases=true
        claimed_at: When the attempt was handed to its worker
        cpu_ms: Code only: processor time, in milliseconds
        created_at: When it was accepted; absent in the answer to a submission without wait
        digest: Case results, one letter per case; only in lists with digest=true
        error: Why it did not complete
        existing: Answer to a submission only: the idempotency key was known
        exit_code: Exit code; absent when a signal ended the program or Pawl stopped it
        fair_by: Fairness group among executions that wait for the key
        finished_at: When it ended
        given_by: Who supplied the output of this task in a rerun; on the rerun, who supplied any
        index: Item of a foreach task or round of a repeated task, from 0
        input: Input; left out in lists
        inquiry: Open question that it, or a task below it, waits for
        key: Concurrency key
        key_limit: Executions that may hold the key at the same time
        kind: Kind of work, for example code, http or workflow, or the name of a handler
        labels: Labels by name; lists, counts and waits can select by them
        no_cache: Cached results are not used for its tasks
        not_before: Earliest start
        only: Reruns only: tasks, or items as task[3], that it is limited to
        output: Result of the execution; for code with verdict, stdout, times and files
            (docs/evaluations.md)
        paused: Present while the workflow is paused: it starts no tasks
        peak_memory_bytes: Code only: highest memory use
        priority: -1000 to 1000; higher goes first
        queue: Queue in which it waits for a worker
        queue_timeout: Longest time that an attempt may wait for a worker
        queued_at: When the attempt became ready to be claimed
        rate: How often executions with its rate key may begin
        rerun_of: ID of the execution that this one reruns
        retry: When a failed attempt is repeated
        retry_of: ID of the execution whose request this one repeats
        reused_of: Execution whose result this task took, in a rerun or from the cache, without running
        rules: Rules in the chain that led to it; the last one started it
        runtime: Runtimes that a worker needs, separated by commas; code:NAME is a language
        seq: Number of its latest event; a copy with higher attempt and seq is newer
        signal: Signal for which a rule started it; begins with sg_
        started_at: When the first attempt began to run
        summary: Counts of its test cases
        task: Name of the task in that workflow
        timeout: Time limit of one attempt, counted from its claim by a worker
        total_timeout: Time limit for all attempts together
        traceparent: W3C trace context
        verdict: Ended code only: ok, or the error code
        version: Version of the definition; absent for ad-hoc work
        waiting: What it waits for, as far as its own row tells; absent after the end
        wake_at: End of a sleep, or of the delay before the next attempt
        wall_ms: Code only: time from start to exit, in milliseconds
        weight: Share of its group compared with others
        worker: Session of the worker that holds the attempt; begins with ws_
        worker_labels: Labels that a worker must have to run it
        workflow: ID of the workflow execution that this is a task of
    """

    action: str
    attempt: int
    cursor: str
    id: str
    status: str
    alias: str | None = None
    cached: bool | None = None
    cancel_order: CancelOrder | None = None
    case_verdicts: list[CaseVerdict] | None = None
    claimed_at: str | None = None
    cpu_ms: float | None = None
    created_at: str | None = None
    digest: CaseDigest | None = None
    error: Error | None = None
    existing: bool | None = None
    exit_code: int | None = None
    fair_by: str | None = None
    finished_at: str | None = None
    given_by: str | None = None
    index: int | None = None
    input: Any = None
    inquiry: str | None = None
    key: str | None = None
    key_limit: int | None = None
    kind: str | None = None
    labels: dict[str, str] | None = None
    no_cache: bool | None = None
    not_before: str | None = None
    only: list[str] | None = None
    output: Any = None
    paused: Pause | None = None
    peak_memory_bytes: int | None = None
    priority: int | None = None
    queue: str | None = None
    queue_timeout: str | None = None
    queued_at: str | None = None
    rate: Rate | None = None
    rerun_of: str | None = None
    retry: Retry | None = None
    retry_of: str | None = None
    reused_of: str | None = None
    rules: list[str] | None = None
    runtime: str | None = None
    seq: int | None = None
    signal: str | None = None
    started_at: str | None = None
    summary: CaseSummary | None = None
    task: str | None = None
    timeout: str | None = None
    total_timeout: str | None = None
    traceparent: str | None = None
    verdict: str | None = None
    version: int | None = None
    waiting: str | None = None
    wake_at: str | None = None
    wall_ms: float | None = None
    weight: int | None = None
    worker: str | None = None
    worker_labels: dict[str, str] | None = None
    workflow: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class OutcomesEnd:
    """An object of the API.

    Attributes:
        cursor: Value for ?after= to get outcomes of executions submitted later
        end: Always true; marks the end of the stream
    """

    cursor: str
    end: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PassAt:
    """An object of the API.

    Attributes:
        k: Number of programs per task
        value: Unbiased estimate, 0 to 1
    """

    k: int
    value: float


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """An object of the API.

    Attributes:
        kind: Kind of the object that is paused
        name: Name of the queue, worker or action, or ID of the execution
        number: 1, 2, 3 … over all pauses and resumes; 0 for executions and if there was none
        paused: true: paused; false: resumed
        at: When it was paused or resumed
        beneath: Number of sub-workflows paused or resumed along with it
        by: Who paused or resumed it
        reason: Reason that was given
        timers: Workflows only: stop if timeouts and sleeps are halted; absent if they run on
        until: When the pause expires; absent: it lasts until it is resumed
    """

    kind: str
    name: str
    number: int
    paused: bool
    at: str | None = None
    beneath: int | None = None
    by: str | None = None
    reason: str | None = None
    timers: str | None = None
    until: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PausedPart:
    """An object of the API.

    Attributes:
        kind: Kind of the paused object
        name: Name of the queue, worker or action
    """

    kind: str
    name: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An object of the API.

    Attributes:
        status: HTTP status; in a batch, the one this item would have had alone
        title: Meaning of the type
        type: Stable URN, for programs (docs/api.md)
        detail: Error of this request, for people
        errors: All errors, each with its place
        instance: Path of the request; in a batch, the item
        request_id: ID of the request in the server's log
    """

    status: int
    title: str
    type: str
    detail: str | None = None
    errors: list[FieldError] | None = None
    instance: str | None = None
    request_id: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """An object of the API.

    Attributes:
        key: Executions with the same key are counted together, across all actions
        limit: Starts per period, 1 to 100,000
        per: Length of the period, for example 1m
        burst: Starts allowed at once after a quiet time; default 1
        over: Above the limit: delay (default) waits, drop ends the execution as cancelled
    """

    key: str
    limit: int
    per: str
    burst: int | None = None
    over: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RerunPlan:
    """An object of the API.

    Attributes:
        action: Action of the rerun
        of: Execution to rerun
        reused: Task executions whose results are reused
        error: Error of the rerun if nothing has to run
        status: Status of the rerun if nothing has to run
        tasks: Tasks in document order; absent if it is not a workflow
        version: Version of the definition that the rerun uses
        within: Sub-workflows that a path leads into and that run in part, each after its parent
    """

    action: str
    of: str
    reused: int
    error: Error | None = None
    status: str | None = None
    tasks: list[RerunTask] | None = None
    version: int | None = None
    within: list[RerunWithin] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RerunTask:
    """An object of the API.

    Attributes:
        decision: Partly: some items run. Give: nothing of it runs, and an output is given. Skip: its
            condition does not hold. Break: one of its expressions fails. Prevent: the workflow fails before
            it can start. Leave: it is left out, because the rerun is of other tasks only
        task: Name of the task
        given: Items with a supplied output
        items: foreach tasks only: first 100 items that will run
        reason: Reason; if several items run, that of the first
        reused: Items whose results are reused
        runs: Items that will run, as far as known now
    """

    decision: str
    task: str
    given: int | None = None
    items: list[int] | None = None
    reason: str | None = None
    reused: int | None = None
    runs: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class RerunWithin:
    """An object of the API.

    Attributes:
        action: Action of the sub-workflow
        of: Execution that it reruns
        path: Path of the sub-workflow, for example deploy[0] or deploy[0]/verify[2]
        tasks: Tasks in document order
        version: Version of its definition
    """

    action: str
    of: str
    path: str
    tasks: list[RerunTask]
    version: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """An object of the API.

    Attributes:
        mode: Permission bits in octal, for example 0644
        path: Path relative to the working directory
        size: Size in bytes
        base64: Bytes of a small file that is not UTF-8, in base64
        blob: Name of the blob with the bytes of a large file
        content: Text of a small file
    """

    mode: str
    path: str
    size: int
    base64: str | None = None
    blob: str | None = None
    content: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """An object of the API.

    Attributes:
        backoff: How the delay grows; default exponential
        delay: Delay before the second attempt; default 1s
        jitter: Random share of the delay, 0 to 1
        max_attempts: Attempts in all; default 1
        max_delay: Longest delay; default 10m
        on: Error codes to retry, or exit:N; default: all
    """

    backoff: str | None = None
    delay: str | None = None
    jitter: float | None = None
    max_attempts: int | None = None
    max_delay: str | None = None
    on: list[str] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """An object of the API.

    Attributes:
        accuracy: passed / judged; 0 if nothing was judged
        judged: Evaluations with a verdict about the program
        passed: Those with the verdict ok
        verdicts: Ended evaluations by verdict
        labels: Values of the labels in by; a label that the evaluations do not have is absent
        pass_at: Estimates of pass@k; a k is absent if a task has fewer judged evaluations
        tasks: Number of values of the label that names the task
        unjudged: Evaluations that ended without a verdict about the program; counted nowhere else
        untasked: Judged evaluations without that label; they are not part of pass_at
    """

    accuracy: float
    judged: int
    passed: int
    verdicts: dict[str, int]
    labels: dict[str, str] | None = None
    pass_at: list[PassAt] | None = None
    tasks: int | None = None
    unjudged: int | None = None
    untasked: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """An object of the API.

    Attributes:
        groups: One for each combination of values of the labels in by; without by one for all
        more: At least 100,000 have ended: only the first of them were counted
        open: Some evaluations with the label have not ended; they are not counted
    """

    groups: list[Score]
    more: bool | None = None
    open: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An object of the API.

    Attributes:
        action: Action that its executions run
        name: Name in the workflow
        status: pending before what it needs has ended, skipped when its condition was false, else that of
            its executions: running while any is open, then the worst
        cached: Executions that did not run because a cached result was used
        counts: Executions by status
        created: Executions that exist
        ended: Executions that have ended
        error: Why it could not start
        executions: By index; if there are many, the unfinished and the latest
        finished_at: When its last execution ended
        foreach: Whether it runs once for each item of a list
        given: Executions that did not run because their output was supplied for a rerun
        more: More executions exist than are listed here; counts and times cover all of them
        needs: Tasks that must end before this one
        repeat: Most rounds of a repeated task; round n is the execution with index n-1
        reused: Executions that did not run because the result of the original was reused
        started_at: When its first execution began to run
        total: foreach tasks only: number of items, once known
    """

    action: str
    name: str
    status: str
    cached: int | None = None
    counts: dict[str, int] | None = None
    created: int | None = None
    ended: int | None = None
    error: Error | None = None
    executions: list[TaskExecution] | None = None
    finished_at: str | None = None
    foreach: bool | None = None
    given: int | None = None
    more: bool | None = None
    needs: list[str] | None = None
    repeat: int | None = None
    reused: int | None = None
    started_at: str | None = None
    total: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class TaskExecution:
    """An object of the API.

    Attributes:
        attempt: Number of the attempt, from 1
        id: Id of the execution; begins with ex_
        index: Index of the item, from 0
        status: State of the execution; completed, failed, cancelled and timed_out are final
        cached: It did not run: a cached result was used
        claimed_at: When the attempt was handed to its worker
        created_at: When it was created
        finished_at: When it ended
        given: It did not run: its output was supplied for a rerun
        kind: Kind of work, for example code, http or workflow, or the name of a handler
        reused: It did not run: the result of the original execution was reused
        started_at: When the first attempt began to run
        wake_at: End of a sleep, or of the delay before the next attempt
    """

    attempt: int
    id: str
    index: int
    status: str
    cached: bool | None = None
    claimed_at: str | None = None
    created_at: str | None = None
    finished_at: str | None = None
    given: bool | None = None
    kind: str | None = None
    reused: bool | None = None
    started_at: str | None = None
    wake_at: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """An object of the API.

    Attributes:
        attempt: Attempt of the workflow execution
        status: Status of the workflow execution
        tasks: In the order of the definition
        workflow: ID of the workflow execution
    """

    attempt: int
    status: str
    tasks: list[Task]
    workflow: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """An object of the API.

    Attributes:
        action: Action of the execution
        attempt: Number of the attempt, from 1
        facts: More facts, one sentence each
        id: Id of the execution; begins with ex_
        status: State of the execution; completed, failed, cancelled and timed_out are final
        summary: Why the execution waits, in one sentence
        unblock: Actions that would let it continue; one of them is enough
        waiting: queue, key, rate, time, retry, worker, children, sleep, answer, signal, paused, cancel,
            nothing
        deadlines: Time limits that will end something, earliest first
        handler: Handler that a worker needs to run it
        holders: Executions that hold the key
        index: Item or round of that task, from 0
        inquiry: Question whose answer it waits for
        key: Concurrency key that it waits for
        key_limit: Executions that may hold the key at the same time
        kind: Kind of the action
        lacking: Up to 10 live workers of its queue that cannot run it, and what each lacks
        lease_until: When the worker's lease ends unless it is renewed
        open: Workflows only: unfinished tasks by status
        paused: Queue, worker or action whose pause it waits out
        place_of: Line that position refers to: that of its queue, or of its key
        position: Place in the line, from 1
        queue: Queue in which it waits for a worker
        root: Workflows only: task that causes the wait, searched down through sub-workflows
        runtime: Runtime that a worker needs to run it
        self_held: Its own workflow holds the key, so it may wait forever
        slots: Slots of these workers
        task: Name of the task in its workflow
        until: When the wait ends, if known
        worker: Session of the worker that holds the attempt; begins with ws_
        worker_labels: Labels that a worker must have to run it
        workers: Live workers that could run it
        workflow: ID of the workflow execution that this is a task of
    """

    action: str
    attempt: int
    facts: list[str]
    id: str
    status: str
    summary: str
    unblock: list[Advice]
    waiting: str
    deadlines: list[Deadline] | None = None
    handler: str | None = None
    holders: list[str] | None = None
    index: int | None = None
    inquiry: str | None = None
    key: str | None = None
    key_limit: int | None = None
    kind: str | None = None
    lacking: list[LackingWorker] | None = None
    lease_until: str | None = None
    open: dict[str, int] | None = None
    paused: PausedPart | None = None
    place_of: str | None = None
    position: int | None = None
    queue: str | None = None
    root: str | None = None
    runtime: str | None = None
    self_held: bool | None = None
    slots: int | None = None
    task: str | None = None
    until: str | None = None
    worker: str | None = None
    worker_labels: dict[str, str] | None = None
    workers: int | None = None
    workflow: str | None = None
