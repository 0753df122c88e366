import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { CONFIG } from "./installation.ts";

const run = promisify(execFile);

/** The commit whose packages are the previous version. The first published version replaces it. */
const PREVIOUS = process.env["GAME_DAY_PREVIOUS"] ?? "1e683e97";

/** Another version of the CLI, with its own copy of the workers' configuration. */
export interface Version {
  readonly cli: readonly string[];
  readonly config: string;
}

/**
 * Builds and packs the packages of the previous version in a copy of its commit, and installs the tarballs in an empty folder. Both
 * takes minutes and is kept for the next run. Returns the reason if it is impossible.
 */
export async function installPrevious(
  log: (line: string) => void,
): Promise<Version | { readonly missing: string }> {
  const commit = await run("git", ["rev-parse", "--verify", `${PREVIOUS}^{commit}`]).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
  if (commit === undefined) return { missing: `the commit ${PREVIOUS} is not in this clone` };
  const installed = join(tmpdir(), `konverge-previous-${commit.slice(0, 12)}`);
  if (!existsSync(installed)) {
    log(`packs and installs the previous version, ${PREVIOUS}`);
    await install(commit, installed);
  }
  const config = join(installed, "game.config.ts");
  await copyFile(CONFIG, config);
  return { cli: [join(installed, "node_modules/.bin/konverge")], config };
}

async function install(commit: string, installed: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "konverge-previous-build-"));
  try {
    const [source, packages, target] = ["source", "packages", "target"].map((name) =>
      join(folder, name),
    ) as [string, string, string];
    await mkdir(source);
    await run("sh", ["-c", 'git archive "$0" | tar -x -C "$1"', commit, source]);
    const npm = (cwd: string, ...args: readonly string[]) =>
      run("npm", args, { cwd, maxBuffer: 2 ** 26 });
    // Installs the locked packages of that commit first.
    await npm(source, "run", "pack", "--", packages);
    await mkdir(target);
    const tarballs = (await readdir(packages)).map((file) => join(packages, file));
    await npm(target, "init", "--yes");
    await npm(target, "pkg", "set", "type=module");
    await npm(target, "install", "--prefer-offline", "--no-audit", "--no-fund", ...tarballs);
    await rename(target, installed);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
