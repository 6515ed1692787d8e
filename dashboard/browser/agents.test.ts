import { describe, expect, it } from "vitest";
import { chain, looping, send } from "./agent";
import { complaints, stage, until } from "./page";

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

describe("what is shown of agents", () => {
  const at = stage({ pause: { hold: "25s" } });
  const again = (session: string, agent: string, more = {}) =>
    Array.from({ length: 6 }, () => ({ session, agent, status: "failure", output: "FAILED", ...more }));

  it("is their loop, though a healthy session of theirs is newer", async () => {
    await send(at.gateway, chain(again("old-loop", "builder")));
    await send(at.gateway, chain([{ session: "fresh", agent: "builder", intent: "something new" }]));
    const page = await at.open("#/fleet");
    await page.waitForSelector('[data-agent="builder"][data-state="loop"]');
    await page.locator('[data-agent="builder"]').click();
    await page.waitForURL(/#\/session\/old-loop/);
  });

  it("is what repeats in each alert, with its count, on every load", async () => {
    for (let n = 0; n < 4; n++) await send(at.gateway, chain(again(`many-${n}`, `agent-${n}`)));
    for (let load = 0; load < 5; load++) {
      const page = await at.open("#/sessions");
      await until(
        () => page.locator("[data-alert]").allInnerTexts(),
        (alerts) => alerts.length >= 5 && alerts.every((words) => /×\d/.test(words)),
      );
      await page.context().close();
    }
  });

  it("is that results may still move where nothing but entropy speaks", async () => {
    const polls = Array.from({ length: 6 }, (_, n) => ({
      session: "poll",
      agent: "waiter",
      tool: "job_status",
      intent: "wait for the build",
      output: `${n * 13} % done, stage ${"abcdef"[n]}`,
    }));
    await send(at.gateway, chain(polls));
    const page = await at.open("#/sessions");
    await page.locator('[data-alert="poll"]', { hasText: "results may still move" }).waitFor();
    const open = await at.open("#/session/poll");
    await open.getByRole("region", { name: "Findings" }).getByText("results may still move").waitFor();
  });

  it("is the result of a step that was waiting when somebody began to look", async () => {
    const agent = await looping(at.mock, at.gateway, "waits");
    for (let round = 0; round < 3; round++) await agent.round(round);
    const page = await at.open("#/session/waits?tenant=acme");
    const newest = page.getByRole("region", { name: "The step that is looked at" });
    await newest.getByText("pending").waitFor();
    expect(await newest.innerText()).not.toContain("the outcome changed");
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByText("held by local").waitFor();
    const [said, orders] = await Promise.all([
      page.locator(".said p").boundingBox(),
      page.locator(".console").boundingBox(),
    ]);
    expect(said && orders && said.x + said.width <= orders.x, "what is said covers no button").toBe(true);
    const call = agent.round(99);
    // The held request brings the result of the call before it; the step keeps its number.
    await newest.getByText("FAILED parser::empty_input").first().waitFor();
    expect(await newest.innerText()).not.toMatch(/pending|the outcome changed/);
    await page.getByRole("button", { name: "Resume", exact: true }).click();
    await call;
  });

  it("has Space press the button that has the focus, and play where none has", async () => {
    const page = await at.open("#/session/old-loop?step=1");
    const control = page.getByRole("button", { name: "As it ran" });
    await control.focus();
    await page.keyboard.press("Space");
    await page.waitForURL(/view=ran/);
    expect(await page.getByRole("button", { name: "Play" }).count()).toBe(1);
    await page.locator("main").focus();
    await page.keyboard.press("Space");
    await page.getByRole("button", { name: "Pause playback" }).waitFor();
  });

  it("is opened by Enter once a key has chosen it", async () => {
    const page = await at.open("#/sessions");
    await page.locator("[data-alert]").first().waitFor();
    await page.keyboard.press("j");
    const chosen = page.locator('[data-alert][aria-current="true"]');
    const id = await chosen.getAttribute("data-alert");
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`#/session/${id}`));
  });

  it("leaves Resume within reach on a phone", async () => {
    await at.gateway.post("/sessions/old-loop/pause", { reason: "to be looked at" });
    const page = await at.open("#/session/old-loop", PHONE);
    const resume = page.getByRole("button", { name: "Resume", exact: true });
    await resume.waitFor();
    const top = await resume.evaluate((button) => button.getBoundingClientRect().top);
    expect(top).toBeLessThan(844);
    await resume.click();
    const said = page.locator(".said p");
    await said.waitFor();
    const boxes = await Promise.all([said.boundingBox(), page.locator(".console").boundingBox()]);
    const [message, console] = boxes;
    expect(message && console && message.y + message.height <= console.y).toBe(true);
  });

  it("fits a phone though names are endless", async () => {
    const name = (letter: string) => letter.repeat(300);
    await send(
      at.gateway,
      chain(again("s".repeat(190), name("a").slice(0, 180), { tool: name("t"), intent: name("i") })),
    );
    for (const hash of ["#/fleet", "#/sessions", `#/session/${"s".repeat(190)}`, "#/cost", "#/forensics"]) {
      const page = await at.open(hash, PHONE);
      await page
        .getByText(/[ast]{20}/)
        .first()
        .waitFor({ state: "attached" });
      expect(await page.evaluate(() => document.documentElement.scrollWidth), hash).toBeLessThanOrEqual(390);
      await page.context().close();
    }
  });

  it("of a session that is not there is a page that is accessible", async () => {
    const page = await at.open("#/session/nobody");
    await page.getByText("cannot be shown").waitFor();
    expect(await complaints(page)).toEqual([]);
  });

  it("is accessible where texts are long enough to scroll", async () => {
    const long = Array.from({ length: 80 }, (_, n) => `line ${n}`).join("\n");
    const memory = Array.from({ length: 60 }, (_, n) => `note ${n}`);
    await send(at.gateway, chain([{ session: "long-texts", output: long, input: { long }, memory }]));
    const page = await at.open("#/session/long-texts", { reducedMotion: "reduce" });
    await page.waitForSelector("[data-state-at='1']");
    expect(await complaints(page)).toEqual([]);
  });
});

describe("a server that is gone", () => {
  const at = stage();

  it("is no reason to say that nothing was spent, nor that an order is tried again", async () => {
    await send(at.gateway, chain([{ session: "kept" }]));
    const cost = await at.open("#/fleet");
    const page = await at.open("#/session/kept");
    await page.getByRole("button", { name: "Pause", exact: true }).waitFor();
    await at.gateway.kill();
    await page.getByRole("button", { name: "Pause", exact: true }).click();
    await page.getByText("It was not done; press Pause again.").waitFor();
    expect(await page.locator(".said").innerText()).not.toContain("tries again by itself");
    await cost.evaluate("location.hash = '#/cost'");
    await cost.getByText("Costs cannot be shown").waitFor();
    expect(await cost.locator('[data-fact="total"]').innerText()).toBe("–");
    expect(await cost.locator("main").innerText()).not.toMatch(/\$0|No money was counted/);
  });
});
