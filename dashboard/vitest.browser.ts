import { defineConfig } from "vitest/config";

// A real Chromium against the real binary: one file after the other, since the machine is shared with both.
// LONG=1 adds what takes minutes.
export default defineConfig({
  test: {
    include: ["browser/**/*.test.ts"],
    environment: "node",
    fileParallelism: false,
    testTimeout: process.env["LONG"] ? 900_000 : 60_000,
    hookTimeout: 120_000,
  },
});
