import { mkdtempSync, readFileSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runChecks, STATIC_CHECKS } from "./static-checks.ts";

interface Manifest {
  readonly nx: { readonly includedScripts: readonly string[] };
}
interface NxSettings {
  readonly targetDefaults: Readonly<Record<string, { readonly inputs: readonly unknown[] }>>;
  readonly namedInputs: Readonly<Record<string, readonly unknown[]>>;
}
const read = (file: string): unknown => JSON.parse(readFileSync(file, "utf8"));

test("npm run check caches each of its parts, and the unit tests depend on every file", () => {
  const parts = [...STATIC_CHECKS, "test:unit"];
  expect((read("package.json") as Manifest).nx.includedScripts).toEqual(parts);
  const { targetDefaults, namedInputs } = read("nx.json") as NxSettings;
  for (const part of parts) expect(targetDefaults[part]).toMatchObject({ cache: true });
  expect(targetDefaults["test:unit"]?.inputs).toContain("workspace");
  expect(namedInputs["workspace"]).toContain("{workspaceRoot}/**/*");
});

test("a check runs again after an edit in the same second", () => {
  const root = mkdtempSync(join(tmpdir(), "konverge-checks-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  symlinkSync(resolve("node_modules"), join(root, "node_modules"));
  const write = (file: string, text: string) => writeFileSync(join(root, file), text);
  const nx = { includedScripts: ["part"] };
  const scripts = { part: "grep -q good state.txt" };
  write("package.json", JSON.stringify({ name: "root", private: true, scripts, nx }));
  const targetDefaults = { part: { cache: true, inputs: ["{workspaceRoot}/*"] } };
  const settings = { analytics: false, neverConnectToCloud: true, useDaemonProcess: false };
  write("nx.json", JSON.stringify({ ...settings, cacheDirectory: ".nx/cache", targetDefaults }));
  write(".gitignore", "node_modules\n.nx\n");
  const edit = (text: string, at: string) => {
    write("state.txt", text);
    utimesSync(join(root, "state.txt"), new Date(at), new Date(at));
  };
  edit("good", "2026-01-01T00:00:00.100Z");
  // Nx stores its hashes in the second run.
  for (const _ of [1, 2]) expect(runChecks(["part"], { root })).toBe(true);
  edit("evil", "2026-01-01T00:00:00.900Z");
  expect(runChecks(["part"], { root })).toBe(false);
});
