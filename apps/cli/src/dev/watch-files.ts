import { readdirSync, watch, type FSWatcher } from "node:fs";
import { join, relative } from "node:path";

/** Extensions of source files, which exclude swap files of editors. */
const SOURCE = /\.(ts|mts|cts|js|mjs|cjs|json)$/;

/** Groups several files saved together, and several events of one save. */
const SETTLE_MS = 100;

/**
 * Calls `onChange` with the path, relative to `folder`, of a source file that was saved, created or removed. Ignores hidden
 * folders and node_modules, and reports simultaneous changes once. Returns a function that stops watching.
 */
export function watchFiles(folder: string, onChange: (path: string) => void): () => void {
  const watchers = new Map<string, FSWatcher>();
  let timer: NodeJS.Timeout | undefined;
  const report = (path: string) => {
    clearTimeout(timer);
    timer = setTimeout(() => onChange(relative(folder, path)), SETTLE_MS);
  };
  const add = (directory: string) => {
    if (watchers.has(directory)) return;
    const watcher = watch(directory, (_event, name) => {
      if (name === null) return;
      // A new folder can already contain files.
      if (SOURCE.test(name)) report(join(directory, name));
      else addAll(join(directory, name));
    });
    const forget = () => {
      watcher.close();
      watchers.delete(directory);
    };
    watcher.on("error", forget);
    watchers.set(directory, watcher);
  };
  const addAll = (directory: string) => {
    for (const each of foldersIn(directory)) add(each);
  };
  addAll(folder);
  return () => {
    clearTimeout(timer);
    for (const watcher of watchers.values()) watcher.close();
    watchers.clear();
  };
}

/** Returns the folder and its subfolders, or nothing if it is not a folder or was removed. */
function foldersIn(directory: string): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    const inside = entries
      .filter((entry) => entry.isDirectory())
      .filter(({ name }) => name !== "node_modules" && !name.startsWith("."));
    return [directory, ...inside.flatMap(({ name }) => foldersIn(join(directory, name)))];
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw error;
  }
}
