import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { cacheDirectory, makeCacheFolder } from "../../infra/host/cache-directory.js";

const run = promisify(execFile);

/** The commit whose packages are the previous version. The first published version replaces it. */
const PREVIOUS = process.env["GAME_DAY_PREVIOUS"] ?? "1e683e97";

const CACHE = "previous-version";

/** Another version of the CLI, with its own copy of the workers' configuration. */
export interface Version {
  readonly cli: readonly string[];
  readonly config: string;
}

/** Returns the previous version with a copy of a configuration if an earlier run has installed it, or else the reason. */
export async function findPrevious(
  config: string,
): Promise<Version | { readonly missing: string }> {
  const commit = await previousCommit();
  if (commit === undefined) return { missing: `the commit ${PREVIOUS} is not in this clone` };
  const installed = folderOf(commit);
  return existsSync(installed)
    ? await versionIn(installed, config)
    : { missing: "the previous version is not built: `npm run game-day -- upgrade` builds it" };
}

/**
 * Builds and packs the packages of the previous version in a copy of its commit, and installs the tarballs in an empty folder. Both
 * takes minutes and is kept for the next run. Returns the reason if it is impossible.
 */
export async function installPrevious(
  config: string,
  log: (line: string) => void,
): Promise<Version | { readonly missing: string }> {
  const commit = await previousCommit();
  if (commit === undefined) return { missing: `the commit ${PREVIOUS} is not in this clone` };
  const installed = folderOf(commit);
  if (!existsSync(installed)) {
    log(`packs and installs the previous version, ${PREVIOUS}`);
    await install(commit, installed);
  }
  return await versionIn(installed, config);
}

async function previousCommit(): Promise<string | undefined> {
  return await run("git", ["rev-parse", "--verify", `${PREVIOUS}^{commit}`]).then(
    ({ stdout }) => stdout.trim(),
    () => undefined,
  );
}

function folderOf(commit: string): string {
  return join(cacheDirectory(), CACHE, commit.slice(0, 12));
}

async function versionIn(installed: string, config: string): Promise<Version> {
  const own = join(installed, basename(config));
  await copyFile(config, own);
  return { cli: [join(installed, "node_modules/.bin/konverge")], config: own };
}

async function install(commit: string, installed: string): Promise<void> {
  // Beside the target, because a rename is atomic only inside one file system.
  const folder = await mkdtemp(join(makeCacheFolder(CACHE), "building-"));
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
