import { gzipSync } from "node:zlib";
import { rolldown } from "rolldown";
import { expect, test } from "vitest";

const MOST_BYTES = 6_400;

test("@konverge/client bundles to a browser module without imports, below 6.4 kB gzip", async () => {
  const build = await rolldown({
    input: "libs/client/src/index.ts",
    platform: "browser",
    resolve: { conditionNames: ["@konverge/source"] },
  });
  const { output } = await build.generate({ format: "esm", minify: true });
  await build.close();
  expect(output).toHaveLength(1);
  const [{ code, imports, dynamicImports }] = output;
  expect([...imports, ...dynamicImports]).toEqual([]);
  expect(code).not.toMatch(/\b(process|Buffer|require)\b/);
  expect(gzipSync(code).length).toBeLessThanOrEqual(MOST_BYTES);
  expect(code).toContain("/v1/reconciles");
});
