import { spawn, type ChildProcess } from "node:child_process";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { KonvergeError } from "@konverge/core";
import { guard } from "@konverge/testkit";

/** The fields of a JSON log line. */
type LogFields = Readonly<Record<string, unknown>>;

export interface KonvergeProcess {
  readonly pid: number;
  readonly alive: boolean;
  /** The first log line with this message, also one of the past. Rejects when the process ends without it. */
  said(message: string, deadlineMs?: number): Promise<LogFields>;
  /** What it printed so far and prints from now on, line by line. */
  onLine(listener: (line: string) => void): void;
  /** Resolves when it is gone, with how: `ended with exit code 1`. */
  readonly ended: Promise<string>;
  /** Stops its time, and lets it go on. */
  freeze(): void;
  thaw(): void;
  /** SIGTERM, and SIGKILL if that does not help within `graceMs`. */
  stop(graceMs?: number): Promise<void>;
}

/** Where the processes' logs are kept, if anybody asked; not a setting of theirs. */
export const LOG_FOLDER = "KONVERGE_DEMO_LOGS";

/** The last lines of a process, kept for the error that it may end with. */
const KEPT_LINES = 20;

/**
 * Starts a `konverge` command as its own process, exactly as a user would. It ends when we die, however we die, and
 * `workFolder` goes with it.
 */
export function startKonverge(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  workFolder = "",
): KonvergeProcess {
  const { [LOG_FOLDER]: folder, ...settings } = env;
  const child = spawn(process.execPath, [...process.execArgv, process.argv[1] ?? "", ...args], {
    env: { ...process.env, ...settings },
    stdio: ["ignore", "pipe", "pipe"],
    // Ctrl-C reaches the whole foreground group; we end our processes ourselves, in order.
    detached: true,
  });
  const ended = new Promise<string>((resolve) => {
    child.once("exit", (code, signal) => resolve(`ended with ${signal ?? `exit code ${code}`}`));
    child.once("error", (error) => resolve(`could not be started: ${error.message}`));
  });
  const guardian = guard({
    pids: child.pid === undefined ? [] : [child.pid],
    folder: workFolder,
  });
  void ended.then(() => guardian.release());
  const log = readLog(child);
  // The demo's --logs: what its processes say, a file each.
  if (folder !== undefined) {
    const file = createWriteStream(join(folder, `${args[0]}-${child.pid}.log`));
    child.stdout.pipe(file, { end: false });
    child.stderr.pipe(file, { end: false });
    void ended.then(() => file.end());
  }
  return {
    pid: child.pid ?? 0,
    get alive() {
      return child.exitCode === null && child.signalCode === null;
    },
    async said(message, deadlineMs = 30_000) {
      const fail = (why: string) =>
        new KonvergeError("demo_failed", `konverge ${args[0]} ${why}\n${log.tail.join("\n")}`);
      let timer: NodeJS.Timeout | undefined;
      try {
        return await Promise.race([
          log.wait(message),
          ended.then((how): never => {
            throw fail(how);
          }),
          new Promise<never>((_, reject) => {
            const why = `did not say "${message}" within ${deadlineMs} ms`;
            timer = setTimeout(() => reject(fail(why)), deadlineMs);
          }),
        ]);
      } finally {
        clearTimeout(timer);
      }
    },
    onLine: (listener) => log.onLine(listener),
    ended,
    freeze: () => void child.kill("SIGSTOP"),
    thaw: () => void child.kill("SIGCONT"),
    async stop(graceMs = 10_000) {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

function readLog(child: ChildProcess) {
  const tail: string[] = [];
  const seen = new Map<string, LogFields>();
  const waiting = new Map<string, ((fields: LogFields) => void)[]>();
  const listeners: ((line: string) => void)[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface({ input: stream }).on("line", (line) => {
      tail.push(line);
      if (tail.length > KEPT_LINES) tail.shift();
      for (const listener of listeners) listener(line);
      const fields = parseLogLine(line);
      const message = fields?.["msg"];
      if (fields === undefined || typeof message !== "string" || seen.has(message)) return;
      seen.set(message, fields);
      for (const resolve of waiting.get(message) ?? []) resolve(fields);
      waiting.delete(message);
    });
  }
  return {
    tail,
    onLine(listener: (line: string) => void) {
      for (const line of tail) listener(line);
      listeners.push(listener);
    },
    wait: (message: string): Promise<LogFields> =>
      new Promise((resolve) => {
        const past = seen.get(message);
        if (past !== undefined) resolve(past);
        else waiting.set(message, [...(waiting.get(message) ?? []), resolve]);
      }),
  };
}

/** Undefined for a line that is not JSON of an object. */
export function parseLogLine(line: string): LogFields | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as LogFields;
  } catch {
    // Not a log line; it is kept in the tail all the same.
    return undefined;
  }
}
