import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test, vi } from "vitest";

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/** Returns the running processes of this machine, without zombies. */
function listProcesses(): Process[] {
  const table = execFileSync("ps", ["-A", "-ww", "-o", "pid=,ppid=,stat=,args="], {
    encoding: "utf8",
    maxBuffer: 64 * 1_024 * 1_024,
  });
  return table.split("\n").flatMap((line) => {
    const [, pid, parent, state = "", command = ""] =
      /^\s*(\d+)\s+(\d+)\s+(\S+)\s+(.*)$/.exec(line) ?? [];
    return pid === undefined || state.startsWith("Z")
      ? []
      : [{ pid: Number(pid), parent: Number(parent), command }];
  });
}

/** Returns a process and its descendants. */
function treeOf(root: number, all: readonly Process[]): Process[] {
  return all.flatMap((process) =>
    process.pid === root ? [process] : process.parent === root ? treeOf(process.pid, all) : [],
  );
}

test.each([
  {
    scenario: "contention",
    // Its processes run for 20 s after this text, also on a busy machine.
    options: ["--acts", "konverge", "--outage"],
    middle: "API server frozen",
    parts: ["apiserver", "api", "worker", "outside-writer", "guardian", "127.0.0.1:"],
  },
  // Its API servers run in the main process.
  {
    scenario: "rollout",
    options: [],
    middle: "was killed with -9",
    parts: ["api", "worker", "guardian", "127.0.0.1:"],
  },
])(
  "kill -9 of the demo's main process in the middle of the $scenario scenario leaves no process and no file",
  async ({ scenario, options, middle, parts }) => {
    const temporary = mkdtempSync(join(tmpdir(), "konverge-test-"));
    const args = ["--exit", "--scenario", scenario, ...options];
    const demo = spawn("npm", ["run", "--silent", "demo", "--", ...args], {
      stdio: ["ignore", "ignore", "pipe"],
      // The demo's own Redis, which must end too.
      env: { ...process.env, TMPDIR: temporary, REDIS_URL: "" },
    });
    // Node and npm also keep caches there.
    const ours = () =>
      readdirSync(temporary)
        .filter((name) => name.startsWith("konverge-"))
        .toSorted();
    let tree: Process[] = [];
    const left = () => {
      const pids = new Set(tree.map(({ pid }) => pid));
      // Compares the command too, because process IDs are reused.
      return listProcesses().filter(
        ({ pid, command }) => pids.has(pid) && tree.some((one) => one.command === command),
      );
    };
    onTestFinished(() => {
      for (const { pid } of left()) process.kill(pid, "SIGKILL");
      rmSync(temporary, { recursive: true, force: true });
    });
    const said: string[] = [];
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: demo.stderr }).on("line", (line) => {
        said.push(line);
        if (line.includes(middle)) resolve();
      });
      demo.once("close", (code) => reject(new Error(`ended with ${code}\n${said.join("\n")}`)));
    });
    tree = treeOf(demo.pid ?? 0, listProcesses());
    const main = tree.find(({ command }) => /apps\/demo\/src\/main\.ts\b/.test(command));
    expect(main, "the main process exists").toBeDefined();
    const below = treeOf(main?.pid ?? 0, tree).map(({ command }) => command);
    for (const part of parts) {
      expect(below.join("\n"), "all processes are visible").toMatch(new RegExp(` ${part}\\b`));
    }
    expect(ours()).toEqual([
      expect.stringMatching(/^konverge-demo-/),
      expect.stringMatching(/^konverge-redis-/),
    ]);

    process.kill(main?.pid ?? 0, "SIGKILL");
    // Workers drain first; the rest is killed after 5 s.
    await vi.waitFor(
      () => {
        expect(left()).toEqual([]);
        expect(ours()).toEqual([]);
      },
      { timeout: 120_000, interval: 200 },
    );
  },
);
