// Words of agents, cut to what a person can read. They stay text: nothing here knows markup.

/** The start of a text on one line, at most `length` characters, never half of a surrogate pair. */
export function line(text: string | null | undefined, length = 120): string {
  if (!text) return "";
  const start = text
    .slice(0, length * 4)
    .replace(/\s+/g, " ")
    .trim();
  if (start.length <= length)
    return start.length < text.trim().length && text.length > length * 4 ? `${start}…` : start;
  return `${whole(start.slice(0, length - 1))}…`;
}

/** The start of a long text with its lines kept, and how many characters are left out. */
export function head(text: string, length = 4000): { shown: string; more: number } {
  if (text.length <= length) return { shown: text, more: 0 };
  const shown = whole(text.slice(0, length));
  return { shown, more: text.length - shown.length };
}

/** The middle of an identifier left out: `7f3a91…c0d2`. */
export function shortId(id: string, length = 20): string {
  if (id.length <= length) return id;
  const tail = Math.floor((length - 1) / 3);
  return `${whole(id.slice(0, length - 1 - tail))}…${id.slice(-tail)}`;
}

/** JSON with indentation where it is JSON, the text itself where it is not. */
export function pretty(text: string): string {
  if (text.length > 100_000) return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

function whole(text: string): string {
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}
