// Types from the API's own description.
// usage: node scripts/schema.js http://127.0.0.1:4141 > src/api/schema.ts
import { pathToFileURL } from "node:url";

const PLACE = "#/components/schemas/";

/** The types of every schema of an OpenAPI document, in the order of their names. */
export function generate(openapi) {
  const types = [];
  for (const [name, schema] of Object.entries(openapi.components.schemas).sort(([a], [b]) => (a < b ? -1 : 1))) {
    for (const [inner, part] of Object.entries(schema.$defs ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))) {
      types.push(`export type ${name}${inner} = ${typeOf(part, 0)};`);
    }
    types.push(`export type ${name} = ${typeOf(schema, 0)};`);
  }
  const head =
    "// Made from the API's OpenAPI document by scripts/schema.js: change the API, then run `npm run schema`.\n";
  return `${head}\n${types.join("\n\n")}\n`;
}

function typeOf(schema, depth) {
  if (schema === true || typeof schema !== "object") return "unknown";
  if (schema.$ref) return schema.$ref.slice(PLACE.length).replace("/$defs/", "");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  for (const [way, sign] of [
    ["anyOf", " | "],
    ["oneOf", " | "],
    ["allOf", " & "],
  ]) {
    if (schema[way]) return [...new Set(schema[way].map((one) => bracketed(typeOf(one, depth))))].join(sign);
  }
  if (Array.isArray(schema.type)) {
    return [...new Set(schema.type.map((type) => bracketed(typeOf({ ...schema, type }, depth))))].join(" | ");
  }
  switch (schema.type) {
    case "string":
      return "string";
    case "integer":
    case "number":
      return "number";
    case "boolean":
      return "boolean";
    case "null":
      return "null";
    case "array":
      return `${bracketed(typeOf(schema.items ?? {}, depth))}[]`;
    default:
      return schema.properties
        ? object(schema, depth)
        : schema.type === "object"
          ? "Record<string, unknown>"
          : "unknown";
  }
}

function object(schema, depth) {
  const space = "  ".repeat(depth + 1);
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, part]) => `${space}${name}${required.has(name) ? "" : "?"}: ${typeOf(part, depth + 1)};`);
  return `{\n${fields.join("\n")}\n${"  ".repeat(depth)}}`;
}

const bracketed = (type) => (/ [|&] /.test(type) && !type.startsWith("{") ? `(${type})` : type);

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const server = process.argv[2] ?? "http://127.0.0.1:4141";
  const answer = await fetch(`${server}/api/v1/openapi.json`);
  process.stdout.write(generate(await answer.json()));
}
