// The current route, alive.
import { href, parse, type Route } from "./route";

/** Browsers refuse pages that rewrite their address all the time, so it follows with this delay, in milliseconds. */
const SETTLES = 150;

class Place {
  route = $state<Route>(parse(location.hash));
  private writing: ReturnType<typeof setTimeout> | null = null;

  constructor() {
    window.addEventListener("hashchange", () => {
      this.route = parse(location.hash);
    });
  }

  /** Goes somewhere, with a step in the history. */
  go(to: string): void {
    this.write();
    location.hash = to;
  }

  /** Changes parts of the query in place; scrubbing through steps must not fill the history. */
  set(changes: Record<string, string | number | null>): void {
    const merged = { ...this.route.query, ...changes };
    const kept = Object.entries(merged).filter(([, value]) => value !== null && value !== "");
    const query = Object.fromEntries(kept.map(([name, value]) => [name, String(value)]));
    this.route = { ...this.route, query };
    this.writing ??= setTimeout(() => this.write(), SETTLES);
  }

  /** The address of exactly what is shown. */
  link(): string {
    const { screen, query, id } = this.route;
    return `${location.origin}${location.pathname}${href(screen, query, id)}`;
  }

  private write(): void {
    if (this.writing === null) return;
    clearTimeout(this.writing);
    this.writing = null;
    const { screen, query, id } = this.route;
    history.replaceState(null, "", href(screen, query, id));
  }
}

export const place = new Place();
