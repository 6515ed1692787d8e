// What is known of the sessions of a fleet, kept up to date by events and bounded in every direction.
import type { Told } from "../api/stream";
import type { Alert, Finding, Session, SessionState } from "../api/shapes";
import { strength } from "./proof";

export interface Row extends Session {
  key: string;
  /** The last scores, the oldest first. */
  trail: number[];
  /** When its alert was raised, in milliseconds since 1970. */
  alertedAt: number | null;
  /** What explains it best of what was found, while it is in a loop. */
  found: Finding | null;
}

/** Sessions that are kept; the ones that were quiet longest go first. */
const MAX_SESSIONS = 20_000;
/** Scores that a sparkline shows. */
const MAX_TRAIL = 24;
/** One bucket of the series is so long, in milliseconds, and so many are kept. */
const BUCKET = 5000;
const BUCKETS = 60;

export interface Bucket {
  at: number;
  steps: number;
  cost: number;
  loops: number;
}

export const keyOf = (tenant: string, id: string) => `${tenant}\u0000${id}`;

export class Fleet {
  readonly rows = new Map<string, Row>();
  readonly series: Bucket[] = [];
  /** Sessions by state; counted on the way, so that ten thousand of them are not walked for a tile. */
  readonly states: Record<SessionState, number> = { active: 0, warning: 0, loop: 0, paused: 0, ended: 0 };
  /** Those that need somebody: in a loop, or held. */
  readonly attention = new Set<string>();
  /** Sessions by tenant: with one alone nobody needs its name. */
  readonly tenants = new Map<string, number>();
  /** The keys of each name, since an alert names no tenant. */
  private readonly named = new Map<string, string>();

  /** Takes sessions of a list in. What an event has told since is newer than a list. */
  load(sessions: readonly Session[], now: number): void {
    for (const session of sessions) {
      const key = keyOf(session.tenant, session.session_id);
      const known = this.rows.get(key);
      if (known && Date.parse(known.last_at) > Date.parse(session.last_at)) continue;
      this.put(key, session, known, now);
    }
  }

  /** Takes events in, in their order; says whether anything changed. */
  hear(batch: readonly Told[], now: number): boolean {
    let changed = false;
    for (const told of batch) changed = this.take(told, now) || changed;
    return changed;
  }

  /** Forgets everything but the series: after a gap it is asked for again. */
  clear(): void {
    this.rows.clear();
    this.named.clear();
    this.attention.clear();
    this.tenants.clear();
    for (const state of Object.keys(this.states) as SessionState[]) this.states[state] = 0;
  }

  /** Something about a session is known for sure, such as the answer to an order. */
  setState(key: string, state: SessionState): void {
    const row = this.rows.get(key);
    if (row) this.change(row, state);
  }

  /** What was found earlier; an event of the meantime that proves as much is newer. */
  setFound(key: string, found: Finding): void {
    const row = this.rows.get(key);
    if (row && (!row.found || strength(row.found) < strength(found))) this.replace(row, { found });
  }

  find(id: string, tenant: string | null): Row | undefined {
    return this.rows.get(tenant === null ? (this.named.get(id) ?? "") : keyOf(tenant, id));
  }

  /** The tenants that have a session of this name. */
  tenantsOf(id: string): string[] {
    return [...this.tenants.keys()].filter((tenant) => this.rows.has(keyOf(tenant, id))).sort();
  }

  private take(told: Told, now: number): boolean {
    const { event } = told;
    const id = typeof event["session_id"] === "string" ? event["session_id"] : "";
    const row = this.find(id, told.tenant);
    switch (told.type) {
      case "session": {
        const session = event as unknown as Session;
        const key = keyOf(session.tenant, id);
        this.put(key, session, this.rows.get(key), now);
        return true;
      }
      case "entropy_alert":
        if (row) this.replace(row, { alert: event as unknown as Alert, alertedAt: now });
        return row !== undefined;
      case "entropy_recovered":
        if (row) this.replace(row, { alert: null, alertedAt: null });
        return row !== undefined;
      case "hitl": {
        const state = event["state"];
        if (row && typeof state === "string" && state in this.states) this.change(row, state as SessionState);
        return row !== undefined;
      }
      case "graph":
        if (event["node"] && (event["node"] as Record<string, unknown>)["agent_id"]) this.bucket(now).steps++;
        return true;
      case "finding": {
        this.bucket(now).loops++;
        const found = event["finding"] as Finding | undefined;
        if (row && found && (!row.found || strength(row.found) <= strength(found))) this.replace(row, { found });
        return true;
      }
      default:
        return false;
    }
  }

