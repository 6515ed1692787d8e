import { describe, expect, it } from "vitest";
import { chain, send, type Wish } from "./agent";
import { stage, until } from "./page";

interface StateAt {
  step: number;
  memory: string[];
  tokens: number;
  cost_usd: number;
}

describe("a session", () => {
  const at = stage();
  const steps: Wish[] = Array.from({ length: 12 }, (_, index) => ({
    session: "film",
    agent: index < 4 ? "planner" : "coder",
    intent: index < 4 ? `look at part ${index}` : "run the tests",
    tool: index < 4 ? "read" : "test",
    input: index < 4 ? { index } : { all: true },
    status: index < 4 ? "success" : "failure",
    output: index < 4 ? "fine" : `FAILED after ${index} s`,
    memory: index < 4 ? [`part ${index} is known`] : [],
    tokens: 100 + index,
    cost: (index + 1) * 0.25,
    reasoning: [`thought ${index}`],
  }));

  it("is played step by step, each with the state of that step", async () => {
    await send(at.gateway, chain(steps));
    const page = await at.open("#/session/film?step=1&speed=16");
    await page.getByText("thought 0").waitFor();
    await page.getByRole("button", { name: "Play" }).click();
    await page.getByText("thought 11").waitFor();
    await page.waitForURL(/step=12/);
    await page.getByRole("button", { name: "Play" }).waitFor();
  });

  it("is scrubbed with the slider, and shows memory, tokens and cost as the API has them", async () => {
    const page = await at.open("#/session/film?step=12");
    for (const step of [3, 7, 12, 1]) {
      await page.getByLabel("Step", { exact: true }).fill(String(step));
      const state = await at.gateway.get<StateAt>(`/sessions/film/steps?at=${step}`);
      const panel = page.locator(`[data-state-at="${step}"]`);
      await panel.waitFor();
      expect(await panel.locator('[data-fact="tokens"]').innerText()).toBe(state.tokens.toLocaleString("en-US"));
      expect(await panel.locator('[data-fact="cost"]').innerText()).toBe(`$${state.cost_usd.toFixed(2)}`);
      for (const item of state.memory) expect(await panel.innerText()).toContain(item);
      expect(await panel.getByRole("listitem").count()).toBe(state.memory.length);
      await page.getByText(`thought ${step - 1}`, { exact: true }).waitFor();
    }
  });

  it("is walked through with keys", async () => {
    const page = await at.open("#/session/film?step=5");
    await page.getByText("thought 4").waitFor();
    await page.locator("main").focus();
    for (const [key, thought] of [
      ["]", 5],
      ["ArrowRight", 6],
      ["[", 5],
      ["ArrowLeft", 4],
      ["Home", 0],
      ["End", 11],
    ] as const) {
      await page.keyboard.press(key);
      await page.getByText(`thought ${thought}`, { exact: true }).waitFor();
    }
  });

  it("draws what repeats as one ring with its count", async () => {
    const page = await at.open("#/session/film");
    await page.locator("text.times", { hasText: "×8" }).waitFor();
    const folded = await page.locator("[data-row]").count();
    expect(folded).toBe(5);
    await page.getByRole("button", { name: "As it ran" }).click();
    await until(
      () => page.locator("[data-row]").count(),
      (rows) => rows === 12,
    );
    await page.getByRole("button", { name: "Table" }).click();
    await page.getByRole("list", { name: "Steps" }).waitFor();
    expect(await page.getByRole("list", { name: "Steps" }).getByRole("listitem").count()).toBe(12);
  });

  it("says what changed since the attempt before", async () => {
    const page = await at.open("#/session/film?step=8");
    await page.getByText("only numbers changed").waitFor();
  });

  it("is shown to others exactly as it is by its link", async () => {
    const first = await at.open("#/session/film?step=3");
    await first.getByRole("button", { name: "One step on" }).click();
    await first.getByRole("button", { name: "As it ran" }).click();
    await first.waitForURL(/step=4&view=ran|view=ran&step=4/);
    const second = await at.open(new URL(first.url()).hash);
    await second.getByText("thought 3", { exact: true }).waitFor();
    expect(await second.getByRole("button", { name: "As it ran" }).getAttribute("aria-pressed")).toBe("true");
  });

  it("goes on growing while somebody looks at it", async () => {
    await send(at.gateway, chain([{ session: "alive", intent: "first" }]));
    const page = await at.open("#/session/alive");
    await page.getByText("of 1", { exact: true }).waitFor();
    await send(at.gateway, chain([{ session: "alive", intent: "second", input: { n: 2 } }]));
    await page.getByText("of 2", { exact: true }).waitFor();
  });

  it("has a step rewritten from its console", async () => {
    const page = await at.open("#/session/film?step=2&tenant=anonymous");
    await page.getByText("thought 1", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Rewrite", exact: true }).click();
    await page.getByLabel("What it is replaced by").fill("another result");
    await page.getByRole("button", { name: "Rewrite step #2" }).click();
    await page.getByText("Rewritten for the calls that follow.").waitFor();
    const { entries } = await at.gateway.get<{ entries: { action: string; session_id: string }[] }>(
      "/audit?order=desc",
    );
    expect(entries.some((entry) => entry.action === "rewrite" && entry.session_id === "film")).toBe(true);
  });
});
