import { readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * @typedef {{ readonly version?: string, readonly resolved?: string, readonly link?: boolean, readonly license?: string,
 *   readonly dependencies?: Record<string, string>, readonly optionalDependencies?: Record<string, string>,
 *   readonly peerDependencies?: Record<string, string>,
 *   readonly peerDependenciesMeta?: Record<string, { optional?: boolean }>, readonly optional?: boolean,
 *   readonly devDependencies?: unknown, readonly dev?: unknown, readonly devOptional?: unknown }} Locked
 * @typedef {{ readonly path: string, readonly from: string, readonly locked: Locked, readonly isOwn: boolean }} Placed
 *   `path` in an installation of the published packages; `from` in the repository
 */

/**
 * Returns the packages that a user of the published packages installs, in the versions of package-lock.json: the
 * published packages and their dependencies, without development dependencies. npm's own filter omits packages that the
 * workspace itself needs as well.
 * @param {{ root: string, names: readonly string[] }} options
 * @returns {readonly Placed[]} sorted by path
 */
export function lockedPackages({ root, names }) {
  /** @type {{ packages: Record<string, Locked> }} */
  const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  /** @type {Map<string, Placed>} by `from` */
  const found = new Map();
  /** @param {string} name @param {string} user @param {boolean} isOptional */
  const visit = (name, user, isOptional) => {
    const at = findFrom(packages, name, user);
    if (at === undefined) {
      if (isOptional) return;
      throw new Error(`package-lock.json has no ${name} for ${user}; run \`npm install\``);
    }
    const from = packages[at]?.link ? (packages[at].resolved ?? at) : at;
    if (found.has(from)) return;
    const { devDependencies: _dev, dev: _isDev, devOptional, ...locked } = packages[from] ?? {};
    const optional = locked.optional || devOptional ? { optional: true } : {};
    const isOwn = !from.includes("node_modules/");
    found.set(from, {
      path: pathOf(packages, from),
      from,
      isOwn,
      locked: { ...locked, ...optional },
    });
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = locked;
    for (const each of Object.keys(dependencies ?? {})) visit(each, from, false);
    for (const each of Object.keys(optionalDependencies ?? {})) visit(each, from, true);
    for (const each of Object.keys(peerDependencies ?? {}))
      if (!peerDependenciesMeta?.[each]?.optional) visit(each, from, false);
  };
  for (const name of names) visit(name, "", false);
  return [...found.values()].toSorted((a, b) => (a.path < b.path ? -1 : 1));
}

/**
 * Resolves a name as Node does.
 * @param {Record<string, Locked>} packages @param {string} name @param {string} user @returns {string | undefined}
 */
function findFrom(packages, name, user) {
  for (let folder = user; ; folder = parentOf(folder)) {
    const path = folder === "" ? `node_modules/${name}` : `${folder}/node_modules/${name}`;
    if (path in packages) return path;
    if (folder === "") return undefined;
  }
}

/** @param {string} path @returns {string} the folder whose node_modules contains the package; empty for the root */
function parentOf(path) {
  const at = path.lastIndexOf("node_modules/");
  return at <= 0 ? "" : path.slice(0, at - 1);
}

/** @param {Record<string, Locked>} packages @param {string} from @returns {string} */
function pathOf(packages, from) {
  const [workspace = "", ...inside] = from.split("/node_modules/");
  if (workspace.startsWith("node_modules/")) return from;
  const link = Object.keys(packages).find(
    (path) => packages[path]?.link && packages[path].resolved === workspace,
  );
  return [link ?? workspace, ...inside].join("/node_modules/");
}
