import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { chain, log, send } from "./agent";
import { stage, until } from "./page";

/** A frame may take so long, in milliseconds. */
const FRAME = 50;
/** One frame in a hundred may be later, for the collection of garbage. */
const SHARE = 0.99;

/** Does something once per frame; what each of them cost the page's main thread, in milliseconds, in order of size. */
async function frames(page: Page, count: number, script: string): Promise<number[]> {
  const session = await page.context().newCDPSession(page);
  // Time of the thread, not of the clock: what else this machine does is not the page's work.
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const spent = async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return (metrics.find((metric) => metric.name === "TaskDuration")?.value ?? NaN) * 1000;
  };
  const times: number[] = [];
  let before = await spent();
  for (let frame = 0; frame < count; frame++) {
    // Done when the frame after it begins: script, style, layout and paint are in between.
    await page.evaluate(
      `new Promise((done) => requestAnimationFrame(() => { const frame = ${frame}; ${script}; requestAnimationFrame(() => done(null)); }))`,
    );
    const now = await spent();
    times.push(now - before);
    before = now;
  }
  await session.detach();
  return times.sort((a, b) => a - b);
}

function expectSmooth(times: number[]): void {
  const late = times[Math.floor(times.length * SHARE)] ?? Infinity;
  const middle = times[Math.floor(times.length / 2)] ?? Infinity;
  console.log(
    `frames: median ${middle.toFixed(1)} ms, 99 % within ${late.toFixed(1)} ms, worst ${times.at(-1)?.toFixed(1)} ms`,
  );
  expect(late).toBeLessThan(FRAME);
}

describe("ten thousand sessions", () => {
  const at = stage();

  it(
    "are listed and scrolled without a late frame, though only what is seen is there",
    { timeout: 180_000 },
    async () => {
      const logs = Array.from({ length: 10_000 }, (_, index) =>
        log({ session: `s-${String(index).padStart(5, "0")}`, agent: `agent-${index % 40}`, cost: index / 1000 }),
      );
      await send(at.gateway, logs);
      const page = await at.open("#/sessions");
      await until(
        () => page.locator("[data-count]").innerText(),
        (text) => text.startsWith("10,000"),
        60_000,
      );
      expect(await page.locator("[data-session]").count()).toBeLessThan(80);
      const list = page.getByRole("list", { name: "Sessions" });
      const handle = await list.evaluateHandle((box) => ((window as unknown as { box: Element }).box = box));
      await handle.dispose();
      expectSmooth(await frames(page, 240, "window.box.scrollTop = frame * 1700"));
      await page.evaluate("window.box.scrollTop = window.box.scrollHeight");
      await until(
        () => page.locator("[data-session]").count(),
        (count) => count > 0,
      );

      // A filter of all of them is as quick.
      await page.getByLabel("Filter sessions by name, agent or tenant").fill("agent-7");
      await until(
        () => page.locator("[data-count]").innerText(),
        (text) => text.startsWith("250"),
      );
    },
  );
});

describe("a session of two thousand steps", () => {
  const at = stage();

  it("is scrubbed and scrolled without a late frame", { timeout: 180_000 }, async () => {
    await send(
      at.gateway,
      chain(
        Array.from({ length: 2000 }, (_, index) => ({
          session: "long",
          agent: `agent-${index % 3}`,
          // Four hundred steps that repeat, the others all different.
          intent: index % 500 < 100 ? "again" : `step ${index}`,
          input: index % 500 < 100 ? {} : { index },
          output: `line one of ${index}\nline two\nline three`,
          cost: index / 100,
          memory: index % 10 === 0 ? [`note ${index}`] : [],
        })),
      ),
    );
    const page = await at.open("#/session/long?step=1");
    await page.getByText("of 2,000", { exact: true }).waitFor({ timeout: 30_000 });
    expect(await page.locator("[data-row]").count()).toBeLessThan(80);
    const slide = `const slider = document.querySelector('input[type="range"]');
      slider.value = String(1 + (frame * 37) % 2000);
      slider.dispatchEvent(new Event("input", { bubbles: true }));`;
    expectSmooth(await frames(page, 240, slide));
    await page.getByRole("button", { name: "As it ran" }).click();
    await until(
      () => page.evaluate("document.querySelector('[data-row]').closest('[role=list]').scrollHeight > 60000"),
      (isLong) => isLong === true,
    );
    expectSmooth(
      await frames(page, 240, "document.querySelector('[data-row]').closest('[role=list]').scrollTop = frame * 280"),
    );
  });
});

describe.runIf(process.env["LONG"])("ten minutes of five hundred events per second", () => {
  const at = stage();

  it("leave the page's memory where it was", async () => {
    const minutes = Number(process.env["MINUTES"] ?? 10);
    const page = await at.open("#/fleet");
    const session = await page.context().newCDPSession(page);
    const heap = async () => {
      await session.send("HeapProfiler.collectGarbage");
      const { usedSize } = await session.send("Runtime.getHeapUsage");
      return usedSize / 1e6;
    };
    let sent = 0;
    const started = Date.now();
    const measured: number[] = [];
    while (Date.now() - started < minutes * 60_000) {
      // Each log is a step of the graph; with its session's change that makes at least five hundred events per second.
      const due = Math.floor(((Date.now() - started) / 1000) * 500) - sent;
      const logs = Array.from({ length: Math.min(500, due) }, (_, index) =>
        log({ session: `s-${(sent + index) % 3000}`, agent: `agent-${index % 30}`, input: { n: sent + index } }),
      );
      if (logs.length > 0) await send(at.gateway, logs);
      sent += logs.length;
      if (Date.now() - started > (measured.length + 1) * ((minutes * 60_000) / 20)) measured.push(await heap());
      await new Promise((next) => setTimeout(next, 100));
    }
    console.log(`${sent} logs in ${minutes} min; heap in MB: ${measured.map((size) => size.toFixed(1)).join(" ")}`);
    expect(sent).toBeGreaterThan(minutes * 60 * 500 * 0.9);
    const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
    // The first fifth fills what is bounded; after that nothing grows.
    const [early, late] = [mean(measured.slice(4, 8)), mean(measured.slice(-4))];
    expect(late).toBeLessThan(early * 1.15 + 3);
    expect(await page.locator('[data-connection="live"]').count()).toBe(1);
    // The page did hear them, to the end.
    const heard = parseInt((await page.locator(".speed").innerText()).replace("k", "000"), 10);
    expect(heard).toBeGreaterThan(300);
  });
});
