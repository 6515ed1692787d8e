// Orders to sessions, and what became of them.
import { ApiError, reason, send } from "../api/client";
import type { SessionState } from "../api/shapes";
import { keyOf } from "./fleet";
import { live } from "./live.svelte";

export interface Target {
  session_id: string;
  tenant: string;
}

interface Said {
  id: number;
  text: string;
  bad: boolean;
}

/** A message stays so long, in milliseconds. */
const STAYS = 6000;
const MAX_SAID = 4;

class Orders {
  said = $state<Said[]>([]);
  private count = 0;

  say(text: string, bad = false): void {
    const id = ++this.count;
    this.said = [...this.said.slice(1 - MAX_SAID), { id, text, bad }];
    setTimeout(() => this.dismiss(id), bad ? STAYS * 2 : STAYS);
  }

  dismiss(id: number): void {
    this.said = this.said.filter((said) => said.id !== id);
  }

  pause(target: Target, why: string): Promise<boolean> {
    return this.give(target, "pause", { reason: why }, "Held: its next call waits for you.");
  }

  resume(target: Target): Promise<boolean> {
    return this.give(target, "resume", {}, "Resumed.");
  }

  reject(target: Target, message: string): Promise<boolean> {
    return this.give(target, "reject", message ? { message } : {}, "Rejected: the agent is told not to try again.");
  }

  inject(target: Target, message: string): Promise<boolean> {
    return this.give(target, "inject", { message }, "The agent gets your message with its next call.");
  }

  rewrite(target: Target, trace_id: string, change: { content?: string; tool_input?: string }): Promise<boolean> {
    return this.give(target, "rewrite", { trace_id, ...change }, "Rewritten for the calls that follow.");
  }

  private async give(target: Target, order: string, body: object, done: string): Promise<boolean> {
    try {
      const path = `/sessions/${encodeURIComponent(target.session_id)}/${order}`;
      const answer = await send<{ state: SessionState; note?: string }>("POST", path, body, {
        tenant: target.tenant,
      });
      live.fleet.setState(keyOf(target.tenant, target.session_id), answer.state);
      live.changed();
      this.say(answer.note ? `Nothing to do: ${answer.note}.` : done);
      return true;
    } catch (problem) {
      const isLost = problem instanceof ApiError && problem.status === 0;
      const name = order.replace(/^./, (letter) => letter.toUpperCase());
      const then = isLost ? `. It was not done; press ${name} again.` : "";
      this.say(`Could not ${order}: ${reason(problem)}${then}`, true);
      return false;
    }
  }
}

export const orders = new Orders();
