import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { generate } from "../scripts/schema.js";
import { chain, looping, send } from "./agent";
import { complaints, stage, until } from "./page";

describe("the page", () => {
  const at = stage();
  it.each(["#/fleet", "#/sessions", "#/cost", "#/forensics", "#/forensics?tab=violations", "#/forensics?tab=audit"])(
    "without data says on %s what to do next",
    async (hash) => {
      const page = await at.open(hash);
      await page.locator(".empty h3, .calm strong").first().waitFor();
      const words = await page.locator("main").innerText();
      expect(words).not.toMatch(/undefined|NaN|\[object/);
    },
  );

  describe("with data", () => {
    /** Each screen, and what is there once it shows what it has. */
    const SCREENS: [string, string][] = [
      ["#/fleet", "[data-edge]"],
      ["#/fleet?view=table", "main tbody tr"],
      ["#/sessions", "[data-session]"],
      ["#/session/full", "[data-state-at='9']"],
      ["#/session/full?view=table", "[data-state-at='9']"],
      ["#/session/kept", "text=held by local"],
      ["#/cost", "[data-cost]"],
      ["#/forensics", "[data-result]"],
      ["#/forensics?tab=violations", "main tbody tr"],
      ["#/forensics?tab=audit", "main tbody tr"],
      ["#/policies", "[data-threshold]"],
    ];

    beforeAll(async () => {
      const steps = Array.from({ length: 9 }, (_, index) => ({
        session: "full",
        agent: index % 2 ? "coder" : "tester",
        intent: index < 3 ? `part ${index}` : "again",
        tool: index < 3 ? "read" : "test",
        status: index < 3 ? "success" : "failure",
        cost: index + 1,
        input: index < 3 ? { index } : {},
        memory: [`note ${index}`],
      }));
      await send(at.gateway, [...chain(steps), ...chain([{ session: "kept" }])]);
      await at.gateway.post("/sessions/kept/pause", { reason: "to be looked at" });
      const headers = { "content-type": "application/json" };
      await fetch(`${at.gateway.url}/api/v1/decision-logs`, { method: "POST", headers, body: "{}" });
    });

    describe.each(["light", "dark"] as const)("in the %s", (colorScheme) => {
      it.each(SCREENS)("is accessible on %s", async (hash, ready) => {
        const page = await at.open(hash, { colorScheme, reducedMotion: "reduce" });
        await page.waitForSelector(ready);
        expect(await complaints(page)).toEqual([]);
      });
    });

    it.each(SCREENS)("fits a phone on %s", async (hash, ready) => {
      const page = await at.open(hash, { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
      await page.waitForSelector(ready);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBeLessThanOrEqual(390);
      expect(await complaints(page)).toEqual([]);
    });
  });

  it("shows its keys, and goes to the next alert with them", async () => {
    for (const session of ["key-a", "key-b"]) {
      await send(at.gateway, chain(Array.from({ length: 6 }, () => ({ session, status: "failure" }))));
    }
    const page = await at.open("#/sessions");
    await page.locator('[data-alert="key-b"]').waitFor();
    await page.keyboard.press("?");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    const chosen = () => page.locator("li.chosen").getAttribute("data-alert");
    await page.keyboard.press("j");
    const first = await chosen();
    await page.keyboard.press("j");
    expect(await chosen()).not.toBe(first);
    await page.keyboard.press("k");
    expect(await chosen()).toBe(first);
    await page.keyboard.press("i");
    await page.waitForURL(new RegExp(`#/session/${first}`));
  });

  it("holds the chosen alert with one key, and lets it go with another", async () => {
    const page = await at.open("#/sessions");
    await page.locator('[data-alert="key-a"]').waitFor();
    await page.keyboard.press("j");
    const id = (await page.locator("li.chosen").getAttribute("data-alert")) ?? "";
    await page.keyboard.press("p");
    await page.waitForURL(new RegExp(`#/session/${id}`));
    const state = () => at.gateway.get<{ state: string }>(`/sessions/${id}`);
    await until(state, ({ state }) => state === "paused");
    await page.keyboard.press("r");
    await until(state, ({ state }) => state !== "paused");
  });

  it("reads types that are made from this API", async () => {
    const made = generate(await at.gateway.get("/openapi.json"));
    expect(
      readFileSync(join(import.meta.dirname, "../src/api/schema.ts"), "utf8") === made,
      "run `npm run schema`",
    ).toBe(true);
  });

  it("takes nothing from anywhere else, and little of it", async () => {
    const page = await at.browser.newPage();
    const sizes: Record<string, number> = {};
    const hosts = new Set<string>();
    page.on("response", async (answer) => {
      hosts.add(new URL(answer.url()).host);
      const length = Number((await answer.allHeaders())["content-length"] ?? 0);
      if (answer.url().endsWith(".js")) sizes[answer.url()] = length;
    });
    await page.goto(at.gateway.url);
    await page.waitForSelector('[data-connection="live"]');
    expect([...hosts]).toEqual([new URL(at.gateway.url).host]);
    const total = Object.values(sizes).reduce((sum, size) => sum + size, 0);
    expect(total).toBeGreaterThan(1000);
    expect(total).toBeLessThanOrEqual(100_000);
    await page.close();
  });
});

describe("words of agents", () => {
  const at = stage();

  it("that are markup do nothing, wherever they stand", async () => {
    const evil = `<script>window.hurt = 1</script><img src=x onerror="window.hurt = 1">"'\u202e</title>`;
    const wish = {
      session: evil.slice(0, 60),
      agent: evil,
      tool: evil,
      intent: evil,
      output: evil,
      input: { evil },
      memory: [evil],
      reasoning: [evil],
      status: "failure",
    };
    await send(at.gateway, chain([wish, wish, wish, wish, wish, wish]));
    for (const hash of [
      "#/fleet",
      "#/fleet?view=table",
      "#/sessions",
      `#/session/${encodeURIComponent(wish.session)}`,
      `#/session/${encodeURIComponent(wish.session)}?view=table`,
      "#/cost?span=1h",
      "#/forensics?q=script",
      "#/forensics",
    ]) {
      const page = await at.open(hash);
      await page.getByText("<script>", { exact: false }).first().waitFor({ state: "attached" });
      expect(await page.evaluate("window.hurt")).toBeUndefined();
      expect(await page.locator("main script, main img").count()).toBe(0);
      await page.context().close();
    }
  });

  it("of a megabyte do nothing but get cut", async () => {
    const long = "x<b>".repeat(16_000);
    const wish = {
      session: "long",
      intent: long.slice(0, 60_000),
      output: long,
      input: { long: long.slice(0, 60_000) },
      reasoning: Array.from({ length: 12 }, () => long.slice(0, 60_000)),
      memory: [long.slice(0, 60_000)],
    };
    const made = chain([wish]);
    expect(JSON.stringify(made).length).toBeGreaterThan(900_000);
    await send(at.gateway, made);
    const page = await at.open("#/session/long");
    await page
      .getByText(/more characters/)
      .first()
      .waitFor();
    const shown = await page.evaluate(() => document.body.innerText.length);
    expect(shown).toBeLessThan(60_000);
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBeLessThanOrEqual(1280);
  });
});

describe("a server that is killed and started again", () => {
  const at = stage();

  it("is found again by the page, which says meanwhile that it has lost it", async () => {
    const page = await at.open("#/sessions");
    await at.gateway.kill();
    await page.waitForSelector('[data-connection="lost"]');
    await page.getByText(/stream lost/).waitFor();
    await at.gateway.again();
    await page.waitForSelector('[data-connection="live"]', { timeout: 15_000 });
    const agent = await looping(at.mock, at.gateway, "after");
    for (let round = 0; round < 3; round++) await agent.round(round);
    await page.locator('[data-session="after"]').waitFor();
  });
});

describe("a gateway with tokens", () => {
  const token = "a-long-operator-token-for-tests";
  const at = stage({
    admin: { tokens: [{ role: "operator", sha256: createHash("sha256").update(token).digest("hex") }] },
  });

  it("asks who somebody is, and keeps the answer in a cookie", async () => {
    const page = await at.browser.newPage();
    await page.goto(`${at.gateway.url}/#/sessions`);
    await page.getByLabel("Token").fill("wrong");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Token").fill(token);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.waitForSelector('[data-connection="live"]');
    const cookies = await page.context().cookies();
    expect(cookies.some((cookie) => cookie.httpOnly && cookie.sameSite === "Strict")).toBe(true);
    expect(page.url()).not.toContain(token);
    await page.reload();
    await page.waitForSelector('[data-connection="live"]');
    await page.close();
  });

  it("has the token's field ready, says who somebody is, and lets them go", async () => {
    const context = await at.context();
    const page = await context.newPage();
    await page.goto(`${at.gateway.url}/#/sessions`);
    await page.getByLabel("Token").waitFor();
    await page.keyboard.type(token);
    await page.keyboard.press("Enter");
    await page.waitForSelector('[data-connection="live"]');
    await page.getByTitle(/Logged in as .*role operator/).waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("Token").waitFor();
    await page.reload();
    await page.getByLabel("Token").waitFor();
    await context.close();
  });
});
