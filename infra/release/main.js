// Creates all files of a release. It publishes nothing: it prints the commands that need credentials.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { packPackages } from "../pack/pack-packages.js";
import { checkRelease, commitTime } from "./check-release.js";
import { createKrewPlugin } from "./krew-plugin.js";
import { lockedPackages } from "./locked-packages.js";
import { makeSbom } from "./sbom.js";

const USAGE = "npm run release -- [--dry-run] [--out DIR]";
const PUBLISHED = ["konverge", "@konverge/demo"];
const root = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
const log = (/** @type {string} */ line) => console.error(`release: ${line}`);

process.exitCode = main();

/** @returns {number} the exit code */
function main() {
  const { values, problem } = readArguments();
  if (problem !== undefined) {
    log(`${problem}\n${USAGE}`);
    return 2;
  }
  const isDry = values["dry-run"] === true;
  const out = resolve(values.out ?? "release");
  const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const problems = checkRelease({ root, version });
  for (const each of problems) log(each);
  if (problems.length > 0 && !isDry) {
    log(`${version} cannot be released; fix these, or pass --dry-run to create the files anyway`);
    return 1;
  }
  build();
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const packed = packPackages({ root, names: PUBLISHED, out });
  const placed = lockedPackages({ root, names: PUBLISHED });
  const created = commitTime(root);
  const sbom = makeSbom({ name: "konverge-packages", version, placed, created });
  writeFileSync(join(out, `konverge-${version}.cdx.json`), sbom);
  createKrewPlugin({ root, out, version, created, packed });
  writeFileSync(join(out, "SHA256SUMS"), checksums(out));
  console.log(
    `${relative(process.cwd(), out)}: ${packed.length} packages, kubectl plugin, SBOM and SHA256SUMS`,
  );
  console.log(isDry ? "A release runs:" : "To release, run:");
  for (const command of commands({ version, out, packed })) console.log(`  ${command}`);
  return 0;
}

function readArguments() {
  try {
    const options = /** @type {const} */ ({
      "dry-run": { type: "boolean" },
      out: { type: "string" },
    });
    return { values: parseArgs({ options }).values };
  } catch (error) {
    return { values: {}, problem: /** @type {Error} */ (error).message };
  }
}

function build() {
  const tsc = join(root, "node_modules/.bin/tsc");
  for (const [program, ...args] of [
    [tsc, "-b", "tsconfig.base.json"],
    [process.execPath, "infra/pack/copy-lua.js"],
  ]) {
    const { status } = spawnSync(String(program), args, { cwd: root, stdio: "inherit" });
    if (status !== 0) throw new Error(`${basename(String(program))} ended with ${status}`);
  }
}

/** @param {string} out @returns {string} in the format of `sha256sum --check` */
function checksums(out) {
  const files = globSync("*", { cwd: out }).toSorted();
  const lines = files.map((file) => {
    const hash = createHash("sha256").update(readFileSync(join(out, file)));
    return `${hash.digest("hex")}  ${file}\n`;
  });
  return lines.join("");
}

/**
 * @param {{ version: string, out: string, packed: readonly { readonly file: string }[] }} release
 * @returns {string[]}
 */
function commands({ version, out, packed }) {
  const folder = relative(process.cwd(), out) || ".";
  return [
    `git tag --sign v${version} --message v${version}`,
    `git push origin v${version}`,
    ...packed.map(({ file }) => `npm publish ./${join(folder, basename(file))} --provenance`),
  ];
}
