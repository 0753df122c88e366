import { expect, test } from "vitest";
import { sendRaw } from "./raw-call.ts";
import type { CallParts, ScopedCalls } from "./scoped-calls.ts";

/** The calls of a scope whose writes are dry runs. */
function setUp() {
  const paths: string[] = [];
  const bodies: unknown[] = [];
  const calls: unknown = {
    dryRun: "All",
    send: async ({ path, body }: CallParts) => {
      paths.push(path);
      bodies.push(body);
      return { status: 200, headers: {}, text: "", value: {} };
    },
  };
  return { paths, bodies, calls: calls as ScopedCalls };
}

test("adds the query to that of the path", async () => {
  const { calls, paths } = setUp();
  await sendRaw(calls, { method: "POST", path: "/api/v1/nodes?a=b", body: {} });
  await sendRaw(calls, { method: "POST", path: "/api/v1/nodes", query: { c: "d" }, body: {} });
  await sendRaw(calls, { method: "GET", path: "/version" });
  expect(paths).toEqual([
    "/api/v1/nodes?a=b&dryRun=All",
    "/api/v1/nodes?c=d&dryRun=All",
    "/version",
  ]);
});

test("a dry run of a deletion with options has its own option, because the server ignores the query", async () => {
  const { calls, bodies } = setUp();
  const path = "/api/v1/nodes/a";
  await sendRaw(calls, { method: "DELETE", path, body: { gracePeriodSeconds: 0 } });
  await sendRaw(calls, { method: "DELETE", path });
  expect(bodies).toEqual(['{"gracePeriodSeconds":0,"dryRun":["All"]}', undefined]);
});

test("rejects a dry run of a request to a program", async () => {
  const { calls, paths } = setUp();
  const pod = "/api/v1/namespaces/n/pods/a";
  for (const [method, path] of [
    ["POST", `${pod}/exec?command=ls`],
    ["GET", `${pod}/attach`],
    ["PUT", `${pod}/proxy/x`],
  ] as const) {
    await expect(sendRaw(calls, { method, path })).rejects.toMatchObject({
      code: "invalid_request",
      message: expect.stringContaining("has no dry run") as string,
    });
  }
  await sendRaw(calls, { method: "GET", path: `${pod}/proxy/x` });
  expect(paths).toEqual([`${pod}/proxy/x`]);
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
