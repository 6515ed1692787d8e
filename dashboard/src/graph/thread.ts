// The causal graph of a session as a thread: steps from top to bottom, branches beside it, repeats as one ring.
import { runs, type Run } from "./repeats";

export interface Bead {
  id: string;
  parent: string | null;
  /** What makes two steps the same. */
  key: string;
}

export interface Row {
  /** Steps of each round that this row stands for, as places in the list; parallel calls are one entry. */
  rounds: number[][];
  lane: number;
  /** The ring that this row is part of. */
  ring: { start: number; period: number; count: number } | null;
  /** The row that led to this one, with whether that is known or only guessed from the order. */
  from: { row: number; guessed: boolean } | null;
}

export interface Thread {
  rows: Row[];
  lanes: number;
  /** The row of each step. */
  rowOf: Int32Array;
}

/** More branches side by side are drawn on top of each other. */
const MAX_LANES = 6;

/** One link of a chain: the step that goes on, with the calls that were made beside it and led nowhere. */
interface Link {
  steps: number[];
  key: string;
}

interface Chain {
  links: Link[];
  parent: number | null;
  guessed: boolean;
}

/** A run of one chain: what stands together, whatever else happened in the meantime. */
interface Block {
  chain: number;
  run: Run;
  /** The step that led to it. */
  leads: number | null;
  first: number;
}

/** Lays a session out. `fold` draws repeats as one ring; otherwise every step has its own row, as it ran. */
export function thread(beads: readonly Bead[], fold: boolean): Thread {
  const chains = chainsOf(beads);
  const blocks = chains.flatMap((chain, index) => blocksOf(chain, index, fold));
  blocks.sort((a, b) => a.first - b.first);

  const rowOf = new Int32Array(beads.length).fill(-1);
  const rows: Row[] = [];
  const chainOf: number[] = [];
  for (const { chain, run, leads } of blocks) {
    const start = rows.length;
    const above = leads === null ? -1 : (rowOf[leads] ?? -1);
    const owner = chains[chain];
    for (let offset = 0; offset < run.period; offset++) {
      const rounds: number[][] = [];
      for (let round = 0; round < run.count; round++) {
        rounds.push(owner?.links[run.start + round * run.period + offset]?.steps ?? []);
      }
      for (const step of rounds.flat()) rowOf[step] = start + offset;
      const guessed = run.start === 0 && (owner?.guessed ?? false);
      const first = above >= 0 ? { row: above, guessed } : null;
      const from = offset > 0 ? { row: start + offset - 1, guessed: false } : first;
      const ring = run.count > 1 ? { start, period: run.period, count: run.count } : null;
      rows.push({ rounds, lane: 0, ring, from });
      chainOf.push(chain);
    }
  }
  return { rows, lanes: giveLanes(rows, chainOf), rowOf };
}

function blocksOf(chain: Chain, index: number, fold: boolean): Block[] {
  const found: Run[] = fold
    ? runs(chain.links.map((link) => link.key))
    : chain.links.map((_, start) => ({ start, period: 1, count: 1 }));
  return found.map((run) => ({
    chain: index,
    run,
    leads: run.start === 0 ? chain.parent : (chain.links[run.start - 1]?.steps.at(-1) ?? null),
    first: chain.links[run.start]?.steps[0] ?? 0,
  }));
}

/** Follows every step to the one that goes on from it; other branches become chains of their own. */
function chainsOf(beads: readonly Bead[]): Chain[] {
  const place = new Map(beads.map((bead, index) => [bead.id, index]));
  const children: number[][] = beads.map(() => []);
  const starts: { at: number; parent: number | null; guessed: boolean }[] = [];
  beads.forEach((bead, index) => {
    const parent = bead.parent === null ? undefined : place.get(bead.parent);
    if (parent !== undefined && parent < index) children[parent]?.push(index);
    // Without a known parent a step follows the one before it, as far as anybody can tell.
    else if (index > 0) starts.push({ at: index, parent: index - 1, guessed: true });
    else starts.push({ at: index, parent: null, guessed: false });
  });
  for (const start of starts) {
    // A guess must not make a branch out of a plain sequence.
    if (start.parent !== null && children[start.parent]?.length === 0) children[start.parent]?.push(start.at);
  }
  const guessed = new Set(starts.filter((start) => start.guessed).map((start) => start.at));
  const taken = new Set(children.flat());
  const size = new Int32Array(beads.length).fill(1);
  for (let index = beads.length - 1; index >= 0; index--) {
    for (const child of children[index] ?? []) size[index] = (size[index] ?? 1) + (size[child] ?? 1);
  }
  const open = starts.filter((start) => !taken.has(start.at)).reverse();
  const chains: Chain[] = [];
  for (let start = open.pop(); start; start = open.pop()) {
    const chain: Chain = { links: [], parent: start.parent, guessed: start.guessed };
    let steps = [start.at];
    for (;;) {
      chain.links.push({ steps, key: steps.map((step) => beads[step]?.key ?? "").join("\u0001") });
      const last = steps.at(-1) ?? 0;
      const next = children[last] ?? [];
      const goesOn = next.reduce<number | null>(
        (best, child) => (best === null || (size[child] ?? 1) >= (size[best] ?? 1) ? child : best),
        null,
      );
      if (goesOn === null) break;
      const beside = next.filter((child) => child !== goesOn && size[child] === 1);
      const apart = next.filter((child) => child !== goesOn && (size[child] ?? 1) > 1);
      for (const child of apart.reverse()) open.push({ at: child, parent: last, guessed: guessed.has(child) });
      steps = [...beside, goesOn];
    }
    chains.push(chain);
  }
  return chains;
}

/** Gives every chain the first lane that is free from its branching to its end. */
function giveLanes(rows: Row[], chainOf: readonly number[]): number {
  const reach = new Map<number, { first: number; last: number }>();
  rows.forEach((row, place) => {
    const chain = chainOf[place] ?? 0;
    const known = reach.get(chain);
    if (known) known.last = place;
    else reach.set(chain, { first: row.from?.row ?? place, last: place });
  });
  const busyUntil: number[] = [];
  const lanes = new Map<number, number>();
  const chains = [...reach.entries()].sort((a, b) => a[1].first - b[1].first || a[0] - b[0]);
  for (const [chain, { first, last }] of chains) {
    let lane = busyUntil.findIndex((until) => until <= first);
    if (lane < 0) lane = Math.min(busyUntil.length, MAX_LANES - 1);
    busyUntil[lane] = Math.max(busyUntil[lane] ?? 0, last);
    lanes.set(chain, lane);
  }
  rows.forEach((row, place) => {
    row.lane = lanes.get(chainOf[place] ?? 0) ?? 0;
  });
  return Math.max(1, busyUntil.length);
}
