import { hostname } from "node:os";
import { pino, stdTimeFunctions, type DestinationStream, type Logger } from "pino";

export interface LoggerOptions {
  /** The process's part: `worker`, `api`, ... */
  readonly service: string;
  readonly version: string;
  readonly level?: string;
  /** Default: stdout. */
  readonly destination?: DestinationStream;
}

/** Fields that could carry credentials or Secret data, whatever object they hang on. */
const REDACTED = [
  "token",
  "password",
  "authorization",
  "*.token",
  "*.password",
  "*.authorization",
  "*.headers",
  "*.data",
  "*.stringData",
  "err.body",
  "err.response",
  "err.details",
  // ioredis: of a password that was refused, and of what could not be stored.
  "err.command.args",
  "err.*.command.args",
];

/** JSON lines: level as a word, ISO time, who wrote it. Messages are constant; what varies is a field. */
export function createLogger(options: LoggerOptions): Logger {
  const { service, version, level = "info", destination } = options;
  const settings = {
    level,
    base: { service, version, instance: `${hostname()}-${process.pid}` },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    redact: { paths: REDACTED, censor: "(redacted)" },
  };
  return destination === undefined ? pino(settings) : pino(settings, destination);
}
