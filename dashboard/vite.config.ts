import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { compressed } from "./scripts/compressed.ts";
import { licences } from "./scripts/licences.ts";

// `npm run dev` shows a running gateway: LOOPBREAKER_URL says which one.
const gateway = process.env["LOOPBREAKER_URL"] ?? "http://127.0.0.1:4141";

export default defineConfig({
  plugins: [svelte(), licences(), compressed()],
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: false },
  server: { proxy: { "/api": gateway } },
});
