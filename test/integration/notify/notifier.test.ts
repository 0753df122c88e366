import { expect, test } from "vitest";
import { webhook } from "@konverge/worker";
import { until } from "../../support/until.ts";
import { useQueues } from "../queue/queue-harness.ts";
import { faultOf, useNotifiers } from "./notify-harness.ts";
import { useReceivers } from "./receiver.ts";

const queues = useQueues();
const harness = useNotifiers(queues);
const open = useReceivers();
const EVENTS = ["dead_letter", "run_blocked", "approval"] as const;

interface JsonMessage {
  readonly id: string;
  readonly groups: readonly { readonly firing: number; readonly resolved: number }[];
  readonly examples: readonly { readonly subject: string }[];
}

test("sends 1,000 faults as one message with counts and examples", async () => {
  const receiver = await open();
  const to = webhook(receiver.url, { format: "json" });
  harness.begin(...Array.from({ length: 990 }, (_, at) => faultOf(at)));
  harness.begin(
    ...Array.from({ length: 10 }, (_, at) =>
      faultOf(at, { event: "run_blocked", subject: `order/${at}`, group: "order" }),
    ),
  );
  harness.start([{ on: EVENTS, to, group: "100ms" }]);
  await until("the notification", async () => (await harness.store.list(10))[0]?.state === "sent");
  const [message] = receiver.messages;
  expect(message?.body).toMatchObject({
    text: "990 dead-lettered keys, 10 blocked runs on default",
    groups: [
      { event: "dead_letter", group: "web", firing: 990, resolved: 0, open: 990 },
      { event: "run_blocked", group: "order", firing: 10, resolved: 0, open: 10 },
    ],
  });
  expect((message?.body as JsonMessage | undefined)?.examples).toHaveLength(5);
  expect(message?.text.length).toBeLessThan(4_096);
  expect(receiver.messages).toHaveLength(1);
  expect(message?.headers["idempotency-key"]).toBe((message?.body as JsonMessage | undefined)?.id);
});

test("reports each fault once, also after a restart, and its end", async () => {
  const receiver = await open();
  const rules = [
    { on: EVENTS, to: webhook(receiver.url, { format: "json" }), group: "0s" },
  ] as const;
  harness.begin(faultOf(1), faultOf(2));
  const first = harness.start(rules);
  await until("the notification", async () => (await harness.store.list(10))[0]?.state === "sent");
  await first.stop();
  harness.end(faultOf(1));
  harness.begin(faultOf(3));
  harness.start(rules);
  await until("the notification", async () => (await harness.store.list(10)).length === 2);
  await until("the notification", () => receiver.messages.length === 2);
  expect((receiver.messages[1]?.body as JsonMessage | undefined)?.groups).toMatchObject([
    { firing: 1, resolved: 1, open: 2 },
  ]);
});

test("forgets the reported faults of a receiver without messages for 30 days", async () => {
  const receiver = await open();
  harness.begin(faultOf(1));
  harness.start([{ on: EVENTS, to: webhook(receiver.url, { format: "json" }), group: "0s" }]);
  await until("the notification", async () => (await harness.store.list(10))[0]?.state === "sent");
  await harness.observed();
  const keys = await queues.redis.keys(`*${queues.prefix}*/notify/told/*`);
  expect(keys).toHaveLength(1);
  const days = (await queues.redis.pttl(keys[0] ?? "")) / 86_400_000;
  expect(days).toBeGreaterThan(29);
});

test("retries a failing receiver, honors Retry-After, and then sends everything else in one message", async () => {
  const receiver = await open();
  let answers = 0;
  receiver.answer = () => {
    answers += 1;
    if (answers === 1) return { status: 429, headers: { "retry-after": "1" } };
    return answers < 4 ? { status: 503, body: "later" } : { status: 204 };
  };
  harness.begin(faultOf(1));
  const { metrics } = harness.start([
    { on: EVENTS, to: webhook(receiver.url, { format: "json" }), group: "0s" },
  ]);
  await until("the notification", async () => (await harness.store.list(1))[0]?.tries === 1);
  const [limited] = await harness.store.list(1);
  expect(limited?.lastTries[0]).toMatchObject({ status: 429, error: "HTTP 429" });
  expect((limited?.nextAtMs ?? 0) - (limited?.lastTries[0]?.atMs ?? 0)).toBeGreaterThanOrEqual(
    1_000,
  );
  expect(await metrics.text()).toMatch(/konverge_notifications_waiting\{.*receiver="json".*\} 1/);
  harness.begin(...Array.from({ length: 50 }, (_, at) => faultOf(at + 10)));
  await until(
    "the notification",
    async () => (await harness.store.list(10)).filter(({ state }) => state === "sent").length === 2,
  );
  const ids = receiver.messages.map(({ body }) => (body as JsonMessage).id);
  expect(new Set(ids.slice(0, 4)).size).toBe(1);
  expect(new Set(ids).size).toBe(2);
  expect((receiver.messages.at(-1)?.body as JsonMessage | undefined)?.groups).toMatchObject([
    { firing: 50 },
  ]);
});

