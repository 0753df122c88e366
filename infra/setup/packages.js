import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { withLock } from "../host/lock.js";
import { isOnPath, succeeds } from "../host/run.js";
import { SetupError } from "./setup-error.js";
import { differences } from "./lock-file.js";

/**
 * Installs the packages of package-lock.json. Takes some milliseconds if they are installed already.
 * @param {string} root of the repository
 * @param {(line: string) => void} log
 */
export async function ensurePackages(root, log) {
  const why = reasonToInstall(root);
  if (why === undefined) return;
  const lock = join(
    tmpdir(),
    `konverge-setup-${createHash("sha256").update(root).digest("hex").slice(0, 12)}.lock`,
  );
  const onWait = (/** @type {string} */ owner) =>
    log(`waiting for ${owner}, which is installing packages`);
  await withLock(lock, { onWait }, () => {
    // The process that held the lock may have done it.
    const still = reasonToInstall(root);
    if (still === undefined) return;
    log(`installing npm packages: ${still}`);
    install(root);
    writeStamp(root);
  });
}

/** @param {string} root */
function install(root) {
  const env = outsideEnvironment(root);
  if (!isOnPath("npm", env)) {
    throw new SetupError(
      "npm is not on PATH",
      "install Node.js with npm (https://nodejs.org), then start again",
    );
  }
  try {
    accessSync(root, constants.W_OK);
  } catch (cause) {
    throw new SetupError(
      `${root} is not writable`,
      "make it writable, or clone the repository elsewhere",
      cause,
    );
  }
  // Both kinds are needed even if NODE_ENV or npm's configuration omits them by default.
  const args = [
    "ci",
    "--include=dev",
    "--include=optional",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    "--loglevel=error",
  ];
  if (succeeds("npm", args, { cwd: root, env })) return;
  throw new SetupError(
    "`npm ci` failed; its own message is above",
    "check the network and the registry (`npm ping`), then start again; `npm ci --loglevel=verbose` shows more",
  );
}

/**
 * Removes node_modules/.bin from PATH, where `npm run` puts it first: npm must not run on the Node in there, which it
 * replaces.
 * @param {string} root @returns {NodeJS.ProcessEnv}
 */
function outsideEnvironment(root) {
  const folders = (process.env.PATH ?? "").split(delimiter);
  return {
    ...process.env,
    PATH: folders.filter((folder) => folder !== join(root, "node_modules", ".bin")).join(delimiter),
  };
}

/** @param {string} root @returns {string | undefined} undefined if all packages are installed */
function reasonToInstall(root) {
  const stamp = read(stampPath(root));
  if (stamp !== undefined && stamp === stampOf(root)) return undefined;
  const installed = read(join(root, "node_modules", ".package-lock.json"));
  if (installed === undefined) return "none are installed yet";
  if (stamp !== undefined && stamp.split(" ")[1] !== systemName())
    return `they were installed for ${stamp.split(" ")[1]}`;
  // Installed manually (`npm install`), or the lock file changed without a change of packages.
  const locked = readFileSync(join(root, "package-lock.json"), "utf8");
  const different = differences(JSON.parse(locked), JSON.parse(installed));
  if (different.length > 0) return `package-lock.json changed (${different.length} packages)`;
  writeStamp(root);
  return undefined;
}

/** @param {string} root @returns {string} the stamp of a complete installation: the lock file's hash and the system */
function stampOf(root) {
  const hash = createHash("sha256")
    .update(readFileSync(join(root, "package-lock.json")))
    .digest("hex");
  return `${hash} ${systemName()}`;
}

function systemName() {
  return `${process.platform}-${process.arch}`;
}

/** @param {string} root */
function writeStamp(root) {
  try {
    writeFileSync(stampPath(root), stampOf(root));
  } catch (error) {
    // A read-only checkout with everything installed still works; the comparison is only repeated next time.
    if (
      !["EROFS", "EACCES", "EPERM"].includes(
        /** @type {NodeJS.ErrnoException} */ (error).code ?? "",
      )
    )
      throw error;
  }
}

/** @param {string} root */
function stampPath(root) {
  return join(root, "node_modules", ".konverge-setup");
}

/** @param {string} path @returns {string | undefined} */
function read(path) {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
