// Calls of the API. An answer is either what was asked for, or an error that says what to do.

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly violations: { field: string; message: string }[] = [],
  ) {
    super(message);
  }
}

export type Query = Record<string, string | number | boolean | null | undefined>;

const PREFIX = "/api/v1";

/** Told when the API wants to know who is asking. */
let unauthorised: () => void = () => undefined;
export function onUnauthorised(tell: () => void): void {
  unauthorised = tell;
}

/** A path of the API with its query; what is empty is left out. */
export function url(path: string, query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(pairs.map(([name, value]) => [name, String(value)])).toString();
  return `${PREFIX}${path}${text ? `?${text}` : ""}`;
}

export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return call<T>(url(path, query), signal ? { signal } : {});
}

export function send<T>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body: unknown = {},
  query: Query = {},
): Promise<T> {
  const headers = { "content-type": "application/json" };
  return call<T>(url(path, query), { method, headers, body: JSON.stringify(body) });
}

async function call<T>(address: string, options: RequestInit): Promise<T> {
  let answer: Response;
  try {
    answer = await fetch(address, { credentials: "same-origin", ...options });
  } catch (problem) {
    if (problem instanceof DOMException && problem.name === "AbortError") throw problem;
    // Only what is asked for is asked for again: an order is given by a person.
    const isOrder = options.method !== undefined;
    const message = `the server cannot be reached${isOrder ? "" : "; this page tries again by itself"}`;
    throw new ApiError(0, "unreachable", message);
  }
  if (answer.ok) return (answer.status === 204 ? null : await answer.json()) as T;
  if (answer.status === 401) unauthorised();
  throw await refusal(answer);
}

async function refusal(answer: Response): Promise<ApiError> {
  const body: unknown = await answer.json().catch(() => null);
  const { error, message, violations } = (typeof body === "object" && body ? body : {}) as Record<string, unknown>;
  const listed = Array.isArray(violations) ? (violations as { field: string; message: string }[]) : [];
  const code = typeof error === "string" ? error : `status_${answer.status}`;
  const told = listed.map((problem) => `${problem.field} ${problem.message}`).join("; ");
  const text = typeof message === "string" ? message : told || `the server answered ${answer.status}`;
  return new ApiError(answer.status, code, text, listed);
}

/** What went wrong, for a person. */
export function reason(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}

/** Follows cursors until there is nothing more, or enough; each page is handed over as it comes. */
export async function pages<T>(
  path: string,
  query: Query,
  name: string,
  take: (rows: T[]) => void,
  options: { most: number; signal: AbortSignal },
): Promise<{ complete: boolean }> {
  let cursor: string | null = null;
  let taken = 0;
  do {
    const page: Record<string, unknown> = await get(path, { ...query, cursor }, options.signal);
    const rows = Array.isArray(page[name]) ? (page[name] as T[]) : [];
    take(rows);
    taken += rows.length;
    cursor = typeof page["next"] === "string" && rows.length > 0 ? page["next"] : null;
  } while (cursor !== null && taken < options.most);
  return { complete: cursor === null };
}
