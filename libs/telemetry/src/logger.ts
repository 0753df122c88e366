import { hostname } from "node:os";
import {
  pino,
  stdSerializers,
  stdTimeFunctions,
  type DestinationStream,
  type Logger,
  type LoggerOptions as LoggerSettings,
} from "pino";
import { LogLimit } from "./log-limit.ts";

export interface LoggerOptions {
  /** The part of Konverge: `worker`, `api`, ... */
  readonly service: string;
  readonly version: string;
  readonly level?: string;
  /** Lines per second; further ones are counted in a line of their own. Default 0: no limit. */
  readonly linesPerSecond?: number;
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
  const { service, version, level = "info", linesPerSecond = 0, destination } = options;
  const settings: LoggerSettings = {
    level,
    base: { service, version, instance: `${hostname()}-${process.pid}` },
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    // A plain object is the redacted form of an error, with its real type.
    serializers: { err: (err: Error) => (err instanceof Error ? stdSerializers.err(err) : err) },
    redact: { paths: REDACTED, censor: "(redacted)" },
    hooks: linesPerSecond === 0 ? {} : { logMethod: limited(linesPerSecond, () => log) },
  };
  const log: Logger = destination === undefined ? pino(settings) : pino(settings, destination);
  return log;
}

/** Returns the hook that omits lines beyond the limit. */
function limited(linesPerSecond: number, logger: () => Logger): LogFn {
  let isReport = false;
  const limit = new LogLimit({
    linesPerSecond,
    report: (omitted) => {
      const log = logger();
      const lines = [...omitted.values()].reduce((sum, count) => sum + count, 0);
      isReport = true;
      log.warn({ lines, messages: Object.fromEntries(omitted) }, "log lines omitted");
      isReport = false;
    },
  });
  return function logMethod(args, method) {
    const message = args.find((each) => typeof each === "string") ?? "";
    if (isReport || limit.admits(message)) method.apply(this, args);
  };
}

type LogFn = NonNullable<NonNullable<LoggerSettings["hooks"]>["logMethod"]>;
