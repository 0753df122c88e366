import { TerminalError } from "@konverge/core";
import { defineController } from "@konverge/engine";
import { ignoreNotFound } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { describe, expect, test } from "vitest";
import { namespace, useEngines, type StartedEngine } from "./engine-harness.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

describe.each(testServers())("a dead-lettered key on $name", (target) => {
  const harness = useEngines(target, "revival.test.konverge.dev");
  const widget = { namespace, name: "a" };

  const startStrict = () =>
    harness.start({
      name: "strict",
      reconcile: async ({ object }) => {
        if (Number(object.spec?.["size"]) > 10) throw new TerminalError("size must be at most 10");
      },
    });
  const untilDead = (queue: StartedEngine["queue"], key: ReturnType<StartedEngine["key"]>) =>
    until("it is dead-lettered", async () => (await queue.getKey(key))?.phase === "deadLettered");
  const outcomes = async ({ records }: StartedEngine, name = "a") =>
    (await records(name)).map(({ outcome }) => outcome).toReversed();

  test("runs again for another object with the same name and generation", async () => {
    const started = await startStrict();
    await harness.make("a", { size: 99 });
    await untilDead(started.queue, started.key("a"));
    await harness.client.delete(harness.Widgets, widget);
    await harness.make("a", { size: 5 });
    await until("the new object is reconciled", async () =>
      (await outcomes(started)).includes("done"),
    );
    // The event of the new object can arrive after the attempt of its release has begun.
    const phase = async () => (await started.queue.getKey(started.key("a")))?.phase;
    await expect.poll(phase).toBe("idle");
  });

  test("leaves the dead letters when its object is deleted", async () => {
    const started = await startStrict();
    await harness.make("a", { size: 99 });
    await untilDead(started.queue, started.key("a"));
    await harness.client.delete(harness.Widgets, widget);
    await until("the attempt found no object", async () =>
      (await outcomes(started)).includes("gone"),
    );
    const { control } = started.queue;
    expect((await control.listKeys({ phase: "deadLettered" })).items).toEqual([]);
    expect((await control.listKeys()).items).toEqual([]);
  });

  test("runs again for an object that was replaced while no leader watched", async () => {
    const first = await startStrict();
    await harness.make("a", { size: 99 });
    await untilDead(first.queue, first.key("a"));
    await first.engine.stop();
    await harness.client.delete(harness.Widgets, widget);
    await harness.make("a", { size: 5 });
    const second = await startStrict();
    await until("the new object is reconciled", async () =>
      (await outcomes(second)).includes("done"),
    );
    expect(await second.queue.getKey(second.key("a"))).toMatchObject({ phase: "idle" });
  });

  test("leaves when its object was deleted while no leader watched", async () => {
    const first = await startStrict();
    await harness.make("a", { size: 99 });
    await harness.make("b", { size: 5 });
    await untilDead(first.queue, first.key("a"));
    await until("b is reconciled", async () => (await outcomes(first, "b")).includes("done"));
    await first.engine.stop();
    await harness.client.delete(harness.Widgets, widget);
    await harness.client.delete(harness.Widgets, { namespace, name: "b" });
    const { queue } = await startStrict();
    await until("no key is left", async () => (await queue.control.listKeys()).items.length === 0);
    expect((await queue.control.listKeys({ phase: "deadLettered" })).items).toEqual([]);
    const prefix = harness.queues.prefix;
    for (const name of await harness.queues.redis.keys(`${prefix}:{default}/key/*`)) {
      expect(await harness.queues.redis.pttl(name)).toBeGreaterThan(0);
    }
  });

  test("of a kind without generation runs again for a foreign change, not for its own writes", async () => {
    const name = { namespace, name: "config" };
    let attempts = 0;
    const strict = defineController({
      name: "config",
      for: ConfigMap,
      reconcile: async ({ object, kube }) => {
        if (object.metadata.name !== "config" || object.metadata.namespace !== namespace) return;
        attempts += 1;
        await kube.mutate(object, (draft) => {
          draft.metadata.annotations = { attempts: String(attempts) };
        });
        if (object.data?.["size"] === "99") throw new TerminalError("size must be at most 10");
      },
    });
    await harness.client.delete(ConfigMap, name).catch(ignoreNotFound);
    const started = await harness.startController(strict);
    await harness.client.create(ConfigMap, { metadata: name, data: { size: "99" } });
    const key = started.key("config");
    await untilDead(started.queue, key);
    await until("its own write has been requested", async () => {
      const { requested = 0, triggers = [] } = (await started.queue.getKey(key)) ?? {};
      return requested >= 2 && triggers.length > 0;
    });
    expect(attempts).toBe(1);
    await harness.client.mutate(ConfigMap, name, (draft) => {
      draft.data = { size: "5" };
    });
    await until("the corrected object is reconciled", async () =>
      (await outcomes(started, "config")).includes("done"),
    );
    await harness.client.delete(ConfigMap, name);
  });
});
