import { KonvergeError, type ResourceType } from "@konverge/core";
import { expect, test } from "vitest";
import { isServed } from "./is-served.ts";
import { KubeApiError } from "../errors/kube-api-error.ts";
import type { KubeClient } from "../contract/kube-client.ts";

const type: ResourceType = {
  group: "demo.konverge.dev",
  version: "v1",
  kind: "Widget",
  resource: "widgets",
  scope: "Namespaced",
};
const served = (answers: { readonly list?: Error; readonly discovery?: Error }) => {
  const client = {
    async list() {
      if (answers.list !== undefined) throw answers.list;
    },
    async resolveType() {
      if (answers.discovery !== undefined) throw answers.discovery;
    },
  } as unknown as KubeClient;
  return isServed(client, type);
};
const refusal = (status: number, reason: string) => new KubeApiError(reason, { status, reason });

test("a kind is served once its objects and its discovery are", async () => {
  expect(await served({})).toBe(true);
  expect(await served({ list: refusal(404, "NotFound") })).toBe(false);
  expect(await served({ list: refusal(429, "TooManyRequests") })).toBe(false);
  expect(await served({ discovery: new KonvergeError("not_found", "no such kind") })).toBe(false);
});

test("rethrows errors that say nothing about the kind", async () => {
  await expect(served({ list: refusal(403, "Forbidden") })).rejects.toThrow("Forbidden");
  const unreachable = new KonvergeError("kube_unreachable", "connection refused");
  await expect(served({ discovery: unreachable })).rejects.toThrow(unreachable);
});
