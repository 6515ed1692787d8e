// What changed between two attempts, line by line.

export interface Line {
  sign: " " | "-" | "+";
  text: string;
}

/** Longer texts are compared only up to here. */
const MAX_LINES = 200;

/** The lines of both texts: kept, gone, or new. */
export function diff(before: string, after: string): Line[] {
  const [a, b] = [linesOf(before), linesOf(after)];
  // Length of the longest common part of what is left, from each place on.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const row = common[i];
      if (!row) continue;
      row[j] = a[i] === b[j] ? (common[i + 1]?.[j + 1] ?? 0) + 1 : Math.max(common[i + 1]?.[j] ?? 0, row[j + 1] ?? 0);
    }
  }
  const lines: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ sign: " ", text: a[i] ?? "" });
      i++;
      j++;
    } else if (i < a.length && (j >= b.length || (common[i + 1]?.[j] ?? 0) >= (common[i]?.[j + 1] ?? 0))) {
      lines.push({ sign: "-", text: a[i++] ?? "" });
    } else {
      lines.push({ sign: "+", text: b[j++] ?? "" });
    }
  }
  return lines;
}

/** Only numbers differ: times, counters, addresses. */
export function onlyNumbersDiffer(before: string, after: string): boolean {
  const plain = (text: string) => text.slice(0, 100_000).replace(/[0-9a-f]{8,}|\d+(\.\d+)?/gi, "0");
  return before !== after && plain(before) === plain(after);
}

function linesOf(text: string): string[] {
  return text
    .slice(0, 50_000)
    .split("\n")
    .slice(0, MAX_LINES)
    .map((line) => line.slice(0, 400));
}
