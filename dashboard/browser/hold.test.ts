import { describe, expect, it } from "vitest";
import { looping } from "./agent";
import { stage, until } from "./page";

describe("Pause and Inspect", () => {
  const at = stage({ pause: { hold: "25s" } });

  async function held(): Promise<number> {
    const metrics = await (await fetch(`${at.gateway.url}/metrics`)).text();
    return Number(/loopbreaker_held(?:{[^}]*})? (\d+)/.exec(metrics)?.[1] ?? 0);
  }

  async function loopOf(session: string) {
    const agent = await looping(at.mock, at.gateway, session);
    const state = () => at.gateway.get<{ state: string }>(`/sessions/${session}`).catch(() => ({ state: "" }));
    // The fourth request shows the same call and result for the third time: that is a loop, and it is hinted.
    for (let round = 0; round < 4; round++) expect((await agent.round(round)).status).toBe(200);
    await until(state, ({ state }) => state === "loop");
    return agent;
  }

  it("holds the next call, seen at the provider, and opens the session", async () => {
    const agent = await loopOf("hold-1");
    const page = await at.open("#/sessions");
    const alert = page.locator('[data-alert="hold-1"]');
    await alert.getByRole("button", { name: "Pause and Inspect" }).click();
    await page.waitForURL(/#\/session\/hold-1/);
    await page.getByText("held by local").waitFor();

    const before = (await at.mock.requests("hold-1")).length;
    let answered = false;
    const call = agent.round(99).then((answer) => {
      answered = true;
      return answer;
    });
    // The gateway counts what it holds; the provider has seen nothing of it.
    await until(held, (count) => count > 0);
    expect(answered).toBe(false);
    expect((await at.mock.requests("hold-1")).length).toBe(before);

    await page.getByLabel("Message to the agent").fill("Stop testing and read the parser.");
    await page.getByRole("button", { name: "Inject and resume" }).click();
    await call;
    const requests = await until(
      () => at.mock.requests("hold-1"),
      (all) => all.length > before,
    );
    expect(requests.at(-1)?.body).toContain("Stop testing and read the parser.");
    await until(
      () => at.gateway.get<{ state: string }>("/sessions/hold-1"),
      ({ state }) => state !== "paused",
    );
    await page.getByText("held by local").waitFor({ state: "detached" });
  });

  it("can be resumed from the panel with one press, and by a key", async () => {
    await loopOf("hold-2");
    const page = await at.open("#/sessions");
    const alert = page.locator('[data-alert="hold-2"]');
    await alert.getByRole("button", { name: "Pause and Inspect" }).click();
    await page.waitForURL(/#\/session\/hold-2/);
    await page.getByText("held by local").waitFor();
    await page.locator("main").focus();
    await page.keyboard.press("r");
    await until(
      () => at.gateway.get<{ state: string }>("/sessions/hold-2"),
      ({ state }) => state !== "paused",
    );
  });

  it("can end in a rejection, which asks first", async () => {
    const agent = await loopOf("hold-3");
    const page = await at.open("#/session/hold-3?tenant=acme");
    await page.getByRole("button", { name: /^Pause/ }).click();
    await page.getByText("held by local").waitFor();
    const call = agent.round(99);
    await until(held, (count) => count > 0);
    await page.getByRole("button", { name: "Reject", exact: true }).click();
    await page.getByRole("button", { name: "Reject…" }).click();
    await page.getByRole("button", { name: "Yes, reject its call" }).click();
    const answer = await call;
    expect(answer.status).toBe(403);
    expect(answer.text).toContain("rejected_by_operator");
  });

  it("is in the audit trail with who did it", async () => {
    const page = await at.open("#/forensics?tab=audit");
    const rows = page.getByRole("row").filter({ hasText: "hold-3" });
    await rows.first().waitFor();
    expect((await rows.allInnerTexts()).join("\n")).toMatch(/local[\s\S]*pause/);
  });
});
