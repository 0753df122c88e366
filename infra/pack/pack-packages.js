import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";

/**
 * @typedef {{ readonly name: string, readonly version: string, readonly files?: readonly string[],
 *   readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>,
 *   readonly bin?: Readonly<Record<string, string>>, readonly dependencies?: Readonly<Record<string, string>>,
 *   readonly [field: string]: unknown }} Manifest
 * @typedef {{ readonly folder: string, readonly manifest: Manifest }} Sibling
 * @typedef {{ readonly name: string, readonly version: string, readonly file: string }} Packed `file`: path of the tarball.
 */

/** Only the workspace resolves it: Node does not strip types inside node_modules. */
const SOURCE_CONDITION = "@konverge/source";

/** Fields that every package takes from the manifest of the root. */
const OF_THE_RELEASE = ["homepage", "repository", "bugs", "keywords"];

/** Fields of a manifest that only the workspace uses. */
const OF_THE_WORKSPACE = ["private", "scripts", "devDependencies", "nx"];

/** The package's tests (not those of a template), and the compiler's own files. */
const LEFT_OUT = /[\\/]src[\\/].*\.test\.tsx?$|\.tsbuildinfo$|[\\/]node_modules([\\/]|$)/;
const TEMPLATES = /[\\/]templates[\\/]/;

/**
 * Packs packages and all siblings that they need, which must be built. Versions of siblings become exact: they are
 * released together. The same sources result in the same bytes; times and modes of the files do not matter.
 * @param {{ root: string, names: readonly string[], out: string }} options `root` of the repository; `out` is created
 * if it is missing
 * @returns {Packed[]} each after those that it needs
 */
export function packPackages({ root, names, out }) {
  mkdirSync(out, { recursive: true });
  const siblings = readWorkspace(root);
  const stage = mkdtempSync(join(tmpdir(), "konverge-pack-"));
  try {
    const folders = closureOf(names, siblings).map((sibling, index) => {
      const folder = join(stage, String(index));
      stagePackage({ root, sibling, siblings, folder });
      return folder;
    });
    return npmPack(folders, out);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** @param {string} root @returns {Map<string, Sibling>} by name */
function readWorkspace(root) {
  const { workspaces } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const paths = workspaces.flatMap((/** @type {string} */ pattern) =>
    globSync(`${pattern}/package.json`, { cwd: root }),
  );
  return new Map(
    paths.map((/** @type {string} */ path) => {
      const manifest = JSON.parse(readFileSync(join(root, path), "utf8"));
      return [manifest.name, { folder: join(root, path, ".."), manifest }];
    }),
  );
}

/** @param {readonly string[]} names @param {Map<string, Sibling>} siblings @returns {Sibling[]} */
function closureOf(names, siblings) {
  /** @type {Map<string, Sibling>} */
  const found = new Map();
  /** @param {string} each */
  const visit = (each) => {
    const sibling = siblings.get(each);
    if (sibling === undefined || found.has(each)) return;
    Object.keys(sibling.manifest.dependencies ?? {}).forEach(visit);
    found.set(each, sibling);
  };
  for (const name of names) {
    if (!siblings.has(name)) throw new Error(`the workspace has no package ${name}`);
    visit(name);
  }
  return [...found.values()];
}

/** @param {{ root: string, sibling: Sibling, siblings: Map<string, Sibling>, folder: string }} options */
function stagePackage({ root, sibling, siblings, folder }) {
  const { manifest, folder: from } = sibling;
  for (const path of pathsOf(sibling)) {
    cpSync(join(from, path), join(folder, path), {
      recursive: true,
      filter: (source) => TEMPLATES.test(source) || !LEFT_OUT.test(source),
    });
  }
  cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  const published = publishedManifest({
    manifest: { ...manifest, ...releaseFields(root, from) },
    siblings,
  });
  writeFileSync(join(folder, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
  // The set-up runs these before anything is installed, so in the repository they import each other by path.
  if (basename(join(from, "..")) === "infra") replaceInScripts(folder, "../host/", "host");
  setModes(folder, Object.values(manifest.bin ?? {}));
}

/** @param {string} root @param {string} folder of the package @returns {Record<string, unknown>} */
function releaseFields(root, folder) {
  const fields = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return Object.fromEntries(
    OF_THE_RELEASE.filter((field) => field in fields).map((field) =>
      field === "repository"
        ? [field, { ...fields[field], directory: relative(root, folder) }]
        : [field, fields[field]],
    ),
  );
}

/**
 * Replaces the modes of the clone, which depend on its umask. npm writes them to the tarball, but no times and owners.
 * @param {string} folder @param {readonly string[]} programs
 */
function setModes(folder, programs) {
  const executable = new Set(programs.map((path) => join(folder, path)));
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    chmodSync(path, entry.isDirectory() || executable.has(path) ? 0o755 : 0o644);
  }
}

/** @param {Sibling} sibling @returns {string[]} the files of the tarball; source maps refer to the source */
function pathsOf({ manifest: { name, files }, folder }) {
  if (files === undefined) return ["."];
  const listed = files.filter((pattern) => !pattern.startsWith("!"));
  const found = listed.flatMap((pattern) => {
    const paths = globSync(pattern, { cwd: folder });
    if (paths.length > 0) return paths;
    throw new Error(`${name} has no ${pattern}: run \`npm run build\` first`);
  });
  return [...found, "src", "README.md"];
}

/** @param {string} folder @param {string} path @param {string} part of infra */
function replaceInScripts(folder, path, part) {
  for (const script of globSync("**/*.js", { cwd: folder })) {
    const file = join(folder, script);
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.replaceAll(`"${path}`, `"@konverge/infra-${part}/`));
  }
}

/** @param {{ manifest: Manifest, siblings: Map<string, Sibling> }} options @returns {Record<string, unknown>} */
function publishedManifest({ manifest, siblings }) {
  const { dependencies = {}, exports = {}, files: _files, ...fields } = manifest;
  const kept = Object.entries(fields).filter(([field]) => !OF_THE_WORKSPACE.includes(field));
  return {
    ...Object.fromEntries(kept),
    // The files in the folder are already selected.
    exports: Object.fromEntries(
      Object.entries(exports).map(([path, target]) => {
        if (typeof target === "string") return [path, target];
        const { [SOURCE_CONDITION]: _source, ...conditions } = target;
        return [path, conditions];
      }),
    ),
    dependencies: Object.fromEntries(
      Object.entries(dependencies).map(([name, range]) => [
        name,
        siblings.get(name)?.manifest.version ?? range,
      ]),
    ),
    publishConfig: { access: "public" },
  };
}

/** @param {readonly string[]} folders @param {string} out @returns {Packed[]} */
function npmPack(folders, out) {
  const args = ["pack", ...folders, "--pack-destination", out, "--json", "--loglevel=error"];
  const { status, stdout, stderr } = spawnSync("npm", args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`npm pack failed with ${status}: ${stderr}`);
  /** @type {{ name: string, version: string, filename: string }[]} */
  const packed = JSON.parse(stdout);
  return packed.map(({ name, version, filename }) => ({
    name,
    version,
    // npm before 9 returned "@scope/name" here.
    file: join(out, filename.replace(/^@/, "").replace("/", "-")),
  }));
}
