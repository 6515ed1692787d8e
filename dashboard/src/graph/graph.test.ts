import { describe, expect, it } from "vitest";
import type { TopologyEdge, TopologyNode } from "../api/shapes";
import { fleetMap } from "./fleetMap";
import { layered, linkId, type Link } from "./layered";
import { runs } from "./repeats";
import { thread, type Bead } from "./thread";

const SPACING = { width: 100, height: 40, gapX: 60, gapY: 20, columns: 4 };
const links = (...pairs: string[]): Link[] => pairs.map((pair) => ({ from: pair[0] ?? "", to: pair[1] ?? "" }));

/** A small generator of numbers, so that a failure can be seen again. */
function numbers(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state % below;
  };
}

describe("repeats", () => {
  const shown = (text: string) => runs([...text]).map((run) => `${run.start}:${run.period}x${run.count}`);

  it("of one thing are one ring", () => expect(shown("abbbbc")).toEqual(["0:1x1", "1:1x4", "5:1x1"]));
  it("of a cycle are one ring", () => expect(shown("pababababq")).toEqual(["0:1x1", "1:2x4", "9:1x1"]));
  it("take the shortest period", () => expect(shown("aaaaaa")).toEqual(["0:1x6"]));
  it("need at least two rounds", () => expect(shown("abcde")).toHaveLength(5));

  it("cover every sequence without a gap", () => {
    const next = numbers(7);
    for (let time = 0; time < 300; time++) {
      const keys = Array.from({ length: next(40) }, () => String(next(3)));
      const found = runs(keys);
      let at = 0;
      for (const run of found) {
        expect(run.start).toBe(at);
        for (let i = run.period; i < run.period * run.count; i++)
          expect(keys[at + i]).toBe(keys[at + i - run.period]);
        at += run.period * run.count;
      }
      expect(at).toBe(keys.length);
    }
  });

  it("of ten thousand steps are found quickly", () => {
    const keys = Array.from({ length: 10_000 }, (_, index) => String(index % 7));
    const start = performance.now();
    expect(runs(keys)).toEqual([{ start: 0, period: 7, count: 1428 }, ...runs(keys).slice(1)]);
    expect(performance.now() - start).toBeLessThan(200);
  });
});

describe("the map of a fleet", () => {
  it("puts who is called to the right of who calls", () => {
    const { nodes } = layered(["a", "b", "c"], links("ab", "bc", "ac"), SPACING);
    expect(["a", "b", "c"].map((id) => nodes.get(id)?.rank)).toEqual([0, 1, 2]);
  });

  it("knows the link that closes a loop", () => {
    const { back } = layered(
      ["plan", "code", "test"],
      [
        { from: "plan", to: "code" },
        { from: "code", to: "test" },
        { from: "test", to: "code" },
      ],
      SPACING,
    );
    expect([...back]).toEqual([linkId({ from: "test", to: "code" })]);
  });

  it("is the same whatever the order of what comes in", () => {
    const ids = ["a", "b", "c", "d", "e", "f"];
    const all = links("ab", "bc", "ca", "cd", "de", "ec");
    const one = layered(ids, all, SPACING);
    const other = layered([...ids].reverse(), [...all].reverse(), SPACING);
    expect([...other.nodes.entries()].sort()).toEqual([...one.nodes.entries()].sort());
    expect([...other.back].sort()).toEqual([...one.back].sort());
  });

  it("never puts two agents on one place, and none outside", () => {
    const next = numbers(11);
    for (let time = 0; time < 100; time++) {
      const ids = Array.from({ length: 1 + next(30) }, (_, index) => `n${index}`);
      const all = Array.from({ length: next(60) }, () => ({ from: `n${next(34)}`, to: `n${next(34)}` }));
      const { nodes, width, height } = layered(ids, all, SPACING);
      const places = new Set([...nodes.values()].map((node) => `${node.x},${node.y}`));
      expect(places.size).toBe(ids.length);
      for (const node of nodes.values()) {
        expect(node.x + SPACING.width).toBeLessThanOrEqual(width);
        expect(node.y + SPACING.height).toBeLessThanOrEqual(height);
        expect(Math.min(node.x, node.y)).toBeGreaterThanOrEqual(0);
      }
    }
  });

  it("stands agents that talk to nobody in a grid", () => {
    const { nodes } = layered(["a", "b", "c", "d", "e"], [], SPACING);
    expect(new Set([...nodes.values()].map((node) => node.y)).size).toBe(2);
  });

  it("of no agents is empty", () => expect(layered([], [], SPACING)).toMatchObject({ width: 0, height: 0 }));

  it("of a chain of five thousand agents does not end the page", () => {
    const ids = Array.from({ length: 5000 }, (_, index) => `n${index}`);
    const all = ids.slice(1).map((to, index) => ({ from: ids[index] ?? "", to }));
    expect(layered(ids, all, SPACING).nodes.size).toBe(5000);
  });
});

