import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { EnvtestUnavailable, resolveAssets } from "@konverge/infra-envtest";

/** Records the call and writes the program that `-o` names. */
const FAKE_GO = `#!/bin/sh
echo "$@" >> "\${0%/*}/calls"
while [ $# -gt 0 ]; do
  if [ "$1" = -o ]; then echo '#!/bin/sh' > "$2"; fi
  shift
done
`;

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "konverge-envtest-"));
  vi.stubEnv("XDG_CACHE_HOME", join(folder, "cache"));
  vi.stubEnv("PATH", "/usr/bin:/bin");
  vi.stubEnv("KUBEBUILDER_ASSETS", undefined);
  vi.stubEnv("CI", undefined);
  vi.stubGlobal("fetch", () => Promise.reject(new Error("no network")));
});
afterEach(() => {
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  rmSync(folder, { recursive: true, force: true });
});

function installFakeGo(): { readonly calls: () => string[] } {
  const bin = join(folder, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "go"), FAKE_GO);
  chmodSync(join(bin, "go"), 0o755);
  vi.stubEnv("PATH", `${bin}:/usr/bin:/bin`);
  const file = join(bin, "calls");
  return { calls: () => readFileSync(file, "utf8").trim().split("\n") };
}

async function resolve(build?: boolean, ci = "") {
  const lines: string[] = [];
  const env = { ...process.env, CI: ci };
  const assets = await resolveAssets({ log: (line) => lines.push(line), build, env });
  return { assets, lines };
}

test("builds the control plane when it cannot be downloaded and Go is there", async () => {
  const go = installFakeGo();
  const { assets, lines } = await resolve(true);
  expect(assets.origin).toBe("built");
  for (const program of ["etcd", "kube-apiserver"])
    expect(existsSync(join(assets.directory, program)), program).toBe(true);
  expect(lines.join("\n")).toMatch(/cannot be downloaded \(.*no network\); building them instead/);
  expect(go.calls()).toHaveLength(2);
});

test("builds once: a second call finds the first build and needs no Go", async () => {
  installFakeGo();
  const first = await resolve(true);
  vi.stubEnv("PATH", "/usr/bin:/bin");
  const second = await resolve();
  expect(second).toEqual({ assets: first.assets, lines: [] });
});

test("builds in CI by default", async () => {
  installFakeGo();
  expect((await resolve(undefined, "true")).assets.origin).toBe("built");
});

test("does not build for a caller that did not opt in", async () => {
  installFakeGo();
  await expect(resolve()).rejects.toThrow(/cannot be downloaded[^]*npm run envtest -- --build/);
});

test("without network and Go the error suggests both fixes", async () => {
  const failure: unknown = await resolve(true).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(EnvtestUnavailable);
  expect(String(failure)).toMatch(
    /cannot be downloaded \(.*no network\), and there is no `go` command[^]*install Go .*KUBEBUILDER_ASSETS/,
  );
});

test("--build builds, prints the folder and exits", () => {
  installFakeGo();
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ["infra/envtest/main.js", "--build"],
    {
      encoding: "utf8",
    },
  );
  expect(stderr).toContain("control plane built in");
  expect(status).toBe(0);
  const built = stdout.trim();
  expect(dirname(built)).toBe(join(folder, "cache", "konverge", "envtest"));
  expect(existsSync(join(built, "kube-apiserver"))).toBe(true);
});
