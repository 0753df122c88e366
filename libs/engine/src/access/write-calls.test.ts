import type { ApiObject, ResourceType } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import { directHost } from "./call-host.ts";
import { createWriteCalls } from "./write-calls.ts";

test("replace leaves the field managers to the server: an object of the cache has only some", async () => {
  const sent: ApiObject[] = [];
  const client: unknown = {
    resolveType: async () => ConfigMap,
    replace: async (_: ResourceType, object: ApiObject) => {
      sent.push(object);
      return object;
    },
  };
  const { replace } = createWriteCalls(
    directHost(client as KubeClient, "n", { component: "test", onEventError: () => undefined }),
  );
  const metadata = { namespace: "n", name: "a", resourceVersion: "5" };
  const managedFields = [{ manager: "konverge/a", operation: "Apply" }];
  const object = { apiVersion: "v1", kind: "ConfigMap", metadata: { ...metadata, managedFields } };
  await replace(object);
  expect(sent).toEqual([{ apiVersion: "v1", kind: "ConfigMap", metadata }]);
});
