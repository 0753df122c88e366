import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** A program under measurement. It says `ready` on stdout and ends when its stdin does. */
export interface PeerProcess {
  readonly pid: number;
  /** Rejects when it ends before. */
  readonly ready: Promise<void>;
  /** Rejects when it ended by itself, or with an error. */
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
  // Whoever starts several may give up before asking about this one.
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

/** The same from inside, for programs of ours. */
export async function sayReadyUntilStdinEnds(): Promise<void> {
  console.log("ready");
  process.stdin.resume();
  await once(process.stdin, "end");
}

/** Most memory that a process ever held, in MiB; undefined where there is no /proc. */
export function peakMemoryMiB(pid: number): number | undefined {
  const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readProc(pid, "status") ?? "")?.[1];
  return kib === undefined ? undefined : Number(kib) / 1_024;
}

const TICK_MS = 10;

/** CPU time that a process has used, in ms; undefined where there is no /proc. */
export function cpuMs(pid: number): number | undefined {
  // The name in brackets may hold spaces; user and system time are the 12th and 13th field behind it.
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
