import { expect, test } from "vitest";
import { KubeApiError } from "../errors/kube-api-error.ts";
import type { ListPageOptions, ObjectPage } from "../contract/kube-client.ts";
import { listAll } from "./list-all.ts";

const expired = new KubeApiError("expired", { status: 410, reason: "Expired" });
const script = (pages: readonly (ObjectPage<string> | Error)[]) => {
  const requests: ListPageOptions[] = [];
  const readPage = (options: ListPageOptions) => {
    const page = pages[requests.push(options) - 1];
    if (page === undefined) throw new Error("more pages were requested than exist");
    return page instanceof Error ? Promise.reject(page) : Promise.resolve(page);
  };
  return { requests, readPage };
};

test("collects all pages at the version of the first page", async () => {
  const { requests, readPage } = script([
    { items: ["a"], resourceVersion: "5", continueToken: "t" },
    { items: ["b"], resourceVersion: "5" },
  ]);
  expect(await listAll(readPage, { limit: 1, resourceVersion: "0" })).toEqual({
    items: ["a", "b"],
    resourceVersion: "5",
  });
  expect(requests).toEqual([
    { limit: 1, resourceVersion: "0" },
    { limit: 1, continueToken: "t" },
  ]);
});
test("reads the list again in one piece if a continue token expires", async () => {
  const { requests, readPage } = script([
    { items: ["old"], resourceVersion: "5", continueToken: "t" },
    expired,
    { items: ["a", "b"], resourceVersion: "9" },
  ]);
  expect(await listAll(readPage, {})).toEqual({ items: ["a", "b"], resourceVersion: "9" });
  expect(requests[2]).toEqual({ limit: 0 });
});
test("throws the error of the first page", async () => {
  await expect(listAll(script([expired]).readPage, {})).rejects.toBe(expired);
});
