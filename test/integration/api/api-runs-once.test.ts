import { fileURLToPath } from "node:url";
import { runListSchema, startRunResponseSchema } from "@konverge/contracts";
import { beforeEach, expect, test } from "vitest";
import { announce } from "../queue/announce.ts";
import { runNames } from "../../../libs/workflow/src/store/run-names.ts";
import { useApi, type Call } from "./api-harness.ts";
import { useChildren } from "../../support/child.ts";

const harness = useApi();
const startChild = useChildren();
const CHILD = fileURLToPath(new URL("api-dying-child.ts", import.meta.url));
const DAY_MS = 24 * 3_600_000;

beforeEach(async () => {
  await announce(harness.queues, [], [{ name: "deploy", version: 1 }]);
});

const start = async (call: Call, key: string, body: object = {}) => {
  const headers = { "idempotency-key": key };
  const response = await call("/v1/runs", { headers, body: { workflow: "deploy", ...body } });
  expect(response.status).toBe(202);
  return startRunResponseSchema.parse(await response.json());
};
const runsOf = async (call: Call) =>
  runListSchema.parse(await (await call("/v1/runs")).json()).items.map(({ id }) => id);
/** As if their time were over. */
const dropAnswers = async () => {
  const { redis, prefix } = harness.queues;
  const kept = await redis.keys(`${prefix}:{answers}/answer/*`);
  if (kept.length > 0) await redis.unlink(...kept);
};

test("starts one run if the API dies before it stores the response", async () => {
  const call = harness.serve();
  const { apiUrl: url, prefix } = harness.queues;
  const body = { workflow: "deploy", input: { name: "web" } };
  const child = startChild([CHILD, url, prefix, "deploy-7", JSON.stringify(body)]);
  expect(await child.exited).toEqual([null, "SIGKILL"]);
  const [id] = await runsOf(call);
  expect(id).toMatch(/^deploy\/default\/[0-9a-f]{32}$/);
  const inFlight = await call("/v1/runs", { headers: { "idempotency-key": "deploy-7" }, body });
  expect(inFlight.status).toBe(409);
  await dropAnswers();
  expect(await start(call, "deploy-7", body)).toEqual({ id, created: true });
  expect(await runsOf(call)).toEqual([id]);
});

test("starts another run for another key, body or caller, or after a day", async () => {
  const call = harness.serve();
  const first = await start(call, "one");
  await dropAnswers();
  expect(await start(call, "one")).toEqual(first);
  expect((await start(call, "two")).id).not.toBe(first.id);
  await dropAnswers();
  expect((await start(call, "one", { input: 1 })).id).not.toBe(first.id);
  const { redis, prefix } = harness.queues;
  const name = runNames(prefix, "default", "deploy").run(first.id.split("/").at(-1) ?? "");
  await redis.hset(name, "createdAt", Date.now() - DAY_MS - 1);
  await dropAnswers();
  const next = await start(call, "one");
  expect(next.id).not.toBe(first.id);
  await dropAnswers();
  expect(await start(call, "one")).toEqual(next);
  expect(await runsOf(call)).toHaveLength(4);
});
