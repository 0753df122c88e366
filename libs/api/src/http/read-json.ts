import { KonvergeError } from "@konverge/core";
import type { HonoRequest } from "hono";
import type { z } from "zod";

/** The body. @throws KonvergeError `unsupported_media_type` or `invalid_body` (no JSON) */
export async function readJson(request: HonoRequest): Promise<unknown> {
  const type = request.header("content-type") ?? "";
  if (!/^application\/(.+\+)?json\b/i.test(type)) {
    throw new KonvergeError(
      "unsupported_media_type",
      `the content type is "${type}"; send application/json (curl --json does)`,
    );
  }
  const text = await request.text();
  try {
    // Half a character has no place in a key, and most bodies have no escape that could be one.
    return HALF.test(text) ? JSON.parse(text, demandWhole) : (JSON.parse(text) as unknown);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new KonvergeError("invalid_body", `the body is not JSON: ${why}`, { cause: error });
  }
}

const HALF = /\\ud[89a-f]/i;

function demandWhole(name: string, value: unknown): unknown {
  const isWhole = name.isWellFormed() && (typeof value !== "string" || value.isWellFormed());
  if (!isWhole) throw new SyntaxError("it has half of a surrogate pair");
  return value;
}

/** What came from outside, checked. @throws KonvergeError `invalid_request` with a pointer for each thing that is wrong */
export function checkInput<Schema extends z.ZodType>(
  input: unknown,
  schema: Schema,
): z.output<Schema> {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.flatMap((issue) => {
    const keys = issue.code === "unrecognized_keys" ? issue.keys : [undefined];
    return keys.map((key) => ({
      pointer: [...issue.path, ...(key === undefined ? [] : [key])]
        .map((part) => `/${String(part).replaceAll("~", "~0").replaceAll("/", "~1")}`)
        .join(""),
      detail: key === undefined ? issue.message : "is not a known field; remove it",
    }));
  });
  const wrong = issues.length === 1 ? "1 field is" : `${issues.length} fields are`;
  throw new KonvergeError("invalid_request", `${wrong} not valid`, { issues });
}
