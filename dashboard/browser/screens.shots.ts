import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, it } from "vitest";
import { stage } from "./page";
import { live, startTheLiving, tellThePast } from "./story";

const folder = resolve(import.meta.dirname, "../../docs/screens");
const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true, deviceScaleFactor: 2 };

const SCREENS: [string, string, string][] = [
  ["fleet", "#/fleet", "[data-agent]"],
  ["sessions", "#/sessions", "[data-session]"],
  ["session", "#/session/fix-parser?step=24", "[data-state-at='24']"],
  ["cost", "#/cost?span=24h", "[data-cost]"],
  ["forensics", "#/forensics?q=empty_input+status%3Afailure", "[data-result]"],
  ["policies", "#/policies", "[data-policy]"],
];

describe("pictures", () => {
  const at = stage({ policies: undefined });

  it("of every screen", async () => {
    mkdirSync(folder, { recursive: true });
    await tellThePast(at.gateway, Date.now());
    const agents = await startTheLiving(at.mock, at.gateway);
    for (let round = 0; round < 5; round++) for (const agent of agents) await agent.round(round);
    await at.gateway.post("/sessions/release-notes/pause", { reason: "look at the wording first" });
    await at.gateway.post("/searches", { name: "failing tests", query: "status:failure tool:run_tests" });
    const living = live(at.gateway);
    for (const colorScheme of ["light", "dark"] as const) {
      for (const [name, hash, ready] of SCREENS) {
        const page = await at.open(hash, { colorScheme, deviceScaleFactor: 1.5, reducedMotion: "reduce" });
        await page.waitForSelector(ready);
        if (name === "policies") {
          await page.getByRole("button", { name: "Try on the last" }).click();
          await page.waitForSelector("[data-tried]");
        }
        // The lines of the last minutes need some of them.
        if (name === "fleet") await page.waitForTimeout(16_000);
        await page.evaluate("document.fonts.ready.then(() => null)");
        await page.screenshot({ path: join(folder, `${name}-${colorScheme}.png`) });
        await page.context().close();
      }
    }
    for (const [name, hash, ready] of SCREENS.slice(0, 3)) {
      const page = await at.open(hash, { ...PHONE, colorScheme: "light", reducedMotion: "reduce" });
      await page.waitForSelector(ready);
      await page.evaluate("document.fonts.ready.then(() => null)");
      await page.screenshot({ path: join(folder, `${name}-phone.png`) });
      await page.context().close();
    }
    await living.end();
  });
});
