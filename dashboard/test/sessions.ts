// Sessions for tests: what the API says of one, but for what a test is about.
import type { Session } from "../src/api/shapes";

/** A session that is well, with what a test changes. */
export const session = (id: string, more: Partial<Session> = {}): Session => ({
  session_id: id,
  tenant: "acme",
  agents: ["coder"],
  state: "active",
  entropy_score: 1,
  loop_score: 0,
  steps: 1,
  tokens: 10,
  cost_usd: 0.1,
  started_at: "2026-02-21T10:00:00Z",
  last_at: "2026-02-21T10:00:00Z",
  ...more,
});
