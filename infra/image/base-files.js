import { spawnSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { tmpdir } from "node:os";

/** The shared libraries of Node, and the certificates for programs that read the system's. */
const PACKAGES = ["libc6", "libatomic1", "libgcc-s1", "libstdc++6", "ca-certificates"];

/** Parts of the packages that no process reads. The licenses in usr/share/doc stay. */
const UNUSED = [
  "usr/lib/*/gconv",
  "usr/sbin",
  "usr/share/{gcc,gdb,lintian,man}",
  "usr/share/doc/*/!(copyright)",
];

/** No user has a login shell, because the image has no shell. */
const FILES = {
  "etc/passwd": "root:x:0:0:root:/:/nologin\nnode:x:1000:1000:node:/:/nologin\n",
  "etc/group": "root:x:0:\nnode:x:1000:\n",
  "etc/nsswitch.conf": "hosts: files dns\n",
};

/**
 * @typedef {{ readonly name: string, readonly version: string, readonly architecture: string }} DebianPackage
 */

/**
 * Creates the file system below Node in `folder`, from Debian's packages, which apt downloads and verifies.
 * @param {string} folder empty
 * @returns {readonly DebianPackage[]}
 */
export function createBaseFiles(folder) {
  // Debian's layout; packages of older releases still name the folders on the left.
  for (const name of ["bin", "lib", "lib64", "sbin"]) {
    mkdirSync(join(folder, "usr", name), { recursive: true });
    symlinkSync(`usr/${name}`, join(folder, name));
  }
  const downloads = mkdtempSync(join(tmpdir(), "konverge-image-"));
  try {
    run("apt-get", ["download", "--quiet", "--quiet", ...PACKAGES], { cwd: downloads });
    const found = globSync("*.deb", { cwd: downloads })
      .toSorted()
      .map((file) => unpack(join(downloads, file), folder));
    for (const path of UNUSED.flatMap((pattern) => globSync(pattern, { cwd: folder })))
      rmSync(join(folder, path), { recursive: true });
    const certificates = globSync("usr/share/ca-certificates/**/*.crt", { cwd: folder })
      .toSorted()
      .map((path) => readFileSync(join(folder, path), "utf8").trimEnd());
    writeFile(folder, "etc/ssl/certs/ca-certificates.crt", `${certificates.join("\n")}\n`);
    for (const [path, text] of Object.entries(FILES)) writeFile(folder, path, text);
    for (const path of ["tmp", "proc", "dev", "sys"]) mkdirSync(join(folder, path));
    return found;
  } finally {
    rmSync(downloads, { recursive: true, force: true });
  }
}

/** @param {string} node the program @param {string} folder empty */
export function createNodeFiles(node, folder) {
  const target = join(folder, "usr/local/bin/node");
  mkdirSync(dirname(target), { recursive: true });
  cpSync(node, target, { dereference: true });
  chmodSync(target, 0o755);
}

/** @param {string} file @param {string} folder @returns {DebianPackage} */
function unpack(file, folder) {
  const format = "${Package} ${Version} ${Architecture}";
  const described = run("dpkg-deb", ["--show", `--showformat=${format}`, file]).toString();
  const [name = "", version = "", architecture = ""] = described.split(" ");
  const files = run("dpkg-deb", ["--fsys-tarfile", file]);
  const args = ["--extract", "--no-same-owner", "--keep-directory-symlink", "--directory", folder];
  run("tar", args, { input: files });
  return { name, version, architecture };
}

/** @param {string} folder @param {string} path @param {string} text */
function writeFile(folder, path, text) {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

/**
 * @param {string} program @param {readonly string[]} args @param {{ cwd?: string, input?: Buffer }} [options]
 * @returns {Buffer} its stdout
 */
function run(program, args, options = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    ...options,
    maxBuffer: 1e9,
  });
  if (status === 0) return stdout;
  throw new Error(
    `${program} ${args[0]} failed: ${error?.message ?? stderr.toString().trim()}; the image needs Debian or Ubuntu with apt-get, dpkg-deb and GNU tar, and \`apt-get update\` once`,
  );
}
