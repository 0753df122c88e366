import { ensureError } from "@konverge/core";

/** What a schema has against a value, on one line: the message of zod's own error is JSON over many. */
export function schemaRefusal(thrown: unknown): string {
  const error = ensureError(thrown);
  const issues = "issues" in error && Array.isArray(error.issues) ? error.issues : [];
  const told = issues.flatMap((issue: unknown) => report(issue) ?? []);
  return told.length === 0 ? error.message : told.join("; ");
}

/** Issues of zod, and of every other library that keeps to Standard Schema. */
function report(issue: unknown): string | undefined {
  if (typeof issue !== "object" || issue === null || !("message" in issue)) return undefined;
  const path = "path" in issue && Array.isArray(issue.path) ? issue.path : [];
  const place = path.map(String).join(".");
  return place === "" ? String(issue.message) : `${place}: ${String(issue.message)}`;
}
