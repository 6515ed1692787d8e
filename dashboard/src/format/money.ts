// Money is never rounded to nothing: a tenth of a cent is shown as such.

/** `$0`, `$0.0042`, `$0.13`, `$12.40`, `$1,240`, `$2.4M`. */
export function money(usd: number): string {
  if (!Number.isFinite(usd)) return "–";
  const size = Math.abs(usd);
  const sign = usd < 0 ? "−" : "";
  if (size === 0) return "$0";
  if (size < 0.0001) return `${sign}<$0.0001`;
  if (size < 0.01) return `${sign}$${size.toFixed(4)}`;
  if (size < 1000) return `${sign}$${size.toFixed(2)}`;
  if (size < 1e6) return `${sign}$${Math.round(size).toLocaleString("en-US")}`;
  return `${sign}$${(size / 1e6).toFixed(1)}M`;
}

/** A share as `0 %`, `<1 %`, `24 %`; nothing of nothing is `0 %`. */
export function share(part: number, whole: number): string {
  if (!(whole > 0) || !(part > 0)) return "0 %";
  const percent = (part / whole) * 100;
  if (percent < 1) return "<1 %";
  return `${Math.min(100, Math.round(percent))} %`;
}
