import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, makeCacheFolder } from "./cache-directory.js";
import { withLock } from "./lock.js";
import { isOnPath } from "./run.js";

/**
 * @typedef {object} GoProgram
 * @property {string} name also of its folder in the cache
 * @property {string} folder of its module; a change of any file in it causes a new build
 * @property {string} [target] package to build, `.` by default
 * @property {string} [linkerFlags]
 */

/**
 * Finds a test program that is built from pinned Go modules: an earlier build or, only with `CI=true` or `build`, a new
 * one, in the cache outside the repository.
 * @param {GoProgram} program
 * @param {{ log?: (line: string) => void, build?: boolean, env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>} the program, or why there is none
 */
export async function findGoProgram(
  program,
  { log = () => undefined, build = false, env = process.env } = {},
) {
  const { name } = program;
  const target = join(cacheDirectory({ env }), name, buildKey(program), name);
  if (existsSync(target)) return { path: target };
  if (!build && env.CI !== "true")
    return { missing: `no ${name}; set CI=true to build it with Go` };
  if (!isOnPath("go", env)) return { missing: `no ${name}, and no Go to build it` };
  const parent = makeCacheFolder(name);
  return await withLock(join(parent, "build.lock"), {}, async () => {
    if (existsSync(target)) return { path: target };
    log(`building ${name} from Go modules, once`);
    // Beside the target, because a rename is atomic only inside one file system.
    const scratch = mkdtempSync(join(parent, "building-"));
    try {
      const failure = await runGo(program, join(scratch, name));
      if (failure !== undefined) return { missing: `${name} cannot be built: ${failure}` };
      renameSync(scratch, join(target, ".."));
      return { path: target };
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  });
}

/** @param {GoProgram} program @returns {string} system and a hash of all build inputs */
function buildKey({ folder, target = ".", linkerFlags = "" }) {
  const hash = createHash("sha256").update(`${target}\n${linkerFlags}\n`);
  for (const file of readdirSync(folder).toSorted()) hash.update(readFileSync(join(folder, file)));
  return `${process.platform}-${process.arch}-${hash.digest("hex").slice(0, 12)}`;
}

/**
 * @param {GoProgram} program @param {string} out @returns {Promise<string | undefined>} the end of its output, if it
 * failed
 */
async function runGo({ folder, target = ".", linkerFlags = "" }, out) {
  const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=readonly" };
  const args = ["build", "-trimpath", `-ldflags=-s -w ${linkerFlags}`, "-o", out, target];
  const child = spawn("go", args, { cwd: folder, env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said = `${said}${String(chunk)}`.slice(-1_000);
  });
  const code = await new Promise((resolve) => {
    child.once("error", () => resolve(1));
    child.once("close", resolve);
  });
  return code === 0 ? undefined : said.trim();
}
