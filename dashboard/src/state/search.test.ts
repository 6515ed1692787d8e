import { describe, expect, it } from "vitest";
import type { CostCell } from "../api/shapes";
import { darkness, heat } from "./heat";
import { read, toQuery, withFilter } from "./words";

describe("a search", () => {
  it("has words and filters", () => {
    const asked = read('agent:coder empty_input status:failure "two words" since:7d');
    expect(asked).toEqual({
      text: 'empty_input "two words"',
      filters: { agent: "coder", status: "failure", since: "7d" },
      wrong: [],
    });
  });

  it("takes what is no filter for words", () => expect(read("https://x std::io").text).toBe("https://x std::io"));
  it("keeps spaces of a quoted value", () => expect(read('agent:"a b\\" c" x').filters.agent).toBe('a b" c'));
  it("says which time it does not understand", () => expect(read("since:yesterday").wrong).toEqual(["since"]));

  it("becomes a query of the API", () => {
    const now = Date.parse("2026-02-21T10:00:00Z");
    expect(toQuery(read("boom session:run-1 since:1h"), now)).toEqual({
      q: "boom",
      session_id: "run-1",
      from: "2026-02-21T09:00:00.000Z",
    });
  });

  it("takes one filter in place of another", () => {
    expect(withFilter("agent:a x", "agent", "b c")).toBe('x agent:"b c"');
    expect(withFilter('agent:"b c" x', "agent", "")).toBe("x");
    expect(withFilter("", "tool", "run_tests")).toBe("tool:run_tests");
  });

  it("of any text is read without an error", () => {
    for (const text of ['"', 'a:"', ":", "a:b:c", "\\", 'agent:"x\\', "  "]) expect(() => read(text)).not.toThrow();
  });
});

describe("the heatmap", () => {
  const hour = 3_600_000;
  const cell = (key: string, at: number, cost: number, loop = 0): CostCell => ({
    key,
    at: new Date(at).toISOString(),
    cost_usd: cost,
    loop_cost_usd: loop,
    wasted_cost_usd: 0,
    tenant: "acme",
    tokens: 1,
    steps: 1,
  });

  it("adds up to what came in", () => {
    const cells = [cell("a", 0, 1), cell("a", hour, 2, 1.5), cell("b", hour, 4)];
    const shown = heat(cells, 0, 2 * hour, hour);
    expect(shown).toMatchObject({ cost: 7, loop: 1.5, top: 4, times: [0, hour] });
    expect(shown.rows.map((row) => [row.key, row.cost])).toEqual([
      ["b", 4],
      ["a", 3],
    ]);
  });

  it("shows quiet times too", () => expect(heat([], 90, 5 * hour, hour).times).toHaveLength(5));

  it("sums up all rows though it shows only the dearest", () => {
    const cells = Array.from({ length: 100 }, (_, index) => cell(`k${index}`, 0, 1));
    const shown = heat(cells, 0, hour, hour);
    expect([shown.rows.length, shown.left, shown.cost]).toEqual([60, 40, 100]);
  });

  it("is darker where it is dearer, and white where nothing was spent", () => {
    expect([darkness(0, 10), darkness(10, 10)]).toEqual([0, 1]);
    expect(darkness(1, 10)).toBeGreaterThan(0.1);
    expect(darkness(1, 0)).toBe(0);
  });
});
