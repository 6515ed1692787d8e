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

export class Recording {
  readonly steps: Step[] = [];
  private readonly spent: Spent[] = [{ tokens: 0, cost: 0, wastedSteps: 0, wastedCost: 0 }];
  private readonly places = new Map<string, number>();
  private readonly seen = new Map<string, number>();
  private folded: { fold: boolean; length: number; changes: number; thread: Thread } | null = null;
  private changes = 0;

  /** Takes steps in behind those that are there; one that is known already replaces its earlier form. */
  add(steps: readonly Step[]): void {
    for (const step of steps) {
      const id = step.log.meta.trace_id;
      const known = this.places.get(id);
      if (known !== undefined) {
        this.steps[known] = step;
        this.changes++;
        continue;
      }
      this.places.set(id, this.steps.length);
      this.steps.push(step);
      const key = sameness(step);
      const before = this.seen.get(key) ?? 0;
      this.seen.set(key, before + 1);
      const redundant = step.redundant ?? (before > 0 && step.severity === "loop");
      const last = this.spent.at(-1) ?? { tokens: 0, cost: 0, wastedSteps: 0, wastedCost: 0 };
      this.spent.push({
        tokens: last.tokens + (step.tokens ?? step.log.state_delta?.tokens_consumed ?? 0),
        cost: last.cost + step.cost_usd,
        wastedSteps: last.wastedSteps + Number(redundant),
        wastedCost: last.wastedCost + (redundant ? step.cost_usd : 0),
      });
    }
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
    return this.spent[place] ?? { tokens: 0, cost: 0, wastedSteps: 0, wastedCost: 0 };
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
