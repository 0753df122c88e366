import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, makeCacheFolder } from "./cache-directory.js";
import { withLock } from "./lock.js";
import { isOnPath } from "./run.js";

/**
 * Finds a Python that has the packages of a requirements file: an earlier installation or, only with `CI=true` or
 * `build`, a new one, in a virtual environment in the cache outside the repository.
 * @param {{ name: string, requirements: string }} packages `name` is also the folder in the cache
 * @param {{ log?: (line: string) => void, build?: boolean, env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>} the interpreter, or why there is none
 */
export async function findPythonPackages(
  { name, requirements },
  { log = () => undefined, build = false, env = process.env } = {},
) {
  const hash = createHash("sha256").update(readFileSync(requirements)).digest("hex").slice(0, 12);
  const target = join(cacheDirectory({ env }), name, `${process.platform}-${process.arch}-${hash}`);
  const path = join(target, "bin", "python");
  const finished = join(target, "finished");
  if (existsSync(finished)) return { path };
  if (!build && env.CI !== "true")
    return { missing: `no ${name}; set CI=true to install it with pip` };
  if (!isOnPath("python3", env)) return { missing: `no ${name}, and no python3 to install it` };
  const parent = makeCacheFolder(name);
  return await withLock(join(parent, "install.lock"), {}, async () => {
    if (existsSync(finished)) return { path };
    log(`installing ${name} from its Python packages, once`);
    // Not beside the target and renamed, because a virtual environment contains its own path.
    rmSync(target, { recursive: true, force: true });
    const failure =
      (await failureOf("python3", ["-m", "venv", target], env)) ??
      (await failureOf(path, ["-m", "pip", "install", "--quiet", "-r", requirements], env));
    if (failure !== undefined) return { missing: `${name} cannot be installed: ${failure}` };
    writeFileSync(finished, "");
    return { path };
  });
}

/**
 * @param {string} program @param {readonly string[]} args @param {NodeJS.ProcessEnv} env
 * @returns {Promise<string | undefined>} the end of its output, if it failed
 */
async function failureOf(program, args, env) {
  const child = spawn(program, args, { env, stdio: ["ignore", "pipe", "pipe"], timeout: 300_000 });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      said = `${said}${String(chunk)}`.slice(-1_000);
    });
  }
  const failure = await new Promise((resolve) => {
    child.once("error", resolve);
    child.once("close", (code) => resolve(code === 0 ? undefined : new Error(said.trim())));
  });
  return failure?.message;
}
