import { describe, expect, it } from "vitest";
import { stage, until } from "./page";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

describe("sessions of several tenants", () => {
  const at = stage({
    policies: [{ id: "agents", spec: { rules: [{ id: "day", key: "tenant", cost_usd: 5, period: "1d" }] } }],
  });

  async function call(tenant: string, session: string, agent = "onboarder") {
    await at.mock.script(session, [{ text: "done" }]);
    const answer = await fetch(`${at.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: "Bearer test",
        "x-session-id": session,
        "x-agent-id": agent,
        "x-tenant-id": tenant,
        "x-mock-script": session,
      },
      body: JSON.stringify({ model: "gpt-4o-mini", messages: [{ role: "user", content: "Begin." }] }),
    });
    expect(answer.status).toBe(200);
  }

  it("of the same name are a choice, not a dead end", async () => {
    for (const tenant of ["acme", "globex"]) await call(tenant, "onboard");
    await until(
      () => at.gateway.get<{ total: number }>("/sessions?q=onboard"),
      ({ total }) => total === 2,
    );
    const page = await at.open("#/session/onboard");
    await page.getByRole("heading", { level: 1 }).waitFor({ state: "attached" });
    await page.getByRole("link", { name: "globex" }).click();
    await page.waitForURL(/tenant=globex/);
    await page.getByText("tenant globex").waitFor();
  });

  it("are named with their tenant, and found by it", async () => {
    const page = await at.open("#/sessions");
    await page.locator('[data-session="onboard"]', { hasText: "acme" }).waitFor();
    await page.getByLabel("Filter sessions by name, agent or tenant").fill("GLOBEX");
    await until(
      () => page.locator("[data-session]").allInnerTexts(),
      (rows) => rows.length === 1 && /globex/.test(rows[0] ?? ""),
    );
  });

  it("are told apart on the map by what stands beside the pointer", async () => {
    const page = await at.open("#/fleet");
    await page.locator("[data-agent]").first().waitFor();
    const titles = await until(
      () => page.locator("[data-agent] > title").allTextContents(),
      (all) => all.some((title) => /tenant globex/.test(title)),
    );
    expect(titles.some((title) => /tenant acme/.test(title))).toBe(true);
  });

  it("have budgets in words", async () => {
    const page = await at.open("#/cost");
    await page.getByRole("region", { name: "Budgets" }).getByText("per day").first().waitFor();
  });

  it("show what they cost on a phone", async () => {
    const page = await at.open("#/sessions", PHONE);
    const row = page.locator('[data-session="onboard"]').first();
    await row.waitFor();
    expect(await row.locator(".cost").isVisible()).toBe(true);
  });
});
