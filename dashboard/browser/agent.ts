// Agents as they are: a transcript that grows with every call through the gateway, and decision logs.
import { randomUUID } from "node:crypto";
import type { Gateway, Mock } from "./processes";

interface Message {
  role: string;
  content?: string | null;
  tool_calls?: { id: string; type: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

export interface Answer {
  status: number;
  verdict: string | null;
  text: string;
}

/** An agent that calls tools as its model says, and answers each call with a result. */
export class Agent {
  private readonly messages: Message[] = [{ role: "user", content: "Make the tests pass." }];

  constructor(
    private readonly gateway: Gateway,
    readonly session: string,
    private readonly result: (round: number) => string,
    readonly name = "coder",
  ) {}

  /** One round: asks the model, does what it says. */
  async round(number: number): Promise<Answer> {
    const answer = await fetch(`${this.gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: "Bearer test",
        "x-session-id": this.session,
        "x-agent-id": this.name,
        "x-tenant-id": "acme",
        "x-mock-script": this.session,
      },
      body: JSON.stringify({ model: "gpt-4o-mini", messages: this.messages }),
    });
    const text = await answer.text();
    const verdict = answer.headers.get("x-loopbreaker-verdict");
    if (answer.ok) {
      const { choices } = JSON.parse(text) as { choices: { message: Message }[] };
      const message = choices[0]?.message;
      if (message) {
        this.messages.push(message);
        for (const call of message.tool_calls ?? []) {
          this.messages.push({ role: "tool", tool_call_id: call.id, content: this.result(number) });
        }
      }
    }
    return { status: answer.status, verdict, text };
  }
}

/** An agent whose model calls the same tool for ever. */
export async function looping(mock: Mock, gateway: Gateway, session: string, name = "coder"): Promise<Agent> {
  await mock.script(session, [{ calls: [{ tool: "run_tests", args: { filter: "parser" } }] }]);
  return new Agent(gateway, session, () => "FAILED parser::empty_input", name);
}

export interface Wish {
  session: string;
  agent?: string;
  tool?: string;
  intent?: string;
  status?: string;
  input?: unknown;
  output?: string;
  memory?: string[];
  tokens?: number;
  /** What the session has cost so far. */
  cost?: number;
  parent?: string | null;
  at?: number;
  id?: string;
  reasoning?: string[];
}

/** A decision log. */
export function log(wish: Wish) {
  return {
    meta: {
      trace_id: wish.id ?? randomUUID(),
      parent_step_id: wish.parent ?? null,
      timestamp: new Date(wish.at ?? Date.now()).toISOString(),
      session_id: wish.session,
    },
    identity: { agent_id: wish.agent ?? "builder", agent_type: "coder", capability_version: "2.0.0" },
    cognition: { intent: wish.intent ?? "build", ...(wish.reasoning ? { reasoning_chain: wish.reasoning } : {}) },
    action: {
      tool_call: wish.tool ?? "make",
      tool_input: wish.input ?? { target: "all" },
      tool_output_summary: wish.output ?? "ok",
      status: wish.status ?? "success",
    },
    state_delta: {
      added_to_memory: wish.memory ?? [],
      tokens_consumed: wish.tokens ?? 100,
      ...(wish.cost === undefined ? {} : { cumulative_session_cost: wish.cost }),
    },
  };
}

/** A chain of logs, each the parent of the next. */
export function chain(wishes: Wish[]) {
  let parent: string | null = null;
  return wishes.map((wish) => {
    const id = randomUUID();
    const made = log({ ...wish, id, parent });
    parent = id;
    return made;
  });
}

export async function send(gateway: Gateway, logs: object[]): Promise<void> {
  for (let start = 0; start < logs.length; start += 500) {
    const { rejected, results } = await gateway.post<{ rejected: number; results: unknown[] }>(
      "/decision-logs",
      logs.slice(start, start + 500),
    );
    if (rejected > 0) throw new Error(`logs were refused: ${JSON.stringify(results).slice(0, 500)}`);
  }
}
