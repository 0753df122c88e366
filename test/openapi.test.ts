import { createApi, openQueueAccess } from "@konverge/api";
import { openGuardControl } from "@konverge/guard";
import { createMetrics } from "@konverge/telemetry";
import { expect, onTestFinished, test } from "vitest";

/** Returns the OpenAPI document, which needs no Redis. */
async function document(): Promise<unknown> {
  const redis = { url: "redis://127.0.0.1:1" };
  const access = openQueueAccess({ redis, prefix: "konverge", onError: () => undefined });
  const guards = openGuardControl({ redis, prefix: "konverge" });
  onTestFinished(async () => {
    await Promise.all([access.close(), guards.close()]);
  });
  const { fetch } = createApi({
    access,
    guards,
    metrics: createMetrics({ version: "test" }),
    token: undefined,
    inProcess: { user: "test" },
    cluster: "default",
    onError: (error) => {
      throw error;
    },
  });
  const response = await fetch(new Request("http://localhost/v1/openapi.json"));
  expect(response.status).toBe(200);
  return await response.json();
}

// After an intended change: npx vitest run --config test/vitest.config.ts --project unit test/openapi.test.ts -u
test("docs/openapi.json equals the served document", async () => {
  await expect(`${JSON.stringify(await document(), null, 2)}\n`).toMatchFileSnapshot(
    "../docs/openapi.json",
  );
});

test("references resolve and operation IDs are unique", async () => {
  const text = JSON.stringify(await document());
  const parsed = JSON.parse(text) as {
    components: Record<string, Record<string, unknown>>;
    paths: Record<string, Record<string, { operationId: string }>>;
  };
  const lost = [...text.matchAll(/"#\/components\/(\w+)\/([\w.]+)"/g)].filter(
    ([, kind = "", name = ""]) => parsed.components[kind]?.[name] === undefined,
  );
  expect(lost).toEqual([]);
  const ids = Object.values(parsed.paths).flatMap((path) =>
    Object.values(path).map(({ operationId }) => operationId),
  );
  expect(ids.length).toBeGreaterThan(35);
  expect(new Set(ids).size).toBe(ids.length);
});