  private put(key: string, session: Session, known: Row | undefined, now: number): void {
    const trail = session.entropy_history ?? known?.trail ?? [];
    const moved = !known || known.steps !== session.steps;
    if (!session.entropy_history && moved) trail.push(session.entropy_score);
    if (trail.length > MAX_TRAIL) trail.splice(0, trail.length - MAX_TRAIL);
    if (known && session.cost_usd > known.cost_usd) this.bucket(now).cost += session.cost_usd - known.cost_usd;
    const open = session.state === "loop" || session.state === "paused";
    const alert = session.alert ?? (open ? (known?.alert ?? null) : null);
    const since = alert?.since ? Date.parse(alert.since) : (known?.alertedAt ?? Date.parse(session.last_at));
    if (known) this.states[known.state]--;
    else this.tenants.set(session.tenant, (this.tenants.get(session.tenant) ?? 0) + 1);
    // Put in again, a session stands behind those that were quiet longer.
    this.rows.delete(key);
    const row: Row = {
      ...session,
      key,
      trail,
      alert,
      alertedAt: open ? since : null,
      found: open ? (known?.found ?? null) : null,
    };
    this.rows.set(key, row);
    this.named.set(session.session_id, key);
    this.states[session.state]++;
    this.attend(row);
    if (this.rows.size > MAX_SESSIONS) this.forgetOldest();
  }

  private change(row: Row, state: SessionState): void {
    this.states[row.state]--;
    this.states[state]++;
    this.attend(this.replace(row, { state }));
  }

  /** A changed row is a new one: a list draws a row again only when it is another object. */
  private replace(row: Row, changes: Partial<Row>): Row {
    const changed = { ...row, ...changes };
    this.rows.set(row.key, changed);
    return changed;
  }

  private attend(row: Row): void {
    if (row.state === "loop" || row.state === "paused") this.attention.add(row.key);
    else this.attention.delete(row.key);
  }

  private forgetOldest(): void {
    const oldest = this.rows.values().next().value;
    if (!oldest) return;
    this.states[oldest.state]--;
    this.rows.delete(oldest.key);
    this.attention.delete(oldest.key);
    const left = (this.tenants.get(oldest.tenant) ?? 1) - 1;
    if (left > 0) this.tenants.set(oldest.tenant, left);
    else this.tenants.delete(oldest.tenant);
    if (this.named.get(oldest.session_id) === oldest.key) this.named.delete(oldest.session_id);
  }

  /** The bucket of now; quiet times leave empty ones. */
  private bucket(now: number): Bucket {
    const at = Math.floor(now / BUCKET) * BUCKET;
    const last = this.series.at(-1);
    if (last && last.at >= at) return last;
    for (let next = Math.max(last ? last.at + BUCKET : at, at - BUCKETS * BUCKET); next < at; next += BUCKET) {
      this.series.push({ at: next, steps: 0, cost: 0, loops: 0 });
    }
    const fresh = { at, steps: 0, cost: 0, loops: 0 };
    this.series.push(fresh);
    if (this.series.length > BUCKETS) this.series.splice(0, this.series.length - BUCKETS);
    return fresh;
  }

  /** Steps per second over the last full buckets. */
  rate(now: number): number {
    const recent = this.series.filter((bucket) => bucket.at > now - 3 * BUCKET && bucket.at <= now);
    const first = recent[0];
    if (!first) return 0;
    return recent.reduce((sum, bucket) => sum + bucket.steps, 0) / Math.max(1, (now - first.at) / 1000);
  }
}

export type Sort = "loop" | "cost" | "steps" | "last";

/** The order of a list of sessions: what is worst, dearest, longest or newest first. */
export function sorted(rows: Iterable<Row>, sort: Sort): Row[] {
  const rank: Record<SessionState, number> = { loop: 4, paused: 3, warning: 2, active: 1, ended: 0 };
  const by: Record<Sort, (row: Row) => number> = {
    loop: (row) => rank[row.state] * 10 + row.loop_score,
    cost: (row) => row.cost_usd,
    steps: (row) => row.steps,
    last: (row) => Date.parse(row.last_at),
  };
  const weight = new Map<Row, number>();
  const list = [...rows];
  for (const row of list) weight.set(row, by[sort](row));
  return list.sort((a, b) => (weight.get(b) ?? 0) - (weight.get(a) ?? 0) || (a.key < b.key ? -1 : 1));
}
