import { expect, test } from "vitest";
import { formatKey } from "@konverge/core";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
import { watchCommands } from "../../contract/watch-commands.ts";
import { until } from "../../support/until.ts";
import { CLUSTER, CONTROLLER, keyOf, useQueues, workOn } from "./queue-harness.ts";

const harness = useQueues();
const trigger = { kind: "watch", by: "test" } as const;
const namesUpTo = (count: number) => Array.from({ length: count }, (_, n) => `pool-${n}`);

test.each([32, 320, 3_200])(
  "submits %d keys with one script call per 32 of them",
  async (count) => {
    const queue = harness.open();
    await queue.counts();
    using seen = await watchCommands(harness.url);
    await Promise.all(namesUpTo(count).map((name) => queue.submit(keyOf(name), trigger)));
    await harness.redis.set(`${harness.prefix}:end`, "");
    await until("the end", () =>
      seen.commands.some(({ args }) => args[1] === `${harness.prefix}:end`),
    );
    const calls = seen.commands.filter(
      ({ args, byScript }) =>
        !byScript &&
        /^eval/i.test(args[0] ?? "") &&
        args.some((arg) => arg.includes(harness.prefix)),
    );
    // A Redis that does not have the script gets its text in a second call.
    expect(calls.length).toBeLessThanOrEqual(Math.ceil(count / 32) * 1.1 + 1);
    expect((await queue.counts()).waiting).toBe(count);
  },
);

test("a key that Redis refuses delays no other, and is requested once it is healed", async () => {
  const errors: string[] = [];
  const queue = harness.open({ onError: ({ message }) => errors.push(message) });
  const names = queueNames(harness.prefix, CLUSTER, CONTROLLER);
  const poisoned = names.keyHash(formatKey(keyOf("pool-0")));
  await harness.redis.set(poisoned, "not a hash");
  await Promise.all(namesUpTo(50).map((name) => queue.submit(keyOf(name), trigger)));
  expect((await queue.counts()).waiting).toBe(49);
  expect(errors).toEqual([
    expect.stringMatching(/^request for .*pool-0 failed and is repeated: .*WRONGTYPE/),
  ]);
  await harness.redis.del(poisoned);
  await until("it is accepted", async () => (await queue.counts()).waiting === 50);
});

test("the requests of one key arrive in order, whatever their number", async () => {
  const queue = harness.open();
  for (let version = 1; version <= 60; version += 1) {
    void queue.submit(keyOf("pool"), {
      ...trigger,
      resourceVersion: `${version}`,
      generation: version,
    });
  }
  await queue.submit(keyOf("other"), trigger);
  const worker = await until("all are accepted", async () => {
    const state = await queue.getKey(keyOf("pool"));
    return state?.triggers.at(-1)?.generation === 60 && state;
  });
  expect(worker.requested).toBeLessThan(60);
  const worked = workOn(queue, () => ({ kind: "done" }));
  const attempt = await until("the attempt", () =>
    worked.started.find(({ id }) => id.endsWith("/pool")),
  );
  expect(attempt.floor).toBe("60");
  const generations = attempt.triggers.map(({ generation = 0 }) => generation);
  expect(generations).toEqual(generations.toSorted((a, b) => a - b));
});
