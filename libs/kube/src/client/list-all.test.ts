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
test("begins again with larger pages whenever a continue token expires", async () => {
  const { requests, readPage } = script([
    { items: ["old"], resourceVersion: "5", continueToken: "t" },
    expired,
    { items: ["older"], resourceVersion: "7", continueToken: "u" },
    expired,
    { items: ["a"], resourceVersion: "9", continueToken: "v" },
    { items: ["b"], resourceVersion: "9" },
  ]);
  expect(await listAll(readPage, {})).toEqual({ items: ["a", "b"], resourceVersion: "9" });
  expect(requests).toEqual([
    {},
    { continueToken: "t" },
    { limit: 2_000 },
    { limit: 2_000, continueToken: "u" },
    { limit: 8_000 },
    { limit: 8_000, continueToken: "v" },
  ]);
});
test("throws the error of the first page", async () => {
  await expect(listAll(script([expired]).readPage, {})).rejects.toBe(expired);
});
