import { bindCluster, createControllerRegistry } from "@konverge/queue";
import { expect, onTestFinished, test } from "vitest";
import type { Formats } from "../../../libs/queue/src/fleet/format.ts";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";

const harness = useQueues();
const OLD: Formats = { oldest: 1, newest: 1 };
const NEW: Formats = { oldest: 1, newest: 2 };
const NEXT: Formats = { oldest: 2, newest: 3 };
const place = () => ({ redis: harness.target, prefix: harness.prefix, cluster: "default" });
const binding = { uid: "u", shards: 1 };
const formatOf = async () =>
  Number(await harness.redis.hget(`${harness.prefix}:{default}/format`, "format"));

/** Starts a worker of a version: it binds the cluster, announces itself and sends heartbeats. */
async function startWorker(workerId: string, formats: Formats, formatHoldMs = 0) {
  await bindCluster({ ...place(), ...binding, formats });
  const incompatible: Error[] = [];
  const registry = createControllerRegistry({
    ...place(),
    binding,
    formats,
    formatHoldMs,
    onIncompatible: (error) => incompatible.push(error),
  });
  onTestFinished(() => registry.close());
  const worker = { workerId, controllers: [], definitions: {}, role: "all", version: "1" } as const;
  registry.heartbeat({ ...worker, startedAt: "2026-01-01T00:00:00Z", host: "h" });
  await until("it is listed", async () =>
    (await registry.listWorkers()).some((listed) => listed.workerId === workerId),
  );
  return { incompatible, stop: () => registry.close() };
}

test("stamps new data with the newest format, and unstamped data with the first", async () => {
  await bindCluster({ ...place(), ...binding, formats: NEW });
  expect(await formatOf()).toBe(2);
  await harness.redis.del(`${harness.prefix}:{default}/format`);
  await bindCluster({ ...place(), ...binding, formats: NEW });
  expect(await formatOf()).toBe(1);
});

test("keeps the format while an older worker lives, and raises it after the last one", async () => {
  const old = await startWorker("old", OLD);
  await startWorker("new", NEW);
  expect(await formatOf()).toBe(1);
  // Another old worker may start, and so may a rollback.
  await bindCluster({ ...place(), ...binding, formats: OLD });
  await old.stop();
  await until("the format is raised", async () => (await formatOf()) === 2);
  await expect(bindCluster({ ...place(), ...binding, formats: OLD })).rejects.toMatchObject({
    code: "format_mismatch",
    message: expect.stringContaining("has format 2, but this version uses format 1;") as string,
  });
});

test("keeps the format for a rollback after the last older worker has gone", async () => {
  const old = await startWorker("old", OLD);
  await startWorker("new", NEW, 3_600_000);
  await old.stop();
  const hash = `${harness.prefix}:{default}/format`;
  await until("the end of the old worker is noted", () => harness.redis.hexists(hash, "olderAt"));
  const noted = Number(await harness.redis.hget(hash, "olderAt"));
  expect(await formatOf()).toBe(1);
  await bindCluster({ ...place(), ...binding, formats: OLD });
  // The time has passed.
  await harness.redis.hset(hash, "olderAt", noted - 3_600_001);
  await until("the format is raised", async () => (await formatOf()) === 2);
});

test("after a rollback, the time for another one starts again", async () => {
  const hash = `${harness.prefix}:{default}/format`;
  const old = await startWorker("old", OLD);
  const upgraded = await startWorker("new", NEW, 3_600_000);
  await until("the upgrade is noted", () => harness.redis.hexists(hash, "olderAt"));
  await upgraded.stop();
  // Older workers ran for two hours, and were stopped before the next upgrade.
  await old.stop();
  const fields = await harness.redis.hgetall(hash);
  const { format, ...times } = fields;
  for (const [name, time] of Object.entries(times)) {
    await harness.redis.hset(hash, name, Number(time) - 7_200_000);
  }
  await startWorker("again", NEW, 3_600_000);
  await until("the upgrade is noted again", async () => {
    return Number(await harness.redis.hget(hash, "olderAt")) >= Number(fields["olderAt"]);
  });
  expect(await formatOf()).toBe(Number(format));
});

test("stops a worker whose format was left behind while it started", async () => {
  const old = await startWorker("old", OLD);
  await harness.redis.hset(`${harness.prefix}:{default}/format`, "format", 2);
  await until("it is stopped", () => old.incompatible.length > 0);
  expect(old.incompatible[0]).toMatchObject({ code: "format_mismatch" });
});

test("rejects data that is two formats older, and names the next one", async () => {
  await bindCluster({ ...place(), ...binding, formats: OLD });
  await expect(bindCluster({ ...place(), ...binding, formats: NEXT })).rejects.toMatchObject({
    code: "format_mismatch",
    message: expect.stringContaining(
      "uses format 2 to 3; upgrade step by step: first to",
    ) as string,
  });
});
