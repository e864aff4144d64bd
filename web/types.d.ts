// Written by go test ./web -update from package api.

export interface Rate {
  key: string;
  limit: number;
  per: string;
  burst?: number;
  over?: string;
}

export interface Retry {
  max_attempts?: number;
  backoff?: string;
  delay?: string;
  max_delay?: string;
  jitter?: number;
  on?: string[];
}

export interface Pause {
  number: number;
  kind: string;
  name: string;
  paused: boolean;
  at?: string;
  until?: string;
  by?: string;
  reason?: string;
  timers?: string;
  beneath?: number;
}

export interface CancelOrder {
  as: string;
  code: string;
  reason?: string;
  at: string;
  cleanup_until?: string;
}

export interface Error {
  code: string;
  message: string;
  details?: unknown;
}

export interface CaseSummary {
  total: number;
  passed: number;
  failed: number;
  skipped?: number;
  uncompared?: number;
}

export interface CaseDigest {
  passed: number;
  total: number;
  cells: string;
  names?: string;
  wall_ms: number;
  cpu_ms: number;
  peak_memory_bytes: number;
}

export interface CaseVerdict {
  name: string;
  verdict: string;
}

export interface Execution {
  id: string;
  action: string;
  version?: number;
  alias?: string;
  kind?: string;
  status: string;
  attempt: number;
  existing?: boolean;
  workflow?: string;
  task?: string;
  index?: number;
  signal?: string;
  rules?: string[];
  rerun_of?: string;
  retry_of?: string;
  only?: string[];
  given_by?: string;
  cached?: boolean;
  no_cache?: boolean;
  reused_of?: string;
  queue?: string;
  runtime?: string;
  priority?: number;
  labels?: Record<string, string>;
  key?: string;
  key_limit?: number;
  fair_by?: string;
  weight?: number;
  rate?: Rate;
  worker_labels?: Record<string, string>;
  timeout?: string;
  queue_timeout?: string;
  total_timeout?: string;
  retry?: Retry;
  created_at?: string;
  not_before?: string;
  queued_at?: string;
  claimed_at?: string;
  started_at?: string;
  finished_at?: string;
  wake_at?: string;
  waiting?: string;
  inquiry?: string;
  seq?: number;
  paused?: Pause;
  worker?: string;
  cancel_order?: CancelOrder;
  input?: unknown;
  output?: unknown;
  error?: Error;
  verdict?: string;
  exit_code?: number;
  wall_ms?: number;
  cpu_ms?: number;
  peak_memory_bytes?: number;
  summary?: CaseSummary;
  digest?: CaseDigest;
  case_verdicts?: CaseVerdict[];
  traceparent?: string;
}

export interface ExecutionPage {
  executions: Execution[];
  next_cursor?: string;
  searched_to?: string;
  unfinished?: number;
}

export interface Counts {
  total: number;
  unfinished: number;
  more?: boolean;
  statuses: Record<string, number>;
  verdicts: Record<string, number>;
}

export interface Advice {
  text: string;
  do?: string;
  kind?: string;
  name?: string;
  command?: string;
}

export interface Deadline {
  of: string;
  at: string;
}

export interface LackingWorker {
  worker: string;
  lacks: string[];
}

export interface PausedPart {
  kind: string;
  name: string;
}

export interface Why {
  id: string;
  status: string;
  attempt: number;
  summary: string;
  facts: string[];
  unblock: Advice[];
  action: string;
  kind?: string;
  task?: string;
  index?: number;
  workflow?: string;
  waiting: string;
  position?: number;
  place_of?: string;
  queue?: string;
  handler?: string;
  runtime?: string;
  worker_labels?: Record<string, string>;
  key?: string;
  key_limit?: number;
  holders?: string[];
  self_held?: boolean;
  until?: string;
  worker?: string;
  lease_until?: string;
  deadlines?: Deadline[];
  open?: Record<string, number>;
  workers?: number;
  slots?: number;
  lacking?: LackingWorker[];
  root?: string;
  inquiry?: string;
  paused?: PausedPart;
}

