import { execFile } from "node:child_process";
import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";

const run = promisify(execFile);
/** Ends a script that hangs. */
const TIMEOUT_MS = 400_000;

/** The shell of a user who types the commands of a page. */
export interface ReadersShell {
  /** The home and working directory, removed when the test ends. */
  readonly folder: string;
  /** The folder of `konverge`, first in the path. */
  readonly bin: string;
  /** Runs a script that must succeed, and returns its output. */
  readonly type: (script: string, env?: Readonly<Record<string, string>>) => Promise<string>;
}

/** Opens a shell in an empty folder, with `konverge` in its path. */
export async function openReadersShell(
  environment: Readonly<Record<string, string>>,
): Promise<ReadersShell> {
  const folder = await mkdtemp(join(tmpdir(), "konverge-docs-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const bin = join(folder, "bin");
  await mkdir(bin);
  const main = `"${process.execPath}" --conditions=@konverge/source "${resolve("apps/cli/src/main.ts")}"`;
  await writeFile(join(bin, "konverge"), `#!/bin/sh\nexec ${main} "$@"\n`);
  await chmod(join(bin, "konverge"), 0o755);
  const PATH = `${bin}${delimiter}${process.env["PATH"] ?? ""}`;
  return {
    folder,
    bin,
    async type(script, env = {}) {
      const { stdout } = await run("sh", ["-eu", "-c", script], {
        cwd: folder,
        timeout: TIMEOUT_MS,
        env: { ...process.env, HOME: folder, PATH, ...environment, ...env },
      });
      return stdout;
    },
  };
}
