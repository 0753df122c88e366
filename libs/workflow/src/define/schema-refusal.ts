import { ensureError } from "@konverge/core";

/** Returns a schema's issues on one line; the message of a zod error is JSON over many lines. */
export function schemaRefusal(thrown: unknown): string {
  const error = ensureError(thrown);
  const issues = "issues" in error && Array.isArray(error.issues) ? error.issues : [];
  const texts = issues.flatMap((issue: unknown) => textOf(issue) ?? []);
  return texts.length === 0 ? error.message : texts.join("; ");
}

/** Returns a schema's issues with a JSON pointer each; none if the error has no issues. */
export function schemaIssues(
  thrown: unknown,
): readonly { readonly pointer: string; readonly detail: string }[] {
  const error = ensureError(thrown);
  const issues = "issues" in error && Array.isArray(error.issues) ? error.issues : [];
  return issues.flatMap((issue: unknown) => {
    if (typeof issue !== "object" || issue === null || !("message" in issue)) return [];
    const pointer = pathOf(issue).map((part) => `/${escaped(part)}`);
    return [{ pointer: pointer.join(""), detail: String(issue.message) }];
  });
}

/** Escapes a part of a JSON pointer (RFC 6901). */
function escaped(part: string): string {
  return part.replaceAll("~", "~0").replaceAll("/", "~1");
}

function pathOf(issue: object): readonly string[] {
  return "path" in issue && Array.isArray(issue.path) ? issue.path.map(String) : [];
}

/** Formats an issue of zod, or of any library that follows Standard Schema. */
function textOf(issue: unknown): string | undefined {
  if (typeof issue !== "object" || issue === null || !("message" in issue)) return undefined;
  const place = pathOf(issue).join(".");
  return place === "" ? String(issue.message) : `${place}: ${String(issue.message)}`;
}
