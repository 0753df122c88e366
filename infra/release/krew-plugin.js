import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { archiveFolder } from "./archive-folder.js";
import { copyInstallation } from "./copy-installation.js";
import { lockedPackages } from "./locked-packages.js";

/** Files of packages that only compilers and debuggers read. */
const UNUSED = [
  "*.map",
  "*.d.ts",
  "*.d.mts",
  "*.d.cts",
  "node_modules/@konverge/*/src",
  "node_modules/konverge/src",
];

/**
 * Creates the kubectl plugin for krew: an archive with konverge and all packages that it needs, and the manifest of the
 * archive. Krew runs no npm, and packages of one system are left out, so one archive serves Linux and macOS.
 * @param {{ root: string, out: string, version: string, created: Date,
 *   packed: readonly { readonly name: string, readonly file: string }[] }} options
 */
export function createKrewPlugin({ root, out, version, created, packed }) {
  const folder = mkdtempSync(join(tmpdir(), "konverge-krew-"));
  try {
    const placed = lockedPackages({ root, names: ["konverge"] }).filter(
      ({ locked }) => locked.optional !== true,
    );
    copyInstallation({ root, placed, packed, folder });
    cpSync(join(root, "LICENSE"), join(folder, "LICENSE"));
    const archive = gzipSync(archiveFolder(folder, created, UNUSED), { level: 9 });
    const file = `kubectl-konverge-${version}.tar.gz`;
    writeFileSync(join(out, file), archive);
    const sha256 = createHash("sha256").update(archive).digest("hex");
    const { homepage, repository } = readManifest(root);
    const address = repository.url.replace(/^git\+|\.git$/g, "");
    const uri = `${address}/releases/download/v${version}/${file}`;
    const { engines } = readManifest(join(root, "apps/cli"));
    const node = engines.node.replace(">=", "");
    // Krew requires the name of the plugin as the name of the file.
    const manifest = makeManifest({ version, homepage, uri, sha256, node });
    writeFileSync(join(out, "konverge.yaml"), manifest);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder */
const readManifest = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));

/**
 * Returns a manifest in the format of krew (https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/).
 * @param {{ version: string, homepage: string, uri: string, sha256: string, node: string }} values
 * @returns {string}
 */
function makeManifest({ version, homepage, uri, sha256, node }) {
  return `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: konverge
spec:
  version: v${version}
  homepage: ${homepage}
  shortDescription: Inspect and control Konverge controllers
  description: |
    Konverge runs Kubernetes controllers and durable workflows in TypeScript.
    This plugin is its command line: it shows why an object was reconciled and
    what was written, requests reconciles, and controls queues and workflow runs.
  caveats: |
    The plugin needs Node.js ${node} or later on the PATH.
    Set KONVERGE_SERVER to the URL of Konverge's HTTP API, and KONVERGE_TOKEN to a token.
  platforms:
    - selector:
        matchExpressions:
          - key: os
            operator: In
            values: [linux, darwin]
      uri: ${uri}
      sha256: ${sha256}
      bin: node_modules/konverge/bin/kubectl-konverge.js
`;
}
