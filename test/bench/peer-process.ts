import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** A program under measurement. It prints `ready` on stdout and exits when its stdin closes. */
export interface PeerProcess {
  readonly pid: number;
  /** Resolves when the program is ready; rejects if it exits earlier. */
  readonly ready: Promise<void>;
  /** Stops the program; rejects if it had already exited or exits with an error. */
  stop(): Promise<void>;
}

const STOP_MS = 10_000;

export function startPeerProcess(
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv = process.env,
): PeerProcess {
  const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"] });
  const name = [command, ...args].join(" ").slice(0, 200);
  const ready = Promise.withResolvers<void>();
  const ended = new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) => {
      if (code === 0 && stopping) resolve();
      else reject(new Error(`${name} ended with ${signal ?? code}`));
    });
  });
  let stopping = false;
  ended.catch(ready.reject);
  // A caller that starts several programs may fail before it awaits this one.
  ready.promise.catch(() => undefined);
  createInterface({ input: child.stdout }).on("line", (line) => {
    if (line === "ready") ready.resolve();
  });
  return {
    pid: child.pid ?? 0,
    ready: ready.promise,
    async stop() {
      stopping = true;
      child.stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      try {
        await ended;
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** Implements the same protocol inside a program of this folder. */
export async function sayReadyUntilStdinEnds(): Promise<void> {
  console.log("ready");
  process.stdin.resume();
  await once(process.stdin, "end");
}

/** Returns the peak of the resident memory of a process in MiB; undefined without /proc. */
export function peakMemoryMiB(pid: number): number | undefined {
  return memoryMiB(pid, "VmHWM");
}

/** Returns the resident memory of a process in MiB; undefined without /proc. */
export function residentMemoryMiB(pid: number): number | undefined {
  return memoryMiB(pid, "VmRSS");
}

function memoryMiB(pid: number, field: string): number | undefined {
  const kib = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readProc(pid, "status") ?? "")?.[1];
  return kib === undefined ? undefined : Number(kib) / 1_024;
}

const TICK_MS = 10;

/** Returns the CPU time of a process in ms; undefined without /proc. */
export function cpuMs(pid: number): number | undefined {
  // The name in brackets may contain spaces; user and system time are the 12th and 13th field after it.
  const fields = readProc(pid, "stat")?.split(") ").at(-1)?.split(" ");
  return fields === undefined ? undefined : (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return undefined;
  }
}
