import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { makeCacheFolder, cacheDirectory } from "../host/cache-directory.js";
import { guard } from "../host/guardian.js";
import { withLock } from "../host/lock.js";
import { EnvtestUnavailable } from "./unavailable.js";

/** Equal to the versions in the two go.mod files; a test compares them. */
export const KUBERNETES_VERSION = "v1.36.3";
export const ETCD_VERSION = "v3.6.8";

const PROGRAMS = ["etcd", "kube-apiserver"];
const VERSION_PACKAGE = "k8s.io/component-base/version";
/** Between two lines of progress, in ms. */
const PROGRESS_MS = 10_000;

/**
 * The folder for this version's programs, built or not. Its name includes a hash of the build's inputs, so that a changed
 * pin never finds old programs.
 * @returns {string}
 */
function builtAssetsDirectory() {
  return join(cacheDirectory(), "envtest", buildKey());
}

/** @returns {string | undefined} the folder, if an earlier build exists */
export function findBuiltAssets() {
  const folder = builtAssetsDirectory();
  return PROGRAMS.every((program) => existsSync(join(folder, program))) ? folder : undefined;
}

/**
 * Builds etcd and kube-apiserver from their Go modules: about five minutes on two cores, 130 MB.
 * The folder appears atomically, and only one build runs at a time.
 * @param {{ log: (line: string) => void }} options
 * @returns {Promise<string>} the folder
 * @throws {EnvtestUnavailable} no Go, no module proxy, a failed compile
 */
export async function buildAssets({ log }) {
  const parent = makeCacheFolder("envtest");
  const target = builtAssetsDirectory();
  const onWait = (/** @type {string} */ owner) =>
    log(`waiting for ${owner} to build the control plane`);
  return await withLock(join(parent, "build.lock"), { onWait }, async () => {
    const built = findBuiltAssets();
    if (built !== undefined) return built;
    const started = Date.now();
    log(
      `building kube-apiserver ${KUBERNETES_VERSION} and etcd ${ETCD_VERSION} from Go modules (about five minutes, once)`,
    );
    // Beside the target, because a rename is atomic only inside one file system.
    const scratch = mkdtempSync(join(parent, "building-"));
    try {
      for (const program of PROGRAMS) await buildProgram(program, scratch, log);
      renameSync(scratch, target);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
    log(`control plane built in ${seconds(started)} s: ${target}`);
    return target;
  });
}

/** @param {string} program @param {string} outDir @param {(line: string) => void} log */
async function buildProgram(program, outDir, log) {
  const cwd = join(import.meta.dirname, program);
  const started = Date.now();
  let compiled = 0;
  const report = () =>
    log(`building ${program}: ${compiled} packages compiled, ${seconds(started)} s`);
  const timer = setInterval(report, PROGRESS_MS);
  try {
    await runGo(
      [
        "build",
        "-v",
        "-trimpath",
        `-ldflags=${linkerFlags(program)}`,
        "-o",
        join(outDir, program),
        ".",
      ],
      {
        cwd,
        onLine: (line) => {
          if (!/[: ]/.test(line)) compiled += 1;
        },
      },
    );
  } finally {
    clearInterval(timer);
  }
  log(`built ${program} in ${seconds(started)} s`);
}

/**
 * Sets the version at link time, because kube-apiserver rejects its own default (`v0.0.0-master`).
 * @param {string} program
 * @returns {string}
 */
function linkerFlags(program) {
  if (program !== "kube-apiserver") return "-s -w";
  const [major, minor] = KUBERNETES_VERSION.slice(1).split(".");
  const values = {
    gitVersion: KUBERNETES_VERSION,
    gitMajor: major,
    gitMinor: minor,
    gitTreeState: "clean",
  };
  const sets = Object.entries(values).map(
    ([name, value]) => `-X ${VERSION_PACKAGE}.${name}=${value}`,
  );
  return ["-s -w", ...sets].join(" ");
}

/** @param {string[]} args @param {{ cwd: string, onLine: (line: string) => void }} options */
async function runGo(args, { cwd, onLine }) {
  const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off", GOFLAGS: "-mod=readonly" };
  const child = spawn("go", args, { cwd, env, stdio: ["ignore", "ignore", "pipe"] });
  // A compiler that outlived us would keep a machine busy for minutes.
  const guardian = guard({ pids: child.pid === undefined ? [] : [child.pid] });
  /** @type {string[]} */
  const tail = [];
  createInterface({ input: child.stderr }).on("line", (line) => {
    onLine(line);
    tail.push(line);
    if (tail.length > 20) tail.shift();
  });
  const code = await new Promise((resolve, reject) => {
    child.once("error", (cause) =>
      reject(
        new EnvtestUnavailable("cannot build the control plane: `go` was not found", {
          fix: "install Go 1.26 or newer (https://go.dev/dl/), or set KUBEBUILDER_ASSETS",
          cause,
        }),
      ),
    );
    child.once("close", resolve);
  }).finally(() => guardian.release());
  if (code === 0) return;
  throw new EnvtestUnavailable(`go build failed with exit code ${code}:\n${tail.join("\n")}`, {
    fix: "check `go version` (1.26 or newer), the module proxy (`go env GOPROXY`) and free disk space (4 GB)",
  });
}

/** @returns {string} versions, platform and a hash of the source files */
function buildKey() {
  const hash = createHash("sha256");
  for (const program of PROGRAMS) {
    const folder = join(import.meta.dirname, program);
    for (const file of readdirSync(folder).toSorted())
      hash.update(readFileSync(join(folder, file)));
  }
  const digest = hash.digest("hex").slice(0, 12);
  return `k8s-${KUBERNETES_VERSION}-etcd-${ETCD_VERSION}-${process.platform}-${process.arch}-${digest}`;
}

/** @param {number} since epoch ms @returns {number} */
function seconds(since) {
  return Math.round((Date.now() - since) / 1000);
}
