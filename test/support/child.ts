import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { afterEach } from "vitest";

type Exit = readonly [code: number | null, signal: NodeJS.Signals | null];

export interface ChildOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Opens a channel for messages: `process.send` and its `message` events. */
  readonly ipc?: boolean;
}

/** A Node process that runs TypeScript sources, started by a test. */
export class Child {
  readonly process: ChildProcess;
  /** The lines of its stdout, oldest first. */
  readonly output: string[] = [];
  /** The lines of its stdout that are JSON objects, parsed. */
  readonly messages: Readonly<Record<string, unknown>>[] = [];
  /** Resolves when it has exited, and its stdout and all of its messages have been read. */
  readonly exited: Promise<Exit>;

  /** Resolves to the first line of its stdout; rejects if it exits without one. */
  readonly ready: Promise<string>;

  constructor(args: readonly string[], { env, ipc = false }: ChildOptions = {}) {
    const child = spawn(process.execPath, ["--conditions=@konverge/source", ...args], {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "inherit", ...(ipc ? (["ipc"] as const) : [])],
    }) as ChildProcess & { readonly stdin: Writable; readonly stdout: Readable };
    // A write to a process that has exited fails; the test sees its exit instead.
    child.stdin.on("error", () => undefined);
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.output.push(line);
      if (line.startsWith("{")) this.messages.push(JSON.parse(line) as Record<string, unknown>);
      resolve(line);
    });
    this.process = child;
    const ends = [once(child, "close"), ...(ipc ? [once(child, "disconnect")] : [])];
    this.exited = Promise.all(ends).then(([exit]) => exit as unknown as Exit);
    this.ready = promise;
    this.ready.catch(() => undefined);
    void this.exited.then(([code, signal]) =>
      reject(new Error(`the process ended with ${signal ?? code} before it was ready`)),
    );
  }

  /** Sends a signal unless the process has exited. */
  signal(name: NodeJS.Signals): void {
    this.process.kill(name);
  }

  /** Sends a signal unless the process has exited, and waits until it has exited. */
  async end(signal: NodeJS.Signals): Promise<void> {
    this.signal(signal);
    await this.exited;
  }

  /** Returns its next message on the channel; rejects if it exits without one. */
  async message(): Promise<unknown> {
    const ended = this.exited.then(([code, signal]) => {
      throw new Error(`the process ended with ${signal ?? code} without a message`);
    });
    const [message] = await Promise.race([once(this.process, "message"), ended]);
    return message;
  }

  /** Kills the process and waits until it has exited. */
  async kill(): Promise<void> {
    await this.end("SIGKILL");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

/** Returns a function that starts a process. All of its processes are killed after each test of the file or `describe`. */
export function useChildren(): (
  args: readonly string[],
  env?: Readonly<Record<string, string>>,
) => Child {
  const children = new Set<Child>();
  afterEach(async () => {
    await Promise.all([...children].map((child) => child.kill()));
    children.clear();
  });
  return (args, env = {}) => {
    const child = new Child(args, { env });
    children.add(child);
    return child;
  };
}
