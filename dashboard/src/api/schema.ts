// Made from the API's OpenAPI document by scripts/schema.js: change the API, then run `npm run schema`.

export type Agent = {
  agent_id: string;
  cluster_id: string;
  cost_usd: number;
  last_at: string;
  loop_score: number;
  session_id: string | null;
  state: string;
  steps: number;
  tenant: string;
  tokens: number;
  violations: number;
};

export type Alert = {
  agent_id: string;
  entropy_score: number;
  occurrence_count: number;
  repeated_pattern: Pattern;
  since: string;
  window_size: number;
};

export type Audit = {
  entries: AuditEntry[];
  next: string | null;
};

export type AuditEntry = {
  action: string;
  after: string | null;
  at: string;
  before: string | null;
  hash: string;
  operator: string;
  prev_hash: string;
  reason: string | null;
  seq: number;
  session_id: string | null;
};

export type Budget = {
  key: string;
  policy: string;
  rule: string;
  state: string;
  value: string;
};

export type Budgets = {
  budgets: Budget[];
};

export type Config = {
  degraded: Degraded[];
  detectors: unknown;
  store: StoreState;
};

export type Cost = {
  bucket_ms: number;
  cells: CostCell[];
  from: string;
  to: string;
  total: Costs;
  truncated: boolean;
};

export type CostCell = Costs & {
  at: string;
  key: string;
  tenant: string;
};

export type Costs = {
  cost_usd: number;
  loop_cost_usd: number;
  steps: number;
  tokens: number;
  wasted_cost_usd: number;
};

export type DecisionLogAction = {
  status: DecisionLogStatus;
  tool_call?: string | null;
  tool_input?: string | Record<string, unknown> | null;
  tool_output_summary?: string | null;
};

export type DecisionLogCognition = {
  confidence_score?: number | null;
  entropy_score?: number | null;
  intent: string;
  reasoning_chain?: string[] | null;
  strategy_used?: string | null;
};

export type DecisionLogControl = {
  hitl_required?: boolean | null;
  interrupt_signal?: DecisionLogInterrupt | null;
  is_terminal?: boolean | null;
};

export type DecisionLogIdentity = {
  agent_id: string;
  agent_type: string;
  capability_version: string;
};

export type DecisionLogInterrupt = "pause" | "rewrite" | "inject";

export type DecisionLogMeta = {
  cluster_id?: string | null;
  parent_step_id?: string | null;
  session_id?: string | null;
  timestamp: string;
  trace_id: string;
};

export type DecisionLogStateDelta = {
  added_to_memory?: string[] | null;
  cumulative_session_cost?: number | null;
  tokens_consumed?: number | null;
};

export type DecisionLogStatus = "success" | "failure" | "pending" | "skipped";

export type DecisionLog = {
  action: DecisionLogAction;
  cognition: DecisionLogCognition;
  control?: DecisionLogControl | null;
  extensions?: Record<string, unknown> | null;
  identity: DecisionLogIdentity;
  meta: DecisionLogMeta;
  state_delta?: DecisionLogStateDelta | null;
};

export type Degraded = {
  part: string;
  reason: string;
};

export type Edge = {
  count: number;
  from: string;
  to: string;
};

export type Error = {
  error: string;
  message?: string;
  violations?: {
    field: string;
    message: string;
  }[];
};

export type Finding = {
  at: string;
  count: number;
  detector: string;
  evidence?: unknown[];
  identity?: string;
  kind: string;
  message?: string;
  onset?: number | null;
  period?: number;
  prevented_by?: string;
  score?: number;
  severity: string;
  step?: number | null;
  trace_id?: string | null;
};

export type Findings = {
  findings: Finding[];
  verdicts: Verdict[];
};

export type Fired = {
  action: string;
  agent_id: string | null;
  count: number;
  kind: string;
  message: string;
  period: number;
  session_id: string;
  step: number;
  tenant: string;
  trace_id: string | null;
};

export type Graph = {
  edges: Edge[];
  nodes: Node[];
  truncated: boolean;
};

export type GuardVerdict = {
  allowed: boolean;
  count: number;
  detector: string | null;
  feedback: string | null;
  kind: string | null;
  paused: boolean;
  rewritten_args?: string;
  strikes: number;
  threshold: number;
  unchanged_since?: number;
};

