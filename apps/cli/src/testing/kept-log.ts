import type { Log } from "@konverge/engine";

/** A log line of the worker. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Keeps the lines in `lines` instead of printing them. */
export function keepLog(lines: LogLine[], bindings: Record<string, unknown> = {}): Log {
  const write = (level: LogLine["level"]) => (fields: object, message: string) => {
    lines.push({ level, message, fields: { ...bindings, ...fields } });
  };
  return {
    debug: write("debug"),
    info: write("info"),
    warn: write("warn"),
    error: write("error"),
    child: (more) => keepLog(lines, { ...bindings, ...more }),
  };
}
