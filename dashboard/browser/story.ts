// A small company of agents: some work, one goes round in circles with another, one asks the same page for ever.
import { Agent, chain, log, send, type Wish } from "./agent";
import type { Gateway, Mock } from "./processes";

const MINUTE = 60_000;

/** What has happened in the last hours, as decision logs. */
export async function tellThePast(gateway: Gateway, now: number): Promise<void> {
  const sessions: Wish[][] = [];
  let spent = 0;
  const step = (wish: Wish, cents: number, minutesAgo: number): Wish => {
    spent += cents / 100;
    return { ...wish, cost: spent, at: now - minutesAgo * MINUTE, tokens: Math.round(cents * 410) };
  };
  const session = (wishes: Wish[]) => {
    sessions.push(wishes);
    spent = 0;
  };

  // Ordinary work, spread over a day.
  const crews: [string, string, string[], number][] = [
    ["support-8812", "support-agent", ["read_ticket", "search_docs", "lookup_order", "draft_reply", "send_reply"], 3],
    ["release-notes", "writer", ["git_log", "read_pr", "write", "lint_prose", "publish"], 6],
    ["deploy-staging", "deployer", ["plan", "build_image", "push", "migrate", "smoke_test"], 4],
    ["triage-inbox", "triage", ["list_issues", "label", "assign", "comment", "close"], 2],
  ];
  crews.forEach(([name, agent, tools, cents], crew) => {
    for (let day = 0; day < 5; day++) {
      const start = 60 + day * 260 + crew * 35;
      session(
        tools.map((tool, index) =>
          step(
            {
              session: day === 0 ? name : `${name}-${day}`,
              agent,
              tool,
              intent: `${tool.replaceAll("_", " ")} for ${name}`,
              input: { n: index + day },
              reasoning: ["The next part of the plan."],
            },
            cents + index * 1.7 + day,
            start - index * 3,
          ),
        ),
      );
    }
  });

  // Research that hands over, back and forth, and gets somewhere.
  session([
    step(
      {
        session: "market-report",
        agent: "web-researcher",
        tool: "search",
        intent: "find sources on agent spending",
        input: { q: "agent spending 2026" },
      },
      4,
      50,
    ),
    ...[1, 2, 3].map((n) =>
      step(
        {
          session: "market-report",
          agent: "web-researcher",
          tool: "fetch_url",
          intent: `read source ${n}`,
          input: { url: `sources/${n}` },
          memory: [`source ${n}: read`],
        },
        5,
        48 - n,
      ),
    ),
    step(
      {
        session: "market-report",
        agent: "writer",
        tool: "write",
        intent: "draft the report",
        input: { part: 1 },
        memory: ["draft 1 is written"],
      },
      18,
      43,
    ),
    step(
      { session: "market-report", agent: "critic", tool: "review", intent: "review draft 1", input: { draft: 1 } },
      7,
      41,
    ),
    step(
      {
        session: "market-report",
        agent: "writer",
        tool: "write",
        intent: "work the review in",
        input: { part: 2 },
        memory: ["draft 2 answers the review"],
      },
      15,
      38,
    ),
    step(
      { session: "market-report", agent: "critic", tool: "review", intent: "review draft 2", input: { draft: 2 } },
      6,
      36,
    ),
  ]);

  // The loop: coder and tester send each other the same thing.
  const loop: Wish[] = [
    step(
      {
        session: "fix-parser",
        agent: "planner",
        tool: "plan",
        intent: "make the parser accept empty input",
        input: { goal: "empty input" },
        memory: ["goal: parser::empty_input passes"],
        reasoning: ["The issue names one failing test.", "Read the parser first, then change it."],
      },
      9,
      34,
    ),
    ...["lexer.rs", "parser.rs", "ast.rs"].map((path, index) =>
      step(
        {
          session: "fix-parser",
          agent: "planner",
          tool: "read_file",
          intent: `read ${path}`,
          input: { path },
          memory: [`${path} was read`],
        },
        3,
        33 - index,
      ),
    ),
  ];
  for (let round = 0; round < 11; round++) {
    loop.push(
      step(
        {
          session: "fix-parser",
          agent: "coder",
          tool: "edit_file",
          intent: "return early on empty input",
          input: { path: "parser.rs", insert: "if input.is_empty() { return Ok(Ast::default()); }" },
          output: "parser.rs: 1 line changed",
          reasoning: ["The test still fails.", "The early return has to be there."],
        },
        6,
        29 - round * 2,
      ),
      step(
        {
          session: "fix-parser",
          agent: "tester",
          tool: "run_tests",
          intent: "run the parser tests",
          input: { filter: "parser" },
          status: "failure",
          output: `running 212 tests\ntest parser::empty_input ... FAILED\n\nassertion failed: expected Ast::Empty, got Ast::default()\ntest result: FAILED. 211 passed; 1 failed; finished in 0.${41 + round} s`,
          reasoning: ["Run the tests again after the change."],
        },
        4,
        28 - round * 2,
      ),
    );
  }
  for (let again = 0; again < 6; again++) {
    loop.push(
      step(
        {
          session: "fix-parser",
          agent: "tester",
          tool: "run_tests",
          intent: "run the parser tests",
          input: { filter: "parser" },
          status: "failure",
          output: `running 212 tests\ntest parser::empty_input ... FAILED\n\nassertion failed: expected Ast::Empty, got Ast::default()\ntest result: FAILED. 211 passed; 1 failed; finished in 0.${60 + again} s`,
          reasoning: ["Perhaps it passes now."],
        },
        4,
        5 - again * 0.5,
      ),
    );
  }
  session(loop);

  // Nearly a loop.
  session([
    step(
      {
        session: "nightly-billing",
        agent: "billing-bot",
        tool: "query",
        intent: "list open invoices",
        input: { sql: "select id from invoices where open" },
      },
      2,
      20,
    ),
    ...[0, 1].map((n) =>
      step(
        {
          session: "nightly-billing",
          agent: "billing-bot",
          tool: "query",
          intent: "sum open invoices",
          input: { sql: "select sum(total) from invoices" },
          status: "failure",
          output: "statement timeout after 30 s",
        },
        2,
        18 - n,
      ),
    ),
    step(
      {
        session: "nightly-billing",
        agent: "billing-bot",
        tool: "query",
        intent: "sum open invoices",
        input: { sql: "select sum(total) from invoices" },
        status: "failure",
        output: "statement timeout after 30 s",
      },
      2,
      15,
    ),
  ]);
  for (const wishes of sessions) await send(gateway, chain(wishes));
}

