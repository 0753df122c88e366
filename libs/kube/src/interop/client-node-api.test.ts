import { AppsV1Api, CoreV1Api } from "@kubernetes/client-node";
import { expect, test } from "vitest";
import type { ForwardRequest } from "../contract/forward.ts";
import { createClientNodeApi } from "./client-node-api.ts";

/** Returns the APIs, and the paths of their requests. */
function setUp() {
  const paths: string[] = [];
  const forward = async ({ path }: ForwardRequest) => {
    paths.push(path);
    const text = JSON.stringify({ kind: "Status", status: "Success" });
    const headers = { "content-type": "application/json" };
    const unused = { sent: undefined, value: undefined, error: undefined, target: undefined };
    return { status: 200, headers, text, ...unused };
  };
  return {
    paths,
    core: createClientNodeApi(CoreV1Api, forward),
    apps: createClientNodeApi(AppsV1Api, forward),
  };
}

test.each(["", ".", ".."])(
  "sends no request for the name %j, which addresses a collection or another object",
  async (name) => {
    const { core, paths } = setUp();
    const rejected = { code: "invalid_request", message: expect.stringContaining("set a name") };
    for (const call of [
      () => core.deleteNamespacedConfigMap({ name, namespace: "n" }),
      () => core.deleteNamespacedConfigMap({ name: "a", namespace: name }),
      () => core.readNamespacedPodLog({ name, namespace: "n" }),
      () => core.deleteNode({ name }),
    ]) {
      await expect(call()).rejects.toMatchObject(rejected);
    }
    expect(paths).toEqual([]);
  },
);

test("sends the paths of API groups, which end with a slash, and encoded names", async () => {
  const { core, apps, paths } = setUp();
  await core.getAPIResources();
  await apps.getAPIResources();
  await core.deleteNode({ name: "a.b" });
  await core.deleteNamespacedConfigMap({ name: "a/..", namespace: "n" });
  expect(paths).toEqual([
    "/api/v1/",
    "/apis/apps/v1/",
    "/api/v1/nodes/a.b",
    "/api/v1/namespaces/n/configmaps/a%2F..",
  ]);
});
