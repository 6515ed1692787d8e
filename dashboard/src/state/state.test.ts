import { describe, expect, it } from "vitest";
import type { Finding, Session, SessionState } from "../api/shapes";
import { session as sessionLike } from "../../test/sessions";
import type { Told } from "../api/stream";
import { Fleet, keyOf, sorted } from "./fleet";
import { chord } from "./keys";
import { href, parse, sessionHref } from "./route";

const session = (id: string, state: SessionState = "active", more: Partial<Session> = {}): Session =>
  sessionLike(id, { state, ...more });
const told = (type: string, event: object, tenant: string | null = "acme"): Told => ({
  type,
  tenant,
  event: { ...event },
});

describe("a link", () => {
  it.each([
    ["#/fleet", "fleet"],
    ["", "fleet"],
    ["#/nowhere", "fleet"],
    ["#/session/", "sessions"],
  ])("%s leads to %s", (hash, screen) => expect(parse(hash).screen).toBe(screen));

  it("carries every state there and back", () => {
    const names = ["run-17", "a/b?c#d", "50%", "日本", "<script>"];
    for (const id of names) {
      const there = parse(href("session", { step: 12, q: `x&y=${id}`, empty: "" }, id));
      expect(there).toEqual({ screen: "session", id, query: { step: "12", q: `x&y=${id}` } });
    }
  });

  it("that is broken does not break the page", () => expect(parse("#/session/%E0%A4%A").id).toBe("%E0%A4%A"));
  it("to a session names its tenant", () =>
    expect(sessionHref({ session_id: "s", tenant: "t" }, { step: 3 })).toBe("#/session/s?tenant=t&step=3"));
});

describe("the fleet", () => {
  const alert = {
    event_type: "entropy_alert",
    session_id: "a",
    agent_id: "coder",
    entropy_score: 0.2,
    window_size: 5,
    repeated_pattern: { intent: "build", tool_call: "make", action_status: "failure" },
    occurrence_count: 5,
  };

  it("counts sessions by state through every change", () => {
    const fleet = new Fleet();
    fleet.load([session("a"), session("b", "loop")], 0);
    fleet.hear([told("session", session("a", "loop")), told("hitl", { session_id: "b", state: "paused" })], 0);
    expect(fleet.states).toEqual({ active: 0, warning: 0, loop: 1, paused: 1, ended: 0 });
    expect([...fleet.attention].sort()).toEqual([keyOf("acme", "a"), keyOf("acme", "b")]);
  });

  it("shows an alert until its session recovers", () => {
    const fleet = new Fleet();
    fleet.hear([told("session", session("a", "loop")), told("entropy_alert", alert)], 5000);
    expect(fleet.find("a", "acme")).toMatchObject({ alertedAt: 5000, alert: { occurrence_count: 5 } });
    fleet.hear([told("entropy_recovered", { session_id: "a" }), told("session", session("a"))], 6000);
    expect(fleet.find("a", "acme")).toMatchObject({ alertedAt: null, alert: null });
  });

  const found = (detector: string, count = 3): Finding => ({ detector, kind: "repeat", severity: "loop", count });

  it("makes another row of one that changes, so that a list draws it again", () => {
    const fleet = new Fleet();
    fleet.load([session("a", "loop")], 0);
    const changes = [
      () => fleet.setFound(keyOf("acme", "a"), found("redundancy")),
      () => fleet.hear([told("entropy_alert", alert)], 0),
      () => fleet.hear([told("finding", { session_id: "a", finding: found("redundancy", 4) })], 0),
      () => fleet.setState(keyOf("acme", "a"), "paused"),
      () => fleet.hear([told("entropy_recovered", { session_id: "a" })], 0),
    ];
    for (const change of changes) {
      const before = fleet.find("a", "acme");
      change();
      expect(fleet.find("a", "acme")).not.toBe(before);
    }
    expect(fleet.find("a", "acme")).toMatchObject({ state: "paused", found: { count: 4 }, alert: null });
  });

  it("keeps the proof that looks at results when entropy speaks later", () => {
    const fleet = new Fleet();
    fleet.load([session("a", "loop")], 0);
    fleet.hear([told("finding", { session_id: "a", finding: found("redundancy") })], 0);
    fleet.hear([told("finding", { session_id: "a", finding: found("entropy", 5) })], 0);
    expect(fleet.find("a", "acme")?.found).toMatchObject({ detector: "redundancy", count: 3 });
  });

  it("knows its tenants, and whose a session may be", () => {
    const fleet = new Fleet();
    fleet.load([session("a"), session("b")], 0);
    expect([...fleet.tenants.keys()]).toEqual(["acme"]);
    fleet.load([session("a", "active", { tenant: "globex" })], 0);
    expect([...fleet.tenants.entries()]).toEqual([
      ["acme", 2],
      ["globex", 1],
    ]);
    expect([fleet.tenantsOf("a"), fleet.tenantsOf("b"), fleet.tenantsOf("c")]).toEqual([
      ["acme", "globex"],
      ["acme"],
      [],
    ]);
    fleet.clear();
    expect(fleet.tenants.size).toBe(0);
  });

  it("finds the session of an alert that names no tenant", () => {
    const fleet = new Fleet();
    fleet.hear([told("session", session("a", "loop"), null), told("entropy_alert", alert, null)], 0);
    expect(fleet.find("a", null)?.alert?.occurrence_count).toBe(5);
  });

  it("keeps what an event told when an older list comes late", () => {
    const fleet = new Fleet();
    fleet.hear([told("session", session("a", "loop", { last_at: "2026-02-21T10:00:09Z" }))], 0);
    fleet.load([session("a", "active")], 0);
    expect(fleet.find("a", "acme")?.state).toBe("loop");
  });

  it("does not grow without end", () => {
    const fleet = new Fleet();
    for (let time = 0; time < 25_000; time++)
      fleet.hear([told("session", session(`s${time}`, "loop"))], time * 10_000);
    expect([fleet.rows.size, fleet.attention.size, fleet.states.loop]).toEqual([20_000, 20_000, 20_000]);
    expect(fleet.find("s0", "acme")).toBeUndefined();
    for (let steps = 0; steps < 100; steps++) fleet.hear([told("session", session("s24999", "loop", { steps }))], 0);
    expect(fleet.find("s24999", "acme")?.trail.length).toBe(24);
  });

  it("keeps sixty buckets of steps and money, quiet ones too", () => {
    const fleet = new Fleet();
    fleet.hear([told("graph", { node: { agent_id: "x" } })], 0);
    fleet.hear([told("graph", { node: { agent_id: "x" } })], 20_000);
    expect(fleet.series.map((bucket) => bucket.steps)).toEqual([1, 0, 0, 0, 1]);
    fleet.hear([told("session", session("a", "active", { cost_usd: 1 }))], 20_000);
    fleet.hear([told("session", session("a", "active", { cost_usd: 1.5 }))], 20_000);
    expect(fleet.series.at(-1)?.cost).toBeCloseTo(0.5);
    fleet.hear([told("graph", { node: { agent_id: "x" } })], 10_000_000);
    expect(fleet.series.length).toBe(60);
  });

  it("lists the worst first, then by score, and equal ones always in the same order", () => {
    const fleet = new Fleet();
    const list = [
      session("b"),
      session("a"),
      session("w", "warning", { loop_score: 0.6 }),
      session("l", "loop", { loop_score: 0.8 }),
    ];
    fleet.load(list, 0);
    expect(sorted(fleet.rows.values(), "loop").map((row) => row.session_id)).toEqual(["l", "w", "a", "b"]);
  });

  it("of ten thousand sessions takes a second of events within a frame", () => {
    const fleet = new Fleet();
    fleet.load(
      Array.from({ length: 10_000 }, (_, index) => session(`s${index}`)),
      0,
    );
    const batch = Array.from({ length: 500 }, (_, index) =>
      told("session", session(`s${index * 7}`, "loop", { steps: 2 })),
    );
    const start = performance.now();
    fleet.hear(batch, 0);
    sorted(fleet.rows.values(), "loop");
    expect(performance.now() - start).toBeLessThan(200);
  });
});

