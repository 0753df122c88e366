import { hostname } from "node:os";
import { pino, stdSerializers, stdTimeFunctions, type DestinationStream, type Logger } from "pino";

export interface LoggerOptions {
  /** The part of Konverge: `worker`, `api`, ... */
  readonly service: string;
  readonly version: string;
  readonly level?: string;
  /** Default: stdout. */
  readonly destination?: DestinationStream;
}

/** Fields that can contain credentials or Secret data, in any object. */
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
  // ioredis: rejected passwords, and data that could not be stored.
  "err.command.args",
  "err.*.command.args",
];

/** Logs JSON lines with the level as a word, the ISO time and the instance. Messages are constant; variable data is in fields. */
export function createLogger(options: LoggerOptions): Logger {
  const { service, version, level = "info", destination } = options;
  const settings = {
    level,
    base: { service, version, instance: `${hostname()}-${process.pid}` },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    // A plain object is the redacted form of an error, with its real type.
    serializers: { err: (err: Error) => (err instanceof Error ? stdSerializers.err(err) : err) },
    redact: { paths: REDACTED, censor: "(redacted)" },
  };
  return destination === undefined ? pino(settings) : pino(settings, destination);
}