export interface ReplayFinding {
  seq?: number;
  task?: string;
  rules: string;
  recorded: string;
  why: string;
}

export interface ReplayUnknown {
  seq?: number;
  task?: string;
  what: string;
}

export interface ReplayTask {
  task: string;
  mark?: string;
  total?: number;
  started?: number;
  open?: number;
  completed?: number;
  failed?: number;
  cancelled?: number;
  timed_out?: number;
}

export interface ReplayWhy {
  waiting: string;
  summary: string;
  until?: string;
  queue?: string;
  key?: string;
  worker?: string;
  tasks?: string[];
  facts: string[];
  not_known: string[];
}

export interface ReplayState {
  seq: number;
  at: string;
  status: string;
  attempt: number;
  worker?: string;
  not_before?: string;
  tasks?: ReplayTask[];
  why: ReplayWhy;
}

export interface Replay {
  execution: string;
  follows: boolean;
  events: number;
  findings: ReplayFinding[];
  unknown: ReplayUnknown[];
  state: ReplayState;
}

export interface Event {
  seq: number;
  attempt: number;
  type: string;
  at: string;
  data?: unknown;
}

export interface LogChunk {
  attempt: number;
  seq: number;
  stream: string;
  offset: number;
  size: number;
  at: string;
  text?: string;
  data?: string;
}

export interface LogPage {
  chunks: LogChunk[];
  next_cursor: string;
  prev_cursor?: string;
  status: string;
  more: boolean;
}

export interface LogMatch {
  attempt: number;
  seq: number;
  stream: string;
  offset: number;
  line: string;
  cut?: boolean;
}

export interface LogMatches {
  matches: LogMatch[];
  next_cursor: string;
  status: string;
  more: boolean;
  searched: number;
}

export interface LogStream {
  attempt: number;
  stream: string;
  bytes: number;
  last_seq: number;
  first_at: string;
  last_at: string;
}

export interface LogSummary {
  streams: LogStream[];
  status: string;
  more: boolean;
}

export interface End {
  id: string;
  status: string;
  error?: Error;
}

export interface Change {
  at: string;
  idle?: boolean;
}

export interface TaskExecution {
  id: string;
  index: number;
  status: string;
  kind?: string;
  attempt: number;
  created_at?: string;
  claimed_at?: string;
  started_at?: string;
  finished_at?: string;
  wake_at?: string;
  given?: boolean;
  cached?: boolean;
  reused?: boolean;
}

export interface Task {
  name: string;
  needs?: string[];
  action: string;
  foreach?: boolean;
  repeat?: number;
  status: string;
  total?: number;
  created?: number;
  ended?: number;
  counts?: Record<string, number>;
  given?: number;
  cached?: number;
  reused?: number;
  error?: Error;
  started_at?: string;
  finished_at?: string;
  executions?: TaskExecution[];
  more?: boolean;
}

export interface Tasks {
  workflow: string;
  status: string;
  attempt: number;
  tasks: Task[];
}

export interface TaskItem {
  index: number;
  id: string;
  status: string;
  attempt: number;
  created_ms: number;
  claimed_ms?: number;
  started_ms?: number;
  finished_ms?: number;
  given?: boolean;
  cached?: boolean;
  reused?: boolean;
}

export interface TaskItems {
  workflow: string;
  attempt: number;
  task: string;
  since: string;
  items: TaskItem[];
  next_cursor?: string;
}

export interface TimelineAttempt {
  execution: string;
  task?: string;
  index?: number;
  kind: string;
  attempt: number;
  status: string;
  lost?: boolean;
  code?: string;
  worker?: string;
  created_at?: string;
  queued_at?: string;
  claimed_at?: string;
  started_at?: string;
  finished_at?: string;
}

export interface Timeline {
  execution: string;
  status: string;
  attempts: TimelineAttempt[];
  next_cursor?: string;
}

export interface ResultFile {
  path: string;
  size: number;
  mode: string;
  content?: string;
  base64?: string;
  blob?: string;
}

