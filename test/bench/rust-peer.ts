import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { cacheDirectory } from "../../infra/host/cache-directory.js";

const execute = promisify(execFile);

/**
 * Builds the Rust program in `peers/<name>`, in the cache outside the repository. Returns undefined and logs the reason
 * if it cannot be built.
 */
export async function buildRustPeer(
  name: string,
  log: (line: string) => void,
): Promise<string | undefined> {
  const manifest = fileURLToPath(new URL(`peers/${name}/Cargo.toml`, import.meta.url));
  const target = join(cacheDirectory(), `${name}-peer`);
  try {
    log(`building the ${name} peer, which takes minutes the first time`);
    await execute(
      "cargo",
      ["build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", target],
      { maxBuffer: 64 * 1_024 ** 2 },
    );
    return join(target, "release", `${name}-peer`);
  } catch (error) {
    log(`without ${name}: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}