describe("the state of an agent", () => {
  const node = (state: string): TopologyNode => ({
    agent_id: "coder",
    cluster_id: "",
    tenant: "acme",
    state,
    session_id: "newest",
    steps: 1,
    tokens: 0,
    cost_usd: 0,
    loop_score: 0,
    violations: 0,
    last_at: "2026-02-21T10:00:00Z",
  });
  it("is not passed on by a hand-over that nothing came back from", () => {
    const edge = (from: string, to: string): TopologyEdge => ({
      from,
      to,
      loop: true,
      count: 2,
      tenant: "acme",
      cluster_id: "",
      latency_ms: 1,
      session_id: "s",
      last_at: "2026-02-21T10:00:00Z",
    });
    const nodes = ["planner", "coder", "tester", "critic"].map((agent_id) => ({ ...node("loop"), agent_id }));
    const edges = [
      edge("planner", "coder"),
      edge("coder", "tester"),
      edge("tester", "critic"),
      edge("critic", "coder"),
    ];
    const red = fleetMap({ nodes, edges }, 900).curves.filter((curve) => curve.loops);
    expect(red.map(({ edge }) => `${edge.from}>${edge.to}`).sort()).toEqual([
      "coder>tester",
      "critic>coder",
      "tester>critic",
    ]);
  });
});

describe("the thread of a session", () => {
  const chain = (keys: string): Bead[] =>
    [...keys].map((key, index) => ({ id: `s${index}`, parent: index ? `s${index - 1}` : null, key }));

  it("draws a cycle as one ring whose rows know their rounds", () => {
    const { rows, rowOf } = thread(chain("pababab"), true);
    expect(rows).toHaveLength(3);
    expect(rows[1]?.ring).toEqual({ start: 1, period: 2, count: 3 });
    expect(rows[2]?.ring).toEqual({ start: 1, period: 2, count: 3 });
    expect(rows[1]?.rounds).toEqual([[1], [3], [5]]);
    expect([...rowOf]).toEqual([0, 1, 2, 1, 2, 1, 2]);
  });

  it("as it ran has a row for every step", () => expect(thread(chain("pababab"), false).rows).toHaveLength(7));

  it("gives a branch a lane of its own and its first lane back afterwards", () => {
    const beads: Bead[] = [
      { id: "root", parent: null, key: "r" },
      { id: "a1", parent: "root", key: "a" },
      { id: "b1", parent: "root", key: "b" },
      { id: "a2", parent: "a1", key: "c" },
      { id: "b2", parent: "b1", key: "d" },
      { id: "a3", parent: "a2", key: "e" },
    ];
    const { rows, lanes, rowOf } = thread(beads, true);
    expect(lanes).toBe(2);
    const lane = (id: number) => rows[rowOf[id] ?? 0]?.lane;
    expect([lane(0), lane(1), lane(3), lane(5)]).toEqual([0, 0, 0, 0]);
    expect([lane(2), lane(4)]).toEqual([1, 1]);
    expect(rows[rowOf[2] ?? 0]?.from).toEqual({ row: 0, guessed: false });
  });

  it("folds rounds of several calls at once", () => {
    const beads: Bead[] = [{ id: "root", parent: null, key: "r" }];
    for (let round = 0, last = "root"; round < 4; round++) {
      beads.push({ id: `x${round}`, parent: last, key: "read" }, { id: `y${round}`, parent: last, key: "test" });
      last = `y${round}`;
    }
    const { rows } = thread(beads, true);
    expect(rows.map((row) => row.rounds.length)).toEqual([1, 4]);
    expect(rows[1]?.rounds[0]).toEqual([1, 2]);
  });

  it("of steps without parents follows their order, and says that it guesses", () => {
    const beads = [..."abc"].map((key, index) => ({ id: `s${index}`, parent: null, key }));
    const { rows, lanes } = thread(beads, true);
    expect(lanes).toBe(1);
    expect(rows.map((row) => row.from?.row ?? null)).toEqual([null, 0, 1]);
  });

  it("places every step in exactly one row that stands below its parent's", () => {
    const next = numbers(3);
    for (let time = 0; time < 200; time++) {
      const beads = Array.from({ length: 1 + next(60) }, (_, index): Bead => {
        const parent = next(8) === 0 ? null : `s${next(index + 2)}`;
        return { id: `s${index}`, parent, key: String(next(3)) };
      });
      for (const fold of [true, false]) {
        const { rows, rowOf } = thread(beads, fold);
        const seen = rows.flatMap((row) => row.rounds.flat()).sort((a, b) => a - b);
        expect(seen).toEqual(beads.map((_, index) => index));
        expect([...rowOf].every((row) => row >= 0)).toBe(true);
        rows.forEach((row, place) => expect(row.from?.row ?? -1).toBeLessThan(place));
      }
    }
  });

  it("of two thousand steps is laid out within a frame", () => {
    const beads = Array.from({ length: 2000 }, (_, index): Bead => {
      return {
        id: `s${index}`,
        parent: index ? `s${Math.max(0, index - 1 - (index % 5 === 0 ? 3 : 0))}` : null,
        key: String(index % 40),
      };
    });
    thread(beads, true);
    const start = performance.now();
    thread(beads, true);
    expect(performance.now() - start).toBeLessThan(50);
  });
});
