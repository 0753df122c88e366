import { startRunResponseSchema } from "@konverge/contracts";
import { defineWorkflow } from "@konverge/workflow";
import { expect, test } from "vitest";
import { announce } from "../queue/announce.ts";
import { useApi } from "./api-harness.ts";

const RETENTION_MS = 120_000;
const harness = useApi({ runRetentionMs: RETENTION_MS });

test("a run that the API ends is kept as long as the setting says", async () => {
  const { prefix, redis } = harness.queues;
  const workflow = defineWorkflow("kept", { version: 1 }, async () => 1);
  await announce(harness.queues, [], [workflow]);
  const call = harness.serve();
  const started = await call("/v1/runs", { body: { workflow: "kept", id: "a" } });
  const { id } = startRunResponseSchema.parse(await started.json());
  const path = `/v1/runs/${encodeURIComponent(id)}/terminate`;
  const ended = await call(path, { body: { by: "ann", reason: "test" } });
  expect(ended.status).toBe(200);
  const [name = ""] = await redis.keys(`${prefix}:*/run/kept/a`);
  const leftMs = await redis.pttl(name);
  expect(leftMs).toBeGreaterThan(0);
  expect(leftMs).toBeLessThanOrEqual(RETENTION_MS);
});
