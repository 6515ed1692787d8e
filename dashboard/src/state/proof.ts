// How much a finding proves. Entropy counts what was tried, never what came of it: an agent that waits for a build
// repeats itself as well.
import type { Finding, Session } from "../api/shapes";

/** The stronger of two findings explains a session better. */
export const strength = (finding: Finding) =>
  (finding.severity === "loop" ? 2 : 0) + (finding.detector === "entropy" ? 0 : 1);

/** The strongest finding, of equal ones the newest. */
export function strongest(findings: readonly Finding[]): Finding | null {
  return findings.reduce<Finding | null>(
    (best, finding) => (best && strength(best) > strength(finding) ? best : finding),
    null,
  );
}

/** Verdicts that say nothing about loops. */
const OTHER_MATTERS = ["kill_switch", "budget_exceeded"];

/** Whether nothing but entropy speaks of a loop: no other detector, and no verdict of the gateway. */
export function onlyEntropy(session: Pick<Session, "alert" | "verdict">, findings: readonly Finding[]): boolean {
  const { alert, verdict } = session;
  const isJudged = verdict && verdict.action !== "warn" && !OTHER_MATTERS.includes(verdict.kind);
  const isAlerted =
    alert || findings.some((finding) => finding.detector === "entropy" && finding.severity === "loop");
  const isProven = findings.some((finding) => finding.detector !== "entropy" && finding.severity === "loop");
  return Boolean(isAlerted) && !isJudged && !isProven;
}
