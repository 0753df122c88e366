import { clusterRoot } from "@konverge/redis";
import { expect, test } from "vitest";
import { useApi } from "./api-harness.ts";

const api = useApi();
const { queues: harness } = api;

test("no request is sent to data whose format is known to be another one", async () => {
  let sent = 0;
  const request = () =>
    api.access.request("default", "node-pool", async () => {
      sent += 1;
    });
  await request();
  await harness.redis.hset(`${clusterRoot(harness.prefix, "default")}/format`, "format", 99);
  // The first one finds out at the same time.
  await expect(request()).rejects.toMatchObject({ code: "format_mismatch" });
  const before = sent;
  await expect(request()).rejects.toMatchObject({ code: "format_mismatch" });
  expect(sent).toBe(before);
});
