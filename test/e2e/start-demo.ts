import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { onTestFinished } from "vitest";

/** The environment of a shell for another installation. */
const FOREIGN = {
  KONVERGE_CLUSTER: "other",
  KONVERGE_KUBECONFIG: "/dev/null/none",
  KONVERGE_REDIS_URL_FILE: "/dev/null/none",
  KONVERGE_ROLE: "watch",
  KONVERGE_TOKEN: "the token of another installation",
};

/** The output of the rollout scenario. */
export interface RolloutDocument {
  readonly scenario: string;
  readonly run: {
    readonly id: string;
    readonly status: string;
    readonly cancel?: { readonly by?: string };
    readonly steps: readonly { readonly name: string; readonly by?: string }[];
  };
  readonly killed: string;
  readonly timeline: readonly {
    readonly step: string;
    readonly workers: readonly string[];
    readonly tookMs: number;
  }[];
  readonly checks: readonly {
    readonly ok: boolean;
    readonly what: string;
    readonly found: string;
  }[];
}

interface RunningDemo<Document> {
  readonly exited: Promise<number | null>;
  /** Resolves to the next line on stderr that matches. */
  line(pattern: RegExp): Promise<RegExpExecArray>;
  /** Interrupts the whole process group, as Ctrl-C does. */
  interrupt(): void;
  /** Resolves to its final output. */
  document(): Promise<Document>;
}

/** Starts the demo as a user does and collects its output. */
export function startDemo<Document>(...args: string[]): RunningDemo<Document> {
  const child = spawn("npm", ["run", "--silent", "demo", "--", "--exit", "-o", "json", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, ...FOREIGN },
    detached: true,
  });
  onTestFinished(() => killGroup(child));
  let stdout = "";
  const stderr: string[] = [];
  const waiting: { pattern: RegExp; resolve: (match: RegExpExecArray) => void }[] = [];
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  createInterface({ input: child.stderr }).on("line", (line) => {
    stderr.push(line);
    for (const { pattern, resolve } of waiting) {
      const match = pattern.exec(line);
      if (match !== null) resolve(match);
    }
  });
  const exited = new Promise<number | null>((resolve) => {
    child.once("close", (code) => resolve(code));
  });
  return {
    exited,
    interrupt: () => void process.kill(-(child.pid ?? 0), "SIGINT"),
    line: (pattern: RegExp) =>
      new Promise<RegExpExecArray>((resolve, reject) => {
        waiting.push({ pattern, resolve });
        void exited.then((code) =>
          reject(new Error(`ended with ${code} before ${pattern}\n${stderr.join("\n")}`)),
        );
      }),
    async document(): Promise<Document> {
      const code = await exited;
      try {
        return JSON.parse(stdout) as Document;
      } catch (error) {
        throw new Error(`exit code ${code}, stdout "${stdout}"\n${stderr.join("\n")}`, {
          cause: error,
        });
      }
    },
  };
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null) return;
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
