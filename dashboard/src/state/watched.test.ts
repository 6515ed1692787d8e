import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Watched } from "./watched.svelte";

const step = (status: string) => ({
  severity: "normal",
  cost_usd: 0,
  log: {
    meta: { trace_id: "t1", timestamp: "2026-02-21T10:00:00Z" },
    identity: { agent_id: "a", agent_type: "x", capability_version: "2.0.0" },
    cognition: { intent: "build" },
    action: { tool_call: "make", status },
  },
});

describe("a session that is watched", () => {
  let status: string;
  let asked: string[];
  let answer: (path: string, query: URLSearchParams) => { status?: number; body: unknown };
  let watched: Watched;

  beforeEach(() => {
    vi.useFakeTimers();
    [status, asked] = ["pending", []];
    answer = (path, query) => {
      if (!path.endsWith("/steps")) return { body: { session_id: "s", findings: [] } };
      if (!query.has("at")) return { body: { steps: [step(status)], next: null } };
      return { body: { step: 1, memory: [], row: step(status), tokens: 0, cost_usd: 0 } };
    };
    vi.stubGlobal("fetch", async (address: string) => {
      const { pathname, searchParams } = new URL(address, "http://x");
      asked.push(`${pathname}${searchParams.has("at") ? "?at" : ""}`);
      const { status = 200, body } = answer(pathname, searchParams);
      return new Response(JSON.stringify(body), { status });
    });
    watched = new Watched("s", undefined);
  });
  afterEach(() => {
    watched.close();
    vi.useRealTimers();
  });

  it("asks again about the step that is looked at when that step is done", async () => {
    await vi.advanceTimersByTimeAsync(1000);
    watched.look(1);
    await vi.advanceTimersByTimeAsync(200);
    expect(watched.known?.row?.log.action.status).toBe("pending");
    status = "failure";
    void watched.read();
    await vi.advanceTimersByTimeAsync(1000);
    expect(watched.known?.row?.log.action.status).toBe("failure");
  });

  it("asks nothing again while nothing changes", async () => {
    await vi.advanceTimersByTimeAsync(1000);
    watched.look(1);
    await vi.advanceTimersByTimeAsync(200);
    void watched.read();
    await vi.advanceTimersByTimeAsync(1000);
    expect(asked.filter((path) => path.endsWith("?at"))).toHaveLength(1);
  });

  it("of a name that several tenants have offers them", async () => {
    watched.close();
    answer = (path) =>
      path.endsWith("/sessions")
        ? { body: { sessions: ["b", "a"].map((tenant) => ({ session_id: "s", tenant })), next: null } }
        : { status: 409, body: { error: "conflict", message: "several tenants" } };
    watched = new Watched("s", undefined);
    await vi.advanceTimersByTimeAsync(100);
    expect(watched.choices).toEqual(["a", "b"]);
  });
});
