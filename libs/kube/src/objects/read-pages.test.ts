import type { ApiObject } from "@konverge/core";
import { expect, test } from "vitest";
import type { KubeClient } from "../contract/kube-client.ts";
import { KubeApiError } from "../errors/kube-api-error.ts";
import { ConfigMap } from "../names/kinds.ts";
import { readPages } from "./read-pages.ts";

const expired = new KubeApiError("The provided continue parameter is too old", {
  status: 410,
  reason: "Expired",
  verb: "list",
});

async function read(listPage: KubeClient["listPage"]): Promise<unknown[]> {
  const pages: unknown[] = [];
  const options = { options: { limit: 1 }, call: <R>(run: () => Promise<R>) => run() };
  for await (const page of readPages({ listPage }, ConfigMap, options)) pages.push(page);
  return pages;
}

test("names the fix if the server no longer has the version of the list", async () => {
  const page = { items: [] as never[], resourceVersion: "7", continueToken: "next" };
  const failing: KubeClient["listPage"] = async (_, options) => {
    if (options?.continueToken !== undefined) throw expired;
    return page;
  };
  await expect(read(failing)).rejects.toMatchObject({
    code: "list_expired",
    message: expect.stringMatching(/configmaps expired after page 1: .*start the list again/),
    cause: expired,
  });
});

test("passes on the error of a first page, and ends after the last page", async () => {
  await expect(read(() => Promise.reject(expired))).rejects.toBe(expired);
  const last = { items: [{ kind: "ConfigMap" }], resourceVersion: "7" };
  const listPage = (async () => last) as unknown as KubeClient["listPage"];
  expect(await read(listPage)).toEqual([last.items as unknown as ApiObject[]]);
});
