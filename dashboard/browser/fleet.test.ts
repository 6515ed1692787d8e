import { describe, expect, it } from "vitest";
import { chain, looping, send } from "./agent";
import { stage, until } from "./page";

describe("a looping agent", () => {
  const at = stage();

  it("appears in the panel within two seconds, and its node turns red", async () => {
    const page = await at.open("#/fleet");
    const agent = await looping(at.mock, at.gateway, "loop-1", "tester");
    let seen = 0;
    for (let round = 0; round < 30 && seen === 0; round++) {
      await agent.round(round);
      const { state } = await at.gateway.get<{ state: string }>("/sessions/loop-1").catch(() => ({ state: "" }));
      if (state === "loop") seen = Date.now();
    }
    expect(seen).toBeGreaterThan(0);
    await page.waitForSelector('[data-alert="loop-1"]', { timeout: 2000 });
    expect(Date.now() - seen).toBeLessThan(2000);
    await page.waitForSelector('[data-agent="tester"][data-state="loop"]', { timeout: 2000 });
    const stroke = await page
      .locator('[data-agent="tester"] .card')
      .evaluate((card) => getComputedStyle(card).stroke);
    const [red = 0, green = 0, blue = 0] = (stroke.match(/\d+/g) ?? []).map(Number);
    expect(red).toBeGreaterThan(2 * Math.max(green, blue));
    const panel = await page.locator('[data-alert="loop-1"]').innerText();
    expect(panel).toMatch(/run_tests/);
    expect(panel).toMatch(/×\d+/);
  });

  it("pulses, and stands still for those who want that", async () => {
    const moves = async (reducedMotion: "reduce" | "no-preference") => {
      const page = await at.open("#/fleet", { reducedMotion });
      await page.waitForSelector('[data-state="loop"] .pulse');
      return page
        .locator(".pulse")
        .first()
        .evaluate((ring) => getComputedStyle(ring).animationName);
    };
    expect(await moves("no-preference")).not.toBe("none");
    expect(await moves("reduce")).toBe("none");
  });

  it("is opened by a click on its node", async () => {
    const page = await at.open("#/fleet");
    await page.locator('[data-agent="tester"]').click();
    await page.waitForURL(/#\/session\/loop-1/);
  });

  it("is on the map with its messages, and in the map's table", async () => {
    await send(
      at.gateway,
      chain(
        ["planner", "writer", "critic", "writer", "critic"].map((agent, index) => ({
          session: "talk",
          agent,
          intent: `step ${index}`,
          input: { index },
        })),
      ),
    );
    const page = await at.open("#/fleet");
    await page.waitForSelector('[data-edge="writer>critic"]');
    expect(await page.locator('[data-edge="writer>critic"]').textContent()).toMatch(/^\s*2×/);
    await page.getByRole("button", { name: "Table" }).click();
    await page.waitForURL(/view=table/);
    const row = page.getByRole("row").filter({ hasText: "planner" });
    expect(await row.innerText()).toMatch(/writer \(1,/);
  });

  it("is counted in the tiles, which agree with the API", async () => {
    const page = await at.open("#/fleet");
    const overview = await at.gateway.get<{ loops_open: number }>("/overview");
    const shown = await until(
      () => page.locator('[data-tile="loops open"] .value').innerText(),
      (text) => Number(text) === overview.loops_open,
    );
    expect(Number(shown)).toBeGreaterThan(0);
    expect(await page.locator('[data-tile="saved today"] .value').innerText()).toBe("not known yet");
  });
});
