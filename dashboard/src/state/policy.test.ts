import { describe, expect, it } from "vitest";
import { clauses, parsed } from "./policy";

describe("a policy in words", () => {
  const spec = {
    mode: "enforce",
    tool_loops: { enabled: true, ladder: ["hint", "reject"] },
    loop_detection: { enabled: true, window_seconds: 60, threshold_identical_requests: 5, action: "warn" },
    chant: { enabled: false, action: "cut" },
    rules: [
      { id: "budget", key: "session", cost_usd: 5, on_exceed: "pause" },
      { id: "same", key: "session", cost_usd: 5, period: "session" },
      { id: "daily", key: "tenant", cost_usd: 100, period: "1d" },
    ],
  };

  it("says what each part does, and that a missing one is off", () => {
    expect(clauses(spec).map((clause) => `${clause.name}: ${clause.says}`)).toEqual([
      "tool loops: hint → reject",
      "identical requests: 5 within 60 s: warn",
      "same thought: off",
      "chant: off",
      "rule budget: $5 per session, then pause",
      "rule same: $5 per session",
      "rule daily: $100 per tenant, per day",
    ]);
  });

  it("of nonsense does not end the page", () => {
    expect(() => clauses({ tool_loops: 7, rules: "x", semantic: null })).not.toThrow();
  });

  it("is read, or says what is wrong", () => {
    expect(parsed('{"mode":"shadow"}')).toEqual({ spec: { mode: "shadow" } });
    expect(parsed("[]")).toEqual({ problem: "a policy is an object" });
    expect(parsed("{")).toHaveProperty("problem");
  });
});
