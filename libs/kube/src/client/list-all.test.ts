import { expect, test } from "vitest";
import { KubeApiError } from "../errors/kube-api-error.ts";
import type { ListPageOptions, ObjectPage } from "../contract/kube-client.ts";
import { listAll } from "./list-all.ts";

const expired = new KubeApiError("expired", { status: 410, reason: "Expired" });
const script = (pages: readonly (ObjectPage<string> | Error)[]) => {
  const asked: ListPageOptions[] = [];
  const readPage = (options: ListPageOptions) => {
    const page = pages[asked.push(options) - 1];
    if (page === undefined) throw new Error("asked for more pages than there are");
    return page instanceof Error ? Promise.reject(page) : Promise.resolve(page);
  };
  return { asked, readPage };
};

test("gathers all pages at the version of the first, which later pages must not repeat", async () => {
  const { asked, readPage } = script([
    { items: ["a"], resourceVersion: "5", continueToken: "t" },
    { items: ["b"], resourceVersion: "5" },
  ]);
  expect(await listAll(readPage, { limit: 1, resourceVersion: "0" })).toEqual({
    items: ["a", "b"],
    resourceVersion: "5",
  });
  expect(asked).toEqual([
    { limit: 1, resourceVersion: "0" },
    { limit: 1, continueToken: "t" },
  ]);
});
test("a token that expires half-way leads to one consistent list, not to a mended one", async () => {
  const { asked, readPage } = script([
    { items: ["old"], resourceVersion: "5", continueToken: "t" },
    expired,
    { items: ["a", "b"], resourceVersion: "9" },
  ]);
  expect(await listAll(readPage, {})).toEqual({ items: ["a", "b"], resourceVersion: "9" });
  expect(asked[2]).toEqual({ limit: 0 });
});
test("a first page that fails is the caller's", async () => {
  await expect(listAll(script([expired]).readPage, {})).rejects.toBe(expired);
});
