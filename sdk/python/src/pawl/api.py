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
        text: In a sentence, without the words of any program
        command: The command line that does it
        do: What can be asked of the API for it
        kind: What that is asked of
        name: The id or name of that
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
        answer: Its value, with the form's defaults
        at: When it was given, by the database's clock
        by: Who gave it, on the caller's word; empty for a default
        declined: accept does not hold for it: the execution has failed as declined
        defaulted: Nobody answered in time, and this is the question's default
        note: Why, for people
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
        existing: The idempotency key was used for the same submission before
        id: Id of the execution, when it was accepted
        problem: Why it was refused
    """

    existing: bool | None = None
    id: str | None = None
    problem: Problem | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """An object of the API.

    Attributes:
        accepted: How many were accepted, existing ones included
        refused: How many were refused
        results: One for each item, in the order of the request
    """

    accepted: int
    refused: int
    results: list[BatchEntry]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CancelOrder:
    """An object of the API.

    Attributes:
        as_: The status that it is to end with
        at: When it was ordered
        code: Of the error that it is to end with
        cleanup_until: Of a workflow that is cleaning up: when that is over at the latest; a second cancel
            ends it at once
        reason: Why, for people
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
        cpu_ms: Of all cases together
        passed: Cases with the verdict ok
        peak_memory_bytes: The most that a case had
        total: All of them
        wall_ms: Of all cases together
        names: The beginning of a SHA-256 of the names of the cases; absent where each is named by its
            number, from 1
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
        got: The line or word, quoted and shortened
        want: What was expected there
        line: Of the output, from 1
        path: Of a value that a function returned, such as [2].name; absent for the value as a whole
    """

    got: str
    want: str
    line: int | None = None
    path: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """An object of the API.

    Attributes:
        cpu_ms: As of a run
        held_memory_bytes: As of a run
        name: Of the case; its number where it was given none
        peak_memory_bytes: As of a run
        stdout: The first 4 KB, less where all cases have more than 256 KB
        stdout_bytes: All that was written
        verdict: That of a run, or wrong_answer, checker_error or skipped
        wall_ms: As of a run
        child_oom: As of a run
        exit_code: As of a run
        limits_hit: As of a run
        message: Why it did not pass, or the checker's words
        mismatch: The first difference, with wrong_answer
        page_cache_bytes: As of a run
        pinned_cpus: The processors that the run was restricted to, by their numbers on the host, where the
            worker pins runs
        returned: What the function of a call returned, where that has at most 4 KB
        runs: All runs in their order, where the case was run again (rerun_near_limit)
        shared_cpus: Another run of the worker was restricted to one of pinned_cpus at the same time
        signal: As of a run
        starved_ms: As of a run
        stderr: The first 1 KB
        stderr_base64: The same bytes exactly, where stderr is not text
        stderr_bytes: All that was written
        stderr_truncated: There was more, which is not kept
        stdout_base64: The same bytes exactly, where stdout is not text
        stdout_truncated: There was more, which is not kept
        uncompared: There was nothing to compare its output with
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
    uncompared: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseSummary:
    """An object of the API.

    Attributes:
        failed: Neither passed nor skipped
        passed: With the verdict ok
        total: All of them
        skipped: Not run, because a case before did not pass
        uncompared: Passed, and compared with nothing
    """

    failed: int
    passed: int
    total: int
    skipped: int | None = None
    uncompared: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CaseVerdict:
    """An object of the API.

    Attributes:
        name: Of the case; its number where it was given none
        verdict: As in the result: ok, wrong_answer, timeout and so on
    """

    name: str
    verdict: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CodeLimits:
    """An object of the API.

    Attributes:
        cpu: User and system time of all its processes
        cpus: Processors at once, such as 1 or 0.5; without it as many as the machine has free
        disk: The working directory and /tmp together
        memory: All its processes together
        output: stdout and stderr together
        pids: Processes and threads at once
        wall: From start to exit
    """

    cpu: str | None = None
    cpus: float | None = None
    disk: Any = None
    memory: Any = None
    output: Any = None
    pids: int | None = None
    wall: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class CodeResult:
    """An object of the API.

    Attributes:
        cpu_ms: User and system time of all its processes, in milliseconds
        held_memory_bytes: The same without page_cache_bytes
        peak_memory_bytes: Most memory at once, which the limit is about
        stderr: As stdout
        stderr_bytes: All that was written
        stdout: The first 100 KB; where it is not text, with U+FFFD in place of what is none
        stdout_bytes: All that was written
        verdict: How it ended: ok, nonzero_exit, signal, timeout, cpu_timeout, oom, output_limit, killed,
            infra_error, compile_error or syntax_error; of cases that of the first that did not pass
        wall_ms: From just before the program is executed to its end, in milliseconds
        cases: The ends of the cases, in their order; then times are sums, and memory the most of any
        cause: With infra_error, by what the run was lost, where that is known: node_lost, node_shutdown,
            preempted, evicted or deleted
        child_oom: A child ran out of memory though the program ended by itself
        compile: The run of the compiler, of languages that have one
        enforcement: What held the limits: cgroup-v1, cgroup-v2, hybrid, rlimit+watchdog or none
        exit_code: With ok, nonzero_exit and syntax_error
        files: What collect matched
        limits: Those in force: the submission's, completed by the defaults; of cases, those of a case that
            names none
        limits_hit: Limits that were met, by their names: wall, cpu, memory, pids, output, disk
        page_cache_bytes: Files that it was the first to read, as the kernel keeps them
        pinned_cpus: The processors that the run was restricted to, by their numbers on the host, where the
            worker pins runs
        reason: A sentence: which limit, why it was killed
        refused: What collect matched and was not taken, or what matched nothing, and why
        result: The JSON value that the program wrote to the file named by $PAWL_OUTPUT
        result_error: Why what it wrote there could not be taken
        runs: All runs in their order, where a run was made again (rerun_near_limit)
        runtime: What isolated it
        shared_cpus: Another run of the worker was restricted to one of pinned_cpus at the same time
        signal: With signal, as in SIGSEGV
        starved_ms: Part of wall_ms in which it had work to do and no processor
        stderr_base64: As stdout_base64
        stderr_truncated: There is more, which the log has
        stdout_base64: The same bytes exactly, where stdout is not text
        stdout_truncated: There is more, which the log has
        summary: Counts the cases
        tool: The interpreter or compiler
        tool_version: Its version, where that is known
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
        cpu_ms: As in the result
        peak_memory_bytes: As in the result
        verdict: Of this run by itself
        wall_ms: As in the result
        counts: The result is that of this run
        starved_ms: As in the result
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
        statuses: Executions by status; what there is none of is absent
        total: Executions
        unfinished: Of them, those that have not ended: all of these are counted
        verdicts: Executions that have ended by verdict: ok, or the code of the error
        more: There are more than 10,000 with the label: of those that have ended the newest were counted
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
        at: When it is
        of: Which limit it is of; gap: an event of the attempt has not come
    """

    at: str
    of: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Defined:
    """An object of the API.

    Attributes:
        definitions: What each document became, in their order
        warnings: What is defined all the same, and may not be meant: a task, schedule or rule names a
            definition that is retired, or what is defined is retired
    """

    definitions: list[DefinedVersion]
    warnings: list[FieldError] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class DefinedVersion:
    """An object of the API.

    Attributes:
        created: false: this version had been registered before
        kind: workflow, action, queue, schedule, trigger or rule
        name: Of the definition
        version: Version of the definition, from 1; 0 if it was only checked
        latest: The version that the name alone stands for, where it does not stand for the newest
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
        enforcements: What the rules have made of it, by name of the rules; none where it existed, and none
            yet where more rules fire on it than one transaction carries out
        signal: Its id; begins with sg_
        existing: The same was emitted before under this trigger and key
    """

    enforcements: list[Enforcement]
    signal: str
    existing: bool | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class EnforceReason:
    """An object of the API.

    Attributes:
        code: if, input, action, loop, too_deep or storm
        message: For people
        path: In the rule's document
    """

    code: str
    message: str
    path: str | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Enforcement:
    """An object of the API.

    Attributes:
        at: When it was decided
        rule: Name of the rule
        signal: Begins with sg_
        state: ran: it has started an execution; held: it waits in the window of a debounce or a batch;
            folded: one that was there stands for it; refused: a bound of the rule kept it from starting
            one; failed: it could not be evaluated
        version: Of the rule
        execution: That was started, or stands for it
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
        code: Stable, for machines
        message: For people; in lists cut at 1,000 bytes
        details: Details that depend on the code
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
        seq: 1, 2, 3 … without gaps over all attempts
        type: What happened (docs/states.md)
        data: Depends on the type
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
        events: In order, without gaps
        more: There was more to read at once
        next_cursor: Pass it as after to read on, also when there is nothing more yet
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
        alias: By which the version was asked for; absent: by its number, or by the name alone
        cached: It did not run: the task has a cache, and the outcome of reused_of was kept
        cancel_order: Its worker was ordered to end it and has not confirmed that yet
        case_verdicts: How each case ended, in their order; only in lists, with cases=true
        claimed_at: When the attempt was handed to its worker
        cpu_ms: Processor time of code that has run, in milliseconds
        created_at: When it was accepted; absent in the answer to a submission that did not wait
        digest: How its cases ended, one letter for each; only in lists, with digest=true
        error: Why it did not complete
        existing: Only in the answer to a submission: its idempotency key was known
        exit_code: For code that ended by itself
        fair_by: Whose it is in the line of its key
        finished_at: When it ended
        given_by: Who has given the output with which this task of a rerun ended: it did not run. Of the
            rerun: who has given outputs to tasks
        index: Index of the item, from 0, for a foreach task
        input: Its input; left out in lists
        inquiry: An open question whose answer it or a task beneath it waits for, also in sub-workflows; in
            lists, and of GET …/{id}
        key: Its concurrency key
        key_limit: How many executions may hold the key at a time
        kind: What runs it: code, container, http, llm, input, output, sleep, ask, wait, noop, workflow, or
            the name of a handler
        labels: By which lists, counts and waits select it
        no_cache: None of its tasks ends with an outcome that was kept
        not_before: When it may start
        only: Of a rerun: the tasks, or items of tasks, of which alone it is
        output: Result of the execution; for code with verdict, stdout, times and files
            (docs/evaluations.md)
        paused: It is a workflow that starts no tasks until it is resumed
        peak_memory_bytes: Most memory that code has used
        priority: -1000 to 1000; higher goes first
        queue: Where it waits for a worker
        queue_timeout: Most time from when an attempt is due to its claim by a worker; anew for each attempt
        queued_at: When the attempt became due
        rate: How often executions with its key begin
        rerun_of: The execution that this one runs again
        retry: Whether and when a failed attempt is followed by another
        retry_of: The execution whose request this one repeats as a whole
        reused_of: The execution whose outcome this task ended with, of a rerun or out of the cache: it did
            not run
        rules: The rules that have led to it, the one that has started it last
        runtime: What a worker must have to run it, code:NAME for a language, several with commas; absent:
            any worker may
        seq: Number of its latest event: of two answers about it, the one with the higher attempt and number
            is the later
        signal: For which a rule has started it; begins with sg_
        started_at: When its first attempt began to run
        summary: How many of its cases passed
        task: Its task in the workflow
        timeout: Most time for one attempt, from its hand-off to a worker
        total_timeout: Of everything, retries included
        traceparent: W3C trace context
        verdict: For code that has ended: ok, or the code of the error
        version: Version of the definition; absent for ad-hoc work
        waiting: What it waits for, in the words of why, as far as its own row says; absent: it has ended
        wake_at: End of the wait before the next attempt, or of a sleep
        wall_ms: Time from start to exit of code that has run, in milliseconds
        weight: How many turns it has there for another's one
        worker: Session of the worker that holds the attempt; begins with ws_
        worker_labels: Labels that a worker must have to be given it
        workflow: The execution that it is a task of
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
        searched_to: Executions created before this were not looked at: the request gave up before the page
            was full, and next_cursor goes on there
        unfinished: Executions that have not ended, of those that the request waited for; absent where it
            did not wait
    """

    executions: list[Execution]
    next_cursor: str | None = None
    searched_to: str | None = None
    unfinished: int | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """An object of the API.

    Attributes:
        message: What is wrong
        column: From 1, in characters
        file: body, or the document's name
        fix: What to do about it
        line: From 1
        path: Where, as in labels.team, executions[3].timeout or ?limit
        value: The value at fault, shortened
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
        asked_at: When it was asked, for the last time
        execution: The execution that waits for the answer, or was the last to do so
        id: Begins with iq_
        purpose: What a workflow asks once for, over all its attempts
        state: open, answered, expired or withdrawn
        title: The question
        accept: The expression that must hold for an answer
        answer: The answer; absent while there is none
        assignees: Who may answer: people, and groups as group:NAME; absent: anybody
        closed_at: When it was answered, expired or was withdrawn
        default: The answer when nobody answers in time; absent: the execution times out
        due: When it expires; absent: never
        exclude: Who must not answer
        form: JSON Schema of the answer; absent: any JSON value
        text: More about it
        workflow: The workflow execution that asks; absent outside workflows
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
        lacks: What it does not have, in words
        worker: Its name
    """

    lacks: list[str]
    worker: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class LogChunk:
    """An object of the API.

    Attributes:
        at: When it was written
        attempt: Number of the attempt, from 1
        offset: Offset of its first byte in its stream
        seq: 1, 2, 3 … over all streams of the attempt
        size: In bytes
        stream: stdout, stderr or log
        data: Its bytes, where they are not UTF-8
        text: Its bytes, where they are UTF-8
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
        chunks: In order
        more: There was more to read at once
        next_cursor: Pass it as after to read on, also when there is nothing more yet
        status: State of the execution; completed, failed, cancelled and timed_out are final
        prev_cursor: Of a page that begins with a tail: what to pass as before for what comes before it;
            absent: nothing does
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
        cursor: What to pass as ?after= for the outcomes behind this one
        id: Id of the execution; begins with ex_
        status: State of the execution; completed, failed, cancelled and timed_out are final
        alias: By which the version was asked for; absent: by its number, or by the name alone
        cached: It did not run: the task has a cache, and the outcome of reused_of was kept
        cancel_order: Its worker was ordered to end it and has not confirmed that yet
        case_verdicts: How each case ended, in their order; only in lists, with cases=true
        claimed_at: When the attempt was handed to its worker
        cpu_ms: Processor time of code that has run, in milliseconds
        created_at: When it was accepted; absent in the answer to a submission that did not wait
        digest: How its cases ended, one letter for each; only in lists, with digest=true
        error: Why it did not complete
        existing: Only in the answer to a submission: its idempotency key was known
        exit_code: For code that ended by itself
        fair_by: Whose it is in the line of its key
        finished_at: When it ended
        given_by: Who has given the output with which this task of a rerun ended: it did not run. Of the
            rerun: who has given outputs to tasks
        index: Index of the item, from 0, for a foreach task
        input: Its input; left out in lists
        inquiry: An open question whose answer it or a task beneath it waits for, also in sub-workflows; in
            lists, and of GET …/{id}
        key: Its concurrency key
        key_limit: How many executions may hold the key at a time
        kind: What runs it: code, container, http, llm, input, output, sleep, ask, wait, noop, workflow, or
            the name of a handler
        labels: By which lists, counts and waits select it
        no_cache: None of its tasks ends with an outcome that was kept
        not_before: When it may start
        only: Of a rerun: the tasks, or items of tasks, of which alone it is
        output: Result of the execution; for code with verdict, stdout, times and files
            (docs/evaluations.md)
        paused: It is a workflow that starts no tasks until it is resumed
        peak_memory_bytes: Most memory that code has used
        priority: -1000 to 1000; higher goes first
        queue: Where it waits for a worker
        queue_timeout: Most time from when an attempt is due to its claim by a worker; anew for each attempt
        queued_at: When the attempt became due
        rate: How often executions with its key begin
        rerun_of: The execution that this one runs again
        retry: Whether and when a failed attempt is followed by another
        retry_of: The execution whose request this one repeats as a whole
        reused_of: The execution whose outcome this task ended with, of a rerun or out of the cache: it did
            not run
        rules: The rules that have led to it, the one that has started it last
        runtime: What a worker must have to run it, code:NAME for a language, several with commas; absent:
            any worker may
        seq: Number of its latest event: of two answers about it, the one with the higher attempt and number
            is the later
        signal: For which a rule has started it; begins with sg_
        started_at: When its first attempt began to run
        summary: How many of its cases passed
        task: Its task in the workflow
        timeout: Most time for one attempt, from its hand-off to a worker
        total_timeout: Of everything, retries included
        traceparent: W3C trace context
        verdict: For code that has ended: ok, or the code of the error
        version: Version of the definition; absent for ad-hoc work
        waiting: What it waits for, in the words of why, as far as its own row says; absent: it has ended
        wake_at: End of the wait before the next attempt, or of a sleep
        wall_ms: Time from start to exit of code that has run, in milliseconds
        weight: How many turns it has there for another's one
        worker: Session of the worker that holds the attempt; begins with ws_
        worker_labels: Labels that a worker must have to be given it
        workflow: The execution that it is a task of
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
        cursor: Behind the last outcome: with it, the outcomes of what is submitted later can be asked for
        end: true; no outcome has this field
    """

    cursor: str
    end: bool


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """An object of the API.

    Attributes:
        kind: What is paused
        name: Of the queue, worker or action; the id of the execution
        number: 1, 2, 3 …, in the order in which queues, workers and actions were paused or resumed; 0: this
            never was, or it is an execution, whose history has it
        paused: False: it was resumed
        at: When
        beneath: How many workflows among its tasks were paused or resumed with it
        by: Who did it
        reason: Why
        timers: Of an execution: its timers stand still; absent: they run on
        until: When it goes on by itself; absent: when it is resumed
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
        kind: What is paused
        name: Of the queue, worker or action
    """

    kind: str
    name: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """An object of the API.

    Attributes:
        status: The HTTP status; in a batch the one that the item alone would have had
        title: What the type means
        type: Stable, for machines (docs/api.md)
        detail: What is wrong with this request, for people
        errors: Everything that is wrong, each with its place
        instance: Path of the request; in a batch the item
        request_id: By which the server's log knows it
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
        key: What is limited, across everything that names it
        limit: So many in each span, 1 to 100,000
        per: The span
        burst: How many may begin at once when none has for a while; 1 by default
        over: delay, the default: it begins when there is room; drop: it ends as cancelled
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
        action: That the rerun runs
        of: The execution that is run again
        reused: Executions of tasks whose outcomes are reused
        error: Why it did not complete
        status: How the rerun ends, where nothing of it runs
        tasks: In the order of the document; absent where nothing can be reused, because it is no workflow
        version: Of the definition that the rerun runs on
        within: The workflows among its tasks, and among theirs, of which parts run again, because a path
            leads into them; each behind the one that it is a task of
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
        task: Its name
        given: Its items that end with an output that is given
        items: Of a foreach: the first 100 items that run
        reason: Why; of several items that run, of the first
        reused: Its items whose outcomes are reused
        runs: Its items that run, as far as that is known before what it needs has ended
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
        action: That it runs
        of: The execution that it runs again
        path: Of the workflow: deploy[0], or deploy[0]/verify[2]
        tasks: In the order of its document
        version: Of its definition
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
        mode: Octal permission bits, as in 0644
        path: Relative to the working directory
        size: Bytes
        base64: The bytes of a small file that is not text
        blob: The name of the blob that has the bytes of a large file
        content: The text of a small file
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
        backoff: How the delay grows; exponential by default
        delay: Before the second attempt; 1s by default
        jitter: 0 to 1: share of the delay that is random
        max_attempts: In all; 1 by default
        max_delay: 10m by default
        on: Error codes that are tried again, and exit:N; all by default
    """

    backoff: str | None = None
    delay: str | None = None
    jitter: float | None = None
    max_attempts: int | None = None
    max_delay: str | None = None
    on: list[str] | None = None


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An object of the API.

    Attributes:
        action: What its executions run
        name: In the workflow
        status: pending before what it needs has ended, skipped when its condition was false, else that of
            its executions: running while any is open, then the worst
        cached: Executions that did not run: the task has a cache, and their outcomes were kept
        counts: Executions by status
        created: Executions that exist
        ended: Executions that have ended
        error: Why it could not start
        executions: In the order of their index; of many, the open ones and the latest
        finished_at: When the last of its executions ended
        foreach: It has an execution for each item of a list
        given: Executions that did not run: the task is one of a rerun, and somebody has given their outputs
        more: There are executions of the task that are not listed here; the counts and times are of all
        needs: Tasks that it waits for
        repeat: Of a task that runs in rounds, how many there are at most; round n is the execution with
            index n-1
        reused: Executions that did not run: the task is one of a rerun, and reuses their outcomes
        started_at: When the first of its executions began to run
        total: Items of a foreach task, once known
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
        cached: It did not run: it ended with an outcome that was kept
        claimed_at: When the attempt was handed to its worker
        created_at: When it was created
        finished_at: When it ended
        given: It did not run: somebody has given its output
        kind: What runs it: code, container, http, llm, input, output, sleep, ask, wait, noop, workflow, or
            the name of a handler
        reused: It did not run: it ended with the outcome of an execution of the original
        started_at: When its first attempt began to run
        wake_at: End of the wait before the next attempt, or of a sleep
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
        attempt: Of the workflow's execution
        status: Of the workflow's execution
        tasks: In the order of the definition
        workflow: Id of the workflow's execution
    """

    attempt: int
    status: str
    tasks: list[Task]
    workflow: str


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """An object of the API.

    Attributes:
        action: What it is an execution of
        attempt: Number of the attempt, from 1
        facts: More about it, a sentence each
        id: Id of the execution; begins with ex_
        status: State of the execution; completed, failed, cancelled and timed_out are final
        summary: The reason for which it waits, in a sentence
        unblock: What would let it go on; one of them is enough
        waiting: queue, key, rate, time, retry, worker, children, sleep, answer, signal, paused, cancel,
            nothing
        deadlines: Moments at which something ends by itself, the earliest first
        handler: What a worker of the queue must have to run it
        holders: Executions that hold the key
        index: Of the item or round of that task, from 0
        inquiry: The question whose answer it waits for
        key: The concurrency key that it waits for
        key_limit: How many executions may hold the key
        kind: What kind that is
        lacking: Live workers of its queue that could not take it, and what they lack; at most 10
        lease_until: When the lease of its worker runs out, unless that renews it
        open: Of a workflow: how many of its tasks are open, by status
        paused: The queue, worker or action that it waits to be resumed
        place_of: What position is a place in: the line of its queue, or of its key
        position: Its place in line, from 1
        queue: Where it waits for a worker
        root: Of a workflow: the task that its wait goes back to, down through workflows that are tasks
        runtime: What a worker of the queue must have to run it
        self_held: The workflow that it is a task of holds the key itself: it may wait for ever
        slots: Of these workers
        task: Of its workflow
        until: When the wait ends, where that is known
        worker: Session of the worker that holds the attempt; begins with ws_
        worker_labels: Labels that a worker must have to be given it
        workers: Live workers that could take it
        workflow: The execution that it is a task of
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
