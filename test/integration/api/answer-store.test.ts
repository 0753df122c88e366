import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { comparableText } from "@konverge/core";
import { startRedis } from "@konverge/infra-redis";
import { closeRedis, openProducer } from "@konverge/redis";
import { expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { createAnswerStore } from "../../../libs/api/src/kept/answer-store.ts";
import { until } from "../../support/until.ts";
import { seed } from "../../support/test-run.ts";

const REQUEST = comparableText("POST /v1/reconciles");
const answer = (body: string) => ({ status: 202, body });

async function open() {
  const dir = mkdtempSync(join(tmpdir(), "konverge-answers-"));
  let server = await startRedis({ dir });
  const redis = openProducer({ url: server.url });
  const answers = createAnswerStore(redis, "answers");
  onTestFinished(async () => {
    await closeRedis(redis);
    await server.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  await until("Redis is reached", () => redis.status === "ready");
  return {
    redis,
    begin: () => answers.begin("ada", "key", REQUEST),
    stop: () => server.stop(),
    restart: async () => {
      server = await startRedis({ dir, port: server.port });
    },
  };
}

type Begun = Awaited<ReturnType<Awaited<ReturnType<typeof open>>["begin"]>>;

function claimOf(begun: Begun) {
  if ("kept" in begun) throw new Error("the response is stored already");
  return begun.claim;
}

test("stores the response of a request that ended without Redis, once Redis is back", async () => {
  const { begin, stop, restart } = await open();
  const claim = claimOf(await begin());
  await stop();
  await expect(claim.keep(answer("one"))).rejects.toMatchObject({ code: "redis_unavailable" });
  await restart();
  const again = await until("the response is stored", async () => {
    const begun = await begin().catch(() => undefined);
    return begun !== undefined && "kept" in begun && begun;
  });
  expect(again.kept).toEqual(answer("one"));
});

test("deletes the key of a request that failed without Redis, once Redis is back", async () => {
  const { begin, stop, restart } = await open();
  const claim = claimOf(await begin());
  await stop();
  await expect(claim.forget()).rejects.toMatchObject({ code: "redis_unavailable" });
  await restart();
  const begun = await until("the key can be used again", () => begin().catch(() => undefined));
  expect(begun).toHaveProperty("claim");
});

test("random orders: a key has the response of its claim, and no late claim replaces another", async () => {
  console.log(`KONVERGE_TEST_SEED=${seed}`);
  const random = seededRandom(seed);
  const { redis, begin } = await open();
  const claims: ReturnType<typeof claimOf>[] = [];
  const counts = { stored: 0, inFlight: 0, late: 0 };
  /** What the key has: a claim in flight, or the response of one. */
  let held: { of: number; isStored: boolean } | undefined;
  for (let step = 0; step < 400; step += 1) {
    const action = random();
    const of = Math.floor(random() * claims.length);
    const claim = claims[of];
    if (claim === undefined || action < 0.4) {
      const begun = await begin().catch((error: unknown) => {
        expect(error).toMatchObject({ code: "idempotency_in_flight" });
      });
      if (held === undefined) {
        if (begun === undefined) throw new Error(`step ${step}: a free key is in flight`);
        held = { of: claims.push(claimOf(begun)) - 1, isStored: false };
      } else if (held.isStored) {
        expect(begun).toEqual({ kept: answer(`of ${held.of}`) });
        counts.stored += 1;
      } else {
        expect(begun).toBeUndefined();
        counts.inFlight += 1;
      }
    } else if (action < 0.6) {
      await claim.keep(answer(`of ${of}`));
      if (held === undefined || (held.of === of && !held.isStored)) held = { of, isStored: true };
      else counts.late += 1;
    } else if (action < 0.8) {
      await claim.forget();
      if (held?.of === of && !held.isStored) held = undefined;
    } else {
      // Redis has lost the key, or it has expired.
      await redis.flushall();
      held = undefined;
    }
  }
  expect(Math.min(...Object.values(counts))).toBeGreaterThan(10);
});
