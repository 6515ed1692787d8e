// Counts as people read them at a glance.

/** `0`, `412`, `3.1k`, `41k`, `1.2M`. */
export function count(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size < 1000) return String(Math.round(value));
  const units: [number, string][] = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  for (const [unit, name] of units) {
    // 999,999 is a million, not a thousand thousands.
    if (size >= unit * 0.9995) {
      const scaled = value / unit;
      return (Math.abs(scaled) < 9.95 ? scaled.toFixed(1) : String(Math.round(scaled))) + name;
    }
  }
  return String(Math.round(value));
}

/** Every digit, in groups of three. */
export function exact(value: number): string {
  return Number.isFinite(value) ? value.toLocaleString("en-US", { maximumFractionDigits: 0 }) : "–";
}

/** A rate per second: `0`, `0.3`, `4.2`, `214`. */
export function rate(value: number): string {
  if (!Number.isFinite(value) || value <= 0) return "0";
  return value < 10 ? value.toFixed(1) : count(value);
}

/** A score between 0 and 1 with two digits. */
export function score(value: number | null | undefined): string {
  return typeof value === "number" && Number.isFinite(value) ? value.toFixed(2) : "–";
}

/** `1 step`, `2 steps`. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${exact(value)} ${value === 1 ? one : many}`;
}
