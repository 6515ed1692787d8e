import { readFile } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { Agent, chain, looping, send } from "./agent";
import { stage, until } from "./page";

describe("costs", () => {
  const at = stage();

  it("in the heatmap add up to the API's numbers", async () => {
    const hour = 3_600_000;
    const spent = ["a", "b"].flatMap((agent) =>
      Array.from({ length: 6 }, (_, index) => ({
        session: `cost-${agent}`,
        agent,
        intent: "build",
        status: "failure",
        cost: (index + 1) * (agent === "a" ? 0.37 : 0.11),
        at: Date.now() - (6 - index) * hour,
      })),
    );
    for (const agent of ["a", "b"]) await send(at.gateway, chain(spent.filter((wish) => wish.agent === agent)));
    const page = await at.open("#/cost?span=24h");
    await page.waitForSelector('[data-key="a"]');
    const { cells } = await at.gateway.get<{ cells: { key: string; cost_usd: number; loop_cost_usd: number }[] }>(
      "/cost?by=agent&bucket=1h",
    );
    const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
    const shown = await page
      .locator("[data-cost]")
      .evaluateAll((all) => all.map((cell) => Number(cell.getAttribute("data-cost"))));
    expect(sum(shown)).toBeCloseTo(sum(cells.map((cell) => cell.cost_usd)), 9);
    expect(await page.locator('[data-fact="total"]').innerText()).toBe(
      `$${sum(cells.map((cell) => cell.cost_usd)).toFixed(2)}`,
    );
    const rowOf = sum(cells.filter((cell) => cell.key === "a").map((cell) => cell.cost_usd));
    expect(await page.locator('[data-key="a"]').innerText()).toContain(`$${rowOf.toFixed(2)}`);
    const looped = await page.locator('[data-fact="looped"]').innerText();
    expect(looped).not.toBe("$0");
  });

  it("of one cell lead to its sessions", async () => {
    const page = await at.open("#/cost?span=24h");
    await page.locator('[data-key="a"] [data-cost]').first().click();
    await page.waitForURL(/cell=/);
    await page.getByRole("link", { name: "cost-a" }).click();
    await page.waitForURL(/#\/session\/cost-a/);
  });
});

describe("budgets", () => {
  const rule = { id: "run", key: "session", cost_usd: 0.5, warn_at: 0.8, on_exceed: "pause" };
  const at = stage({ policies: [{ id: "agents", spec: { rules: [rule] } }] });

  it("are shown against their limits, with the session that they are for", async () => {
    await at.mock.script("dear", [{ text: "done" }]);
    await new Agent(at.gateway, "dear", () => "").round(0);
    const page = await at.open("#/cost");
    const budgets = page.getByRole("region", { name: "Budgets" });
    await budgets.getByText("of $0.50").waitFor();
    expect(await budgets.innerText()).toContain("rule run of agents");
    await budgets.getByRole("link", { name: "dear" }).click();
    await page.waitForURL(/#\/session\/dear/);
  });
});

describe("the probe", () => {
  const at = stage();

  it("shows how a synthetic loop would be stopped, and no model hears of it", async () => {
    const page = await at.open("#/policies");
    await page.getByRole("button", { name: "Probe" }).click();
    const told = page.locator('[data-alive="true"]');
    await told.waitFor();
    expect(await told.innerText()).toMatch(/Alive\.[\s\S]*hint[\s\S]*reject/);
    expect(await at.mock.requests("")).toHaveLength(0);
  });
});

describe("a search", () => {
  const at = stage();

  it("finds words of any step, marks them, and leads to the step", async () => {
    await send(
      at.gateway,
      chain([
        { session: "crime", agent: "writer", intent: "write the report", output: "fine" },
        {
          session: "crime",
          agent: "butler",
          intent: "clean the library",
          tool: "candlestick",
          output: "nobody saw anything",
          input: { room: "library" },
        },
      ]),
    );
    const page = await at.open("#/fleet");
    await page.keyboard.press("/");
    await page.keyboard.type("candlestick");
    await page.keyboard.press("Enter");
    await page.waitForURL(/#\/forensics\?q=candlestick/);
    const found = page.locator('[data-result="crime"]');
    await found.waitFor();
    expect(await found.count()).toBe(1);
    expect(await found.locator("mark").innerText()).toBe("candlestick");
    await found.getByRole("link").click();
    await page.waitForURL(/#\/session\/crime/);
  });

  it("is narrowed by filters, in words or by a press", async () => {
    const page = await at.open(`#/forensics?q=${encodeURIComponent("agent:writer")}`);
    await page.locator('[data-result="crime"]').waitFor();
    expect(await page.locator("[data-result]").count()).toBe(1);
    await page.getByLabel("Search all steps").last().fill("agent:nobody");
    await page.keyboard.press("Enter");
    await page.getByText("No step fits").waitFor();
  });

  it("is saved under a name, for everybody", async () => {
    const page = await at.open("#/forensics?q=library");
    await page.getByLabel("Name of the search").fill("Who did it");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("link", { name: "Who did it" }).waitFor();
    const other = await at.open("#/forensics");
    await other.getByRole("link", { name: "Who did it" }).click();
    await other.waitForURL(/q=library/);
  });

  it("is exported as NDJSON", async () => {
    const page = await at.open("#/forensics?q=library");
    await page.locator("[data-result]").first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Export NDJSON" }).click(),
    ]);
    const lines = (await readFile(await download.path(), "utf8")).trim().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { session_id: string }).session_id)).toEqual(["crime"]);
  });

  it("shows logs that were refused by what is wrong with them", async () => {
    await fetch(`${at.gateway.url}/api/v1/decision-logs`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    });
    const page = await at.open("#/forensics?tab=violations");
    await page.getByText("meta.trace_id").waitFor();
  });
});

