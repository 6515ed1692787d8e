import { describe, expect, it } from "vitest";
import { count, counted, exact, rate, score } from "./count";
import { money, share } from "./money";
import { head, line, pretty, shortId } from "./text";
import { ago, clock, duration, per, span } from "./time";

describe("money", () => {
  it.each([
    [0, "$0"],
    [0.00001, "<$0.0001"],
    [0.0042, "$0.0042"],
    [0.126, "$0.13"],
    [12.4, "$12.40"],
    [1240.4, "$1,240"],
    [2_400_000, "$2.4M"],
    [-3, "−$3.00"],
    [NaN, "–"],
  ])("shows %d as %s", (usd, shown) => expect(money(usd)).toBe(shown));

  it("never invents a share of nothing", () => {
    expect([share(1, 0), share(0, 5), share(0.001, 5), share(1, 4), share(9, 4)]).toEqual([
      "0 %",
      "0 %",
      "<1 %",
      "25 %",
      "100 %",
    ]);
  });
});

describe("counts", () => {
  it.each([
    [0, "0"],
    [412, "412"],
    [3112, "3.1k"],
    [41_230, "41k"],
    [999_999, "1.0M"],
    [2_000_000_000, "2.0G"],
    [Infinity, "–"],
  ])("shows %d as %s", (value, shown) => expect(count(value)).toBe(shown));

  it("shows exact numbers, rates and scores", () => {
    expect([exact(12_345.6), rate(0), rate(0.25), rate(214.4), score(0.2), score(null)]).toEqual([
      "12,346",
      "0",
      "0.3",
      "214",
      "0.20",
      "–",
    ]);
    expect([counted(1, "step"), counted(2, "step")]).toEqual(["1 step", "2 steps"]);
  });
});

describe("time", () => {
  it("says how long ago something was by its largest unit", () => {
    const now = 1_000_000_000;
    const shown = [500, 12_000, 240_000, 3 * 3_600_000, 72 * 3_600_000].map((past) => ago(now - past, now));
    expect(shown).toEqual(["just now", "12 s ago", "4 min ago", "3 h ago", "3 d ago"]);
  });

  it("takes a clock of the future as now", () => expect(ago(2000, 1000)).toBe("just now"));
  it("shows lengths of time", () =>
    expect([span(12), span(1500), span(61_000)]).toEqual(["12 ms", "1.5 s", "1 min"]));
  it("says nothing of a moment that is none", () => expect([clock("x"), clock(null)]).toEqual(["–", "–"]));
  it("says in words how often something comes round", () =>
    expect(["86400s", "3600s", "2h", "60s", "90s", "1d", "session", null].map(per)).toEqual([
      "per day",
      "per hour",
      "per 2 hours",
      "per minute",
      "per 90 seconds",
      "per day",
      "",
      "",
    ]));
  it("reads durations and nothing else", () =>
    expect([duration("15m"), duration("1h"), duration("1 week")]).toEqual([900_000, 3_600_000, null]));
});

describe("words of agents", () => {
  it("become one line of limited length", () => {
    expect(line("a\n  b\tc")).toBe("a b c");
    expect(line("x".repeat(500), 10)).toBe(`${"x".repeat(9)}…`);
    expect(line(null)).toBe("");
  });

  it("keep their angle brackets", () => expect(line("<script>alert(1)</script>")).toBe("<script>alert(1)</script>"));
  it("are never cut inside of a character", () => expect(line("🙂".repeat(50), 10)).not.toMatch(/[\ud800-\udbff]…$/));

  it("of a megabyte are cut with the number of what is left out", () => {
    const { shown, more } = head("y".repeat(1 << 20), 100);
    expect([shown.length, more]).toEqual([100, (1 << 20) - 100]);
  });

  it("that are JSON are indented, others are not touched", () =>
    expect([pretty('{"a":1}'), pretty("{a"), pretty("7")]).toEqual(['{\n  "a": 1\n}', "{a", "7"]));

  it("that are names lose their middle", () => {
    expect(shortId("run-17")).toBe("run-17");
    expect(shortId("3f2a9c1e-7b54-4e0d-9a61-0c5d8e2f7a10", 13)).toBe("3f2a9c1e…7a10");
  });
});
