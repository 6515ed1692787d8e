import { defineConfig } from "vitest/config";

// Not a test: pictures for the documentation, taken of the real binary with a fleet that lives.
export default defineConfig({
  test: { include: ["browser/screens.shots.ts"], environment: "node", testTimeout: 180_000, hookTimeout: 60_000 },
});
