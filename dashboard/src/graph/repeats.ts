// Finds what repeats in a row: `a b a b a b` is one ring of two with the count three.

export interface Run {
  /** Where it begins in the sequence. */
  start: number;
  /** How many different things one round of it has. */
  period: number;
  /** How many rounds there are; 1 for what does not repeat. */
  count: number;
}

/** A loop of more different steps than this is not seen as one. */
const MAX_PERIOD = 12;

/** Covers the sequence from left to right with runs; each takes as much as it can, with the shortest period. */
export function runs(keys: readonly string[]): Run[] {
  const found: Run[] = [];
  for (let start = 0; start < keys.length;) {
    let best: Run = { start, period: 1, count: 1 };
    for (let period = 1; period <= MAX_PERIOD && start + 2 * period <= keys.length; period++) {
      const rounds = roundsAt(keys, start, period);
      if (rounds > 1 && rounds * period > best.count * best.period) best = { start, period, count: rounds };
    }
    found.push(best);
    start += best.period * best.count;
  }
  return found;
}

function roundsAt(keys: readonly string[], start: number, period: number): number {
  let end = start + period;
  while (end < keys.length && keys[end] === keys[end - period]) end++;
  return Math.floor((end - start) / period);
}
