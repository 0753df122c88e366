import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { join } from "node:path";
import { cacheDirectory, makeCacheFolder } from "./cache-directory.js";
import { withLock } from "./lock.js";
import { isOnPath } from "./run.js";

/**
 * A module with a package of which the program needs few files. The others would multiply the modules to download. The
 * program is built beside a copy with these files only, by which its go.mod replaces the module (`../module`).
 * @typedef {object} TrimmedModule
 * @property {string} path
 * @property {string} version
 * @property {string} sum its hash, as in a go.sum
 * @property {string} folder of the package in the module
 * @property {readonly string[]} files of the package that are kept
 */

/**
 * @typedef {object} GoProgram
 * @property {string} name also of its folder in the cache
 * @property {string} folder of its module; a change of any file in it causes a new build
 * @property {string} [target] package to build, `.` by default
 * @property {string} [linkerFlags]
 * @property {TrimmedModule} [trimmed]
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
    const sources = mkdtempSync(join(parent, "sources-"));
    try {
      const failure =
        (await trimModule(program, sources)) ??
        (await buildProgram(
          program.trimmed === undefined
            ? program
            : { ...program, folder: join(sources, "program") },
          join(scratch, name),
        ));
      if (failure !== undefined) return { missing: `${name} cannot be built: ${failure}` };
      renameSync(scratch, join(target, ".."));
      return { path: target };
    } finally {
      for (const folder of [scratch, sources]) rmSync(folder, { recursive: true, force: true });
    }
  });
}

/** @param {GoProgram} program @returns {string} system and a hash of all build inputs */
function buildKey({ folder, target = ".", linkerFlags = "", trimmed }) {
  const hash = createHash("sha256").update(`${target}\n${linkerFlags}\n`);
  if (trimmed !== undefined) hash.update(JSON.stringify(trimmed));
  for (const file of readdirSync(folder).toSorted()) hash.update(readFileSync(join(folder, file)));
  return `${process.platform}-${process.arch}-${hash.digest("hex").slice(0, 12)}`;
}

/**
 * Copies the program and its trimmed module, if it has one.
 * @param {GoProgram} program @param {string} sources @returns {Promise<string | undefined>} why it failed
 */
async function trimModule({ folder, trimmed }, sources) {
  if (trimmed === undefined) return undefined;
  const { path, version, sum, folder: kept, files } = trimmed;
  const args = ["mod", "download", "-json", `${path}@${version}`];
  const { failure, output } = await runGo(args, sources, { GOFLAGS: "-mod=mod" });
  if (failure !== undefined) return failure;
  const found = JSON.parse(output);
  if (found.Sum !== sum) return `${path} ${version} has the hash ${found.Sum} instead of ${sum}`;
  const isKept = (/** @type {string} */ from) => {
    const inside = from.slice(join(found.Dir, kept).length + 1);
    if (from.endsWith("_test.go")) return false;
    if (!from.startsWith(join(found.Dir, kept, "/")) || !from.endsWith(".go")) return true;
    return inside.includes("/") || files.includes(inside);
  };
  cpSync(found.Dir, join(sources, "module"), { recursive: true, filter: isKept });
  // The files of the module cache are read-only.
  cpSync(folder, join(sources, "program"), { recursive: true });
  return undefined;
}

/**
 * @param {GoProgram} program @param {string} out @returns {Promise<string | undefined>} the end of its output, if it
 * failed
 */
async function buildProgram({ folder, target = ".", linkerFlags = "" }, out) {
  const args = ["build", "-trimpath", `-ldflags=-s -w ${linkerFlags}`, "-o", out, target];
  const { failure } = await runGo(args, folder, { GOFLAGS: "-mod=readonly" });
  return failure;
}

/**
 * @param {readonly string[]} args @param {string} cwd @param {NodeJS.ProcessEnv} settings
 * @returns {Promise<{ failure: string | undefined, output: string }>} the end of its errors, if it failed
 */
async function runGo(args, cwd, settings) {
  const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off", ...settings };
  const child = spawn("go", args, { cwd, env, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  let output = "";
  child.stderr.on("data", (chunk) => {
    said = `${said}${String(chunk)}`.slice(-1_000);
  });
  child.stdout.on("data", (chunk) => {
    output += String(chunk);
  });
  const code = await new Promise((resolve) => {
    child.once("error", () => resolve(1));
    child.once("close", resolve);
  });
  return { failure: code === 0 ? undefined : said.trim(), output };
}
