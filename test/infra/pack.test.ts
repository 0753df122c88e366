import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmod,
  mkdir,
  mkdtempDisposable,
  readdir,
  readFile,
  utimes,
  writeFile,
} from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { tmpdir } from "node:os";
import { expect, test } from "vitest";

const run = promisify(execFile);
const program = join(import.meta.dirname, "../../infra/pack/pack-packages.js");

const manifest = (fields: object) =>
  JSON.stringify({ version: "1.2.3", description: "A package", private: true, ...fields });

/** Two packages that need no build. The names of the files differ in case and need a locale to sort. */
const FILES: Readonly<Record<string, string>> = {
  LICENSE: "free",
  "package.json": JSON.stringify({
    workspaces: ["apps/*", "libs/*"],
    homepage: "https://example.com",
    repository: { type: "git", url: "git+https://example.com/all.git" },
    bugs: { url: "https://example.com/bugs" },
    keywords: ["all"],
  }),
  "apps/cli/package.json": manifest({
    name: "cli",
    bin: { cli: "./bin/cli.js" },
    files: ["bin", "dist"],
    scripts: { build: "true" },
    dependencies: { lib: "*" },
  }),
  "apps/cli/README.md": "# cli",
  "apps/cli/bin/cli.js": "#!/usr/bin/env node\n",
  "apps/cli/src/index.ts": "export {};",
  "apps/cli/src/index.test.ts": "export {};",
  "apps/cli/dist/index.js": "export {};",
  "apps/cli/dist/B.js": "1;",
  "apps/cli/dist/a.js": "2;",
  "apps/cli/dist/ä.js": "3;",
  "apps/cli/dist/z.js": "4;",
  "libs/lib/package.json": manifest({ name: "lib", exports: { ".": "./dist/index.js" } }),
  "libs/lib/README.md": "# lib",
  "libs/lib/src/index.ts": "export {};",
  "libs/lib/dist/index.js": "export {};",
};

interface Clone {
  readonly umask: string;
  readonly locale: string;
  readonly mode: number;
  readonly time: Date;
  readonly names: readonly string[];
}

const names = Object.keys(FILES);
const clones: readonly [Clone, Clone] = [
  { umask: "022", locale: "C", mode: 0o644, time: new Date("2020-01-01"), names },
  {
    umask: "077",
    locale: "sv_SE.UTF-8",
    mode: 0o600,
    time: new Date("2026-06-06"),
    names: names.toReversed(),
  },
];

async function packClone(root: string, clone: Clone): Promise<string> {
  for (const name of clone.names) {
    const file = join(root, name);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, FILES[name] ?? "");
    await chmod(file, clone.mode);
    await utimes(file, clone.time, clone.time);
  }
  const out = join(root, "out");
  const code = `import(${JSON.stringify(program)}).then((m) => m.packPackages(${JSON.stringify({ root, names: ["cli"], out })}))`;
  const env = { ...process.env, LC_ALL: clone.locale, LANG: clone.locale };
  const script = `umask ${clone.umask}; exec "$0" -e "$1"`;
  await run("sh", ["-c", script, process.execPath, code], { env });
  return out;
}

const hashesOf = async (folder: string) =>
  await Promise.all(
    (await readdir(folder)).toSorted().map(async (file) => {
      const bytes = await readFile(join(folder, file));
      return `${file} ${createHash("sha256").update(bytes).digest("hex")}`;
    }),
  );

test("two clones with other times, modes, umask and locale give the same tarballs", async () => {
  await using first = await mkdtempDisposable(join(tmpdir(), "konverge-pack-"));
  await using second = await mkdtempDisposable(join(tmpdir(), "konverge-pack-"));
  const outs = [await packClone(first.path, clones[0]), await packClone(second.path, clones[1])];
  const [one = [], two] = await Promise.all(outs.map(hashesOf));
  expect(one).toHaveLength(2);
  expect(two).toEqual(one);

  const tarball = join(second.path, "out/cli-1.2.3.tgz");
  const { stdout: listed } = await run("tar", ["tvzf", tarball]);
  expect(listed).toMatch(/^-rwxr-xr-x .*package\/bin\/cli\.js$/m);
  expect(listed).toMatch(/^-rw-r--r-- .*package\/dist\/index\.js$/m);
  const { stdout } = await run("tar", ["xzOf", tarball, "package/package.json"]);
  expect(JSON.parse(stdout)).toEqual({
    name: "cli",
    version: "1.2.3",
    description: "A package",
    bin: { cli: "./bin/cli.js" },
    homepage: "https://example.com",
    repository: {
      type: "git",
      url: "git+https://example.com/all.git",
      directory: "apps/cli",
    },
    bugs: { url: "https://example.com/bugs" },
    keywords: ["all"],
    exports: {},
    dependencies: { lib: "1.2.3" },
    publishConfig: { access: "public" },
  });
});