test("ends a message at its deadline, and one that the receiver rejects at once", async () => {
  const dead = await open();
  await dead.close();
  const rejecting = await open();
  rejecting.answer = () => ({ status: 400, body: "invalid_payload" });
  harness.begin(faultOf(1));
  const { metrics } = harness.start([
    {
      on: EVENTS,
      to: webhook(dead.url, { format: "json", name: "dead" }),
      group: "0s",
      deadline: "1s",
    },
    { on: EVENTS, to: webhook(rejecting.url, { format: "slack" }), group: "0s" },
  ]);
  await until(
    "the notification",
    async () =>
      (await harness.store.list(10)).filter(({ state }) => state === "failed").length === 2,
  );
  const list = await harness.store.list(10);
  const [gone] = list.filter(({ receiver }) => receiver === "dead");
  const [refused] = list.filter(({ receiver }) => receiver === "slack");
  expect(gone?.lastTries[0]).toMatchObject({ error: "ECONNREFUSED" });
  expect(gone?.lastTries.at(-1)).toMatchObject({ error: "deadline passed" });
  expect(refused?.lastTries).toMatchObject([{ status: 400, answer: "invalid_payload" }]);
  expect(await metrics.text()).toMatch(
    /konverge_notifications_total\{.*receiver="dead",result="failed".*\} 1/,
  );
});

test("follows no redirect, and a slow receiver does not delay another", async () => {
  const other = await open();
  const redirecting = await open();
  redirecting.answer = () => ({ status: 307, headers: { location: other.url } });
  const slow = await open();
  slow.answer = () => "never";
  const fast = await open();
  harness.begin(faultOf(1));
  harness.start([
    { on: EVENTS, to: webhook(redirecting.url, { format: "json", name: "moved" }), group: "0s" },
    {
      on: EVENTS,
      to: webhook(slow.url, { format: "json", name: "slow", timeout: "500ms" }),
      group: "0s",
    },
    { on: EVENTS, to: webhook(fast.url, { format: "json", name: "fast" }), group: "0s" },
  ]);
  await until("the notification", () => fast.messages.length === 1);
  await until("the notification", async () => {
    const list = await harness.store.list(10);
    const errorOf = (name: string) =>
      list.find(({ receiver }) => receiver === name)?.lastTries[0]?.error;
    return errorOf("moved") === "redirect not followed" && errorOf("slow") === "timeout";
  });
  expect(other.messages).toEqual([]);
});

test("keeps the address and the headers out of Redis, logs, records and metrics", async () => {
  const canary = "canary-7f3a9c21";
  const receiver = await open(`/services/${canary}?key=${canary}-query`);
  let status = 500;
  receiver.answer = ({ path, headers }) => ({
    status,
    body: `no ${path} with ${String(headers["authorization"])}`,
  });
  const to = webhook(
    { env: "HOOK" },
    { format: "json", headers: { Authorization: { env: "HEADER" } } },
  );
  harness.begin(faultOf(1));
  const { lines, metrics } = harness.start([{ on: EVENTS, to, group: "0s" }], {
    HOOK: receiver.url,
    HEADER: `Bearer ${canary}-header`,
  });
  await until("the notification", async () => (await harness.store.list(1))[0]?.tries === 2);
  status = 200;
  await until("the notification", async () => (await harness.store.list(1))[0]?.state === "sent");
  expect(receiver.messages[0]?.headers.authorization).toBe(`Bearer ${canary}-header`);
  const shown = [
    JSON.stringify(lines),
    await metrics.text(),
    JSON.stringify([to, await harness.store.list(9)]),
  ];
  for await (const keys of queues.redis.scanStream({ match: `${queues.prefix}:*` })) {
    for (const key of keys as string[]) shown.push(key, (await queues.redis.dump(key)) ?? "");
  }
  expect(shown.join("\n")).not.toContain(canary);
  expect(shown.join("\n")).toContain("[removed]");
});

