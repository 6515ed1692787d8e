// What the API answers, as far as the dashboard reads it. Fields with a question mark are not sent by every version.

export type SessionState = "active" | "warning" | "loop" | "paused" | "ended";
export type Severity = "normal" | "warning" | "loop";
export type Status = "success" | "failure" | "pending" | "skipped";

export interface Wasted {
  steps: number;
  tokens: number;
  cost_usd: number;
}

export interface Pattern {
  intent: string;
  tool_call: string;
  action_status: string;
}

export interface Alert {
  agent_id?: string;
  entropy_score: number;
  window_size?: number;
  repeated_pattern: Pattern;
  occurrence_count: number;
  since?: string;
}

export interface Session {
  session_id: string;
  tenant: string;
  agents: string[];
  state: SessionState;
  entropy_score: number;
  loop_score: number;
  steps: number;
  tokens: number;
  cost_usd: number;
  cluster_id?: string;
  started_at: string;
  last_at: string;
  wasted?: Wasted;
  entropy_history?: number[];
  alert?: Alert | null;
  verdict?: { action: string; enforced: boolean; kind?: string | null; policy?: string | null; at?: string } | null;
}

export interface Finding {
  detector: string;
  kind: string;
  severity: Severity;
  at?: string;
  count?: number;
  period?: number | null;
  score?: number;
  step?: number;
  onset?: number;
  trace_id?: string;
  message?: string | null;
  evidence?: unknown;
  pattern?: Pattern;
  policy?: string | null;
  mode?: string;
  action?: string | null;
}

export interface SessionDetail extends Session {
  findings: Finding[];
  pause?: { since: string; operator: string; reason: string };
}

export interface Log {
  meta: { trace_id: string; parent_step_id?: string | null; timestamp: string; cluster_id?: string; session_id?: string };
  identity: { agent_id: string; agent_type: string; capability_version: string };
  cognition: {
    intent: string;
    reasoning_chain?: string[];
    confidence_score?: number;
    strategy_used?: string;
    entropy_score?: number;
  };
  action: { tool_call?: string; tool_input?: string; tool_output_summary?: string; status: Status };
  state_delta?: { added_to_memory?: string[]; tokens_consumed?: number; cumulative_session_cost?: number };
  control?: { hitl_required?: boolean; interrupt_signal?: string | null; is_terminal?: boolean };
  extensions?: Record<string, unknown>;
}

export interface Step {
  severity: Severity;
  cost_usd: number;
  log: Log;
  step?: number;
  tokens?: number;
  redundant?: boolean;
  cut?: boolean;
}

export interface StateAt {
  step: number;
  memory: string[];
  tokens: number;
  cost_usd: number;
  intent: string;
  row?: Step;
}

export interface Page<Name extends string, T> {
  rows: T[];
  next: string | null;
  name?: Name;
}

export interface TopologyNode {
  agent_id: string;
  tenant: string;
  cluster_id: string;
  state: string;
  steps: number;
  session_id: string | null;
  last_at: string;
  cost_usd?: number;
  violations?: number;
}

export interface TopologyEdge {
  from: string;
  to: string;
  tenant: string;
  cluster_id: string;
  count: number;
  latency_ms: number;
  last_at: string;
  session_id?: string | null;
  loop?: boolean;
}

export interface Topology {
  nodes: TopologyNode[];
  edges: TopologyEdge[];
}

export interface CostCell {
  key: string;
  at: string;
  cost_usd: number;
  loop_cost_usd: number;
  wasted_cost_usd?: number;
  tokens: number;
  steps: number;
}

export interface SearchResult {
  session_id: string;
  tenant: string;
  severity: Severity;
  matches: { text: string; hit: boolean }[] | null;
  log: Log;
  step?: number;
  cost_usd?: number;
}

export interface Violation {
  at: string;
  tenant: string;
  payload_sha256: string;
  error: string;
  violations: { field: string; message: string }[] | null;
}

export interface AuditEntry {
  seq: number;
  at: string;
  operator: string;
  action: string;
  session_id: string | null;
  reason: string | null;
  before: string | null;
  after: string | null;
  prev_hash: string;
  hash: string;
}

export interface Overview {
  sessions?: Partial<Record<SessionState, number>>;
  calls_per_second?: number;
  cost_per_minute_usd?: number;
  loops_open?: number;
  wasted_today?: Wasted | null;
  saved_today?: { cost_usd: number; rounds?: number; estimated?: boolean } | null;
  degraded?: { part: string; reason: string | null }[];
}

export interface Policy {
  id: string;
  mode: string;
  source?: string;
  overridden?: boolean;
  spec?: Record<string, unknown>;
  findings?: { enforced: number; shadow: number; by_kind?: { kind: string; enforced: number; shadow: number }[] };
}

export interface Fired {
  session_id: string;
  tenant: string;
  step: number;
  kind: string;
  action: string | null;
  agent_id?: string;
  count?: number;
  period?: number | null;
  did?: string | null;
}

export interface Tried {
  sessions: number;
  steps: number;
  fired: Fired[];
  took_ms?: number;
}

export interface WhoAmI {
  operator: string | null;
  role?: string;
  tenant?: string | null;
  login?: boolean;
  version?: string;
}
