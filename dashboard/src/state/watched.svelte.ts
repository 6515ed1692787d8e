// One session as it is watched: read once, then kept up to date by events.
import { ApiError, get, reason } from "../api/client";
import type { SessionDetail, StateAt, Step } from "../api/shapes";
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
  version = $state(0);
  whole = $state(false);
  /** What the API says about the step that is looked at. */
  known = $state.raw<StateAt | null>(null);

  private cursor: string | null = null;
  private readonly answers = new Map<number, StateAt>();
  private readonly closed = new AbortController();
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
    }
    setTimeout(() => {
      this.busy = false;
      if (this.again && !this.closed.signal.aborted) void this.read();
    }, EVERY);
  }

  /** Asks what was known at a step, as soon as somebody stays there. */
  look(step: number): void {
    this.known = this.answers.get(step) ?? null;
    if (this.asking !== null) clearTimeout(this.asking);
    if (step < 1 || this.known) return;
    this.asking = setTimeout(() => void this.ask(step), SETTLES);
  }

  private async ask(step: number): Promise<void> {
    try {
      const answer = await get<StateAt>(this.path("/steps"), { tenant: this.tenant, at: step }, this.closed.signal);
      this.answers.set(step, answer);
      const oldest = this.answers.keys().next().value;
      if (this.answers.size > MAX_KNOWN && oldest !== undefined) this.answers.delete(oldest);
      this.known = answer;
    } catch {
      // What is known from the steps themselves is shown instead.
    }
  }

  private async readSteps(): Promise<void> {
    let more = true;
    while (more && this.recording.length < MAX_STEPS) {
      const query = { tenant: this.tenant, brief: 1, limit: 2000, cursor: this.cursor };
      const page = await get<{ steps: Step[]; next: string | null }>(this.path("/steps"), query, this.closed.signal);
      this.recording.add(page.steps);
      // The last page is not full: it is read again from its start when something new has come.
      more = page.next !== null && page.steps.length > 0;
      if (page.next !== null) this.cursor = page.next;
      this.answers.delete(this.recording.length);
      this.version++;
    }
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
