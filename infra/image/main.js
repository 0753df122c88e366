import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { packPackages } from "../pack/pack-packages.js";
import { commitTime } from "../release/check-release.js";
import { buildImage } from "./build-image.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const out = resolve(process.argv[2] ?? "image");
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const packages = mkdtempSync(join(tmpdir(), "konverge-packages-"));
try {
  const packed = packPackages({ root, names: ["konverge"], out: packages });
  const created = commitTime(root);
  const { digest, size, sbom } = buildImage({ root, out, version, created, packed });
  writeFileSync(`${out}.cdx.json`, sbom);
  console.log(`${out}: ${digest}, ${Math.ceil(size / 1e6)} MB`);
} finally {
  rmSync(packages, { recursive: true, force: true });
}
