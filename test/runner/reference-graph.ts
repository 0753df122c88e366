import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

/** Files whose text can refer to other files. References of the compiler's projects repeat those of the sources. */
const READABLE = /(?<!\/tsconfig(?:\.\w+)?)\.(?:[cm]?[jt]sx?|json|ya?ml)$/;
/** The dependencies of a manifest are edges only where a source imports them. */
const MANIFEST = /(?:^|\/)package\.json$/;
/** Their comments and errors name pages, which they do not read. */
const SOURCE = /^(?:apps|libs)\/.*(?<!\.test)\.tsx?$/;
/** The folder of a package: comments name it, and its files are reached by specifiers. */
const PACKAGE_FOLDER = /^(?:apps|libs)\/[^/]+$/;
const TOKEN =
  /@konverge\/[\w-]+(?:\/[\w-]+)*|(?:[\w.@-]+\/)+[\w.@-]+|[\w-]+(?:\.[\w-]+)*\.(?:tsx?|js|lua|css|md)\b/g;

/** Edges that do not appear in the files' text: a prefix of paths, and the files that they use. */
export type UnseenEdge = readonly [from: string, to: string];

export interface ReferenceGraph {
  /** The files that `file` refers to. */
  referencesOf(file: string): ReadonlySet<string>;
}

/**
 * Reads the references between files: imports, packages of the workspace, and paths in strings, such as the program that a
 * test spawns. It may report an edge too many, but it misses none that a path spells out.
 * @param root folder of the repository
 * @param files their paths from the root
 */
export function readReferences(
  root: string,
  files: readonly string[],
  unseen: readonly UnseenEdge[] = [],
): ReferenceGraph {
  const known = new Set(files);
  const packages = readPackages(root, files);
  const folders = new Map<string, string[]>();
  const filesBelow = (folder: string): readonly string[] => {
    let found = folders.get(folder);
    if (found === undefined) {
      found = files.filter((file) => file.startsWith(`${folder}/`));
      folders.set(folder, found);
    }
    return found;
  };
  const resolve = (token: string, from: string): readonly string[] => {
    const entry = packages.get(token);
    if (entry !== undefined) return entry;
    // Tests name pages of the docs without their folder.
    const isPage = token.endsWith(".md") && !token.includes("/");
    const paths = isPage
      ? [`docs/${token}`]
      : [normalize(join(dirname(from), token)), normalize(token)];
    for (const path of paths) {
      if (known.has(path)) return [path];
      const mayBeFolder =
        token.includes("/") &&
        path.includes("/") &&
        !PACKAGE_FOLDER.test(path) &&
        !from.startsWith(`${path}/`);
      if (mayBeFolder && filesBelow(path).length > 0) return filesBelow(path);
    }
    return [];
  };
  const cache = new Map<string, ReadonlySet<string>>();
  const read = (file: string): ReadonlySet<string> => {
    const found = new Set<string>();
    const path = join(root, file);
    const isRead = READABLE.test(file) && !MANIFEST.test(file);
    if (isRead && existsSync(path) && statSync(path).isFile()) {
      for (const [token] of readFileSync(path, "utf8").matchAll(TOKEN)) {
        for (const target of resolve(token, file)) {
          if (!(SOURCE.test(file) && target.startsWith("docs/"))) found.add(target);
        }
      }
    }
    for (const [from, to] of unseen) {
      if (!file.startsWith(from)) continue;
      for (const target of files) if (target.startsWith(to)) found.add(target);
    }
    found.delete(file);
    return found;
  };
  return {
    referencesOf(file) {
      let found = cache.get(file);
      if (found === undefined) {
        found = read(file);
        cache.set(file, found);
      }
      return found;
    },
  };
}

/** Returns the file of each specifier of the workspace, such as `@konverge/queue` or `@konverge/cli/testing`. */
function readPackages(root: string, files: readonly string[]): ReadonlyMap<string, string[]> {
  const packages = new Map<string, string[]>();
  for (const file of files) {
    if (!/^(?:apps|libs|infra)\/[^/]+\/package\.json$/.test(file)) continue;
    const { name, exports } = JSON.parse(readFileSync(join(root, file), "utf8")) as {
      readonly name: string;
      readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
    };
    packages.set(name, [file]);
    for (const [path, target] of Object.entries(exports ?? {})) {
      const source =
        typeof target === "string" ? target : (target["@konverge/source"] ?? target["default"]);
      if (source === undefined) continue;
      packages.set(normalize(join(name, path)).replace(/\/$/, ""), [
        file,
        normalize(join(dirname(file), source)),
      ]);
    }
  }
  return packages;
}