export interface CaseMismatch {
  line?: number;
  path?: string;
  got: string;
  want: string;
}

export interface CaseTurn {
  by: string;
  text: string;
  base64?: string;
  omitted?: number;
}

export interface CodeRun {
  verdict: string;
  wall_ms: number;
  cpu_ms: number;
  starved_ms?: number;
  peak_memory_bytes: number;
  counts?: boolean;
}

export interface CaseResult {
  name: string;
  verdict: string;
  exit_code?: number;
  signal?: string;
  message?: string;
  mismatch?: CaseMismatch;
  returned?: unknown;
  stdout: string;
  stdout_base64?: string;
  stdout_bytes: number;
  stdout_truncated?: boolean;
  stderr?: string;
  stderr_base64?: string;
  stderr_bytes?: number;
  stderr_truncated?: boolean;
  transcript?: CaseTurn[];
  limits_hit?: string[];
  wall_ms: number;
  cpu_ms: number;
  starved_ms?: number;
  runs?: CodeRun[];
  pinned_cpus?: number[];
  shared_cpus?: boolean;
  peak_memory_bytes: number;
  held_memory_bytes: number;
  page_cache_bytes?: number;
  child_oom?: boolean;
  uncompared?: boolean;
}

export interface CodeLimits {
  wall?: string;
  cpu?: string;
  memory?: number;
  pids?: number;
  cpus?: number;
  output?: number;
  disk?: number;
  stack?: number;
}

export interface CodeResult {
  verdict: string;
  exit_code?: number;
  signal?: string;
  reason?: string;
  cause?: string;
  stdout: string;
  stdout_base64?: string;
  stdout_bytes: number;
  stdout_truncated?: boolean;
  stderr: string;
  stderr_base64?: string;
  stderr_bytes: number;
  stderr_truncated?: boolean;
  result?: unknown;
  result_error?: string;
  files?: ResultFile[];
  refused?: string[];
  cases?: CaseResult[];
  summary?: CaseSummary;
  limits_hit?: string[];
  limits?: CodeLimits;
  wall_ms: number;
  cpu_ms: number;
  starved_ms?: number;
  runs?: CodeRun[];
  pinned_cpus?: number[];
  shared_cpus?: boolean;
  peak_memory_bytes: number;
  held_memory_bytes: number;
  page_cache_bytes?: number;
  child_oom?: boolean;
  enforcement?: string;
  runtime?: string;
  tool?: string;
  tool_version?: string;
  compile?: CodeResult;
}

export interface Retirement {
  at: string;
  by?: string;
  reason?: string;
}

export interface Definition {
  name: string;
  version: number;
  kind: string;
  created_at?: string;
  document?: unknown;
  paused?: Pause;
  retired?: Retirement;
}

export interface DefinitionPage {
  definitions: Definition[];
  next_cursor?: string;
}

export interface DefinedVersion {
  name: string;
  version: number;
  kind: string;
  created: boolean;
  latest?: number;
}

export interface FieldError {
  path?: string;
  value?: string;
  message: string;
  fix?: string;
  file?: string;
  line?: number;
  column?: number;
}

export interface Defined {
  definitions: DefinedVersion[];
  warnings?: FieldError[];
}

export interface Validation {
  valid: boolean;
  definitions?: DefinedVersion[];
  problems?: FieldError[];
  warnings?: FieldError[];
}

export interface GraphNode {
  task: string;
  action: string;
  layer: number;
  x: number;
  y: number;
  w: number;
  h: number;
  change?: string;
}

export interface GraphPoint {
  x: number;
  y: number;
}

export interface GraphEdge {
  from: string;
  to: string;
  points: GraphPoint[];
  change?: string;
}

export interface Graph {
  name: string;
  version: number;
  width: number;
  height: number;
  since?: number;
  nodes: GraphNode[];
  edges: GraphEdge[];
}

export interface Schedule {
  name: string;
  version: number;
  action: string;
  when: string[];
  zone: string;
  next?: string;
  due?: string;
  last?: string;
  execution?: string;
  paused_at?: string;
  reason?: string;
  document?: unknown;
}

