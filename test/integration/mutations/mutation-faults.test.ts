import { describe, expect, test } from "vitest";
import { sleepMs } from "@konverge/core";
import { createObjectLanes } from "@konverge/lanes";
import type { KubeClient } from "@konverge/kube";
import type { NewMutation } from "@konverge/mutations";
import { createWorkQueue } from "@konverge/queue";
import { RedisMutationStore } from "../../../libs/mutations/src/store/redis-mutation-store.ts";
import { startMutationWorker } from "../../../libs/mutations/src/worker/mutation-worker.ts";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { testServers } from "../kube/kube-servers.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { OPEN_KINDS, useMutations, type MutationsHarness } from "./mutations-harness.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const queues = useQueues();

/** A deadline that passes during a test, in ms. */
const LATE_MS = 2_000;

class Died extends Error {}

/** Where a worker dies: at a call of the store, or while its write is sent. */
interface Point {
  readonly call: "take" | "journal" | "settle";
  readonly when: "before" | "after";
  /** 1: the first such call. */
  readonly number: number;
}

const POINTS: readonly Point[] = (["take", "journal", "settle"] as const).flatMap((call) =>
  (["before", "after"] as const).flatMap((when) =>
    [1, 2].map((number) => ({ call, when, number })),
  ),
);

/** A store whose worker dies at a point: the call fails, and so does every later one of that worker. */
function mortal(
  store: RedisMutationStore,
  { call, when, number }: Point,
  onDeath: () => void,
): RedisMutationStore {
  let calls = 0;
  let isDead = false;
  return new Proxy(store, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name, target);
      if (typeof own !== "function") return own;
      return async (...args: unknown[]): Promise<unknown> => {
        if (isDead) throw new Died();
        const isIt = name === call && (calls += 1) === number;
        isDead = isIt;
        if (isIt) onDeath();
        if (isIt && when === "before") throw new Died();
        const answer = (await Reflect.apply(own, target, args)) as unknown;
        if (isIt) throw new Died();
        return answer;
      };
    },
  });
}

function startMortal(h: MutationsHarness, point: Point, client: KubeClient = h.relay.client) {
  const place = { prefix: queues.prefix, cluster: "default" };
  const call: ConstructorParameters<typeof RedisMutationStore>[0]["call"] = (run) =>
    run(queues.redis);
  const died = Promise.withResolvers<void>();
  const stored = new RedisMutationStore({ call, ...place, retentionMs: 60_000 });
  const store = mortal(stored, point, died.resolve);
  const queue = createWorkQueue({
    redis: queues.target,
    ...place,
    controller: "mutations",
    leaseMs: 20_000,
  });
  const onError = () => undefined;
  const lanes = createObjectLanes({ redis: queues.target, ...place, processId: "dies", onError });
  const worker = startMutationWorker({
    store,
    queue,
    client,
    lanes,
    place,
    kinds: OPEN_KINDS,
    workerId: "dies",
    concurrency: 1,
    onError,
    sweepEveryMs: 600_000,
  });
  const bury = async () => {
    await worker.kill();
    lanes.close();
    await queue.close();
  };
  return { died: died.promise, bury };
}

