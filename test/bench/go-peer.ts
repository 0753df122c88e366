import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);

/** Builds the Go program in `peers/<name>`. Returns undefined and logs the reason if Go is missing. */
export async function buildGoPeer(
  name: string,
  log: (line: string) => void,
): Promise<string | undefined> {
  const folder = fileURLToPath(new URL(`peers/${name}`, import.meta.url));
  const binary = join(folder, `${name}-peer`);
  if (existsSync(binary)) return binary;
  try {
    log(`building the ${name} peer`);
    await execute("go", ["build", "-o", binary, "."], { cwd: folder });
    return binary;
  } catch (error) {
    log(`without ${name}: ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}
