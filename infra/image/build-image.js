import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { lockedPackages } from "../release/locked-packages.js";
import { makeSbom } from "../release/sbom.js";
import { createBaseFiles, createNodeFiles } from "./base-files.js";
import { writeLayout } from "./write-layout.js";

/** @typedef {import("./base-files.js").DebianPackage} DebianPackage */

/**
 * Builds the image of the command line without a container engine, for the architecture of this machine. The image
 * contains Debian's libraries, the Node of the npm package `node`, and the packed packages with their dependencies, in
 * the versions of package-lock.json.
 * @param {{ root: string, out: string, version: string, created: Date,
 *   packed: readonly { readonly name: string, readonly file: string }[] }} options `out` is replaced
 * @returns {{ digest: string, size: number, sbom: string }}
 */
export function buildImage({ root, out, version, created, packed }) {
  const stage = mkdtempSync(join(tmpdir(), "konverge-image-"));
  try {
    const base = join(stage, "base");
    const node = join(stage, "node");
    const app = join(stage, "app");
    for (const folder of [base, node, app]) mkdirSync(folder);
    const debian = createBaseFiles(base);
    createNodeFiles(join(root, "node_modules/node/bin/node"), node);
    const placed = copyPackages({ root, packed, folder: join(app, "app") });
    const { homepage, repository, license } = readManifest(root);
    const { digest, size } = writeLayout(out, [base, node, app], {
      architecture: process.arch === "x64" ? "amd64" : process.arch,
      created,
      tag: version,
      labels: {
        "org.opencontainers.image.title": "konverge",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.created": created.toISOString(),
        "org.opencontainers.image.url": homepage,
        "org.opencontainers.image.source": repository.url.replace(/^git\+|\.git$/g, ""),
        "org.opencontainers.image.licenses": license,
      },
      // The same process as in infra/docker/Dockerfile.
      config: {
        User: "1000:1000",
        Env: ["PATH=/usr/local/bin:/usr/bin:/bin", "NODE_ENV=production"],
        Entrypoint: [
          "node",
          "--enable-source-maps",
          "--max-semi-space-size=4",
          "/app/node_modules/konverge/dist/main.js",
        ],
        Cmd: ["--help"],
        WorkingDir: "/app",
        StopSignal: "SIGTERM",
      },
    });
    const others = [nodeComponent(root), ...debian.map(debianComponent)];
    const sbom = makeSbom({ name: "konverge-image", version, placed, created, others });
    return { digest, size, sbom };
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
}

/** @param {string} folder */
const readManifest = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/**
 * @param {{ root: string, folder: string, packed: readonly { readonly name: string, readonly file: string }[] }} options
 * `folder` receives node_modules
 * @returns {readonly import("../release/locked-packages.js").Placed[]} without packages of other systems
 */
function copyPackages({ root, packed, folder }) {
  const placed = lockedPackages({ root, names: ["konverge"] }).filter(
    ({ isOwn, from }) => isOwn || existsSync(join(root, from)),
  );
  for (const { path, from, isOwn } of placed) {
    const target = join(folder, path);
    mkdirSync(target, { recursive: true });
    if (isOwn)
      unpack(packed.find(({ name }) => path === `node_modules/${name}`)?.file, path, target);
    else copyPackage(join(root, from), target);
  }
  // Stops the search for a manifest. Modules of a configuration file in this folder are ES modules even without it.
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  return placed;
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

/** @param {string} root @returns {Record<string, unknown>} */
function nodeComponent(root) {
  const { version } = readManifest(join(root, "node_modules/node"));
  const purl = `pkg:generic/node@${version}`;
  return { "bom-ref": purl, type: "application", name: "node", version, scope: "required", purl };
}

/** @param {DebianPackage} each @returns {Record<string, unknown>} */
function debianComponent({ name, version, architecture }) {
  const id = `${encodeURIComponent(name)}@${encodeURIComponent(version)}`;
  const purl = `pkg:deb/debian/${id}?arch=${architecture}`;
  return { "bom-ref": purl, type: "library", name, version, scope: "required", purl };
}
