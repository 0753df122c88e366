import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach } from "vitest";

type Exit = readonly [code: number | null, signal: NodeJS.Signals | null];

/** A Node process that runs TypeScript sources, started by a test. */
export class Child {
  readonly process: ChildProcess;
  /** The lines of its stdout, oldest first. */
  readonly output: string[] = [];
  /** The lines of its stdout that are JSON objects, parsed. */
  readonly messages: Readonly<Record<string, unknown>>[] = [];
  /** Resolves when it has exited and its stdout has been read. */
  readonly exited: Promise<Exit>;

  constructor(args: readonly string[], env: Readonly<Record<string, string>>) {
    const child = spawn(process.execPath, ["--conditions=@konverge/source", ...args], {
      env: { ...process.env, ...env },
      stdio: ["pipe", "pipe", "inherit"],
    });
    // A write to a process that has exited fails; the test sees its exit instead.
    child.stdin.on("error", () => undefined);
    createInterface({ input: child.stdout }).on("line", (line) => {
      this.output.push(line);
      if (line.startsWith("{")) this.messages.push(JSON.parse(line) as Record<string, unknown>);
    });
    this.process = child;
    this.exited = once(child, "close") as unknown as Promise<Exit>;
  }

  /** Kills the process and waits until it has exited. */
  async kill(): Promise<void> {
    this.process.kill("SIGKILL");
    await this.exited;
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
    const child = new Child(args, env);
    children.add(child);
    return child;
  };
}
