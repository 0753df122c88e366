import type { ApprovalList } from "@konverge/contracts";
import { formatKey } from "@konverge/core";
import { createApprovalStore, proposed } from "@konverge/queue";
import { expect, test } from "vitest";
import { keyOf } from "../queue/queue-harness.ts";
import { useApi } from "./api-harness.ts";

const harness = useApi();

test("lists plans of equal times in the order of their keys", async () => {
  const { redis, prefix } = harness.queues;
  const store = createApprovalStore(redis, { prefix, cluster: "default" });
  const propose = async (name: string, since: string) => {
    const key = formatKey(keyOf(name));
    const asked = { controller: "node-pool", hash: "h", by: 1, role: "operator" as const };
    const summary = { created: 0, changed: 0, deleted: 1, replaced: 0, unchanged: 0 };
    await store.change(key, (current) =>
      proposed(current, { ...asked, key, summary, requesters: [], since }),
    );
  };
  const now = "2026-01-02T00:00:00.000Z";
  for (const name of ["delta", "alpha", "echo", "bravo", "charlie"]) await propose(name, now);
  await propose("zulu", "2026-01-01T00:00:00.000Z");
  const response = await harness.serve()("/v1/approvals");
  const { items } = (await response.json()) as ApprovalList;
  const names = ["zulu", "alpha", "bravo", "charlie", "delta", "echo"];
  expect(items.map(({ name }) => name)).toEqual(names);
});
