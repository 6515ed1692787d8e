import svelte from "eslint-plugin-svelte";
import ts from "typescript-eslint";
import svelteConfig from "./svelte.config.js";

const browser = ["window", "document", "location", "fetch", "console"];

export default ts.config(
  { ignores: ["dist", "node_modules", "src/api/schema.ts"] },
  ...ts.configs.strict,
  ...svelte.configs.recommended,
  {
    files: ["**/*.svelte", "**/*.svelte.ts"],
    languageOptions: {
      globals: Object.fromEntries(browser.map((name) => [name, "readonly"])),
      parserOptions: { parser: ts.parser, extraFileExtensions: [".svelte"], svelteConfig },
    },
  },
  {
    rules: {
      // Words of agents are data: nothing here turns text into markup.
      "svelte/no-at-html-tags": "error",
      "svelte/no-target-blank": "error",
      // Links are hash routes, made by one function.
      "svelte/no-navigation-without-resolve": "off",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Words of agents are data, never markup." },
        { property: "outerHTML", message: "Words of agents are data, never markup." },
        { property: "insertAdjacentHTML", message: "Words of agents are data, never markup." },
      ],
      // What changes often is kept in plain maps, and a version says that it did: ten thousand sessions are no proxies.
      "svelte/prefer-svelte-reactivity": "off",
      "no-console": "error",
      eqeqeq: "error",
    },
  },
  { files: ["browser/**", "scripts/**"], rules: { "no-console": "off" } },
);