export interface SchedulePage {
  schedules: Schedule[];
  next_cursor?: string;
}

export interface ScheduleWhy {
  name: string;
  waiting: string;
  summary: string;
  facts: string[];
  unblock: Advice[];
}

export interface Tick {
  nominal: string;
  last: string;
  count: number;
  execution?: string;
  at: string;
  why: string;
  message?: string;
}

export interface TickPage {
  ticks: Tick[];
  next_cursor?: string;
}

export interface Rule {
  name: string;
  version: number;
  on: string[];
  if?: string;
  action: string;
  paused: boolean;
  reason?: string;
  document?: unknown;
}

export interface RuleList {
  rules: Rule[];
}

export interface RuleState {
  rule: Rule;
  summary: string;
  facts: string[];
  unblock: Advice[];
}

export interface Signal {
  id: string;
  trigger: string;
  key?: string;
  subject?: string;
  source: string;
  at: string;
  state: string;
  data: unknown;
  headers?: Record<string, string>;
  cause?: string;
  replayed?: boolean;
  rules?: string[];
}

export interface SignalPage {
  signals: Signal[];
  next_cursor?: string;
}

export interface RuleValue {
  text: string;
  value: unknown;
}

export interface RuleClause {
  text: string;
  holds: boolean;
  error?: string;
  values?: RuleValue[];
}

export interface EnforceReason {
  code: string;
  message: string;
  path?: string;
}

export interface Enforcement {
  signal: string;
  rule: string;
  version: number;
  state: string;
  execution?: string;
  at: string;
  reason?: EnforceReason;
}

export interface RuleWhy {
  rule: string;
  version: number;
  fired: boolean;
  summary: string;
  clauses: RuleClause[];
  enforcement?: Enforcement;
}

export interface SignalWhy {
  signal: Signal;
  summary: string;
  rules: RuleWhy[];
}

export interface EnforcementPage {
  enforcements: Enforcement[];
  next_cursor?: string;
}

export interface HookRefusal {
  at: string;
  reason: string;
  message: string;
  remote?: string;
}

export interface Webhook {
  name: string;
  version: number;
  path: string;
  scheme: string;
  trigger: string;
  paused?: boolean;
  created_at: string;
  missing?: string[];
  refusals?: HookRefusal[];
  document?: unknown;
}

export interface WebhookPage {
  webhooks: Webhook[];
  next_cursor?: string;
}

export interface Answer {
  answer: unknown;
  by: string;
  at: string;
  note?: string;
  via?: string;
  defaulted?: boolean;
  declined?: boolean;
}

export interface Inquiry {
  id: string;
  state: string;
  execution: string;
  workflow?: string;
  purpose: string;
  title: string;
  text?: string;
  form?: unknown;
  assignees?: string[];
  exclude?: string[];
  accept?: string;
  default?: unknown;
  asked_at: string;
  due?: string;
  closed_at?: string;
  answer?: Answer;
}

export interface InquiryPage {
  inquiries: Inquiry[];
  next_cursor?: string;
}

export interface Archive {
  from: string;
  at: string;
  version: string;
  executions: number;
  tasks: number;
  left_out?: number;
}

export interface Session {
  tokens: boolean;
  open: boolean;
  expires_at?: string;
  version?: string;
  archive?: Archive;
}

export interface Queue {
  queue: string;
  handler?: string;
  runtime?: string;
  worker_labels?: Record<string, string>;
  ready: number;
  oldest?: string;
  workers: number;
  slots: number;
  paused?: Pause;
}

export interface Queues {
  queues: Queue[];
  next_cursor?: string;
}

export interface Key {
  key: string;
  holders: number;
  waiting: number;
}

export interface Keys {
  keys: Key[];
}

export interface Worker {
  session: string;
  name: string;
  embedded?: boolean;
  queues: string[];
  kinds?: string[];
  slots: number;
  labels?: Record<string, string>;
  started_at: string;
  expires_at: string;
  paused?: Pause;
  holds?: number;
  executions?: Execution[];
}

