import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isKonvergeError } from "@konverge/core";
import { afterAll, expect, test } from "vitest";
import { loadWorkerConfig } from "./load-config.ts";

const folder = mkdtempSync(join(tmpdir(), "konverge-config-"));
afterAll(() => rmSync(folder, { recursive: true }));

async function detailsOf(text: string, env: Readonly<Record<string, string>>): Promise<string[]> {
  const path = join(folder, `${crypto.randomUUID()}.mjs`);
  writeFileSync(path, text);
  try {
    await loadWorkerConfig(path, env);
  } catch (error) {
    if (isKonvergeError(error)) return error.issues.map(({ detail }) => detail);
    throw error;
  }
  return [];
}

test("reports file and environment errors together", async () => {
  const engine = JSON.stringify(import.meta.resolve("@konverge/worker"));
  const wrong = `import { defineConfig } from ${engine}; export default defineConfig({ controllers: [], foo: 1 });`;
  const env = { KONVERGE_REDIS_URL: "nonsense", KONVERGE_METRICS_PORT: "abc" };
  const details = await detailsOf(wrong, env);
  expect(details.map((detail) => detail.split(":")[0])).toEqual([
    "foo",
    "controllers",
    "KONVERGE_REDIS_URL",
    "KONVERGE_METRICS_PORT",
  ]);
  expect(await detailsOf("export default 1", { KONVERGE_PREFIX: "A B" })).toEqual([
    expect.stringContaining("has no configuration as default export"),
    expect.stringMatching(/^KONVERGE_PREFIX: /),
  ]);
  expect(await detailsOf("export default (", {})).toEqual([
    expect.stringContaining("cannot be loaded"),
  ]);
});
