// A real Chromium with one page, and what is asserted of it everywhere.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join, resolve } from "node:path";
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { Gateway, Mock } from "./processes";

/** With DASHBOARD_DIST=dist the files that were just built are tried, without compiling the binary again. */
const BUILT = process.env["DASHBOARD_DIST"];
const CHROMIUM = process.env["CHROMIUM_BIN"] ?? "/usr/bin/chromium";
const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export interface Stage {
  mock: Mock;
  gateway: Gateway;
  browser: Browser;
  /** A browser of its own, for somebody who is not logged in. */
  context: (options?: BrowserContextOptions) => Promise<BrowserContext>;
  /** Opens a page; everything that goes wrong in it fails the test. */
  open: (hash: string, options?: BrowserContextOptions) => Promise<Page>;
}

/** Mock, gateway and browser for the tests of one file. */
export function stage(config: object = {}): Stage {
  const made = {} as Stage;
  const pages: Page[] = [];
  const problems: string[] = [];
  beforeAll(async () => {
    if (!existsSync(CHROMIUM)) throw new Error(`${CHROMIUM} is missing: run \`make setup\`, or set CHROMIUM_BIN`);
    made.mock = await Mock.start();
    made.gateway = await Gateway.start(made.mock.url, config);
    made.browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox"] });
    made.context = async (options = {}) => {
      const context = await made.browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
      if (BUILT) await serveBuilt(context, made.gateway.url, resolve(BUILT));
      return context;
    };
    made.open = async (hash, options = {}) => {
      const context = await made.context(options);
      const page = await context.newPage();
      pages.push(page);
      page.on("pageerror", (problem) => problems.push(problem.message));
      page.on("console", (message) => {
        if (/Content Security Policy|TrustedHTML|Uncaught/.test(message.text())) problems.push(message.text());
      });
      await page.goto(`${made.gateway.url}/${hash}`);
      await page.waitForSelector('[data-connection="live"]');
      return page;
    };
  });
  afterEach(async () => {
    for (const page of pages.splice(0)) await page.context().close();
    expect(problems.splice(0)).toEqual([]);
  });
  afterAll(async () => {
    await made.browser?.close();
    await made.gateway?.stop();
    await made.mock?.stop();
  });
  return made;
}

async function serveBuilt(context: BrowserContext, url: string, folder: string): Promise<void> {
  const policy = (await fetch(url)).headers.get("content-security-policy") ?? "";
  const isFile = ({ pathname }: URL) =>
    pathname === "/" || pathname === "/mark.svg" || pathname.startsWith("/assets/");
  await context.route(isFile, async (route) => {
    const { pathname } = new URL(route.request().url());
    const path = join(folder, pathname === "/" ? "index.html" : pathname);
    const kinds: Record<string, string> = {
      ".html": "text/html",
      ".js": "text/javascript",
      ".css": "text/css",
      ".svg": "image/svg+xml",
    };
    await route.fulfill({
      path,
      contentType: kinds[extname(path)] ?? "font/woff2",
      headers: { "content-security-policy": policy },
    });
  });
}

interface AxeResults {
  violations: { id: string; nodes: { target: unknown[]; failureSummary?: string }[] }[];
}

/** What axe has to complain about. */
export async function complaints(page: Page): Promise<string[]> {
  // A string that is evaluated by the debugger is not bound by the page's content security policy.
  await page.evaluate(axeSource);
  const { violations } = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as AxeResults;
  return violations.flatMap(({ id, nodes }) =>
    nodes.slice(0, 4).map((node) => `${id}: ${String(node.target)} ${node.failureSummary ?? ""}`),
  );
}

/** Waits until something is so, by asking again; says what it was at last. */
export async function until<T>(ask: () => Promise<T>, isSo: (value: T) => boolean, within = 10_000): Promise<T> {
  const end = Date.now() + within;
  for (;;) {
    const value = await ask();
    if (isSo(value)) return value;
    if (Date.now() > end)
      throw new Error(`it did not become so within ${within} ms: ${JSON.stringify(value)?.slice(0, 500)}`);
    await new Promise((again) => setTimeout(again, 50));
  }
}
