// Puts a gzip and a Brotli twin beside every built file that gets smaller by it: the binary serves them as they are.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import type { Plugin } from "vite";

const TEXT = /\.(html|js|css|svg|json|txt)$/;

export function compressed(): Plugin {
  let folder = "dist";
  return {
    name: "compressed-twins",
    apply: "build",
    configResolved: (config) => {
      folder = resolve(config.root, config.build.outDir);
    },
    closeBundle: () => {
      for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
        if (!TEXT.test(file)) continue;
        const path = join(folder, file);
        const body = readFileSync(path);
        const twins: [string, Buffer][] = [
          [".gz", gzipSync(body, { level: 9 })],
          [".br", brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } })],
        ];
        for (const [ending, twin] of twins) if (twin.length < body.length) writeFileSync(path + ending, twin);
      }
    },
  };
}
