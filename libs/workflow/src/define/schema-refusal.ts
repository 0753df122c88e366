import { ensureError } from "@konverge/core";

/** Returns a schema's issues on one line; the message of a zod error is JSON over many lines. */
export function schemaRefusal(thrown: unknown): string {
  const error = ensureError(thrown);
  const issues = "issues" in error && Array.isArray(error.issues) ? error.issues : [];
  const texts = issues.flatMap((issue: unknown) => textOf(issue) ?? []);
  return texts.length === 0 ? error.message : texts.join("; ");
}

/** Formats an issue of zod, or of any library that follows Standard Schema. */
function textOf(issue: unknown): string | undefined {
  if (typeof issue !== "object" || issue === null || !("message" in issue)) return undefined;
  const path = "path" in issue && Array.isArray(issue.path) ? issue.path : [];
  const place = path.map(String).join(".");
  return place === "" ? String(issue.message) : `${place}: ${String(issue.message)}`;
}
