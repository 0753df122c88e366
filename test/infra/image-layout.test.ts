import { createHash } from "node:crypto";
import { chmod, mkdir, mkdtempDisposable, readFile, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { writeLayout } from "../../infra/image/write-layout.js";

const run = promisify(execFile);
const image = {
  architecture: "amd64",
  created: new Date("2026-01-02T03:04:05Z"),
  tag: "1.2.3",
  labels: { "org.opencontainers.image.title": "it" },
  config: { User: "1000:1000" },
};

interface Manifest {
  readonly config: { readonly digest: string };
  readonly layers: readonly { readonly digest: string; readonly size: number }[];
}

async function build(root: string, mode: number, time: Date, names: readonly string[]) {
  await mkdir(join(root, "files/folder"), { recursive: true });
  for (const name of names) {
    const file = join(root, "files", name);
    await writeFile(file, name);
    await chmod(file, mode);
    await utimes(file, time, time);
  }
  await chmod(join(root, "files/folder"), mode | 0o111);
  return writeLayout(join(root, "out"), [join(root, "files")], image);
}

test("the same files give the same image, whatever their times, modes and order", async () => {
  await using one = await mkdtempDisposable(join(tmpdir(), "konverge-layout-"));
  await using two = await mkdtempDisposable(join(tmpdir(), "konverge-layout-"));
  const names = ["z", "folder/ä", "folder/B", `folder/${"long".repeat(40)}`];
  const first = await build(one.path, 0o600, new Date("2020-01-01"), names);
  const second = await build(two.path, 0o4666, new Date("2026-06-06"), names.toReversed());
  expect(second).toEqual(first);

  const blob = async (digest: string) => {
    const [kind = "", hash = ""] = digest.split(":");
    const bytes = await readFile(join(two.path, "out/blobs", kind, hash));
    expect(createHash("sha256").update(bytes).digest("hex")).toBe(hash);
    return bytes;
  };
  const index = JSON.parse(await readFile(join(two.path, "out/index.json"), "utf8")) as object;
  expect(index).toMatchObject({
    manifests: [{ digest: second.digest, platform: { os: "linux", architecture: "amd64" } }],
  });
  const { config, layers } = JSON.parse(String(await blob(second.digest))) as Manifest;
  const files = gunzipSync(await blob(layers[0]?.digest ?? ""));
  expect(JSON.parse(String(await blob(config.digest)))).toMatchObject({
    created: "2026-01-02T03:04:05.000Z",
    config: { User: "1000:1000", Labels: image.labels },
    rootfs: { diff_ids: [`sha256:${createHash("sha256").update(files).digest("hex")}`] },
  });
  const tar = join(two.path, "files.tar");
  await writeFile(tar, files);
  const { stdout } = await run("tar", ["--list", "--verbose", "--numeric-owner", "--file", tar]);
  const lines = stdout.trim().split("\n");
  expect(lines).toHaveLength(6);
  // Owned by root, and not writable for others; no file runs with the rights of its owner.
  expect(lines.filter((line) => !/^[-d]rw[x-]r-[x-]r-[x-] 0\/0 /.test(line))).toEqual([]);
});
