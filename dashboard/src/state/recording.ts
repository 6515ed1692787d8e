// The steps of one session, with what had been spent at each of them: scrubbing needs no answer from anywhere.
import type { Severity, Step } from "../api/shapes";
import { thread, type Thread } from "../graph/thread";

export interface Spent {
  tokens: number;
  cost: number;
  wastedSteps: number;
  wastedCost: number;
}

/** A part of the session in which every step has the same severity; `end` is not part of it. */
export interface Stretch {
  start: number;
  end: number;
  severity: Severity;
}

/** What makes two steps the same: the call with its input and outcome, or the words where nothing was called. */
export function sameness(step: Step): string {
  const { action, identity, cognition } = step.log;
  const what = action.tool_call ? [action.tool_call, action.tool_input ?? ""] : [cognition.intent];
  return [identity.agent_id, action.status, ...what].join("\u0000");
}

/** What a step used, by the API's own count where there is one: the logs of the gateway have none. */
export const tokensOf = (step: Step) => step.tokens ?? step.log.state_delta?.tokens_consumed ?? 0;

const NOTHING: Spent = { tokens: 0, cost: 0, wastedSteps: 0, wastedCost: 0 };

export class Recording {
  readonly steps: Step[] = [];
  private readonly spent: Spent[] = [NOTHING];
  private readonly places = new Map<string, number>();
  private readonly seen = new Map<string, number>();
  private folded: { fold: boolean; length: number; changes: number; thread: Thread } | null = null;
  private changes = 0;

  /**
   * Takes steps in behind those that are there; one that is known already replaces its earlier form. The number of
   * the first step that is new or other than it was; `Infinity` when nothing is.
   */
  add(steps: readonly Step[]): number {
    let first = Infinity;
    let isReplaced = false;
    for (const step of steps) {
      const id = step.log.meta.trace_id;
      const place = this.places.get(id) ?? this.steps.length;
      const known = this.steps[place];
      if (known && JSON.stringify(known) === JSON.stringify(step)) continue;
      first = Math.min(first, place + 1);
      this.steps[place] = step;
      this.places.set(id, place);
      if (known) isReplaced = true;
      else if (!isReplaced) this.count(step);
    }
    if (isReplaced) this.countAnew();
    return first;
  }

  /** What a step cost is known when it is done: then every sum from there on is another one. */
  private countAnew(): void {
    this.changes++;
    this.spent.length = 1;
    this.seen.clear();
    for (const step of this.steps) this.count(step);
  }

  private count(step: Step): void {
    const key = sameness(step);
    const before = this.seen.get(key) ?? 0;
    this.seen.set(key, before + 1);
    const redundant = step.redundant ?? (before > 0 && step.severity === "loop");
    const last = this.spent.at(-1) ?? NOTHING;
    this.spent.push({
      tokens: last.tokens + tokensOf(step),
      cost: last.cost + step.cost_usd,
      wastedSteps: last.wastedSteps + Number(redundant),
      wastedCost: last.wastedCost + (redundant ? step.cost_usd : 0),
    });
  }

  get length(): number {
    return this.steps.length;
  }

  /** The step of this number, counted from 1. */
  at(number: number): Step | undefined {
    return this.steps[number - 1];
  }

  /** What had been spent after this many steps. */
  spentAt(number: number): Spent {
    const place = Math.min(Math.max(0, number), this.spent.length - 1);
    return this.spent[place] ?? NOTHING;
  }

  /** The number of the step of this name, counted from 1; 0 when it is not there. */
  numberOf(traceId: string): number {
    return (this.places.get(traceId) ?? -1) + 1;
  }

  /** The number of the last step before this one that did the same; 0 for none. */
  sameBefore(number: number): number {
    const step = this.at(number);
    if (!step) return 0;
    const key = sameness(step);
    // A loop is close; far away nothing is compared.
    for (let other = number - 1; other >= Math.max(1, number - 64); other--) {
      const before = this.at(other);
      if (before && sameness(before) === key) return other;
    }
    return 0;
  }

  /** The last scores up to this step, the oldest first. A step that waits or was skipped has none. */
  scoresAt(number: number, most = 24): number[] {
    const scores: number[] = [];
    for (let place = Math.min(number, this.length); place >= 1 && scores.length < most; place--) {
      const score = this.at(place)?.log.cognition.entropy_score;
      if (typeof score === "number") scores.push(score);
    }
    return scores.reverse();
  }

  stretches(): Stretch[] {
    const found: Stretch[] = [];
    this.steps.forEach((step, index) => {
      const last = found.at(-1);
      if (last && last.severity === step.severity) last.end = index + 1;
      else found.push({ start: index, end: index + 1, severity: step.severity });
    });
    return found;
  }

  thread(fold: boolean): Thread {
    const { folded, length, changes } = this;
    if (folded?.fold === fold && folded.length === length && folded.changes === changes) return folded.thread;
    const beads = this.steps.map((step) => ({
      id: step.log.meta.trace_id,
      parent: step.log.meta.parent_step_id || null,
      key: sameness(step),
    }));
    const drawn = thread(beads, fold);
    this.folded = { fold, length, changes, thread: drawn };
    return drawn;
  }
}
