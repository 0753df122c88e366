import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { KonvergeError } from "@konverge/core";

export interface KonvergeProcess {
  readonly pid: number;
  /** Settles when the process has ended. */
  readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  readonly alive: boolean;
  /** The fields of the first log line with this message. */
  readonly ready: Record<string, unknown>;
  /** SIGTERM, and SIGKILL if that does not help within `graceMs`. */
  stop(graceMs?: number): Promise<void>;
}

export interface StartOptions {
  /** Arguments of the `konverge` command. */
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The message of the log line that says the process is ready. */
  readonly readyMessage: string;
  readonly readyMs?: number;
}

/** The last lines of a process, kept for the error that it may end with. */
const KEPT_LINES = 20;

/** Starts a `konverge` command as its own process, exactly as a user would, and waits until it says that it is ready. */
export async function startKonverge(options: StartOptions): Promise<KonvergeProcess> {
  const { args, env = {}, readyMessage, readyMs = 30_000 } = options;
  const main = process.argv[1] ?? "";
  const child = spawn(process.execPath, [...process.execArgv, main, ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve, reject) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    child.once("error", reject);
  });
  const tail: string[] = [];
  const ready = await waitForLine(child, { tail, readyMessage, readyMs, exited, what: args[0] ?? "" });
  return {
    pid: child.pid ?? 0,
    exited,
    get alive() {
      return child.exitCode === null && child.signalCode === null;
    },
    ready,
    async stop(graceMs = 10_000) {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), graceMs);
      await exited;
      clearTimeout(timer);
    },
  };
}

async function waitForLine(
  child: ChildProcess,
  options: {
    readonly tail: string[];
    readonly readyMessage: string;
    readonly readyMs: number;
    readonly exited: Promise<{ readonly code: number | null; readonly signal: string | null }>;
    readonly what: string;
  },
): Promise<Record<string, unknown>> {
  const { tail, readyMessage, readyMs, exited, what } = options;
  const remember = (line: string) => {
    tail.push(line);
    if (tail.length > KEPT_LINES) tail.shift();
  };
  const fail = (why: string) =>
    new KonvergeError("demo_failed", `konverge ${what} ${why}\n${tail.join("\n")}`);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(fail(`did not say "${readyMessage}" within ${readyMs} ms`));
    }, readyMs);
    for (const stream of [child.stdout, child.stderr]) {
      if (stream === null) continue;
      createInterface({ input: stream }).on("line", (line) => {
        remember(line);
        const fields = parseLogLine(line);
        if (fields?.["msg"] !== readyMessage) return;
        clearTimeout(timer);
        resolve(fields);
      });
    }
    exited.then(
      ({ code, signal }) => {
        clearTimeout(timer);
        reject(fail(`ended with ${signal ?? `exit code ${code}`}`));
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(new KonvergeError("demo_failed", `konverge ${what} could not be started`, { cause: error }));
      },
    );
  });
}

function parseLogLine(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    // Not a log line; it is kept in the tail all the same.
    return undefined;
  }
}
