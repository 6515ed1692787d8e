// @vitest-environment node
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { build } from "vite";
import { expect, it } from "vitest";

it("the script is at most 100 kB in all, compressed", { timeout: 60_000 }, async () => {
  const outDir = mkdtempSync(join(tmpdir(), "dashboard-"));
  try {
    await build({
      root: join(import.meta.dirname, ".."),
      logLevel: "error",
      mode: "production",
      build: { outDir, emptyOutDir: true },
    });
    const scripts = readdirSync(join(outDir, "assets")).filter((file) => file.endsWith(".js"));
    const total = scripts.reduce(
      (sum, file) => sum + gzipSync(readFileSync(join(outDir, "assets", file)), { level: 9 }).length,
      0,
    );
    expect(total).toBeGreaterThan(10_000);
    expect(total).toBeLessThanOrEqual(100_000);
  } finally {
    rmSync(outDir, { recursive: true, force: true });
  }
});
