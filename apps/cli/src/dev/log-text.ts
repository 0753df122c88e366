import { parseLogLine } from "@konverge/local-stack";
import { oneLine } from "../process/explain-failure.ts";

/** What every line of a log has, or what says nothing on one's own machine. */
const LEFT_OUT = ["level", "time", "service", "version", "instance", "msg", "err", "workerId"];

/** A worker that comes or goes is told in words of our own. */
const KNOWN_MESSAGES = [
  "worker ready",
  "worker stopping",
  "worker stopped",
  "engine started",
  "engine stopped",
  "leadership acquired",
  "leadership ended",
];

/**
 * A line of a worker for people: JSON log lines become time, level, message and fields; what a handler printed stays as it is.
 * Undefined for what need not be said.
 */
export function toText(line: string): string | undefined {
  const fields = parseLogLine(line);
  const message = fields?.["msg"];
  if (fields === undefined || typeof message !== "string") return oneLine(line);
  if (KNOWN_MESSAGES.includes(message)) return undefined;
  const level = String(fields["level"]);
  const told = Object.entries(fields)
    .filter(([name]) => !LEFT_OUT.includes(name))
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const { message: why } = (fields["err"] ?? {}) as { readonly message?: string };
  return oneLine(
    [
      ...(level === "info" ? [] : [level]),
      message,
      ...told,
      ...(why === undefined ? [] : [`: ${why}`]),
    ].join(" "),
  );
}
