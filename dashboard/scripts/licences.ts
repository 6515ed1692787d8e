// Puts the licence of the fonts beside them, as it asks for.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const FONTS = ["geist", "geist-mono"];

export function licences(): Plugin {
  let root = ".";
  return {
    name: "licences",
    apply: "build",
    configResolved: (config) => {
      root = config.root;
    },
    generateBundle() {
      for (const font of FONTS) {
        const source = readFileSync(join(root, "node_modules/@fontsource-variable", font, "LICENSE"), "utf8");
        this.emitFile({ type: "asset", fileName: `licences/${font}.txt`, source });
      }
    },
  };
}
