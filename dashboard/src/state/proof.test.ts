import { describe, expect, it } from "vitest";
import type { Alert, Finding, Session } from "../api/shapes";
import { onlyEntropy, strongest } from "./proof";

const finding = (detector: string, severity: Finding["severity"] = "loop", count = 3): Finding => {
  return { detector, kind: "repeat", severity, count };
};
const alert: Alert = {
  entropy_score: 0.2,
  occurrence_count: 5,
  repeated_pattern: { intent: "wait", tool_call: "poll", action_status: "success" },
};
const verdict = (action: string, kind = "repeat"): NonNullable<Session["verdict"]> => {
  return { action, kind, at: "2026-02-21T10:00:00Z", enforced: true, policy: "agents" };
};

describe("an entropy alert", () => {
  it("alone is no proof of a loop", () => {
    expect(onlyEntropy({ alert }, [])).toBe(true);
    expect(onlyEntropy({ alert: null }, [finding("entropy")])).toBe(true);
    expect(onlyEntropy({ alert }, [finding("redundancy", "warning")])).toBe(true);
  });
  it("is confirmed by a detector that looks at results", () =>
    expect(onlyEntropy({ alert }, [finding("redundancy"), finding("entropy")])).toBe(false));
  it("is confirmed by a verdict of the gateway, unless that is a warning or about money", () => {
    expect(onlyEntropy({ alert, verdict: verdict("hint") }, [])).toBe(false);
    expect(onlyEntropy({ alert, verdict: verdict("warn") }, [])).toBe(true);
    expect(onlyEntropy({ alert, verdict: verdict("pause", "budget_exceeded") }, [])).toBe(true);
  });
  it("that was never raised says nothing", () => expect(onlyEntropy({}, [])).toBe(false));
});

describe("the strongest finding", () => {
  it("looks at results, and is the newest of its kind", () => {
    const all = [finding("redundancy", "loop", 3), finding("redundancy", "loop", 4), finding("entropy")];
    expect(strongest(all)).toBe(all[1]);
    expect(strongest([...all, finding("redundancy", "warning")])).toBe(all[1]);
  });
  it("of none is none", () => expect(strongest([])).toBeNull());
});
