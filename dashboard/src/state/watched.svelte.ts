// One session as it is watched: read once, then kept up to date by events.
import { ApiError, get, pages, reason } from "../api/client";
import type { Session, SessionDetail, StateAt, Step } from "../api/shapes";
import type { Told } from "../api/stream";
import { live } from "./live.svelte";
import { Recording } from "./recording";

/** Steps that are read; a graph of more is not readable anyway. */
const MAX_STEPS = 10_000;
/** New steps are asked for at most so often, in milliseconds. */
const EVERY = 700;
/** A step has to stand still so long before its whole text is asked for. */
const SETTLES = 80;
const MAX_KNOWN = 64;

export class Watched {
  readonly recording = new Recording();
  detail = $state.raw<SessionDetail | null>(null);
  problem = $state("");
  /** The tenants that have a session of this name, where the address leaves open which is meant. */
  choices = $state.raw<string[]>([]);
  version = $state(0);
  whole = $state(false);
  /** What the API says about the step that is looked at. */
  known = $state.raw<StateAt | null>(null);

  private cursor: string | null = null;
  private readonly answers = new Map<number, StateAt>();
  private readonly closed = new AbortController();
  private looked = 0;
  /** Grows when an answer may have become wrong; one that was asked for before is not taken. */
  private edition = 0;
  private asking: ReturnType<typeof setTimeout> | null = null;
  private busy = false;
  private again = false;
  private readonly stop: () => void;

  constructor(
    readonly id: string,
    readonly tenant: string | undefined,
  ) {
    this.stop = live.listen((batch) => {
      if (batch.length === 0 || batch.some((told) => this.concerns(told))) void this.read();
    });
    void this.read();
  }

  close(): void {
    this.stop();
    this.closed.abort();
    if (this.asking !== null) clearTimeout(this.asking);
  }

  /** Reads what is new; calls that come meanwhile are one more. */
  async read(): Promise<void> {
    if (this.busy) {
      this.again = true;
      return;
    }
    [this.busy, this.again] = [true, false];
    try {
      this.detail = await get<SessionDetail>(this.path(""), { tenant: this.tenant }, this.closed.signal);
      await this.readSteps();
      [this.problem, this.whole] = ["", true];
    } catch (problem) {
      if (this.closed.signal.aborted) return;
      this.problem = reason(problem);
      if (problem instanceof ApiError && problem.status === 0) this.again = true;
      if (problem instanceof ApiError && problem.status === 409) await this.readChoices().catch(() => undefined);
    }
    setTimeout(() => {
      this.busy = false;
      if (this.again && !this.closed.signal.aborted) void this.read();
    }, EVERY);
  }

  /** Asks what was known at a step, as soon as somebody stays there. */
  look(step: number): void {
    this.looked = step;
    this.known = this.answers.get(step) ?? null;
    if (this.asking !== null) clearTimeout(this.asking);
    if (step < 1 || this.known) return;
    this.asking = setTimeout(() => void this.ask(step), SETTLES);
  }

  private async ask(step: number): Promise<void> {
    const { edition } = this;
    try {
      const answer = await get<StateAt>(this.path("/steps"), { tenant: this.tenant, at: step }, this.closed.signal);
      if (edition !== this.edition) return;
      this.answers.set(step, answer);
      const oldest = this.answers.keys().next().value;
      if (this.answers.size > MAX_KNOWN && oldest !== undefined) this.answers.delete(oldest);
      if (this.looked === step) this.known = answer;
    } catch {
      // What is known from the steps themselves is shown instead.
    }
  }

  private async readChoices(): Promise<void> {
    const tenants = new Set<string>();
    const take = (sessions: Session[]) => {
      for (const one of sessions) if (one.session_id === this.id) tenants.add(one.tenant);
    };
    const options = { most: 2000, signal: this.closed.signal };
    await pages<Session>("/sessions", { q: this.id, limit: 500 }, "sessions", take, options);
    this.choices = [...tenants].sort();
  }

  private async readSteps(): Promise<void> {
    let more = true;
    while (more && this.recording.length < MAX_STEPS) {
      const query = { tenant: this.tenant, brief: 1, limit: 2000, cursor: this.cursor };
      const page = await get<{ steps: Step[]; next: string | null }>(this.path("/steps"), query, this.closed.signal);
      this.forget(this.recording.add(page.steps));
      // The last page is not full: it is read again from its start when something new has come.
      more = page.next !== null && page.steps.length > 0;
      if (page.next !== null) this.cursor = page.next;
      this.version++;
    }
  }

  /** A step has come or is done now: what was answered about it, and about those behind it, is out of date. */
  private forget(from: number): void {
    for (const step of [...this.answers.keys()]) if (step >= from) this.answers.delete(step);
    if (this.looked < from) return;
    this.edition++;
    if (this.known) this.known = { ...this.known, row: null };
    if (this.asking !== null) clearTimeout(this.asking);
    if (this.looked > 0) this.asking = setTimeout(() => void this.ask(this.looked), SETTLES);
  }

  private concerns(told: Told): boolean {
    return (
      told.event["session_id"] === this.id &&
      (told.tenant === null || this.tenant === undefined || told.tenant === this.tenant)
    );
  }

  private path(rest: string): string {
    return `/sessions/${encodeURIComponent(this.id)}${rest}`;
  }
}
