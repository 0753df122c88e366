import { spawn, type ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";

/** Most lines of one check, so that the log of the worker remains visible. */
const MOST_LINES = 20;

export interface TypeCheck {
  /** Checks the current files; a check that is still running is stopped first. */
  start(): void;
  stop(): void;
}

/**
 * Checks the types of a project beside its worker, because Node removes types without a check. Does nothing without a
 * tsconfig.json in the folder or without TypeScript.
 */
export function createTypeCheck(folder: string, print: (line: string) => void): TypeCheck {
  const tsc = findTsc(folder);
  const isTyped = tsc !== undefined && existsSync(join(folder, "tsconfig.json"));
  let running: ChildProcess | undefined;
  let hadErrors = false;

  const stop = () => {
    running?.kill();
    running = undefined;
  };
  const report = (output: string) => {
    const lines = output.split("\n").filter((line) => line.trim() !== "");
    for (const line of lines.slice(0, MOST_LINES)) print(`type error: ${line}`);
    if (lines.length > MOST_LINES) {
      print(`${lines.length - MOST_LINES} more lines; run tsc to see them`);
    }
    if (lines.length === 0 && hadErrors) print("types are correct");
    hadErrors = lines.length > 0;
  };
  return {
    start() {
      stop();
      if (!isTyped) return;
      const child = spawn(tsc, ["--noEmit", "--pretty", "false"], {
        cwd: folder,
        stdio: ["ignore", "pipe", "inherit"],
        // The launcher of TypeScript runs with this Node.js.
        env: {
          ...process.env,
          PATH: [dirname(process.execPath), process.env["PATH"] ?? ""].join(delimiter),
        },
      });
      running = child;
      let output = "";
      child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
      child.once("error", (error) => print(`the types cannot be checked: ${error.message}`));
      child.once("close", () => {
        if (running !== child) return;
        running = undefined;
        report(output);
      });
    },
    stop,
  };
}

/** Returns the nearest `tsc` of a folder and its parents. */
function findTsc(folder: string): string | undefined {
  const found = join(folder, "node_modules", ".bin", "tsc");
  if (existsSync(found)) return found;
  const parent = dirname(folder);
  return parent === folder ? undefined : findTsc(parent);
}
