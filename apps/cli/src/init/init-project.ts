import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureError, KonvergeError } from "@konverge/core";
import { readVersion } from "../process/version.ts";
import { foreignFiles, foreignScripts, type ForeignKindChoice } from "./foreign-project.ts";

const TEMPLATE = fileURLToPath(new URL("../../templates/project", import.meta.url));

/** npm would omit or rename these files in the package. */
const DOTTED = ["gitignore", "dockerignore"];

/** Entries of a new repository. */
const IGNORED = [".git"];

/** A valid npm package name. */
const PACKAGE_NAME = /^[a-z0-9][-a-z0-9._]{0,213}$/;

/**
 * Creates a project with a controller, its resource and its test, named after its folder. Returns its path. The
 * project defines its kind itself, or uses one of another project.
 * @throws KonvergeError `invalid_request` if the folder is not empty, cannot be written, or is not a valid package name
 */
export async function initProject(dir: string, foreign?: ForeignKindChoice): Promise<string> {
  const folder = resolve(dir);
  const name = basename(folder);
  if (!PACKAGE_NAME.test(name)) {
    throw new KonvergeError(
      "invalid_request",
      `"${name}" is not a valid npm package name; use lower-case letters, digits and dashes`,
    );
  }
  await requireEmpty(folder);
  try {
    await mkdir(folder, { recursive: true });
    await cp(TEMPLATE, folder, { recursive: true });
    for (const file of DOTTED) await rename(join(folder, file), join(folder, `.${file}`));
    if (foreign !== undefined) await writeForeign(folder, foreign);
    await nameProject(folder, name);
  } catch (cause) {
    throw new KonvergeError("invalid_request", `${folder} cannot be written`, { cause });
  }
  return folder;
}

async function requireEmpty(folder: string): Promise<void> {
  let entries: string[];
  try {
    entries = await readdir(folder);
  } catch (error) {
    const { code } = ensureError(error) as NodeJS.ErrnoException;
    if (code === "ENOENT") return;
    throw new KonvergeError(
      "invalid_request",
      code === "ENOTDIR"
        ? `${folder} is a file; use a directory that does not exist`
        : `${folder} cannot be read`,
      { cause: error },
    );
  }
  const found = entries.filter((entry) => !IGNORED.includes(entry));
  if (found.length === 0) return;
  const shown = [...found.slice(0, 3), ...(found.length > 3 ? [`${found.length - 3} more`] : [])];
  throw new KonvergeError(
    "invalid_request",
    `${folder} is not empty (${shown.join(", ")}); use a directory that does not exist, for example \`konverge init my-operator\``,
  );
}

async function writeForeign(folder: string, foreign: ForeignKindChoice): Promise<void> {
  for (const [file, text] of Object.entries(foreignFiles(foreign))) {
    const path = join(folder, file);
    await mkdir(dirname(path), { recursive: true });
    await (text === undefined ? rm(path) : writeFile(path, text));
  }
  const path = join(folder, "package.json");
  const manifest = JSON.parse(await readFile(path, "utf8")) as { scripts: object };
  // JSON has no undefined, so removed scripts are left out.
  manifest.scripts = { ...manifest.scripts, ...foreignScripts(foreign) };
  await writeFile(path, JSON.stringify(manifest));
}

async function nameProject(folder: string, name: string): Promise<void> {
  const path = join(folder, "package.json");
  const manifest = JSON.parse(await readFile(path, "utf8")) as {
    name: string;
    dependencies: Record<string, string>;
  };
  manifest.name = name;
  manifest.dependencies["konverge"] = readVersion();
  await writeFile(path, `${JSON.stringify(manifest, null, 2)}\n`);
  const readme = join(folder, "README.md");
  await writeFile(readme, (await readFile(readme, "utf8")).replace("# my-operator", `# ${name}`));
}
