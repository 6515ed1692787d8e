// A policy in words.
import { per } from "../format/time";

export interface Clause {
  name: string;
  says: string;
  isOff: boolean;
}

type Section = Record<string, unknown> | undefined;
const section = (spec: Record<string, unknown>, name: string): Section => {
  const value = spec[name];
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
};
const isOn = (part: Section) => part !== undefined && part["enabled"] !== false;
const text = (value: unknown) => (value === undefined || value === null ? "?" : String(value));

/** What a policy does, one line for each of its parts. A part that is missing is off. */
export function clauses(spec: Record<string, unknown>): Clause[] {
  const requests = section(spec, "loop_detection");
  const tools = section(spec, "tool_loops");
  const semantic = section(spec, "semantic");
  const chant = section(spec, "chant");
  const rules = Array.isArray(spec["rules"]) ? (spec["rules"] as Record<string, unknown>[]) : [];
  const ladder = Array.isArray(tools?.["ladder"])
    ? (tools["ladder"] as unknown[]).map(text).join(" → ")
    : "by the default ladder";
  const made: [string, Section, string][] = [
    ["tool loops", tools, ladder],
    [
      "identical requests",
      requests,
      `${text(requests?.["threshold_identical_requests"])} within ${text(requests?.["window_seconds"])} s: ${text(requests?.["action"])}`,
    ],
    ["same thought", semantic, `similar by ${text(semantic?.["threshold"])}: ${text(semantic?.["action"])}`],
    ["chant", chant, text(chant?.["action"])],
  ];
  const lines = made.map(([name, part, says]) => ({ name, says: isOn(part) ? says : "off", isOff: !isOn(part) }));
  for (const rule of rules) lines.push({ name: `rule ${text(rule["id"])}`, says: ruleSays(rule), isOff: false });
  return lines;
}

function ruleSays(rule: Record<string, unknown>): string {
  const limits: string[] = [];
  if (rule["requests_per_minute"] !== undefined)
    limits.push(`${text(rule["requests_per_minute"])} requests a minute`);
  if (rule["tokens_per_minute"] !== undefined) limits.push(`${text(rule["tokens_per_minute"])} tokens a minute`);
  if (rule["cost_usd"] !== undefined) limits.push(`$${text(rule["cost_usd"])}`);
  const then = rule["on_exceed"] ? `, then ${text(rule["on_exceed"])}` : "";
  const often = per(typeof rule["period"] === "string" ? rule["period"] : "");
  return `${limits.join(", ") || "a limit"} per ${text(rule["key"])}${often ? `, ${often}` : ""}${then}`;
}

/** A spec from what somebody wrote, or what is wrong with it. */
export function parsed(written: string): { spec: Record<string, unknown> } | { problem: string } {
  try {
    const value: unknown = JSON.parse(written);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return { spec: value as Record<string, unknown> };
    return { problem: "a policy is an object" };
  } catch (thrown) {
    return { problem: thrown instanceof Error ? thrown.message : "this is not JSON" };
  }
}
