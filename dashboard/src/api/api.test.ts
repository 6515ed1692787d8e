import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ApiError, get, onUnauthorised, pages, send, url } from "./client";
import { MessageParser } from "./sse";
import { Stream, type Connection, type Told } from "./stream";

describe("messages of a stream", () => {
  const wire = 'retry: 1000\n\nid: 7\nevent: session\ndata: {"a":1}\n\n: still here\n\nid: 8\ndata: x\ndata: y\n\n';
  const expected = [
    { id: "7", type: "session", data: '{"a":1}' },
    { id: "8", type: "message", data: "x\ny" },
  ];

  it("are the same wherever the stream is cut", () => {
    for (let cut = 0; cut <= wire.length; cut++) {
      const parser = new MessageParser();
      expect([...parser.push(wire.slice(0, cut)), ...parser.push(wire.slice(cut))]).toEqual(expected);
    }
  });

  it("may end their lines as they like", () => {
    const parser = new MessageParser();
    expect(parser.push(wire.replaceAll("\n", "\r\n"))).toEqual(expected);
  });

  it("without an end are not kept for ever", () => {
    const parser = new MessageParser();
    expect(() => parser.push("x".repeat(5 << 20))).toThrow(/too long/);
  });
});

describe("calls", () => {
  const answer = (status: number, body: unknown) => vi.fn(async () => new Response(JSON.stringify(body), { status }));

  it("leave empty parts of a query out and escape the others", () => {
    expect(url("/sessions", { q: "a&b", state: "", cursor: null })).toBe("/api/v1/sessions?q=a%26b");
  });

  it("say every violation at once", async () => {
    vi.stubGlobal(
      "fetch",
      answer(422, { error: "schema_violation", violations: [{ field: "spec.mode", message: "is unknown" }] }),
    );
    const problem = await get("/policies").catch((thrown: unknown) => thrown);
    expect(problem).toBeInstanceOf(ApiError);
    expect(problem).toMatchObject({ status: 422, message: "spec.mode is unknown" });
  });

  it("that are orders do not claim to be tried again", async () => {
    vi.stubGlobal("fetch", () => Promise.reject(new TypeError("no network")));
    const told = async (call: Promise<unknown>) => ((await call.catch((thrown: unknown) => thrown)) as Error).message;
    expect(await told(get("/sessions"))).toMatch(/tries again by itself/);
    expect(await told(send("POST", "/sessions/s/pause"))).toBe("the server cannot be reached");
  });

  it("tell when somebody has to log in", async () => {
    const told = vi.fn();
    onUnauthorised(told);
    vi.stubGlobal("fetch", answer(401, { error: "unauthorized", message: "log in" }));
    await get("/sessions").catch(() => null);
    expect(told).toHaveBeenCalledOnce();
  });

  it("follow cursors to the end and no further than asked", async () => {
    const all = Array.from({ length: 7 }, (_, index) => index);
    vi.stubGlobal("fetch", async (address: string) => {
      const from = Number(new URL(address, "http://x").searchParams.get("cursor") ?? 0);
      const next = from + 3 < all.length ? String(from + 3) : null;
      return new Response(JSON.stringify({ rows: all.slice(from, from + 3), next }));
    });
    const taken: number[] = [];
    const signal = new AbortController().signal;
    const { complete } = await pages<number>("/x", {}, "rows", (rows) => taken.push(...rows), { most: 100, signal });
    expect([taken, complete]).toEqual([all, true]);
    expect(await pages("/x", {}, "rows", () => undefined, { most: 3, signal })).toEqual({ complete: false });
  });
});

describe("the live connection", () => {
  let push: (text: string) => void;
  let end: () => void;
  let asked: (string | null)[];
  let states: Connection[];
  let batches: Told[][];
  let gaps: number;
  let stream: Stream;
  const event = (id: number) =>
    `id: ${id}\nevent: session\ndata: {"topic":"sessions","tenant":"t","event":{"n":${id}}}\n\n`;

  beforeEach(() => {
    vi.useFakeTimers();
    [asked, states, batches, gaps] = [[], [], [], 0];
    vi.stubGlobal("fetch", async (_: string, options: RequestInit) => {
      asked.push((options.headers as Record<string, string>)["last-event-id"] ?? null);
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          push = (text) => controller.enqueue(new TextEncoder().encode(text));
          end = () => controller.close();
        },
      });
      return new Response(body);
    });
    const listener = {
      events: (batch: Told[]) => batches.push(batch),
      state: (state: Connection) => states.push(state),
      gap: () => gaps++,
    };
    stream = new Stream("/api/v1/events", listener);
    stream.start();
  });

  afterEach(() => {
    stream.stop();
    vi.useRealTimers();
  });

  it("hands over what came together in one batch", async () => {
    await vi.advanceTimersByTimeAsync(0);
    push(event(1) + event(2));
    await vi.advanceTimersByTimeAsync(100);
    push(event(3));
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(250);
    expect(batches.map((batch) => batch.map((told) => told.event["n"]))).toEqual([[1, 2, 3]]);
    expect(batches[0]?.[0]?.tenant).toBe("t");
  });

  it("comes back by itself and says what it has seen", async () => {
    await vi.advanceTimersByTimeAsync(0);
    push(event(41));
    await vi.advanceTimersByTimeAsync(10);
    end();
    await vi.advanceTimersByTimeAsync(600);
    expect(asked).toEqual([null, "41"]);
    expect(states).toEqual(["connecting", "live", "lost", "connecting", "live"]);
  });

  it("takes a long silence for a dead connection", async () => {
    await vi.advanceTimersByTimeAsync(41_000);
    expect(asked.length).toBeGreaterThanOrEqual(1);
  });

  it("tells of a gap once", async () => {
    await vi.advanceTimersByTimeAsync(0);
    push('id: 9\nevent: gap\ndata: {"topic":"health","event":{}}\n\n' + event(10));
    await vi.advanceTimersByTimeAsync(300);
    expect([gaps, batches.length]).toEqual([1, 1]);
  });

  it("ignores what is no event", async () => {
    await vi.advanceTimersByTimeAsync(0);
    push("event: session\ndata: {nonsense\n\n" + event(1));
    await vi.advanceTimersByTimeAsync(300);
    expect(batches.flat()).toHaveLength(1);
  });
});
