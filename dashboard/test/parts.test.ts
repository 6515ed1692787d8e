import { render, screen } from "@testing-library/svelte";
import { tick } from "svelte";
import { beforeEach, describe, expect, it } from "vitest";
import type { Finding, Session, Step } from "../src/api/shapes";
import Alerts from "../src/parts/Alerts.svelte";
import Findings from "../src/parts/Findings.svelte";
import Series from "../src/parts/Series.svelte";
import StateAt from "../src/parts/StateAt.svelte";
import StepDetail from "../src/parts/StepDetail.svelte";
import Tiles from "../src/parts/Tiles.svelte";
import { keyOf } from "../src/state/fleet";
import { handleKey } from "../src/state/keys";
import { live } from "../src/state/live.svelte";
import { session as sessionLike } from "./sessions";

const session = (id: string, more: Partial<Session> = {}): Session =>
  sessionLike(id, { state: "loop", entropy_score: 0.2, loop_score: 0.8, ...more });
const finding = (detector: string, more: Partial<Finding> = {}): Finding => {
  return { detector, kind: "repeat", severity: "loop", count: 3, ...more };
};
const alert = {
  entropy_score: 0.2,
  occurrence_count: 5,
  repeated_pattern: { intent: "wait for it", tool_call: "poll", action_status: "success" },
};

describe("the panel of alerts", () => {
  const alertOf = (id: string) => document.querySelector(`[data-alert="${id}"]`);

  beforeEach(() => live.fleet.clear());

  it("shows what repeats, whenever that is answered", async () => {
    live.fleet.load([session("a")], 0);
    render(Alerts);
    expect(alertOf("a")?.textContent).not.toMatch(/×/);
    live.fleet.setFound(keyOf("acme", "a"), finding("redundancy", { message: "the same call brought the same" }));
    live.changed();
    await tick();
    expect(alertOf("a")?.textContent).toMatch(/×3[\s\S]*the same call brought the same/);
  });

  it("says where only entropy speaks, which does not look at results", () => {
    live.fleet.load([session("poll", { alert }), session("loop", { alert })], 0);
    live.fleet.setFound(keyOf("acme", "loop"), finding("redundancy"));
    render(Alerts);
    expect(alertOf("poll")?.textContent).toMatch(/results may still move/);
    expect(alertOf("loop")?.textContent).not.toMatch(/results may still move/);
  });

  it("names tenants as soon as there are several", async () => {
    live.fleet.load([session("a")], 0);
    render(Alerts);
    expect(alertOf("a")?.textContent).not.toMatch(/acme/);
    live.fleet.load([session("b", { tenant: "globex" })], 0);
    live.changed();
    await tick();
    expect(alertOf("a")?.textContent).toMatch(/acme/);
    expect(alertOf("b")?.textContent).toMatch(/globex/);
  });

  it("gives the alert that a key chooses the focus, and says that it is the current one", async () => {
    live.fleet.load([session("a"), session("b")], 0);
    render(Alerts);
    window.addEventListener("keydown", handleKey);
    for (const id of ["a", "b"]) {
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
      await tick();
      expect(document.activeElement).toBe(alertOf(id)?.querySelector("a"));
      expect(document.querySelector('[aria-current="true"]')).toBe(alertOf(id));
    }
    window.removeEventListener("keydown", handleKey);
  });

  it("has no key in the name of a button", () => {
    live.fleet.load([session("a")], 0);
    render(Alerts);
    const button = screen.getByRole("button", { name: "Pause and Inspect" });
    expect(button.getAttribute("aria-keyshortcuts")).toBe("p");
  });
});

