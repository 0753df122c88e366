import { KonvergeError, type ObjectKey, type Trigger } from "@konverge/core";
import { afterEach, expect, test, vi } from "vitest";
import type { RequestOptions } from "../contract/work-queue.ts";
import { SubmittedRequests } from "./submitted-requests.ts";

const keyOf = (name: string): ObjectKey => ({
  controller: "c",
  cluster: "default",
  resource: "pools",
  group: "g",
  name,
});
const triggerOf = (resourceVersion: number): Trigger => ({
  kind: "watch",
  resourceVersion: `${resourceVersion}`,
});
const unavailable = new KonvergeError("redis_unavailable", "no answer");
const refusal = new KonvergeError("redis_unavailable", "WRONGTYPE", {
  cause: Object.assign(new Error("WRONGTYPE"), { name: "ReplyError" }),
});

/** Requests that the test answers. */
function start() {
  vi.useFakeTimers();
  const sent: {
    readonly name: string;
    readonly trigger: Trigger;
    readonly options: RequestOptions;
    readonly accept: () => Promise<void>;
    readonly fail: (error: Error) => Promise<void>;
  }[] = [];
  const errors: string[] = [];
  const requests = new SubmittedRequests({
    request: ({ name }, trigger, options) => {
      const answer = Promise.withResolvers<void>();
      const settle = async () => void (await vi.advanceTimersByTimeAsync(0));
      sent.push({
        name,
        trigger,
        options,
        accept: async () => (answer.resolve(), await settle()),
        fail: async (error) => (answer.reject(error), await settle()),
      });
      return answer.promise;
    },
    onError: ({ message }) => errors.push(message),
    random: () => 1,
  });
  const submit = (name: string, version: number, options?: RequestOptions) => {
    const state = { tried: false };
    void requests
      .submit(keyOf(name), triggerOf(version), options)
      .finally(() => (state.tried = true));
    return state;
  };
  const names = () => sent.map(({ name, trigger }) => `${name}@${trigger.resourceVersion}`);
  return { requests, submit, sent, names, errors };
}
afterEach(() => vi.useRealTimers());

test("sends different keys at once, and those of one key in order", async () => {
  const { submit, sent, names } = start();
  for (const version of [1, 2, 3]) submit("a", version);
  submit("b", 4);
  expect(names()).toEqual(["a@1", "b@4"]);
  await sent[0]?.accept();
  expect(names()).toEqual(["a@1", "b@4", "a@2", "a@3"]);
});

test("limits the keys in flight", async () => {
  const { submit, sent } = start();
  for (let index = 0; index < 1_000; index += 1) submit(`k${index}`, index);
  expect(sent).toHaveLength(256);
  await sent[0]?.accept();
  expect(sent).toHaveLength(257);
});

test("a refused key backs off alone and is repeated from its first failed request on", async () => {
  const { submit, sent, names, errors } = start();
  const first = submit("a", 1);
  submit("a", 2);
  await sent[0]?.accept();
  expect(first.tried).toBe(true);
  const third = submit("a", 3);
  await sent[1]?.fail(refusal);
  expect([third.tried, errors]).toEqual([
    true,
    ["request for c/default/pools.g/_/a failed and is repeated: WRONGTYPE"],
  ]);
  for (let index = 0; index < 49; index += 1) {
    submit(`k${index}`, index);
    await sent.at(-1)?.accept();
  }
  expect(names().slice(2)).toEqual(Array.from({ length: 49 }, (_, index) => `k${index}@${index}`));
  await vi.advanceTimersByTimeAsync(100);
  expect(names().slice(51)).toEqual(["a@2", "a@3"]);
});

test("while Redis does not answer, new keys do not wait for the deadline, and one error is reported", async () => {
  const { submit, sent, errors } = start();
  submit("a", 1);
  submit("b", 2);
  await sent[0]?.fail(unavailable);
  await sent[1]?.fail(unavailable);
  const late = submit("c", 3);
  await vi.advanceTimersByTimeAsync(0);
  expect([late.tried, sent.length, errors.length]).toEqual([true, 2, 1]);
  await vi.advanceTimersByTimeAsync(100);
  expect(sent.slice(2).map(({ name }) => name)).toEqual(["a", "b", "c"]);
  await sent[2]?.accept();
  submit("d", 4);
  expect(sent.at(-1)?.name).toBe("d");
});

test("merges the oldest of many requests of a key without losing their effects", async () => {
  const { submit, sent } = start();
  submit("a", 0);
  submit("a", 1, { class: "interactive" });
  submit("a", 2, { class: "background", uid: "u", isDeleted: true });
  for (let version = 3; version <= 25; version += 1) submit("a", version, { class: "background" });
  await sent[0]?.accept();
  expect(sent).toHaveLength(21);
  expect(sent[1]).toMatchObject({
    trigger: { resourceVersion: "6" },
    options: { class: "interactive", news: true, uid: "u", isDeleted: true },
  });
  expect(sent[20]).toMatchObject({
    trigger: { resourceVersion: "25" },
    options: { class: "background" },
  });
});

test("close tries what was not tried yet, and drops what Redis refuses", async () => {
  const { requests, submit, sent } = start();
  submit("a", 1);
  submit("a", 2);
  const state = { closed: false };
  void requests.close().finally(() => (state.closed = true));
  await sent[0]?.accept();
  expect([sent.length, state.closed]).toEqual([2, false]);
  await sent[1]?.fail(refusal);
  expect(state.closed).toBe(true);
  submit("b", 3);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(sent).toHaveLength(2);
});

test("reports a key that can never be accepted, and does not repeat it", async () => {
  const { requests, sent, errors } = start();
  await requests.submit(keyOf(""), triggerOf(1));
  expect([sent.length, errors]).toEqual([0, ["name of the key must not be empty"]]);
});
