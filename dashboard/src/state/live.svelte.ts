// Everything that is alive on the page: one connection, and what it has told.
import { ApiError, get, onUnauthorised, pages, send, url } from "../api/client";
import type { Finding, Overview, Session, WhoAmI } from "../api/shapes";
import { Stream, type Connection, type Told } from "../api/stream";
import { Fleet, type Row } from "./fleet";
import { strongest } from "./proof";

/** Sessions that the list asks for; more are found by filters. */
const MAX_LISTED = 10_000;
/** The tiles are asked for so often, in milliseconds. */
const OVERVIEW_EVERY = 5000;
/** Alerts whose proof is not known are looked up, so many at most. */
const MAX_LOOKED_UP = 50;

class Live {
  readonly fleet = new Fleet();
  /** Grows with every change of the fleet. */
  version = $state(0);
  connection = $state<Connection>("connecting");
  lostAt = $state<number | null>(null);
  /** Whether anything was ever answered: before that, nothing is known to be empty. */
  loaded = $state(false);
  listing = $state<"no" | "some" | "all" | "more">("no");
  overview = $state.raw<Overview | null>(null);
  who = $state.raw<WhoAmI | null>(null);
  loginNeeded = $state(false);
  now = $state(Date.now());

  private readonly listeners = new Set<(batch: Told[]) => void>();
  private readonly lookedUp = new Set<string>();
  private listed: AbortController | null = null;
  private wantsAll = false;
  private readonly stream = new Stream(url("/events"), {
    events: (batch) => {
      this.now = Date.now();
      if (this.fleet.hear(batch, this.now)) this.version++;
      for (const listener of this.listeners) listener(batch);
      if (batch.some((told) => told.type === "health")) void this.readOverview();
      this.lookUpAlerts();
    },
    state: (state) => {
      this.connection = state;
      if (state === "live") this.lostAt = null;
      else if (state === "lost") this.lostAt ??= Date.now();
      else if (state === "refused") this.loginNeeded = true;
    },
    gap: () => {
      this.fleet.clear();
      this.lookedUp.clear();
      this.version++;
      void this.readSessions();
      for (const listener of this.listeners) listener([]);
    },
  });

  get severalTenants(): boolean {
    return (void this.version, this.fleet.tenants.size > 1);
  }

  get mayOrder(): boolean {
    return this.who === null || this.who.role !== "viewer";
  }

  start(): void {
    onUnauthorised(() => {
      this.loginNeeded = true;
    });
    setInterval(() => {
      this.now = Date.now();
    }, 1000);
    setInterval(() => {
      if (!document.hidden && !this.loginNeeded) void this.readOverview();
    }, OVERVIEW_EVERY);
    window.addEventListener("online", () => this.stream.again());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden) this.stream.again();
    });
    this.open();
  }

  retry(): void {
    this.stream.again();
  }

  async logIn(token: string): Promise<void> {
    await send("POST", "/login", { token });
    this.loginNeeded = false;
    this.open();
  }

  /** Forgets whoever was here, with everything that they were shown. */
  async logOut(): Promise<void> {
    await send("POST", "/logout");
    this.stream.stop();
    this.listed?.abort();
    this.fleet.clear();
    this.lookedUp.clear();
    [this.who, this.overview, this.loaded, this.loginNeeded] = [null, null, false, true];
    this.version++;
  }

  /** Hears every batch of events; an empty one means that some were missed. */
  listen(listener: (batch: Told[]) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Asks for every session, not only for those that need somebody. */
  listAll(): void {
    if (this.wantsAll) return;
    this.wantsAll = true;
    if (this.loaded) void this.readSessions();
  }

  /** Those that need somebody, the newest first; a loop comes before what is held. */
  alerts(): Row[] {
    const rows = [...this.fleet.attention].map((key) => this.fleet.rows.get(key)).filter((row) => row !== undefined);
    const order = (row: Row) => (row.state === "loop" ? 0 : 1);
    return rows.sort(
      (a, b) => order(a) - order(b) || (b.alertedAt ?? 0) - (a.alertedAt ?? 0) || (a.key < b.key ? -1 : 1),
    );
  }

  changed(): void {
    this.version++;
  }

  private open(): void {
    this.stream.stop();
    this.stream.start();
    void this.readWho();
    void this.readOverview();
    void this.readSessions();
  }

  private async readWho(): Promise<void> {
    this.who = await get<WhoAmI>("/whoami").catch(() => null);
  }

  private async readOverview(): Promise<void> {
    this.overview = await get<Overview>("/overview").catch(() => this.overview);
  }

  private async readSessions(): Promise<void> {
    this.listed?.abort();
    const { signal } = (this.listed = new AbortController());
    const take = (sessions: Session[]) => {
      this.fleet.load(sessions, Date.now());
      this.loaded = true;
      this.version++;
    };
    try {
      for (const state of ["loop", "paused"]) {
        await pages<Session>("/sessions", { state, limit: 500 }, "sessions", take, { most: 1000, signal });
      }
      this.lookUpAlerts();
      const most = this.wantsAll ? MAX_LISTED : 1;
      this.listing = "some";
      const { complete } = await pages<Session>("/sessions", { limit: 500 }, "sessions", take, { most, signal });
      this.listing = complete ? "all" : this.wantsAll ? "more" : "some";
    } catch (problem) {
      if (problem instanceof ApiError && problem.status === 0) setTimeout(() => void this.readSessions(), 2000);
    }
  }

  /** What repeats in a loop that was there before this page: it is in the session's findings. */
  private lookUpAlerts(): void {
    for (const row of this.alerts().slice(0, MAX_LOOKED_UP)) {
      if (row.found || this.lookedUp.has(row.key)) continue;
      if (this.lookedUp.size > 1000) this.lookedUp.clear();
      this.lookedUp.add(row.key);
      void this.lookUp(row);
    }
  }

  private async lookUp(row: Row): Promise<void> {
    const path = `/sessions/${encodeURIComponent(row.session_id)}/findings`;
    try {
      const found = strongest((await get<{ findings: Finding[] }>(path, { tenant: row.tenant })).findings);
      if (!found) return;
      this.fleet.setFound(row.key, found);
      this.version++;
    } catch {
      // Asked again with the next events.
      this.lookedUp.delete(row.key);
    }
  }
}

export const live = new Live();
