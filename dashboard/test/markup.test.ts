import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { render, screen } from "@testing-library/svelte";
import { describe, expect, it } from "vitest";
import AgentText from "../src/parts/AgentText.svelte";

const SOURCE = join(import.meta.dirname, "../src");
const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((file) =>
  /\.(svelte|ts|css)$/.test(file),
);
const read = (file: string) => readFileSync(join(SOURCE, file), "utf8");

describe("the source", () => {
  it("never turns text into markup", () => {
    const ways =
      /\{@html|innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|\beval\(|new Function/;
    expect(files.filter((file) => !file.endsWith(".test.ts") && ways.test(read(file)))).toEqual([]);
  });

  it("has no inline styles, which the content security policy refuses", () => {
    expect(files.filter((file) => file.endsWith(".svelte") && /\sstyle="/.test(read(file)))).toEqual([]);
  });

  it("names no other host", () => {
    const hosts = (file: string) => read(file).match(/https?:\/\/(?!www\.w3\.org)[a-z]/g) ?? [];
    expect(files.filter((file) => !file.endsWith(".test.ts") && hosts(file).length > 0)).toEqual([]);
  });

  it("has one idea per file", () => {
    expect(files.filter((file) => read(file).split("\n").length > 600)).toEqual([]);
  });
});

describe("a text of an agent", () => {
  it("is shown as it is", () => {
    const { container } = render(AgentText, { text: '<script>alert(1)</script><img src=x onerror="alert(1)">' });
    expect(container.querySelector("script, img")).toBeNull();
    expect(screen.getByText(/<script>alert\(1\)<\/script>/)).toBeTruthy();
  });

  it("of a megabyte is cut, with a way to see more", () => {
    const { container } = render(AgentText, { text: "y".repeat(1 << 20) });
    expect(container.textContent?.length).toBeLessThan(4000);
    expect(screen.getByRole("button").textContent).toMatch(/more characters/);
  });
});
