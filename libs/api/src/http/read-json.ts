import { KonvergeError, parseJson } from "@konverge/core";
import type { HonoRequest } from "hono";
import type { z } from "zod";

/** Parses the body. `keepsDigits`: integers beyond 2^53 become raw numbers. @throws KonvergeError `unsupported_media_type` or `invalid_body` */
export async function readJson(
  request: HonoRequest,
  { keepsDigits = false }: { readonly keepsDigits?: boolean } = {},
): Promise<unknown> {
  const type = request.header("content-type") ?? "";
  if (!/^application\/(.+\+)?json\b/i.test(type)) {
    throw new KonvergeError(
      "unsupported_media_type",
      `content type must be application/json (got "${type}"); curl --json sets it`,
    );
  }
  const text = await request.text();
  try {
    // Keys cannot hold half a surrogate pair. Few bodies contain an escape that could be one.
    const plain = HALF.test(text) ? JSON.parse(text, demandWhole) : (JSON.parse(text) as unknown);
    return keepsDigits ? parseJson(text) : plain;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new KonvergeError("invalid_body", `body is not valid JSON: ${why}`, { cause: error });
  }
}

const HALF = /\\ud[89a-f]/i;

function demandWhole(name: string, value: unknown): unknown {
  const isWhole = name.isWellFormed() && (typeof value !== "string" || value.isWellFormed());
  if (!isWhole) throw new SyntaxError("unpaired surrogate");
  return value;
}

/** Validates input. @throws KonvergeError `invalid_request` with a pointer for each invalid field */
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
      detail: key === undefined ? issue.message : "unknown field; remove it",
    }));
  });
  const count = issues.length === 1 ? "1 invalid field" : `${issues.length} invalid fields`;
  throw new KonvergeError("invalid_request", count, { issues });
}
