import { readLogCall, type LogLevel } from "@konverge/core";
import type { AttemptSecrets } from "@konverge/kube";
import type { AttemptTrace } from "../access/attempt-trace.ts";
import type { Log } from "../define/log.ts";

const MAX_DEPTH = 10;

/**
 * The logger of a handler: writes to the log of the worker and keeps the last lines for the record. After the attempt has read a
 * sensitive object, the values of that object are removed from every text (P12). Before that it costs nothing.
 */
export function createHandlerLog(
  sink: Log,
  { secrets, log }: Pick<AttemptTrace, "secrets" | "log">,
  bound: Readonly<Record<string, unknown>> = {},
): Log {
  const write = (level: LogLevel) => (given: object, text: string) => {
    const { fields, message } = readLogCall(given, text);
    log.note(level, { ...bound, ...fields }, message);
    if (secrets.isEmpty) sink[level](fields, message);
    else sink[level](scrubValue(fields, secrets, 0) as object, secrets.scrub(message));
  };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: (bindings) =>
      createHandlerLog(
        sink.child(scrubValue(bindings, secrets, 0) as Record<string, unknown>),
        { secrets, log },
        { ...bound, ...bindings },
      ),
  };
}

/** Returns a copy of a value without the recorded texts. */
export function scrubValue(value: unknown, secrets: AttemptSecrets, depth = 0): unknown {
  if (typeof value === "string") return secrets.scrub(value);
  if (typeof value === "number") return scrubNumber(value, secrets);
  if (typeof value !== "object" || value === null) return value;
  if (depth > MAX_DEPTH) return "(too deep)";
  try {
    if (value instanceof Error) return scrubError(value, secrets, depth);
    if (ArrayBuffer.isView(value)) return "(binary)";
    if (Array.isArray(value)) return value.map((entry) => scrubValue(entry, secrets, depth + 1));
    if (value instanceof Date) return value;
    if (value instanceof Map || value instanceof Set) {
      return scrubValue([...(value as Iterable<unknown>)], secrets, depth + 1);
    }
    return Object.fromEntries(
      Object.entries(value).map(([key, member]) => [key, scrubValue(member, secrets, depth + 1)]),
    );
  } catch {
    return "(cannot be read)";
  }
}

function scrubNumber(value: number, secrets: AttemptSecrets): unknown {
  const text = String(value);
  const scrubbed = secrets.scrub(text);
  return scrubbed === text ? value : scrubbed;
}

/** An error in the form of pino. */
function scrubError(error: Error, secrets: AttemptSecrets, depth: number): object {
  return {
    type: secrets.scrub(error.name),
    message: secrets.scrub(error.message),
    stack: secrets.scrub(error.stack ?? ""),
    ...(error.cause === undefined ? {} : { cause: scrubValue(error.cause, secrets, depth + 1) }),
  };
}
