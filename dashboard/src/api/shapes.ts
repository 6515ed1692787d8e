// The API's types as the dashboard reads them. They come from `schema.ts`; here stands only what JSON Schema leaves open.
import type * as api from "./schema";

export type SessionState = "active" | "warning" | "loop" | "paused" | "ended";
export type Severity = "normal" | "warning" | "loop";

/** Answers leave out what is not there; only requests may say `null`. */
type Plain<T> = T extends (infer One)[]
  ? Plain<One>[]
  : T extends object
    ? { [Name in keyof T]: Plain<Exclude<T[Name], null>> }
    : T;

export type Log = Omit<Plain<api.DecisionLog>, "action"> & {
  action: Omit<Plain<api.DecisionLogAction>, "tool_input"> & { tool_input?: string };
};

/** Events leave the history out. */
export type Session = Omit<
  api.SessionSummary,
  "state" | "entropy_history" | "alert" | "verdict" | "last_verdict" | "wasted" | "cluster_id"
> & {
  state: SessionState;
  entropy_history?: number[];
  wasted?: api.Wasted;
  cluster_id?: string;
  alert?: Alert | null;
  verdict?: api.Verdict | null;
};

/** The entropy alert of an event has no moment. */
export type Alert = Pick<api.Alert, "entropy_score" | "repeated_pattern" | "occurrence_count"> & Partial<api.Alert>;

/** Each detector adds its own proof. */
export type Finding = Omit<api.Finding, "severity" | "at" | "count"> & {
  severity: Severity;
  at?: string;
  count?: number;
  period?: number | null;
  score?: number;
  step?: number;
  trace_id?: string;
  message?: string | null;
  prevented_by?: string | null;
  pattern?: api.Pattern;
  policy?: string | null;
  mode?: string;
  action?: string | null;
};

export type SessionDetail = Session & {
  findings: Finding[];
  verdicts?: api.Verdict[];
  pause?: { since: string; operator: string; reason: string };
};

export type Step = { severity: Severity; log: Log; cut?: boolean } & Pick<api.Step, "cost_usd"> &
  Partial<Pick<api.Step, "step" | "tokens" | "redundant">>;

export type StateAt = Omit<api.StateAt, "row"> & { row?: Step | null };

export type SearchResult = Omit<api.SearchResult, "severity" | "log"> & {
  severity: Severity;
  log: Log;
  matches: api.Match[] | null;
};

export type Violation = Omit<api.Refused, "violations"> & { violations: { field: string; message: string }[] | null };
export type Policy = Omit<api.Policy, "spec"> & { spec: Record<string, unknown> };
export type CostCell = api.CostCell;
export type Fired = api.Fired;
export type Tried = api.Tried;
export type KillSwitch = api.KillSwitch;
export type Topology = api.Topology;
export type TopologyNode = api.Agent;
export type TopologyEdge = api.HandOff;
export type AuditEntry = api.AuditEntry;
export type Overview = api.Overview;
export type Budget = api.Budget & {
  limit_usd: number;
  used_usd: number;
  period?: string | null;
  warn_at?: number | null;
  tenant?: string | null;
};

/** Answered by the listener, beside the API. */
export interface WhoAmI {
  operator: string | null;
  role: string;
  tenant: string | null;
  login: boolean;
  version: string;
}
