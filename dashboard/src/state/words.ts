// What somebody types into the search: words, and filters such as `agent:coder status:failure since:7d`.
import { duration } from "../format/time";

export interface Asked {
  text: string;
  filters: Partial<Record<Filter, string>>;
  /** Filters that do not exist, or say nothing. */
  wrong: string[];
}

export const FILTERS = [
  "agent",
  "tool",
  "status",
  "severity",
  "session",
  "tenant",
  "kind",
  "since",
  "until",
] as const;
export type Filter = (typeof FILTERS)[number];

/** Reads a line. A value with spaces stands in quotes; what is no filter is searched for. */
export function read(line: string): Asked {
  const asked: Asked = { text: "", filters: {}, wrong: [] };
  const words: string[] = [];
  for (const [piece, name, quoted, bare] of line.matchAll(/(?:([a-z_]+):)?(?:"((?:[^"\\]|\\.)*)"?|(\S+))/g)) {
    const value = quoted === undefined ? (bare ?? "") : quoted.replace(/\\(.)/g, "$1");
    const filter = FILTERS.find((known) => known === name);
    if (filter && value !== "") asked.filters[filter] = value;
    else if (name && !filter) words.push(piece);
    else if (name) asked.wrong.push(name);
    else words.push(quoted === undefined ? value : `"${value}"`);
  }
  asked.text = words.join(" ");
  for (const name of ["since", "until"] as const) {
    const value = asked.filters[name];
    if (value !== undefined && moment(value, 0) === null) asked.wrong.push(name);
  }
  return asked;
}

/** The query of the API for what was asked. */
export function toQuery(asked: Asked, now: number): Record<string, string> {
  const { session, since, until, ...plain } = asked.filters;
  const query: Record<string, string> = { ...plain };
  if (asked.text) query["q"] = asked.text;
  if (session) query["session_id"] = session;
  const [from, to] = [since ? moment(since, now) : null, until ? moment(until, now) : null];
  if (from !== null) query["from"] = new Date(from).toISOString();
  if (to !== null) query["to"] = new Date(to).toISOString();
  return query;
}

/** Puts a filter into a line, in place of an earlier one; an empty value takes it out. */
export function withFilter(line: string, filter: Filter, value: string): string {
  const rest = line.replace(new RegExp(`(^|\\s)${filter}:("(?:[^"\\\\]|\\\\.)*"?|\\S+)`, "g"), "").trim();
  if (value === "") return rest;
  const written = /[\s"]/.test(value) ? JSON.stringify(value) : value;
  return `${rest} ${filter}:${written}`.trim();
}

/** `15m` before now, or a date. */
function moment(text: string, now: number): number | null {
  const before = duration(text);
  if (before !== null) return now - before;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : at;
}
