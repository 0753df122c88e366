import { spawn, type ChildProcess } from "node:child_process";
import { createWriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { KonvergeError } from "@konverge/core";
import { guard } from "@konverge/apiserver";

/** The fields of a JSON log line. */
type LogFields = Readonly<Record<string, unknown>>;

export interface LocalProcess {
  readonly pid: number;
  readonly alive: boolean;
  /** Resolves to the first log line with this message, past or future. Rejects if the process ends without it. */
  logged(message: string, deadlineMs?: number): Promise<LogFields>;
  /** Calls the listener with each line of output, those already printed included. */
  onLine(listener: (line: string) => void): void;
  /** Resolves when the process has ended, with the reason: `ended with exit code 1`. */
  readonly ended: Promise<string>;
  /** SIGSTOP. */
  freeze(): void;
  /** SIGCONT. */
  thaw(): void;
  /** Sends SIGTERM, and SIGKILL after `graceMs`. */
  stop(graceMs?: number): Promise<void>;
}

export interface LocalProcessOptions {
  /** Path of the module to run. */
  readonly script: string;
  readonly args: readonly string[];
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  /** Folder for the log file of the process. */
  readonly logs?: string | undefined;
  /** Folder to remove when this process dies, even by SIGKILL. */
  readonly workFolder?: string;
}

/** The last lines of a process, kept for the error that it may end with. */
const KEPT_LINES = 20;

/** Starts a Node.js process with the options of this one. It ends when this process dies, even by SIGKILL. */
export function startProcess({
  script,
  args,
  env = {},
  logs,
  workFolder = "",
}: LocalProcessOptions): LocalProcess {
  const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    // Ctrl-C reaches the whole foreground group; this process stops its children itself, in order.
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
  if (logs !== undefined) {
    const file = createWriteStream(join(logs, `${args[0]}-${child.pid}.log`));
    child.stdout.pipe(file, { end: false });
    child.stderr.pipe(file, { end: false });
    void ended.then(() => file.end());
  }
  return {
    pid: child.pid ?? 0,
    get alive() {
      return child.exitCode === null && child.signalCode === null;
    },
    async logged(message, deadlineMs = 120_000) {
      const { promise: failed, resolve: fail } = Promise.withResolvers<string>();
      void ended.then(fail);
      const late = `did not log "${message}" within ${deadlineMs} ms`;
      const timer = setTimeout(() => fail(late), deadlineMs);
      const outcome = await Promise.race([log.wait(message), failed]);
      clearTimeout(timer);
      if (typeof outcome !== "string") return outcome;
      const text = `konverge ${args[0]} ${outcome}\n${log.tail.join("\n")}`;
      throw new KonvergeError("demo_failed", text);
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

/** Parses a JSON log line; undefined for other output. */
export function parseLogLine(line: string): LogFields | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as LogFields;
  } catch {
    // Not a log line; the tail keeps it.
    return undefined;
  }
}
