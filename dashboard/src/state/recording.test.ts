import { describe, expect, it } from "vitest";
import type { Severity, Step } from "../api/shapes";
import { Recording } from "./recording";

function step(n: number, tool: string, severity: Severity = "normal", more: Partial<Step> = {}): Step {
  return {
    severity,
    cost_usd: 0.5,
    log: {
      meta: { trace_id: `t${n}`, parent_step_id: n > 1 ? `t${n - 1}` : "", timestamp: "2026-02-21T10:00:00Z" },
      identity: { agent_id: "a", agent_type: "x", capability_version: "2.0.0" },
      cognition: { intent: "build" },
      action: { tool_call: tool, tool_input: "{}", status: "failure" },
      state_delta: { tokens_consumed: 10 },
    },
    ...more,
  };
}

describe("a recording", () => {
  it("knows what had been spent at each step", () => {
    const recording = new Recording();
    recording.add([step(1, "a"), step(2, "b"), step(3, "b", "loop")]);
    expect(recording.spentAt(0)).toMatchObject({ tokens: 0, cost: 0 });
    expect(recording.spentAt(2)).toMatchObject({ tokens: 20, cost: 1, wastedSteps: 0 });
    expect(recording.spentAt(3)).toMatchObject({ tokens: 30, cost: 1.5, wastedSteps: 1, wastedCost: 0.5 });
    expect(recording.spentAt(99)).toEqual(recording.spentAt(3));
  });

  it("takes the API's word for what is redundant", () => {
    const recording = new Recording();
    recording.add([step(1, "a", "normal", { redundant: true })]);
    expect(recording.spentAt(1).wastedSteps).toBe(1);
  });

  it("replaces a step that is completed later, and counts it once", () => {
    const recording = new Recording();
    recording.add([step(1, "a")]);
    const done = step(1, "a");
    done.log.action.status = "success";
    recording.add([done]);
    expect([recording.length, recording.at(1)?.log.action.status, recording.spentAt(1).tokens]).toEqual([
      1,
      "success",
      10,
    ]);
  });

  it("says from which step on it is another one", () => {
    const recording = new Recording();
    expect(recording.add([step(1, "a"), step(2, "a")])).toBe(1);
    expect(recording.add([step(1, "a"), step(2, "a")])).toBe(Infinity);
    expect(recording.add([step(2, "a", "loop"), step(3, "a")])).toBe(2);
  });

  it("counts what a step cost, and wasted, once it is done", () => {
    const recording = new Recording();
    recording.add([step(1, "a"), step(2, "a", "normal", { cost_usd: 0 }), step(3, "b")]);
    expect(recording.spentAt(3)).toMatchObject({ cost: 1, wastedSteps: 0 });
    recording.add([step(2, "a", "loop", { cost_usd: 2, redundant: true, tokens: 70 })]);
    expect(recording.spentAt(3)).toEqual({ tokens: 90, cost: 3, wastedSteps: 1, wastedCost: 2 });
  });

  it("knows the last score at a step that has none", () => {
    const scored = (n: number, entropy_score?: number) => {
      const one = step(n, "a");
      if (entropy_score !== undefined) one.log.cognition.entropy_score = entropy_score;
      return one;
    };
    const recording = new Recording();
    recording.add([scored(1), scored(2, 0.5), scored(3, 0.2), scored(4)]);
    expect([1, 2, 3, 4].map((number) => recording.scoresAt(number))).toEqual([[], [0.5], [0.5, 0.2], [0.5, 0.2]]);
  });

  it("finds the attempt before", () => {
    const recording = new Recording();
    recording.add([step(1, "test"), step(2, "edit"), step(3, "test"), step(4, "read")]);
    expect([recording.sameBefore(3), recording.sameBefore(4), recording.sameBefore(1)]).toEqual([1, 0, 0]);
    expect([recording.numberOf("t3"), recording.numberOf("none")]).toEqual([3, 0]);
  });

  it("shows stretches of equal severity", () => {
    const recording = new Recording();
    recording.add([step(1, "a"), step(2, "b"), step(3, "b", "loop"), step(4, "b", "loop")]);
    expect(recording.stretches()).toEqual([
      { start: 0, end: 2, severity: "normal" },
      { start: 2, end: 4, severity: "loop" },
    ]);
  });

  it("draws the same thread until something comes", () => {
    const recording = new Recording();
    recording.add([step(1, "a"), step(2, "a"), step(3, "a")]);
    const first = recording.thread(true);
    expect(recording.thread(true)).toBe(first);
    expect(first.rows).toHaveLength(1);
    recording.add([step(4, "b")]);
    expect(recording.thread(true).rows).toHaveLength(2);
  });
});
