import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";

/**
 * Copies an installation of the published packages to a folder, as npm would install it.
 * @param {{ root: string, placed: readonly import("./locked-packages.js").Placed[],
 *   packed: readonly { readonly name: string, readonly file: string }[], folder: string }} options `folder` receives
 * node_modules
 */
export function copyInstallation({ root, placed, packed, folder }) {
  for (const { path, from, isOwn } of placed) {
    const target = join(folder, path);
    mkdirSync(target, { recursive: true });
    if (isOwn)
      unpack(packed.find(({ name }) => path === `node_modules/${name}`)?.file, path, target);
    else copyPackage(join(root, from), target);
  }
  // Stops the search for a manifest. Modules of a configuration file in this folder are ES modules even without it.
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
}

/** @param {string | undefined} file @param {string} path @param {string} target */
function unpack(file, path, target) {
  if (file === undefined) throw new Error(`${path} is not packed; pack konverge and its siblings`);
  const args = ["--extract", "--gzip", "--file", file, "--strip-components=1", "--directory"];
  const { status, stderr } = spawnSync("tar", [...args, target], { encoding: "utf8" });
  if (status !== 0) throw new Error(`tar failed for ${file}: ${stderr}`);
}

/** Copies a package without the packages inside it, which are copied separately. @param {string} from @param {string} to */
function copyPackage(from, to) {
  cpSync(from, to, {
    recursive: true,
    filter: (path) => relative(from, path).split("/")[0] !== "node_modules",
  });
}
