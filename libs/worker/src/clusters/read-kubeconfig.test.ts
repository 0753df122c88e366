import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { readKubeconfig } from "./read-kubeconfig.ts";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "konverge-read-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

test("reads a regular file, also through a link", async () => {
  const path = join(folder(), "a.yaml");
  writeFileSync(path, "kind: Config # é\n");
  symlinkSync(path, `${path}.link`);
  expect(await readKubeconfig(path)).toBe("kind: Config # é\n");
  expect(await readKubeconfig(`${path}.link`)).toBe("kind: Config # é\n");
});

test("rejects a FIFO without a writer, a directory, a device, a socket and a large file", async () => {
  const path = folder();
  const at = (name: string) => join(path, name);
  execFileSync("mkfifo", [at("fifo")]);
  mkdirSync(at("directory"));
  symlinkSync("/dev/zero", at("device"));
  for (const name of ["fifo", "directory", "device"]) {
    await expect(readKubeconfig(at(name))).rejects.toThrow(
      `${at(name)} is not a regular file; remove it, or rename it`,
    );
  }
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(at("socket"), resolve));
  onTestFinished(() => void server.close());
  await expect(readKubeconfig(at("socket"))).rejects.toThrow("ENXIO");
  writeFileSync(at("large"), "");
  truncateSync(at("large"), 1_048_577);
  await expect(readKubeconfig(at("large"))).rejects.toThrow("has 1048577 bytes");
});
