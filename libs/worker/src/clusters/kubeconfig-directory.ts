import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ensureError, invalidConfig, KonvergeError, sleepMs } from "@konverge/core";
import { checkProvided } from "./check-provided.ts";
import type { ClusterProvider, ProvidedCluster, ProvidedOptions } from "./cluster-provider.ts";
import { readKubeconfig } from "./read-kubeconfig.ts";

/** Time between two reads of a directory, in ms. Mounted volumes replace their files by links, which file events miss. */
const READ_EVERY_MS = 1_000;
const EXTENSION = /\.(kubeconfig|yaml|yml)$/;

/** The options of `kubeconfigDirectory`. */
export interface KubeconfigDirectoryOptions {
  /**
   * Path of the directory. Each file with the extension `.kubeconfig`, `.yaml` or `.yml` is a cluster. Hidden files are
   * ignored.
   */
  readonly path: string;
  /** Returns the limits and labels of a cluster. Its name is the file name without the extension. Default: none. */
  readonly options?: (name: string) => ProvidedOptions;
}

/**
 * Provides a cluster for each kubeconfig file of a directory, under the name of the file without its extension. Files may be
 * added, changed and removed while workers run. Write a hidden file and rename it, so that it is not read before it is complete.
 */
export function kubeconfigDirectory({
  path,
  options = () => ({}),
}: KubeconfigDirectoryOptions): ClusterProvider {
  if (typeof path !== "string" || path === "") {
    const detail = "clusters.path: must be the path of a directory";
    throw invalidConfig([{ pointer: "/clusters/path", detail }]);
  }
  if (typeof options !== "function") {
    const detail = "clusters.options: must be a function (name) => options";
    throw invalidConfig([{ pointer: "/clusters/options", detail }]);
  }
  return {
    description: `directory ${path}`,
    async follow({ onClusters, signal, log }) {
      const read = () => readClusters(path, options);
      onClusters(
        await read().catch((error: unknown) => {
          const why = ensureError(error).message;
          throw new KonvergeError("invalid_config", `clusters: cannot read ${path}: ${why}`);
        }),
      );
      void repeat(async () => onClusters(await read()), { signal, log, path });
    },
  };
}

async function repeat(
  read: () => Promise<void>,
  {
    signal,
    log,
    path,
  }: Pick<Parameters<ClusterProvider["follow"]>[0], "signal" | "log"> & { readonly path: string },
): Promise<void> {
  let last = "";
  for (;;) {
    await sleepMs(READ_EVERY_MS, signal).catch(() => undefined);
    if (signal.aborted) return;
    try {
      await read();
      last = "";
    } catch (error) {
      const { message } = ensureError(error);
      // The clusters stay: a directory that cannot be read is not an empty one.
      if (message !== last) log.warn({ path, reason: message }, "clusters not readable");
      last = message;
    }
  }
}

async function readClusters(
  path: string,
  options: NonNullable<KubeconfigDirectoryOptions["options"]>,
): Promise<Map<string, ProvidedCluster | Error>> {
  const files = (await readdir(path))
    .filter((file) => EXTENSION.test(file) && !file.startsWith("."))
    .toSorted();
  const entries = files.map(async (file): Promise<[string, ProvidedCluster | Error]> => {
    const name = file.replace(EXTENSION, "");
    try {
      const text = await readKubeconfig(join(path, file));
      return [
        name,
        checkProvided(name, { kubeconfig: { text, directory: path }, options: options(name) }),
      ];
    } catch (error) {
      return [name, ensureError(error)];
    }
  });
  const found = new Map<string, ProvidedCluster | Error>();
  for (const [name, cluster] of await Promise.all(entries)) {
    const isTwice = found.has(name);
    found.set(name, isTwice ? new Error(`several files of ${path} have this name`) : cluster);
  }
  return found;
}
