import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { copyInstallation } from "../release/copy-installation.js";
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
    // Without packages for other systems.
    const placed = lockedPackages({ root, names: ["konverge"] }).filter(
      ({ isOwn, from }) => isOwn || existsSync(join(root, from)),
    );
    copyInstallation({ root, placed, packed, folder: join(app, "app") });
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
