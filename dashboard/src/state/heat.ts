// Costs as a grid of keys and times, with what loops took of it.
import type { CostCell } from "../api/shapes";

export interface HeatRow {
  key: string;
  cost: number;
  loop: number;
  tokens: number;
  steps: number;
  /** By the start of each bucket. */
  cells: Map<number, CostCell>;
}

export interface Heat {
  rows: HeatRow[];
  /** The starts of the buckets, every one of the time that is shown. */
  times: number[];
  cost: number;
  loop: number;
  /** The dearest cell. */
  top: number;
  /** Rows that are not shown, summed up in the last one. */
  left: number;
}

/** More rows than this are summed up in one. */
const MAX_ROWS = 60;
export const MAX_TIMES = 200;

/** What of a cell went into loops: repeats where they are known, else everything that was spent in a loop. */
export const looped = (cell: CostCell) => Math.max(cell.wasted_cost_usd, cell.loop_cost_usd);

export function heat(cells: readonly CostCell[], from: number, to: number, bucket: number): Heat {
  const rows = new Map<string, HeatRow>();
  let top = 0;
  for (const cell of cells) {
    const row = rows.get(cell.key) ?? { key: cell.key, cost: 0, loop: 0, tokens: 0, steps: 0, cells: new Map() };
    rows.set(cell.key, row);
    row.cost += cell.cost_usd;
    row.loop += looped(cell);
    row.tokens += cell.tokens;
    row.steps += cell.steps;
    row.cells.set(Date.parse(cell.at), cell);
    top = Math.max(top, cell.cost_usd);
  }
  const sorted = [...rows.values()].sort((a, b) => b.cost - a.cost || (a.key < b.key ? -1 : 1));
  const times: number[] = [];
  const first = Math.floor(from / bucket) * bucket;
  for (let at = first; at < to && times.length < MAX_TIMES; at += bucket) times.push(at);
  const sum = (of: (row: HeatRow) => number) => sorted.reduce((total, row) => total + of(row), 0);
  return {
    rows: sorted.slice(0, MAX_ROWS),
    times,
    cost: sum((row) => row.cost),
    loop: sum((row) => row.loop),
    top,
    left: Math.max(0, sorted.length - MAX_ROWS),
  };
}

/** How dark a cell is, from 0 to 1; a tenth of the dearest is still seen. */
export function darkness(cost: number, top: number): number {
  return cost > 0 && top > 0 ? 0.1 + 0.9 * Math.sqrt(cost / top) : 0;
}
