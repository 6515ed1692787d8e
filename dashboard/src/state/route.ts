// Where somebody is, as the part of the URL behind the hash: every state of the page can be shared as a link.

export const SCREENS = ["fleet", "sessions", "session", "cost", "forensics", "policies"] as const;
export type Screen = (typeof SCREENS)[number];

export interface Route {
  screen: Screen;
  /** The session, on its screen. */
  id: string;
  query: Record<string, string>;
}

/** Reads a hash; what is no screen is the first one. */
export function parse(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [name = "", ...rest] = path.split("/");
  const query = Object.fromEntries(new URLSearchParams(search));
  const screen = SCREENS.find((known) => known === name) ?? "fleet";
  const id = screen === "session" ? decode(rest.join("/")) : "";
  return screen === "session" && id === "" ? { screen: "sessions", id: "", query } : { screen, id, query };
}

/** The hash of a place; empty values are left out, so that equal places have equal links. */
export function href(
  screen: Screen,
  query: Record<string, string | number | null | undefined> = {},
  id = "",
): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  const path = screen === "session" ? `session/${encodeURIComponent(id)}` : screen;
  return `#/${path}${search ? `?${search}` : ""}`;
}

export function sessionHref(
  session: { session_id: string; tenant?: string | null },
  query: Record<string, string | number | null | undefined> = {},
): string {
  return href("session", { tenant: session.tenant, ...query }, session.session_id);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
