// Moments and how long ago they were.

/** `just now`, `12 s`, `4 min`, `3 h`, `2 d`: the time between two moments in milliseconds. */
export function ago(then: number, now: number): string {
  if (!Number.isFinite(then)) return "–";
  const seconds = Math.max(0, Math.floor((now - then) / 1000));
  if (seconds < 2) return "just now";
  return `${span(seconds * 1000)} ago`;
}

/** A length of time by its largest unit. */
export function span(millis: number): string {
  if (!Number.isFinite(millis) || millis < 0) return "–";
  if (millis < 1000) return `${Math.round(millis)} ms`;
  const seconds = millis / 1000;
  if (seconds < 60) return `${seconds < 10 ? Number(seconds.toFixed(1)) : Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

const two = (value: number) => String(value).padStart(2, "0");

/** The time of day, `14:03:22`. */
export function clock(moment: string | number | null | undefined): string {
  const at = new Date(moment ?? NaN);
  if (Number.isNaN(at.getTime())) return "–";
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Day and time, `11-15 14:03:22`. */
export function dated(moment: string | number | null | undefined): string {
  const at = new Date(moment ?? NaN);
  if (Number.isNaN(at.getTime())) return "–";
  return `${two(at.getMonth() + 1)}-${two(at.getDate())} ${clock(at.getTime())}`;
}

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `15m`, `1h`, `7d` in milliseconds; `null` for anything else. */
export function duration(text: string): number | null {
  const found = /^(\d+)(ms|s|m|h|d)$/.exec(text.trim());
  const unit = UNITS[found?.[2] ?? ""];
  return found?.[1] && unit ? Number(found[1]) * unit : null;
}

/** How often something comes round, `per day`, `per 2 hours`; nothing for what has no length, such as a session. */
export function per(text: string | null | undefined): string {
  const millis = duration(text ?? "");
  if (!millis) return "";
  const units: [number, string][] = [
    [86_400_000, "day"],
    [3_600_000, "hour"],
    [60_000, "minute"],
    [1000, "second"],
  ];
  const [unit, name] = units.find(([length]) => millis % length === 0) ?? [1, "millisecond"];
  return millis === unit ? `per ${name}` : `per ${millis / unit} ${name}s`;
}
