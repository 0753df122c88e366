import { defined } from "@konverge/core";
import { createObjectLanes, type ObjectLanes } from "@konverge/lanes";
import { afterEach, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { useQueues } from "./queue-harness.ts";
import { until } from "../../support/until.ts";
import { seed } from "../../support/test-run.ts";

const harness = useQueues();
const open = new Set<ObjectLanes>();
const errors: Error[] = [];

afterEach(() => {
  for (const lanes of open) lanes.close();
  open.clear();
  errors.length = 0;
});

/** Simulates a separate process: its own connections and name. */
function openProcess(processId: string, holdMs?: number): ObjectLanes {
  const lanes = createObjectLanes({
    redis: harness.target,
    cluster: "default",
    prefix: harness.prefix,
    processId,
    onError: (error) => errors.push(error),
    ...defined({ holdMs }),
  });
  open.add(lanes);
  return lanes;
}
const version = (n: number) => ({ metadata: { uid: "u", resourceVersion: String(n) } });
const tick = () => new Promise((resolve) => setImmediate(resolve));

test(`one writer of an object at a time across processes; each gets the object of the previous one (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const processes = ["a", "b", "c"].map((id) => openProcess(id));
  let inside = 0;
  let writes = 0;
  let reads = 0;
  const write = async (lanes: ObjectLanes) => {
    const turn = await lanes.enter("things/ns/hot");
    expect((inside += 1)).toBe(1);
    if (turn.carried === undefined) reads += 1;
    else expect(turn.carried).toEqual(version(writes));
    for (let n = Math.floor(random() * 4); n > 0; n -= 1) await tick();
    writes += 1;
    inside -= 1;
    turn.leave(version(writes));
  };
  await Promise.all(processes.flatMap((lanes) => Array.from({ length: 100 }, () => write(lanes))));
  expect(writes).toBe(300);
  // Only the first writer got no object.
  expect(reads).toBe(1);
  expect(errors).toEqual([]);
});

test(`writers that wait when their lanes close enter without them (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  for (let round = 0; round < 20; round += 1) {
    const lane = `things/ns/closed-${round}`;
    // The holder never leaves, and the wait for its lane would end after a minute.
    await openProcess("holder", 60_000).enter(lane);
    const closing = openProcess("closing", 60_000);
    const writers = Array.from({ length: 3 }, () => closing.enter(lane));
    for (let n = Math.floor(random() * 20); n > 0; n -= 1) await tick();
    closing.close();
    writers.push(closing.enter(lane));
    for (const writer of writers) (await writer).leave();
  }
  expect(errors).toEqual([]);
});

test("different objects do not wait for each other", async () => {
  const [a, b] = [openProcess("a"), openProcess("b")];
  const one = await a.enter("things/ns/one");
  const other = await b.enter("things/ns/other");
  other.leave();
  one.leave();
  expect(errors).toEqual([]);
});

test("a crashed process keeps a lane for the hold time at most; the next writer continues", async () => {
  const [dead, b, c] = [openProcess("dead", 300), openProcess("b", 300), openProcess("c", 300)];
  await dead.enter("things/ns/x");
  const order: string[] = [];
  const next = async (name: string, lanes: ObjectLanes) => {
    const turn = await lanes.enter("things/ns/x");
    order.push(name);
    turn.leave(version(order.length));
  };
  const waiting = [next("b", b), next("c", c)];
  await until("both stand in line", async () => {
    const keys = await harness.redis.keys(`${harness.prefix}*lane-waiting*`);
    return keys.length === 1 && (await harness.redis.llen(keys[0] ?? "")) === 2;
  });
  dead.close();
  await Promise.all(waiting);
  expect(order.toSorted()).toEqual(["b", "c"]);
});

test("a live holder keeps its lane for the whole write", async () => {
  const [a, b] = [openProcess("a", 600), openProcess("b", 600)];
  const turn = await a.enter("things/ns/slow");
  let entered = false;
  const enter = async () => {
    const own = await b.enter("things/ns/slow");
    entered = true;
    own.leave();
  };
  const next = enter();
  const fromMs = performance.now();
  await until("several holds have passed", () => performance.now() - fromMs > 1_500);
  expect(entered).toBe(false);
  turn.leave();
  await next;
});

test("an aborted waiter leaves the lane, which continues with the next writer", async () => {
  const [a, b] = [openProcess("a"), openProcess("b")];
  const turn = await a.enter("things/ns/y");
  const giveUp = new AbortController();
  const waiting = b.enter("things/ns/y", giveUp.signal);
  giveUp.abort(new Error("no longer needed"));
  await expect(waiting).rejects.toThrow("no longer needed");
  turn.leave(version(7));
  const again = await a.enter("things/ns/y");
  expect(again.carried).toEqual(version(7));
  again.leave();
});

test("a holder without a current object passes none", async () => {
  const [a, b] = [openProcess("a"), openProcess("b")];
  (await a.enter("things/ns/z")).leave(version(1));
  (await b.enter("things/ns/z")).leave();
  const turn = await a.enter("things/ns/z");
  expect(turn.carried).toBeUndefined();
  turn.leave();
});

test("passes a large object within the process, not through Redis", async () => {
  const [a, b] = [openProcess("a"), openProcess("b")];
  const large = { ...version(1), data: { text: "x".repeat(100_000) } };
  const first = await a.enter("things/ns/large");
  const local = a.enter("things/ns/large");
  first.leave(large);
  const second = await local;
  expect(second.carried).toEqual(large);
  second.leave(large);
  const foreign = await b.enter("things/ns/large");
  expect(foreign.carried).toBeUndefined();
  foreign.leave();
});

test("passes only the latest object if an external writer interferes", async () => {
  const [a, b] = [openProcess("a"), openProcess("b")];
  (await a.enter("things/ns/s")).leave(version(1), { stranger: true });
  // It is sent in the background; the next one may come first.
  await until("the first has left", async () => {
    const [lane = ""] = await harness.redis.keys(`${harness.prefix}*/lane/things/ns/s`);
    return (await harness.redis.hget(lane, "holder")) === "";
  });
  const fromMs = performance.now();
  await until("the knowledge is not the latest", () => performance.now() - fromMs > 30);
  const turn = await b.enter("things/ns/s");
  expect(turn.carried).toBeUndefined();
  const next = b.enter("things/ns/s");
  turn.leave(version(2));
  expect((await next).carried).toEqual(version(2));
});

test("the writer whose turn it is learns the highest priority that waits, in its process and in others", async () => {
  const [a, b] = [openProcess("a"), openProcess("b")];
  const wanted: string[] = [];
  const onWanted = (priority: string) => {
    if (wanted.at(-1) !== priority) wanted.push(priority);
  };
  const turn = await a.enter("things/ns/wanted", undefined, { priority: "resync", onWanted });
  const local = a.enter("things/ns/wanted", undefined, { priority: "retry" });
  expect(wanted).toEqual(["retry"]);
  const foreign = b.enter("things/ns/wanted", undefined, { priority: "event" });
  await until("it learns of the other process", () => wanted.at(-1) === "event");
  const urgent = b.enter("things/ns/wanted", undefined, { priority: "interactive" });
  await until("it learns of the more urgent one", () => wanted.at(-1) === "interactive");
  expect(wanted).toEqual(["retry", "event", "interactive"]);
  turn.leave();
  await Promise.all([local, foreign, urgent].map(async (waiting) => (await waiting).leave()));
  expect(errors).toEqual([]);
});

test("a turn does not inherit the priority of writers that waited for an earlier turn", async () => {
  const [a, b] = [openProcess("a"), openProcess("b")];
  const turn = await a.enter("things/ns/earlier");
  const urgent = b.enter("things/ns/earlier", undefined, { priority: "interactive" });
  // Known to the holder, and so in Redis.
  const { promise: isKnown, resolve } = Promise.withResolvers<void>();
  const other = await a.enter("things/ns/other", undefined, { onWanted: () => resolve() });
  const behind = b.enter("things/ns/other", undefined, { priority: "interactive" });
  await isKnown;
  other.leave();
  (await behind).leave();
  turn.leave();
  (await urgent).leave();
  const wanted: string[] = [];
  const next = await a.enter("things/ns/earlier", undefined, {
    priority: "resync",
    onWanted: (priority) => wanted.push(priority),
  });
  const last = b.enter("things/ns/earlier", undefined, { priority: "retry" });
  await until("it learns of the last one", () => wanted.length > 0);
  expect(wanted[0]).toBe("retry");
  next.leave();
  (await last).leave();
});
