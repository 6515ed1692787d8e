import { describe, expect, it } from "vitest";
import { diff, onlyNumbersDiffer } from "./diff";

const shown = (a: string, b: string) => diff(a, b).map((line) => line.sign + line.text);

describe("two attempts", () => {
  it("that are equal have no changes", () => expect(shown("a\nb", "a\nb")).toEqual([" a", " b"]));
  it("show what went and what came", () => expect(shown("a\nb\nc", "a\nx\nc")).toEqual([" a", "-b", "+x", " c"]));
  it("show lines that were added at an end", () => expect(shown("a", "a\nb")).toEqual([" a", "+b"]));

  it("can be put together again from their difference", () => {
    const texts = ["", "a", "a\nb\nc", "c\nb\na", "x\na\nb\nx", "b\nb\nb"];
    for (const a of texts) {
      for (const b of texts) {
        const lines = diff(a, b);
        const side = (sign: string) =>
          lines
            .filter((line) => line.sign !== sign)
            .map((line) => line.text)
            .join("\n");
        expect([side("+"), side("-")]).toEqual([a, b]);
      }
    }
  });

  it("of a megabyte are compared quickly", () => {
    const start = performance.now();
    diff("x\n".repeat(1 << 19), "y\n".repeat(1 << 19));
    expect(performance.now() - start).toBeLessThan(200);
  });

  it("may differ in numbers only", () => {
    expect(onlyNumbersDiffer("FAILED in 0.41 s", "FAILED in 0.4 s")).toBe(true);
    expect(onlyNumbersDiffer("FAILED", "PASSED")).toBe(false);
    expect(onlyNumbersDiffer("same", "same")).toBe(false);
  });
});
