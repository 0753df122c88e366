import { execFile } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const execute = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
/** Inside the root's node_modules, so that packages resolve and every tool ignores it. */
const FOLDER = join(root, "node_modules/.cache/konverge-bench");

/**
 * Compiles programs of this folder to run on the built libraries, as users run theirs. Running from source, with types
 * stripped at run time, costs a worker 36 MiB.
 * @returns for each file, the path of its JavaScript
 */
export async function buildAsShipped<Name extends string>(
  files: readonly Name[],
): Promise<Record<Name, string>> {
  await execute(join(root, "node_modules/.bin/tsc"), ["-b", "tsconfig.base.json"], { cwd: root });
  await execute(process.execPath, [join(root, "infra/pack/copy-lua.js")], {
    cwd: root,
  });
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, "package.json"), '{"type":"module"}');
  const done = new Map<string, string>();
  const strip = (file: string): string => {
    const known = done.get(file);
    if (known !== undefined) return known;
    const path = join(FOLDER, file.replace(/\.ts$/, ".js"));
    done.set(file, path);
    const source = readFileSync(new URL(file, import.meta.url), "utf8");
    const code = stripTypeScriptTypes(source).replace(
      /(from "\.\/)([\w-]+\.ts)"/g,
      (_, from: string, imported: string) => {
        strip(imported);
        return `${from}${imported.replace(/\.ts$/, ".js")}"`;
      },
    );
    writeFileSync(path, code);
    return path;
  };
  return Object.fromEntries(files.map((file) => [file, strip(file)])) as Record<Name, string>;
}
