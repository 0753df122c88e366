import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory } from "../../infra/host/cache-directory.js";

const execute = promisify(execFile);

/**
 * Each function builds the program in `peers/<name>` with the language's own tool. It returns undefined and logs the
 * reason if that is not possible, for example because the tool is missing.
 */
type BuildPeer<Result> = (name: string, log: (line: string) => void) => Promise<Result | undefined>;

/** Returns the path of the program. */
export const buildGoPeer: BuildPeer<string> = async (name, log) => {
  const folder = folderOf(name);
  const binary = join(folder, `${name}-peer`);
  if (existsSync(binary)) return binary;
  const args = ["build", "-o", binary, "."];
  return (await build({ name, log, command: "go", args, folder })) ? binary : undefined;
};

/** Returns the path of the program, in the cache outside the repository. */
export const buildRustPeer: BuildPeer<string> = async (name, log) => {
  const target = outputOf(name);
  const args = ["build", "--release", "--locked", "--target-dir", target];
  const built = await build({ name, log, command: "cargo", args, folder: folderOf(name) });
  return built ? join(target, "release", `${name}-peer`) : undefined;
};

/** Returns the class path of the program and its libraries, in the cache outside the repository. */
export const buildJavaPeer: BuildPeer<string> = async (name, log) => {
  const target = outputOf(name);
  const args = ["--batch-mode", "--quiet", `-Doutput=${target}`, "package"];
  const built = await build({ name, log, command: "mvn", args, folder: folderOf(name) });
  return built ? [join(target, "classes"), join(target, "dependency", "*")].join(":") : undefined;
};

const folderOf = (name: string) => fileURLToPath(new URL(`peers/${name}`, import.meta.url));
const outputOf = (name: string) => join(cacheDirectory(), `${name}-peer`);

interface Build {
  readonly name: string;
  readonly log: (line: string) => void;
  readonly command: string;
  readonly args: readonly string[];
  readonly folder: string;
}

async function build({ name, log, command, args, folder }: Build): Promise<boolean> {
  try {
    log(`building the ${name} peer, which can take minutes the first time`);
    await execute(command, args, { cwd: folder, maxBuffer: 64 * 1_024 ** 2 });
    return true;
  } catch (error) {
    log(`without ${name}: ${error instanceof Error ? error.message : String(error)}`);
    return false;
  }
}
