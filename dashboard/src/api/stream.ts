// The one live connection: it resumes where it was, comes back by itself, and hands events over in batches.
import { MessageParser } from "./sse";

export interface Told {
  type: string;
  tenant: string | null;
  event: Record<string, unknown>;
}

export type Connection = "connecting" | "live" | "lost" | "refused";

export interface Listener {
  /** Events of the last moments, at most once per `EVERY`. */
  events: (batch: Told[]) => void;
  /** The connection changed. */
  state: (state: Connection, wait: number) => void;
  /** Some events are gone for good: what is shown has to be asked for again. */
  gap: () => void;
}

/** Events wait so long for company, in milliseconds. */
const EVERY = 250;
/** More events than this at once are as good as a gap. */
const MAX_BATCH = 20_000;
/** The server says something each 15 s; after this silence the connection is taken for dead. */
const SILENCE = 40_000;
const WAITS = [500, 1000, 2000, 4000, 8000];

export class Stream {
  private last: string | null = null;
  private failures = 0;
  private waiting: Told[] = [];
  private overflow = false;
  private flush: ReturnType<typeof setTimeout> | null = null;
  private retry: ReturnType<typeof setTimeout> | null = null;
  private stopped = new AbortController();

  constructor(
    private readonly address: string,
    private readonly listener: Listener,
  ) {}

  start(): void {
    this.stopped = new AbortController();
    void this.run(this.stopped.signal);
  }

  stop(): void {
    this.stopped.abort();
    for (const timer of [this.flush, this.retry]) if (timer !== null) clearTimeout(timer);
    this.flush = this.retry = null;
  }

  /** Tries at once instead of waiting. */
  again(): void {
    if (this.retry === null) return;
    clearTimeout(this.retry);
    this.retry = null;
    void this.run(this.stopped.signal);
  }

  private async run(stopped: AbortSignal): Promise<void> {
    this.listener.state("connecting", 0);
    const status = await this.listen(stopped);
    if (stopped.aborted) return;
    if (status === 401 || status === 403) {
      this.listener.state("refused", 0);
      return;
    }
    const wait = WAITS[Math.min(this.failures, WAITS.length - 1)] ?? 8000;
    this.failures++;
    this.listener.state("lost", wait);
    this.retry = setTimeout(() => {
      this.retry = null;
      void this.run(stopped);
    }, wait);
  }

  /** Listens until the connection ends; the status that it was answered with, 0 for none. */
  private async listen(stopped: AbortSignal): Promise<number> {
    const silent = new AbortController();
    let watchdog = setTimeout(() => silent.abort(), SILENCE);
    const heard = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => silent.abort(), SILENCE);
    };
    let status = 0;
    try {
      const headers: Record<string, string> = { accept: "text/event-stream" };
      if (this.last !== null) headers["last-event-id"] = this.last;
      const signal = AbortSignal.any([stopped, silent.signal]);
      const answer = await fetch(this.address, { headers, signal, credentials: "same-origin", cache: "no-store" });
      status = answer.status;
      if (!answer.ok || !answer.body) return status;
      this.failures = 0;
      this.listener.state("live", 0);
      const parser = new MessageParser();
      const decoder = new TextDecoder();
      const reader = answer.body.getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return status;
        heard();
        for (const message of parser.push(decoder.decode(value, { stream: true })))
          this.take(message.type, message.id, message.data);
      }
    } catch {
      return status === 401 || status === 403 ? status : 0;
    } finally {
      clearTimeout(watchdog);
    }
  }

  private take(type: string, id: string | null, data: string): void {
    if (id !== null) this.last = id;
    if (type === "gap" || this.waiting.length >= MAX_BATCH) {
      this.overflow = true;
      this.waiting = [];
    } else {
      const told = read(type, data);
      if (told) this.waiting.push(told);
    }
    this.flush ??= setTimeout(() => {
      this.flush = null;
      const batch = this.waiting;
      this.waiting = [];
      if (this.overflow) this.listener.gap();
      this.overflow = false;
      if (batch.length > 0) this.listener.events(batch);
    }, EVERY);
  }
}

function read(type: string, data: string): Told | null {
  try {
    const body = JSON.parse(data) as { tenant?: unknown; event?: unknown };
    if (typeof body.event !== "object" || body.event === null) return null;
    return {
      type,
      tenant: typeof body.tenant === "string" ? body.tenant : null,
      event: body.event as Record<string, unknown>,
    };
  } catch {
    return null;
  }
}
