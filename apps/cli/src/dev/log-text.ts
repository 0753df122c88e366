import { parseLogLine } from "@konverge/local-stack";
import { oneLine } from "../process/explain-failure.ts";

/** Fields of every line, and fields without meaning on one machine. */
const LEFT_OUT = ["level", "time", "service", "version", "instance", "msg", "err", "workerId"];

/** Messages that `konverge dev` replaces by its own. */
const KNOWN_MESSAGES = [
  "worker ready",
  "worker stopping",
  "worker stopped",
  "engine started",
  "engine stopped",
  "leadership acquired",
  "leadership ended",
  // For a moment after each save.
  "controller versions differ between workers",
];

interface LoggedError {
  readonly message?: string;
  /** Where it was thrown. */
  readonly frames?: readonly string[];
}

/**
 * Formats a line of a worker: JSON log lines as level, message and fields; other output unchanged. Undefined for messages
 * that are not shown.
 */
export function toText(line: string): string | undefined {
  const fields = parseLogLine(line);
  const message = fields?.["msg"];
  if (fields === undefined || typeof message !== "string") return oneLine(line);
  if (KNOWN_MESSAGES.includes(message)) return undefined;
  const level = String(fields["level"]);
  const shown = Object.entries(fields)
    .filter(([name]) => !LEFT_OUT.includes(name))
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const { message: why, frames = [] } = (fields["err"] ?? {}) as LoggedError;
  const text = oneLine(
    [
      ...(level === "info" ? [] : [level]),
      message,
      ...shown,
      ...(why === undefined ? [] : [`: ${why}`]),
    ].join(" "),
  );
  return [text, ...frames.map((frame) => `    ${oneLine(frame)}`)].join("\n");
}