describe("the numbers of the fleet", () => {
  const tile = (name: string) => document.querySelector(`[data-tile="${name}"]`)?.textContent;

  it("are dashes before anything was answered", () => {
    [live.overview, live.loaded] = [null, false];
    render(Tiles);
    expect(tile("loops open")).toMatch(/–/);
    expect(tile("degraded parts")).toMatch(/–[\s\S]*not known yet/);
  });

  it("have one figure for the money of a minute", () => {
    live.overview = {
      calls_per_second: 0,
      cost_per_minute_usd: 4.44,
      degraded: [],
      dropped: 0,
      loops_open: 0,
      saved_today: null,
      sessions: { active: 0, ended: 0, loop: 0, paused: 0, warning: 0 },
      unwritten: 0,
      wasted_today: { steps: 1, tokens: 0, cost_usd: 0 },
    };
    render(Tiles);
    render(Series);
    expect(tile("calls/s")).toMatch(/\$4\.44 per minute/);
    expect(screen.getByText("$/min").parentElement?.textContent).toMatch(/\$4\.44/);
  });
});

describe("findings", () => {
  const shown = (weak: boolean) =>
    render(Findings, { findings: [finding("entropy")], weak, stepOf: () => 0, onpick: () => undefined }).container
      .textContent;

  it("of entropy alone say that results may still move", () => {
    expect(shown(true)).toMatch(/Entropy counts intent, tool and status, not results/);
    expect(shown(false)).not.toMatch(/results may still move/);
  });
});

describe("a step", () => {
  const step = (status: "pending" | "failure", output: string): Step => ({
    severity: "normal",
    cost_usd: 0.5,
    tokens: 1234,
    log: {
      meta: { trace_id: "t", timestamp: "2026-02-21T10:00:00Z" },
      identity: { agent_id: "a", agent_type: "x", capability_version: "2.0.0" },
      cognition: { intent: "build" },
      action: { tool_call: "make", tool_input: "{}", tool_output_summary: output, status },
    },
  });
  const detail = (now: Step, before: Step) =>
    render(StepDetail, { step: now, number: 2, before, beforeNumber: 1, onpick: () => undefined }).container;

  it("that has no outcome yet is not said to have another one", () => {
    const words = detail(step("pending", ""), step("failure", "FAILED")).textContent;
    expect(words).toMatch(/its outcome is not there yet/);
    expect(words).not.toMatch(/the outcome changed|FAILED/);
  });

  it("is compared once it has one", () =>
    expect(detail(step("failure", "PASSED"), step("failure", "FAILED")).textContent).toMatch(/the outcome changed/));

  it("says the tokens that the API counted, though its log has none", () =>
    expect(detail(step("failure", "x"), step("failure", "x")).textContent).toMatch(/1,234 tokens/));

  it("has long texts in parts with a name that a keyboard reaches", () => {
    detail(step("failure", "PASSED"), step("failure", "FAILED"));
    for (const name of ["Input", "Outcome", "What changed since the attempt before"]) {
      expect(screen.getByRole("group", { name }).getAttribute("tabindex")).toBe("0");
    }
  });
});

describe("the state at a step", () => {
  const spent = { tokens: 1, cost: 1, wastedSteps: 9, wastedCost: 9 };
  const known = {
    step: 4,
    tokens: 40,
    cost_usd: 2,
    entropy_score: null,
    intent: "",
    memory: ["one"],
    memory_added: [],
    row: null,
    wasted: { steps: 1, tokens: 5, cost_usd: 0.25 },
  };

  it("has the API's own sums once they are there", () => {
    render(StateAt, { number: 4, spent, entropy: [0.5], known, added: [] });
    expect(document.querySelector('[data-fact="wasted"]')?.textContent?.trim()).toBe("1 step, $0.25");
  });

  it("has no entropy where no step was scored", () => {
    const { container } = render(StateAt, { number: 4, spent, entropy: [], known: null, added: [] });
    expect(container.querySelector(".entropy")?.textContent?.trim()).toBe("–");
  });

  it("has a memory that a keyboard reaches", () => {
    render(StateAt, { number: 4, spent, entropy: [], known, added: [] });
    expect(screen.getByRole("list", { name: "Memory as of step 4" }).getAttribute("tabindex")).toBe("0");
  });
});
