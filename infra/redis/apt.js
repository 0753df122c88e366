import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { makeCacheFolder } from "../host/cache-directory.js";
import { outputOf, succeeds } from "../host/run.js";
import { unpackedFolder } from "./find.js";

const POLICY = "/usr/sbin/policy-rc.d";
/** Time to wait for another apt, which may run on a machine that has just booted; in seconds. */
const WAIT_FOR_APT = ["-o", "DPkg::Lock::Timeout=120"];

/**
 * Installs Debian's or Ubuntu's package as root without its service: it runs neither now nor at the next boot.
 * @param {(line: string) => void} log
 * @returns {boolean}
 */
export function installByApt(log) {
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const install = () =>
    succeeds(
      "apt-get",
      [...WAIT_FOR_APT, "install", "-y", "-q", "--no-install-recommends", "redis-server"],
      { env },
    );
  // The package starts its service unless this program forbids it (Debian Policy 9.3.3.1, invoke-rc.d).
  const forbids = !existsSync(POLICY);
  if (forbids) {
    mkdirSync(dirname(POLICY), { recursive: true });
    writeFileSync(POLICY, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  }
  try {
    if (install()) return disableService(log);
    log("apt-get found no package or an outdated one: running apt-get update and retrying");
    return (
      succeeds("apt-get", [...WAIT_FOR_APT, "update", "-q"], { env }) &&
      install() &&
      disableService(log)
    );
  } finally {
    if (forbids) rmSync(POLICY, { force: true });
  }
}

/** @param {(line: string) => void} log @returns {true} the program is installed, even if the service remains enabled */
function disableService(log) {
  const hasSystemd = existsSync("/run/systemd/system");
  if (hasSystemd && !succeeds("systemctl", ["disable", "--quiet", "redis-server.service"])) {
    log("redis-server.service could not be disabled; it may start at the next boot");
  }
  return true;
}

/**
 * Without root: downloads the packages that are not installed and unpacks them into the cache, where only Konverge
 * finds them.
 * @param {(line: string) => void} log
 * @returns {boolean}
 * @throws {Error} `cache_not_writable`
 */
export function unpackByApt(log) {
  const parent = makeCacheFolder("redis");
  // Beside the target, because a rename is atomic only inside one file system.
  const scratch = mkdtempSync(join(parent, "unpacking-"));
  try {
    if (!download(scratch, []) && !downloadWithOwnLists(parent, scratch, log)) return false;
    const root = join(scratch, "root");
    for (const file of readdirSync(scratch).filter((name) => name.endsWith(".deb"))) {
      if (!succeeds("dpkg-deb", ["-x", join(scratch, file), root])) return false;
    }
    const target = unpackedFolder();
    rmSync(target, { recursive: true, force: true });
    renameSync(root, target);
    return true;
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

/** @param {string} folder @param {readonly string[]} settings of apt @returns {boolean} */
function download(folder, settings) {
  const packages = missingPackages(settings);
  return (
    packages.length > 0 &&
    succeeds("apt-get", [...settings, "download", "-q", ...packages], { cwd: folder })
  );
}

/**
 * Downloads package lists into the cache, for machines without them (most container images).
 * @param {string} parent @param {string} scratch @param {(line: string) => void} log @returns {boolean}
 */
function downloadWithOwnLists(parent, scratch, log) {
  log("no package lists on this machine: downloading them temporarily");
  const lists = mkdtempSync(join(parent, "apt-"));
  mkdirSync(join(lists, "partial"));
  const settings = ["-o", `Dir::State::lists=${lists}`, "-o", `Dir::Cache=${lists}`];
  try {
    return succeeds("apt-get", [...settings, "update", "-q"]) && download(scratch, settings);
  } finally {
    rmSync(lists, { recursive: true, force: true });
  }
}

/**
 * Lists redis-server and its dependencies that are not installed.
 * @param {readonly string[]} settings of apt @returns {string[]}
 */
function missingPackages(settings) {
  const only = ["recommends", "suggests", "conflicts", "breaks", "replaces", "enhances"].map(
    (kind) => `--no-${kind}`,
  );
  const listed = outputOf("apt-cache", [
    ...settings,
    "depends",
    "--recurse",
    ...only,
    "redis-server",
  ]);
  // A package is a line without indent; `<name>` is a virtual one.
  const wanted = listed.split("\n").filter((line) => /^[a-z0-9]/.test(line));
  const installed = new Set(
    outputOf("dpkg-query", ["-W", "-f", "${db:Status-Abbrev} ${Package}\n"])
      .split("\n")
      .filter((line) => line.startsWith("ii"))
      .map((line) => line.slice(2).trim()),
  );
  const servers = ["redis-server", "redis-tools"];
  const libraries = wanted.filter(
    (name) => /^(lib|lua)/.test(name) && !installed.has(name.replace(/:.*/, "")),
  );
  return listed === "" ? [] : [...new Set([...servers, ...libraries])];
}
