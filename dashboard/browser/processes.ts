// The binaries as processes, each on a port of its own.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const target = process.env["CARGO_TARGET_DIR"] ?? resolve(import.meta.dirname, "../../target");
const LOOPBREAKER = process.env["LOOPBREAKER_BIN"] ?? join(target, "debug/loopbreaker");
const MOCK = process.env["MOCK_BIN"] ?? join(target, "debug/mock-provider");
const STARTS_WITHIN = 20_000;

class Process {
  private constructor(
    readonly url: string,
    private readonly child: ChildProcess,
  ) {}

  static async start(binary: string, args: string[]): Promise<Process> {
    if (!existsSync(binary)) throw new Error(`${binary} is missing: run \`cargo build --bins\` first`);
    const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
    let errors = "";
    child.stderr.on("data", (piece: Buffer) => (errors = (errors + piece.toString()).slice(-4000)));
    const url = await new Promise<string>((found, failed) => {
      let told = "";
      const late = setTimeout(
        () => failed(new Error(`${binary} did not say where it listens\n${errors}`)),
        STARTS_WITHIN,
      );
      child.stdout.on("data", (piece: Buffer) => {
        told += piece.toString();
        const match = /listening on (http:\/\/\S+)/.exec(told);
        if (!match?.[1]) return;
        clearTimeout(late);
        found(match[1]);
      });
      child.once("exit", (code) => failed(new Error(`${binary} ended with ${code}\n${errors}`)));
    });
    child.stdout.resume();
    return new Process(url, child);
  }

  /** Ends it as a crash would. */
  kill(): Promise<void> {
    return new Promise((ended) => {
      if (this.child.exitCode !== null || this.child.signalCode !== null) return ended();
      this.child.once("exit", () => ended());
      this.child.kill("SIGKILL");
    });
  }
}

export interface Received {
  path: string;
  headers: [string, string][];
  body: string;
  outcome: string;
}

/** The scripted provider. */
export class Mock {
  private constructor(private readonly process: Process) {}

  static async start(): Promise<Mock> {
    return new Mock(await Process.start(MOCK, []));
  }

  get url(): string {
    return this.process.url;
  }

  async script(name: string, turns: unknown[]): Promise<void> {
    const body = JSON.stringify({ name, turns, repeat_last: true });
    const answer = await fetch(`${this.url}/mock/script`, { method: "POST", body });
    if (!answer.ok) throw new Error(await answer.text());
  }

  async requests(script: string): Promise<Received[]> {
    const answer = await fetch(`${this.url}/mock/requests?script=${encodeURIComponent(script)}`);
    const { requests } = (await answer.json()) as {
      requests: { path: string; headers: [string, string][]; body_base64: string; outcome: string }[];
    };
    return requests.map(({ path, headers, body_base64, outcome }) => {
      return { path, headers, outcome, body: Buffer.from(body_base64, "base64").toString() };
    });
  }

  stop(): Promise<void> {
    return this.process.kill();
  }
}

/** `loopbreaker serve`, on the same port and data whenever it is started again. */
export class Gateway {
  private constructor(
    private process: Process,
    private readonly args: (port: string) => string[],
    private readonly folder: string,
  ) {}

  static async start(upstream: string, config: object = {}): Promise<Gateway> {
    const folder = mkdtempSync(join(tmpdir(), "loopbreaker-"));
    const file = join(folder, "config.json");
    writeFileSync(file, JSON.stringify(config));
    const args = (port: string) => [
      "serve",
      "--listen",
      `127.0.0.1:${port}`,
      "-c",
      file,
      "--data-dir",
      join(folder, "data"),
      "--upstream",
      upstream,
    ];
    return new Gateway(await Process.start(LOOPBREAKER, args("0")), args, folder);
  }

  get url(): string {
    return this.process.url;
  }

  kill(): Promise<void> {
    return this.process.kill();
  }

  async again(): Promise<void> {
    this.process = await Process.start(LOOPBREAKER, this.args(new URL(this.url).port));
  }

  async stop(): Promise<void> {
    await this.process.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  async get<T>(path: string): Promise<T> {
    const answer = await fetch(`${this.url}/api/v1${path}`);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  async post<T>(path: string, body: unknown): Promise<T> {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${this.url}/api/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }
}
