import { spawn } from "node:child_process";

/** The end of a program: its exit code and what it printed. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface RunOptions {
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly input?: string;
  /** In ms. A program that runs longer is killed, and its code is -1. */
  readonly limitMs: number;
}

/** Runs a program to its end. @throws Error if it cannot be started */
export async function runProgram(
  path: string,
  args: readonly string[],
  { cwd, env, input = "", limitMs }: RunOptions,
): Promise<Ended> {
  const child = spawn(path, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"] });
  const timer = setTimeout(() => child.kill("SIGKILL"), limitMs);
  const output = { out: "", err: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output.out += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (output.err += text));
  // A program that reads no input may end before it is written.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  try {
    const code = await new Promise<number>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (status) => resolve(status ?? -1));
    });
    return { code, ...output };
  } finally {
    clearTimeout(timer);
  }
}