/** Agents that call through the gateway while the pictures are taken. */
export async function startTheLiving(mock: Mock, gateway: Gateway): Promise<Agent[]> {
  await mock.script("scrape-prices", [{ calls: [{ tool: "fetch_url", args: { url: "shop/prices?page=7" } }] }]);
  await mock.script(
    "onboard-4411",
    ["read_form", "check_address", "create_account", "send_welcome", "book_call", "notify_sales"].map((tool, n) => ({
      text: `Next: ${tool}`,
      calls: [{ tool, args: { n } }],
    })),
  );
  return [
    new Agent(gateway, "scrape-prices", () => "503 Service Unavailable", "scraper"),
    new Agent(gateway, "onboard-4411", (round) => `done ${round}`, "onboarder"),
  ];
}

/** Agents that go on working until they are told to stop. */
export function live(gateway: Gateway): { end: () => Promise<void> } {
  let goesOn = true;
  const tools = ["read_ticket", "search_docs", "lookup_order", "draft_reply", "label", "push", "smoke_test"];
  const costs = new Map<string, number>();
  const work = async () => {
    for (let count = 0; goesOn; count++) {
      const crew = count % 3;
      const session = ["support-8812", "deploy-staging", "triage-inbox"][crew] ?? "";
      const agent = ["support-agent", "deployer", "triage"][crew] ?? "";
      const cost = (costs.get(session) ?? 0.6) + 0.002 * (1 + (count % 7));
      costs.set(session, cost);
      const tool = tools[count % tools.length] ?? "";
      await send(gateway, [
        log({
          session,
          agent,
          tool,
          intent: `${tool.replaceAll("_", " ")} ${count}`,
          input: { count },
          cost,
          tokens: 300,
        }),
      ]);
      // As busy as people are: now more, now less.
      await new Promise((next) => setTimeout(next, 90 + 70 * Math.sin(count / 9)));
    }
  };
  const working = work();
  return {
    end: async () => {
      goesOn = false;
      await working;
    },
  };
}