describe("a key", () => {
  const key = (init: KeyboardEventInit, target?: HTMLElement) => {
    const event = new KeyboardEvent("keydown", { bubbles: true, ...init });
    Object.defineProperty(event, "target", { value: target ?? document.body });
    return chord(event);
  };
  it("is what it says", () => expect([key({ key: "j" }), key({ key: "ArrowRight" })]).toEqual(["j", "ArrowRight"]));
  it("with a modifier is the browser's", () => expect(key({ key: "p", ctrlKey: true })).toBeNull());
  it("while somebody types is text", () => {
    expect(key({ key: "p" }, document.createElement("textarea"))).toBeNull();
    expect(key({ key: "Escape" }, document.createElement("input"))).toBe("Escape");
  });
  it.each(["button", "a", "summary"])("Space or Enter presses the %s that has the focus", (name) => {
    const control = document.createElement(name);
    const inside = control.appendChild(document.createElement("span"));
    expect([key({ key: " " }, control), key({ key: "Enter" }, control), key({ key: " " }, inside)]).toEqual([
      null,
      null,
      null,
    ]);
    expect(key({ key: "p" }, control)).toBe("p");
  });
  it("Space is a command elsewhere, and on a slider, which does nothing with it", () => {
    const slider = document.createElement("input");
    slider.type = "range";
    expect([key({ key: " " }), key({ key: " " }, slider)]).toEqual([" ", " "]);
  });
  it("arrows on a slider are the slider's", () => {
    const slider = document.createElement("input");
    slider.type = "range";
    expect([key({ key: "ArrowRight" }, slider), key({ key: "p" }, slider)]).toEqual([null, "p"]);
  });
});
