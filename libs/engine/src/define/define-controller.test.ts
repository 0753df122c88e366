import { Pod, Secret } from "@konverge/kube/kinds";
import { TerminalError, type ErrorIssue, type KonvergeError } from "@konverge/core";
import { expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { defineController } from "./define-controller.ts";
import { conditions, defineResource } from "./define-resource.ts";
import type { Middleware } from "./middleware.ts";

const Pool = defineResource({
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Pool",
  spec: z.object({ replicas: z.int().default(1) }),
  status: z.object({ machines: z.int(), conditions }),
});
const fine = { name: "pool", for: Pool, reconcile: async () => undefined };

function issuesOf(options: object): readonly ErrorIssue[] {
  try {
    defineController({ ...fine, ...options });
    return [];
  } catch (error) {
    return (error as KonvergeError).issues;
  }
}

test.each([
  ["name", "Pool", "/name", "lower-case"],
  ["for", "pools", "/for", "defineResource"],
  ["owns", [Pool, {}], "/owns", "entry 1 must be a resource"],
  ["owns", Pool, "/owns", "must be a list"],
  ["watches", [{ type: Pool }], "/watches", "map must be a function"],
  ["for", { type: "pools" }, "/for", "type must be a resource"],
  ["for", { type: Pool, predicate: "generation" }, "/for", "predicate must be a function"],
  ["for", { type: Pool, when: 1 }, "/for", "when is unknown; valid fields: type, predicate"],
  ["owns", [Pool, { type: Pool, map: 1 }], "/owns", "entry 1 map is unknown"],
  ["concurrency", 0, "/concurrency", "integer >= 1"],
  ["concurrency", 1.5, "/concurrency", "integer >= 1"],
  ["timeout", "soon", "/timeout", "is not a duration"],
  ["timeout", 0, "/timeout", "at least 1 ms"],
  ["timeout", "30d", "/timeout", "24 days"],
  ["resync", -1, "/resync", "is not a duration"],
  ["conflictRetry", "never", "/conflictRetry", "inline, job or both"],
  ["maxFailures", 0, "/maxFailures", "omit it"],
  ["maxLost", 2, "/maxLost", "an integer >= 3"],
  ["agingTime", "1ms", "/agingTime", "at least 100 ms"],
  [
    "resync",
    5,
    "/resync",
    'at least 1000 ms; a number is in milliseconds, so write text such as "5m"',
  ],
  ["weights", { a: -1 }, "/weights/a", "must be a number"],
  ["use", [1], "/use", "entry 0 must be a function"],
  ["reconcile", undefined, "/reconcile", "must be a function"],
  ["cleanup", true, "/cleanup", '"abandon"'],
  ["reconsile", 1, "/reconsile", "is unknown"],
  ["backoff", { failures: {} }, "/backoff/failures", "valid options: conflict, failure, rejected"],
  ["backoff", { failure: 30 }, "/backoff/failure", "write a backoff policy"],
  ["backoff", { failure: { base: 1 } }, "/backoff/failure/base", "valid options: baseMs"],
  ["backoff", { failure: { baseMs: 0 } }, "/backoff/failure/baseMs", "must be > 0"],
  ["backoff", { failure: { capMs: 1 } }, "/backoff/failure/capMs", "must be >= baseMs (250)"],
  ["backoff", { conflict: { factor: 0.5 } }, "/backoff/conflict/factor", "must be >= 1"],
  ["backoff", { inline: { steps: 1.5 } }, "/backoff/inline/steps", "integer >= 0"],
  ["backoff", { rejected: { steps: -1 } }, "/backoff/rejected/steps", "integer >= 0"],
  ["backoff", { rejected: { jitter: "full" } }, "/backoff/rejected/jitter/kind", "proportional"],
])("%s %j is refused at %s", (option, value, pointer, detail) => {
  expect(issuesOf({ [option]: value })).toEqual([
    { pointer, detail: expect.stringContaining(detail) },
  ]);
});

test("reports all option errors together", () => {
  const pointers = issuesOf({ name: "", timeout: "x", backoff: { failure: { baseMs: NaN } } });
  expect(pointers.map(({ pointer }) => pointer)).toEqual([
    "/name",
    "/timeout",
    "/backoff/failure/baseMs",
  ]);
});

test("omitted parts of a backoff policy keep their defaults", () => {
  const { backoff } = defineController({ ...fine, backoff: { failure: { capMs: 60_000 } } });
  expect(backoff.failure).toMatchObject({ baseMs: 250, capMs: 60_000, jitter: { kind: "full" } });
  expect(backoff.conflict).toMatchObject({ baseMs: 50 });
});

test("types the handler context by the resource", () => {
  const never: Middleware = async (_context, next) => next();
  defineController({
    name: "typed",
    for: { type: Pool, predicate: ({ object }) => object.spec.replicas > 0 },
    use: [never],
    reconcile: async ({ object, kube, requeueAfter }) => {
      expectTypeOf(object.spec.replicas).toEqualTypeOf<number>();
      expectTypeOf(object.status?.machines).toEqualTypeOf<number | undefined>();
      await kube.mutateStatus(object, (draft) => {
        // The status of a draft is there, if empty: its fields may be missing.
        expectTypeOf(draft.status.machines).toEqualTypeOf<number | undefined>();
        // @ts-expect-error a status has no such field
        draft.status.machine = 1;
      });
      // @ts-expect-error a spec has no such field
      if (object.spec.replica === 0) throw new TerminalError("never");
      return requeueAfter("30s");
    },
    cleanup: async ({ object }) => {
      expectTypeOf(object.spec.replicas).toEqualTypeOf<number>();
    },
  });
  // @ts-expect-error a number is no result
  defineController({ ...fine, reconcile: async () => 5 });
});

test("types the result of a started run by its workflow", () => {
  const backup = {
    name: "backup",
    version: 1,
    input: { parse: (value: unknown) => value as { target: string } },
    run: async () => ({ bytes: 1 }),
  };
  defineController({
    name: "typed",
    for: Pool,
    reconcile: async ({ startRun }) => {
      const { result } = await startRun(backup, { target: "s3://backups" });
      expectTypeOf(result).toEqualTypeOf<{ bytes: number } | undefined>();
    },
  });
});

test("types the objects of owned and watched kinds by their kinds", () => {
  defineController({
    name: "typed",
    for: Pool,
    owns: [
      Secret,
      { type: Pod, predicate: ({ object }) => object.spec?.nodeName !== undefined },
      { type: Pool, predicate: ({ object, previous }) => object.spec !== previous?.spec },
    ],
    watches: [
      {
        type: Secret,
        predicate: ({ object }) => object.data !== undefined,
        map: (secret) => {
          expectTypeOf(secret.data).toEqualTypeOf<Record<string, string> | undefined>();
          return [];
        },
      },
      {
        type: Pod,
        map: (pod) => {
          expectTypeOf(pod.spec?.nodeName).toEqualTypeOf<string | undefined>();
          return [];
        },
      },
      { type: Pool, map: ({ spec }) => (spec.replicas > 0 ? [] : []) },
    ],
    reconcile: async () => undefined,
  });
});