export type HandOff = {
  cluster_id: string;
  count: number;
  from: string;
  last_at: string;
  latency_ms: number;
  loop: boolean;
  session_id: string | null;
  tenant: string;
  to: string;
};

export type KillSwitch = {
  expires_at: string | null;
  id: string | null;
  key: string;
  on: boolean;
  path: string | null;
  reason: string | null;
  source: string;
  value: string;
};

export type KillSwitches = {
  kill_switches: KillSwitch[];
};

export type KindCounts = {
  enforced: number;
  kind: string;
  shadow: number;
};

export type Match = {
  hit: boolean;
  text: string;
};

export type Node = {
  agent_id: string;
  cost_usd: number;
  count: number;
  intent: string;
  orphan: boolean;
  parent_step_id: string | null;
  redundant: boolean;
  severity: string;
  status: string;
  step: number;
  tool_call: string;
  trace_id: string;
};

export type OrderGiven = {
  note?: string;
  session_id: string;
  state: string;
};

export type Overview = {
  calls_per_second: number;
  cost_per_minute_usd: number;
  degraded: Degraded[];
  dropped: number;
  loops_open: number;
  saved_today: Saved | null;
  sessions: SessionCounts;
  unwritten: number;
  wasted_today: Wasted;
};

export type Pattern = {
  action_status: string;
  intent: string;
  tool_call: string;
};

export type Policies = {
  policies: Policy[];
};

export type Policy = {
  findings: PolicyCounts;
  id: string;
  mode: string;
  overridden: boolean;
  source: string;
  spec: unknown;
};

export type PolicyCounts = {
  by_kind: KindCounts[];
  enforced: number;
  shadow: number;
};

export type Refused = {
  agent_id: string | null;
  at: string;
  error: string;
  payload_sha256: string;
  tenant: string;
  violations: unknown;
};

export type Saved = {
  cost_usd: number;
  estimated: boolean;
  loops: number;
  rounds: number;
};

export type Search = {
  name: string;
  query: string;
};

export type SearchResult = {
  cost_usd: number;
  log: DecisionLog;
  session_id: string;
  severity: string;
  step: number;
  tenant: string;
};

export type SearchResults = {
  next: string | null;
  results: SearchResult[];
  took_ms: number;
};

export type Searches = {
  searches: Search[];
};

export type Session = SessionSummary & {
  findings: Finding[];
  verdicts: Verdict[];
};

export type SessionCounts = {
  active: number;
  ended: number;
  loop: number;
  paused: number;
  warning: number;
};

export type SessionSummary = {
  agents: string[];
  alert: Alert | null;
  cluster_id: string;
  cost_usd: number;
  entropy_history: number[];
  entropy_score: number;
  last_at: string;
  last_verdict: string | null;
  loop_score: number;
  session_id: string;
  started_at: string;
  state: string;
  steps: number;
  tenant: string;
  tokens: number;
  verdict: Verdict | null;
  wasted: Wasted;
};

export type Sessions = {
  next: string | null;
  sessions: SessionSummary[];
  total: number;
};

export type StateAt = {
  cost_usd: number;
  entropy_score: number | null;
  intent: string;
  memory: string[];
  memory_added: string[];
  row: Step | null;
  step: number;
  tokens: number;
  wasted: Wasted;
};

export type Step = {
  cost_usd: number;
  log: DecisionLog;
  open: boolean;
  redundant: boolean;
  severity: string;
  step: number;
  tokens: number;
};

export type Steps = {
  next: string | null;
  steps: Step[];
};

export type StoreState = {
  dropped: number;
  reason: string | null;
  state: string;
  unwritten: number;
};

export type Topology = {
  edges: HandOff[];
  nodes: Agent[];
};

export type Tried = {
  by_session: TriedSession[];
  fired: Fired[];
  sessions: number;
  steps: number;
  summary: unknown;
  took_ms: number;
  truncated: boolean;
};

export type TriedSession = {
  did: string | null;
  session_id: string;
  steps: number;
  tenant: string;
  would: string | null;
};

export type Verdict = {
  action: string;
  at: string;
  enforced: boolean;
  kind: string;
  policy: string;
};

export type Violations = {
  next: string | null;
  violations: Refused[];
};

export type Wasted = {
  cost_usd: number;
  steps: number;
  tokens: number;
};