describe("a policy", () => {
  const at = stage();

  it("is tried on recorded sessions before it is saved, and lists what would have fired", async () => {
    const agent = await looping(at.mock, at.gateway, "loop-p");
    for (let round = 0; round < 6; round++) await agent.round(round);
    await until(
      () => at.gateway.get<{ steps: number }>("/sessions/loop-p").catch(() => ({ steps: 0 })),
      ({ steps }) => steps >= 4,
    );
    const page = await at.open("#/policies");
    await page.waitForSelector("[data-policy]");
    const save = page.getByRole("button", { name: "Save" });
    await page.getByRole("group", { name: "Mode" }).getByRole("button", { name: "shadow" }).click();
    expect(await save.isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Try on the last" }).click();
    await page.waitForSelector("[data-tried]");
    const fired = page.locator("[data-tried] tbody tr");
    await fired.first().waitFor();
    expect((await fired.allInnerTexts()).join("\n")).toMatch(/loop-p #\d/);
    await save.click();
    await page.getByText("Saved. It is in force").waitFor();
    await page.locator("[data-policy]", { hasText: "shadow" }).waitFor();
    expect(await page.locator("[data-policy]").first().innerText()).toMatch(/changed here/);
    await page.getByRole("button", { name: "Back to the file" }).click();
    await page.locator("[data-policy]", { hasText: "enforce" }).waitFor();
  });

  it("that is wrong is refused with what is wrong, and nothing changes", async () => {
    const page = await at.open("#/policies");
    await page.getByLabel("The policy as JSON").fill('{"mode":"sometimes"}');
    await page.getByRole("button", { name: "Try on the last" }).click();
    await page.getByRole("alert").first().waitFor();
    expect(await page.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
  });

  it("stands beside the running thresholds, which are changed whole or not at all", async () => {
    const page = await at.open("#/policies");
    const field = page.locator('[data-threshold="entropy.loop_below"]');
    await field.fill("7");
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("alert").first().waitFor();
    await field.fill("0.3");
    await page.getByRole("button", { name: "Apply" }).click();
    await until(
      () => at.gateway.get<{ detectors: { entropy: { loop_below: number } } }>("/config"),
      ({ detectors }) => detectors.entropy.loop_below === 0.3,
    );
  });
});
