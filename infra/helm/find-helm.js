import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, makeCacheFolder } from "../host/cache-directory.js";
import { withLock } from "../host/lock.js";
import { isOnPath, outputOf } from "../host/run.js";

/** As in tool/go.mod; a test holds them together. */
export const HELM_VERSION = "v3.22.0";

const TOOL = join(import.meta.dirname, "tool");
/** A build without them takes every cluster for Kubernetes 1.20 and refuses the chart. */
const KUBERNETES = { Major: "1", Minor: "36" };

/**
 * Finds Helm 3: `HELM`, an earlier build, the one on PATH, and, only where `CI=true` or `build` asks for it, a build from its Go
 * modules: a minute or two on two cores, 60 MB, once.
 * @param {{ log?: (line: string) => void, build?: boolean, env?: NodeJS.ProcessEnv }} [options]
 * @returns {Promise<{ path: string } | { missing: string }>} the program, or why there is none
 */
export async function findHelm({ log = () => undefined, build = false, env = process.env } = {}) {
  if (env.HELM) return { path: env.HELM };
  const target = builtPath();
  if (existsSync(target)) return { path: target };
  if (isOnPath("helm", env) && outputOf("helm", ["version", "--short"]).startsWith("v3.")) {
    return { path: "helm" };
  }
  if (!build && env.CI !== "true") {
    return {
      missing: "no Helm 3: set HELM to one, install it, or set CI=true to build it with Go",
    };
  }
  if (!isOnPath("go", env)) {
    return { missing: "no Helm 3, and no Go to build it with: set HELM to one, or install either" };
  }
  return await buildHelm(target, log);
}

/** @returns {string} where a build of these pins is, or will be */
function builtPath() {
  const hash = createHash("sha256").update(linkerFlags());
  for (const file of ["go.mod", "go.sum"]) hash.update(readFileSync(join(TOOL, file)));
  const key = `${HELM_VERSION}-${process.platform}-${process.arch}-${hash.digest("hex").slice(0, 12)}`;
  return join(cacheDirectory(), "helm", key, "helm");
}

function linkerFlags() {
  const sets = Object.entries(KUBERNETES).flatMap(([part, value]) =>
    ["pkg/lint/rules", "pkg/chartutil"].map(
      (folder) => `-X helm.sh/helm/v3/${folder}.k8sVersion${part}=${value}`,
    ),
  );
  return ["-s -w", `-X helm.sh/helm/v3/internal/version.version=${HELM_VERSION}`, ...sets].join(
    " ",
  );
}

/** @param {string} target @param {(line: string) => void} log */
async function buildHelm(target, log) {
  const parent = makeCacheFolder("helm");
  return await withLock(join(parent, "build.lock"), {}, async () => {
    if (existsSync(target)) return { path: target };
    log(`building Helm ${HELM_VERSION} from Go modules, once`);
    // Beside the target, because a rename is atomic only inside one file system.
    const scratch = mkdtempSync(join(parent, "building-"));
    try {
      const args = ["build", "-trimpath", `-ldflags=${linkerFlags()}`, "-o", join(scratch, "helm")];
      const failure = await runGo([...args, "helm.sh/helm/v3/cmd/helm"]);
      if (failure !== undefined) return { missing: `Helm cannot be built: ${failure}` };
      renameSync(scratch, join(target, ".."));
      return { path: target };
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  });
}

/** @param {string[]} args @returns {Promise<string | undefined>} the last of what it said, if it failed */
async function runGo(args) {
  const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=readonly" };
  const child = spawn("go", args, { cwd: TOOL, env, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said = `${said}${String(chunk)}`.slice(-1_000);
  });
  const code = await new Promise((resolve) => {
    child.once("error", () => resolve(1));
    child.once("close", resolve);
  });
  return code === 0 ? undefined : said.trim();
}