describe.each(testServers())("mutations with faults on the $name", (server) => {
  const h = useMutations(server, queues);
  const increment = (options: Partial<NewMutation> = {}) =>
    h.mutation([{ kind: "increment", path: "/data/n", by: 1 }], options);
  const write = () => ({ method: "PATCH", path: h.path() });
  const create = () => ({ method: "POST", path: /\/configmaps$/ });

  const faults: readonly { readonly fault: string; readonly arrange: () => void }[] = [
    { fault: "the request of the write is lost", arrange: () => h.relay.loseRequest(write()) },
    { fault: "the response of the write is lost", arrange: () => h.relay.loseAnswer(write()) },
    {
      fault: "the responses of two writes are lost",
      arrange() {
        h.relay.loseAnswer(write());
        h.relay.loseAnswer(write());
      },
    },
    ...(
      [
        [429, "TooManyRequests"],
        [401, "Unauthorized"],
        [403, "Forbidden"],
        [500, "InternalError"],
      ] as const
    ).map(([status, reason]) => ({
      fault: `the response of the write is lost, and its repetition gets ${status}`,
      arrange() {
        h.relay.loseAnswer(write());
        h.relay.refuse(write(), status, reason);
      },
    })),
    {
      fault: "the server fails",
      arrange: () => h.relay.refuse(write(), 500, "InternalError"),
    },
    {
      fault: "the server rejects the credentials",
      arrange: () => h.relay.refuse(write(), 401, "Unauthorized"),
    },
    { fault: "the server is busy", arrange: () => h.relay.refuse(write(), 429, "TooManyRequests") },
    {
      fault: "the response of the creation is lost",
      arrange: () => h.relay.loseAnswer(create()),
    },
    {
      fault: "the request of the creation is lost",
      arrange: () => h.relay.loseRequest(create()),
    },
  ];

  test.each(faults)("makes each change once if $fault", async ({ fault, arrange }) => {
    const isCreation = fault.includes("creation");
    if (!isCreation) await h.make({ n: "0" });
    arrange();
    const options = isCreation ? ({ createIfMissing: true } as const) : {};
    const given = Array.from({ length: 5 }, () => increment(options));
    await h.mutations.submit(given);
    h.work();
    const ends = await h.settled(given);
    expect(ends.map(({ state }) => state)).toEqual(Array(5).fill("applied"));
    expect((await h.read())?.data).toEqual({ n: "5" });
  });

  test.each(POINTS)(
    "makes each change once if a worker dies $when call $number of $call",
    async (point) => {
      await h.make({ n: "0" });
      const given = Array.from({ length: 100 }, () => increment());
      await h.mutations.submit(given);
      const { died, bury } = startMortal(h, point);
      await died;
      const successor = h.work({ sweepEveryMs: 100 });
      const ends = await h.settled(given);
      await bury();
      await successor.stop();
      expect(new Set(ends.map(({ state }) => state))).toEqual(new Set(["applied"]));
      expect((await h.read())?.data).toEqual({ n: "100" });
    },
  );

  test("a worker that was suspended before its write does not make it after its successor", async () => {
    await h.make({ n: "0" });
    const held = h.relay.hold(write());
    const given = [increment(), increment()];
    await h.mutations.submit(given);
    const { bury } = startMortal(h, { call: "settle", when: "before", number: 1 });
    await held.arrived;
    // The queue gives the object to another worker, as after an expired lease.
    await bury();
    h.work({ client: h.client, sweepEveryMs: 100 });
    const ends = await h.settled(given);
    held.release();
    expect(ends.map(({ state }) => state)).toEqual(["applied", "applied"]);
    const after = increment();
    await h.run([after]);
    expect((await h.read())?.data).toEqual({ n: "3" });
  });

  test.each([
    { when: "its write may still be made", with: () => [increment({ deadlineMs: LATE_MS })] },
    {
      when: "its write with others may still be made",
      with: () => [increment({ deadlineMs: LATE_MS }), increment()],
    },
  ])("a mutation that expires while $when is not made late", async ({ with: submit }) => {
    await h.make({ n: "0" });
    const held = h.relay.hold(write());
    const given = submit();
    await h.mutations.submit(given);
    const { bury } = startMortal(h, { call: "settle", when: "before", number: 1 });
    await held.arrived;
    await bury();
    await sleepMs(LATE_MS);
    h.work({ client: h.client, sweepEveryMs: 100 });
    const ends = await h.settled(given);
    held.release();
    expect(ends.map(({ state }) => state)).toEqual(["expired", "applied"].slice(0, given.length));
    const after = increment();
    await h.run([after]);
    expect((await h.read())?.data).toEqual({ n: String(given.length) });
  });

  test("isolates a mutation that the server always fails on, until its deadline", async () => {
    await h.make({ n: "0" });
    const match = { ...write(), body: /poison/ };
    h.relay.refuseAll(match, 500, "an admission webhook failed");
    const given = Array.from({ length: 20 }, (_, at) =>
      at === 7
        ? h.mutation([{ kind: "set", path: "/data/poison", value: "1" }], { deadlineMs: LATE_MS })
        : increment(),
    );
    await h.mutations.submit(given);
    h.work({ sweepEveryMs: 100 });
    const ends = await h.settled(given);
    expect(ends.map(({ state }) => state)).toEqual(
      given.map((_, at) => (at === 7 ? "expired" : "applied")),
    );
    expect((await h.read())?.data).toEqual({ n: "19" });
  });

  test("makes a creation again whose response was lost and whose object was then deleted", async () => {
    h.relay.loseAnswer(create());
    const given = [increment({ createIfMissing: true })];
    await h.mutations.submit(given);
    const { bury } = startMortal(h, { call: "settle", when: "before", number: 1 });
    await expect.poll(async () => (await h.read())?.data).toEqual({ n: "1" });
    await bury();
    await h.remove();
    h.work({ sweepEveryMs: 100 });
    expect((await h.settled(given)).map(({ state }) => state)).toEqual(["applied"]);
    expect((await h.read())?.data).toEqual({ n: "1" });
  });

  test("a mutation whose object was recreated while it was applied ends as replaced", async () => {
    await h.make({ n: "0" });
    const given = [increment()];
    await h.mutations.submit(given);
    const { bury } = startMortal(h, { call: "settle", when: "before", number: 1 });
    await expect.poll(async () => (await h.read())?.data).toEqual({ n: "1" });
    await bury();
    await h.remove();
    await h.make({ n: "0" });
    h.work({ sweepEveryMs: 100 });
    const ends = await h.settled(given);
    expect(ends.map(({ state }) => state)).toEqual(["replaced"]);
    expect((await h.read())?.data).toEqual({ n: "0" });
    expect((await h.run([increment()])).map(({ state }) => state)).toEqual(["applied"]);
  });

  test(`ejects what the server rejects, in every position of a batch (seed ${seed})`, async () => {
    const random = seededRandom(seed);
    const large = { ...write(), body: /too-large/ };
    h.relay.refuseAll(large, 500, "etcdserver: request is too large");
    h.work();
    for (let round = 0; round < (isLongRun ? 40 : 6); round += 1) {
      await h.make({ n: "0" });
      const size = 1 + Math.floor(random() * 64);
      const share = random() ** 3;
      const isPoison = Array.from({ length: size }, () => random() < share);
      isPoison[Math.floor(random() * size)] = true;
      const poison = random() < 0.5 ? "/data/not allowed" : "/data/too-large";
      const given = isPoison.map((bad, at) =>
        h.mutation([
          { kind: "increment", path: "/data/n", by: 1 },
          { kind: "set", path: bad ? poison : "/data/last", value: String(at) },
        ]),
      );
      const ends = await h.run(given);
      expect(ends.map(({ state }) => state)).toEqual(
        isPoison.map((bad) => (bad ? "rejected" : "applied")),
      );
      const good = isPoison.flatMap((bad, at) => (bad ? [] : [at]));
      const last = good.at(-1);
      expect((await h.read())?.data).toEqual({
        n: String(good.length),
        ...(last === undefined ? {} : { last: String(last) }),
      });
      await h.remove();
    }
  });
});
