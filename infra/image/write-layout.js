import { createHash } from "node:crypto";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { archiveFolder } from "../release/archive-folder.js";

const OCI = "application/vnd.oci.image";

/**
 * @typedef {{ readonly mediaType: string, readonly digest: string, readonly size: number }} Descriptor
 * @typedef {{ readonly architecture: string, readonly created: Date, readonly tag: string,
 *   readonly labels: Record<string, string>, readonly config: Record<string, unknown> }} Image
 */

/**
 * Writes an image as an OCI layout. The same files give the same digest: layers contain no times, owners and modes of
 * the machine that builds them.
 * @param {string} out is replaced
 * @param {readonly string[]} folders the files of each layer, lowest first
 * @param {Image} image
 * @returns {{ digest: string, size: number }} of the manifest; the compressed size of all blobs
 */
export function writeLayout(out, folders, { architecture, created, tag, labels, config }) {
  rmSync(out, { recursive: true, force: true });
  const blobs = join(out, "blobs", "sha256");
  mkdirSync(blobs, { recursive: true });
  let size = 0;
  /** @param {string} mediaType @param {object} content @returns {Descriptor} */
  const add = (mediaType, content) => {
    const bytes = Buffer.isBuffer(content) ? content : Buffer.from(JSON.stringify(content));
    const hash = hashOf(bytes);
    writeFileSync(join(blobs, hash), bytes);
    size += bytes.length;
    return { mediaType, digest: `sha256:${hash}`, size: bytes.length };
  };
  const time = created.toISOString();
  /** @type {string[]} */
  const contents = [];
  const layers = folders.map((folder) => {
    const files = archiveFolder(folder, created);
    contents.push(`sha256:${hashOf(files)}`);
    return add(`${OCI}.layer.v1.tar+gzip`, gzipSync(files, { level: 9 }));
  });
  const configured = add(`${OCI}.config.v1+json`, {
    created: time,
    architecture,
    os: "linux",
    config: { ...config, Labels: labels },
    rootfs: { type: "layers", diff_ids: contents },
    history: contents.map(() => ({ created: time, created_by: "npm run image" })),
  });
  const manifest = add(`${OCI}.manifest.v1+json`, {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config: configured,
    layers,
    annotations: labels,
  });
  const index = {
    schemaVersion: 2,
    mediaType: `${OCI}.index.v1+json`,
    manifests: [
      {
        ...manifest,
        platform: { architecture, os: "linux" },
        annotations: { "org.opencontainers.image.ref.name": tag },
      },
    ],
  };
  writeFileSync(join(out, "index.json"), JSON.stringify(index));
  writeFileSync(join(out, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  return { digest: manifest.digest, size };
}

/** @param {Buffer} bytes @returns {string} */
const hashOf = (bytes) => createHash("sha256").update(bytes).digest("hex");