test("sends an alert for a fault and its end", async () => {
  const receiver = await open();
  harness.start([
    { on: ["approval"], to: webhook(receiver.url, { format: "alertmanager" }), group: "0s" },
  ]);
  const fault = faultOf(1, {
    event: "approval",
    subject: "plan-1",
    summary: "plan-1 awaits an approval",
  });
  harness.begin(fault);
  await until("the notification", () => receiver.messages.length === 1);
  harness.end(fault);
  await until("the notification", () => receiver.messages.length === 2);
  const [began, ended] = receiver.messages.map(
    ({ body }) => (body as { readonly endsAt: string }[])[0],
  );
  expect(Date.parse(began?.endsAt ?? "")).toBeGreaterThan(Date.now() + 86_400_000);
  expect(Date.parse(ended?.endsAt ?? "")).toBeLessThanOrEqual(Date.now());
});

test("serves the receivers of two deployments with different settings", async () => {
  const [first, second, third] = [await open(), await open(), await open()];
  const [dead, blocked] = [faultOf(1), faultOf(2, { event: "run_blocked", subject: "order/1" })];
  harness.begin(dead, blocked);
  harness.start([{ on: ["dead_letter"], to: webhook(first.url, { format: "json" }), group: "0s" }]);
  harness.start([
    { on: ["run_blocked"], to: webhook(second.url, { format: "json" }), group: "0s" },
    { on: EVENTS, to: webhook(third.url, { format: "json", name: "all" }), group: "0s" },
  ]);
  const texts = ({ messages }: typeof first) =>
    messages.map(({ body }) => (body as { readonly text: string }).text);
  await until("each receiver is notified", () =>
    [first, second, third].every(({ messages }) => messages.length === 1),
  );
  await harness.observed();
  harness.end(dead, blocked);
  await until("each receiver is notified of the ends", () =>
    [first, second, third].every(({ messages }) => messages.length === 2),
  );
  await harness.observed();
  expect(texts(first)).toEqual([
    "1 dead-lettered key on default",
    "resolved: 1 dead-lettered key on default",
  ]);
  expect(texts(second)).toEqual(["1 blocked run on default", "resolved: 1 blocked run on default"]);
  expect(texts(third)).toHaveLength(2);
});

test("removes cut and encoded secrets from answers", async () => {
  const canary = "canary-7f3a9c21/x&y";
  const receiver = await open(`/${encodeURIComponent(canary)}`);
  const long = "z9".repeat(2_000);
  receiver.answer = () => ({
    status: 500,
    body: [
      "no canary-7f...",
      encodeURIComponent(canary).toLowerCase(),
      Buffer.from(`a:${canary}`).toString("base64"),
      Buffer.from(canary).toString("hex"),
      canary.toUpperCase(),
      long,
      long.slice(0, 500),
    ].join(" "),
  });
  const to = webhook(receiver.url, { format: "json", headers: { "x-token": long } });
  harness.begin(faultOf(1));
  harness.start([{ on: EVENTS, to, group: "0s" }]);
  await until("the first try", async () => ((await harness.store.list(1))[0]?.tries ?? 0) > 0);
  const answer = (await harness.store.list(1))[0]?.lastTries[0]?.answer ?? "";
  expect(answer).toMatch(/^no \[removed\]/);
  expect(answer).not.toMatch(/canary|7f3a9c21|z9z9/i);
  expect(answer).not.toContain(Buffer.from("7f3a9c21").toString("hex"));
  expect(answer.split(" ").every((part) => part.length < 30)).toBe(true);
});

test("sends more than 200 alerts in several messages", async () => {
  const receiver = await open();
  harness.begin(...Array.from({ length: 450 }, (_, at) => faultOf(at, { group: `web-${at}` })));
  const to = webhook(receiver.url, { format: "alertmanager" });
  harness.start([{ on: EVENTS, to, group: "0s" }]);
  await until("all alerts are sent", () => receiver.messages.length === 3);
  const sizes = receiver.messages.map(({ body }) => (body as unknown[]).length);
  expect(sizes).toEqual([200, 200, 50]);
});
