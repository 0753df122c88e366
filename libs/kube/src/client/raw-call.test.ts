import { expect, test } from "vitest";
import { sendRaw } from "./raw-call.ts";
import type { CallParts, ScopedCalls } from "./scoped-calls.ts";

/** The calls of a scope whose writes are dry runs. */
function setUp() {
  const paths: string[] = [];
  const calls: unknown = {
    dryRun: "All",
    send: async ({ path }: CallParts) => {
      paths.push(path);
      return { status: 200, headers: {}, text: "", value: {} };
    },
  };
  return { paths, calls: calls as ScopedCalls };
}

test("adds the query to that of the path", async () => {
  const { calls, paths } = setUp();
  await sendRaw(calls, { method: "POST", path: "/api/v1/nodes?a=b", body: {} });
  await sendRaw(calls, { method: "POST", path: "/api/v1/nodes", query: { c: "d" }, body: {} });
  await sendRaw(calls, { method: "GET", path: "/version" });
  expect(paths).toEqual([
    "/api/v1/nodes?a=b&dryRun=All",
    "/api/v1/nodes?dryRun=All&c=d",
    "/version",
  ]);
});

test.each(["/api/v1/nodes", "/api/v1/nodes/a"])("rejects a stream of %s", async (path) => {
  const { calls, paths } = setUp();
  const rejected = { code: "invalid_request", message: expect.stringContaining("cannot stream") };
  await expect(sendRaw(calls, { method: "GET", path, query: { watch: 1 } })).rejects.toMatchObject(
    rejected,
  );
  await expect(sendRaw(calls, { method: "GET", path: `${path}?watch=1` })).rejects.toMatchObject(
    rejected,
  );
  expect(paths).toEqual([]);
});