export interface LostWorker {
  session: string;
  name: string;
  queues: string[];
  slots: number;
  started_at: string;
  expired_at?: string;
  lost_at: string;
  attempts: number;
}

export interface Workers {
  workers: Worker[];
  next_cursor?: string;
  lost?: LostWorker[];
}

export interface SubmissionCheck {
  valid: boolean;
  action?: string;
  version?: number;
  kind?: string;
  queue?: string;
  key?: string;
  problems?: FieldError[];
}

export interface Standing {
  place: number;
  execution: Execution;
}

export interface Lane {
  handler?: string;
  runtime?: string;
  worker_labels?: Record<string, string>;
  paused_action?: string;
  ready: number;
  line: Standing[];
  looked: number;
}

export interface QueueLine {
  queue: string;
  at: string;
  paused?: Pause;
  lanes: Lane[];
  more?: boolean;
}

export interface KeyLine {
  key: string;
  at: string;
  limit?: number;
  held: number;
  holders: Execution[];
  waiting: number;
  line: Standing[];
  looked: number;
}

export interface Stats {
  version: string;
  started_at: string;
  executions: Record<string, number>;
  counters: Record<string, number>;
  store_bytes: number;
  workers: number;
  slots: number;
  rss_bytes?: number;
  goroutines: number;
}

export interface ActivityStep {
  at: string;
  submitted?: number;
  claimed?: number;
  completed?: number;
  failed?: number;
  cancelled?: number;
  timed_out?: number;
}

export interface Activity {
  since: string;
  step: string;
  steps: ActivityStep[];
}

export interface Violation {
  invariant: number;
  execution?: string;
  message: string;
}

export interface Invariant {
  invariant: number;
  says: string;
  looked_at: string;
  state: string;
  broken?: number;
}

export interface Replayed {
  executions: number;
  events: number;
  unknown: number;
}

export interface Verification {
  at: string;
  broken: Violation[];
  promises: Invariant[];
  seconds: number;
  replayed?: Replayed;
}

export interface Problem {
  type: string;
  title: string;
  status: number;
  detail?: string;
  instance?: string;
  request_id?: string;
  errors?: FieldError[];
}

export interface Concurrency {
  key: string;
  limit: number;
  when_full?: string;
  fair_by?: string;
  weight?: number;
}

export interface Cache {
  ttl: string;
  key?: string;
}

export interface Submission {
  action: string;
  input?: unknown;
  queue?: string;
  priority?: number;
  labels?: Record<string, string>;
  worker_labels?: Record<string, string>;
  timeout?: string;
  queue_timeout?: string;
  total_timeout?: string;
  retry?: Retry;
  concurrency?: Concurrency;
  rate?: Rate;
  cache?: Cache;
  no_cache?: boolean;
  not_before?: string;
  start_in?: string;
  idempotency_key?: string;
}

export interface BulkRequest {
  ids?: string[];
  reason?: string;
  dry_run?: boolean;
  kill?: boolean;
}

export interface BulkEntry {
  id: string;
  status?: string;
  new?: string;
  problem?: Problem;
}

export interface BulkResult {
  selected: number;
  done: number;
  dry_run?: boolean;
  executions: BulkEntry[];
  next_cursor?: string;
}

export interface RerunTask {
  task: string;
  decision: string;
  reused?: number;
  given?: number;
  runs?: number;
  items?: number[];
  reason?: string;
}

export interface RerunWithin {
  path: string;
  of: string;
  action: string;
  version?: number;
  tasks: RerunTask[];
}

export interface RerunPlan {
  of: string;
  action: string;
  version?: number;
  reused: number;
  status?: string;
  error?: Error;
  tasks?: RerunTask[];
  within?: RerunWithin[];
}

export interface AliasTarget {
  version: number;
  percent?: number;
}

export interface Alias {
  name: string;
  alias: string;
  number: number;
  to: AliasTarget[];
  at?: string;
  by?: string;
  reason?: string;
  moved?: boolean;
}

export interface AliasPage {
  aliases: Alias[];
  next_cursor?: string;
}
