import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * @typedef {import("./locked-packages.js").Placed} Placed
 * @typedef {{ readonly [field: string]: unknown }} Component a component of CycloneDX
 */

/**
 * Returns the SBOM of an installation as CycloneDX JSON, made by `npm sbom`. The same input gives the same text: the
 * serial number follows from the content, and the time is that of the release.
 * @param {{ name: string, version: string, placed: readonly Placed[], created: Date, others?: readonly Component[] }}
 * options `others` are components that are not npm packages
 * @returns {string}
 */
export function makeSbom({ name, version, placed, created, others = [] }) {
  const bom = npmSbom({ name, version, placed });
  const components = [...bom.components, ...others].toSorted(byRef);
  const content = {
    ...bom,
    metadata: { ...bom.metadata, timestamp: created.toISOString() },
    components,
    dependencies: bom.dependencies
      .map(({ ref, dependsOn = [] }) => ({ ref, dependsOn: dependsOn.toSorted() }))
      .toSorted((a, b) => (a.ref < b.ref ? -1 : 1)),
  };
  const { serialNumber: _random, ...rest } = content;
  const hash = createHash("sha256").update(JSON.stringify(rest)).digest("hex");
  return `${JSON.stringify({ ...content, serialNumber: `urn:uuid:${uuidOf(hash)}` }, null, 2)}\n`;
}

/** @param {Component} a @param {Component} b @returns {number} */
const byRef = (a, b) => (String(a["bom-ref"]) < String(b["bom-ref"]) ? -1 : 1);

/** @param {string} hash @returns {string} a UUID of version 8, which permits custom formats */
function uuidOf(hash) {
  const parts = [hash.slice(0, 8), hash.slice(8, 12), `8${hash.slice(13, 16)}`];
  return [...parts, `a${hash.slice(17, 20)}`, hash.slice(20, 32)].join("-");
}

/**
 * @param {{ name: string, version: string, placed: readonly Placed[] }} options
 * @returns {{ metadata: object, serialNumber?: string, components: Component[],
 *   dependencies: { ref: string, dependsOn?: string[] }[] }}
 */
function npmSbom({ name, version, placed }) {
  const top = placed.filter(({ path, isOwn }) => isOwn && path.lastIndexOf("node_modules/") === 0);
  const versionOf = Object.fromEntries(
    top.map(({ path, locked }) => [nameOf(path), locked.version]),
  );
  const project = { name, version, license: "Apache-2.0", dependencies: versionOf };
  const packages = placed.map(({ path, locked, isOwn }) => [
    path,
    isOwn ? { ...locked, dependencies: exact(locked.dependencies, versionOf) } : locked,
  ]);
  const lock = {
    name,
    version,
    lockfileVersion: 3,
    requires: true,
    packages: { "": project, ...Object.fromEntries(packages) },
  };
  const folder = mkdtempSync(join(tmpdir(), "konverge-sbom-"));
  try {
    writeFileSync(join(folder, "package.json"), JSON.stringify(project));
    writeFileSync(join(folder, "package-lock.json"), JSON.stringify(lock));
    const args = ["sbom", "--sbom-format", "cyclonedx", "--package-lock-only", "--loglevel=error"];
    const { status, stdout, stderr } = spawnSync("npm", args, {
      cwd: folder,
      encoding: "utf8",
      maxBuffer: 1e8,
    });
    if (status !== 0) throw new Error(`npm sbom failed with ${status}: ${stderr}${stdout}`);
    const bom = JSON.parse(stdout);
    // npm names the project by its folder.
    bom.metadata.component.name = name;
    return bom;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} path @returns {string} */
const nameOf = (path) => path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length);

/** @param {Record<string, string> | undefined} dependencies @param {Record<string, string | undefined>} versionOf */
function exact(dependencies = {}, versionOf) {
  return Object.fromEntries(
    Object.entries(dependencies).map(([name, range]) => [name, versionOf[name] ?? range]),
  );
}
