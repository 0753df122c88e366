import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { withLock } from "../host/lock.js";
import { succeeds } from "../host/run.js";
import { SetupError } from "./setup-error.js";

const PROJECT = "apps/dashboard";
/** Folders whose files end up in the pages. */
const SOURCES = [`${PROJECT}/browser`, "libs/core/src", "docs"];

/**
 * Builds the dashboard's pages if its sources have changed: half a second, or some milliseconds without a change. Pages
 * are built nowhere else: existing ones may be open in a browser, and are missing for a moment during a build.
 * @param {string} root of the repository, packages installed
 * @param {string} node the program that runs Vite
 * @param {(line: string) => void} log
 */
export async function ensureDashboard(root, node, log) {
  if (isFresh(root)) return;
  const name = createHash("sha256").update(root).digest("hex").slice(0, 12);
  const lock = join(tmpdir(), `konverge-dashboard-${name}.lock`);
  const onWait = (/** @type {string} */ owner) =>
    log(`waiting for ${owner}, which is building the dashboard`);
  await withLock(lock, { onWait }, () => {
    // The process that held the lock may have done it.
    if (isFresh(root)) return;
    log("building the dashboard");
    const vite = join(root, "node_modules", "vite", "bin", "vite.js");
    if (!succeeds(node, [vite, "build"], { cwd: join(root, PROJECT) })) {
      throw new SetupError(
        "the dashboard build failed; Vite's own message is above",
        `run \`npx vite build\` in ${PROJECT}`,
      );
    }
    writeFileSync(stampPath(root), stampOf(root));
  });
}

/** @param {string} root @returns {boolean} */
function isFresh(root) {
  const path = stampPath(root);
  return existsSync(path) && readFileSync(path, "utf8") === stampOf(root);
}

/** @param {string} root */
function stampPath(root) {
  return join(root, PROJECT, "dist", "public", ".stamp");
}

/** @param {string} root @returns {string} changes with every source, and with the build tools */
function stampOf(root) {
  const files = SOURCES.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((file) => join(root, folder, file))
      .filter((file) => statSync(file).isFile()),
  );
  const others = ["vite.config.ts", "third-party-notices.ts"].map((file) =>
    join(root, PROJECT, file),
  );
  others.push(join(root, "package-lock.json"));
  const hash = createHash("sha256");
  for (const file of [...files.toSorted(), ...others]) {
    hash.update(`${relative(root, file)}\n`).update(readFileSync(file));
  }
  return hash.digest("hex");
}
