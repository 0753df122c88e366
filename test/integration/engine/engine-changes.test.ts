import { formatKey, type ApiObject } from "@konverge/core";
import { defineController } from "@konverge/engine";
import { onlyMetadata, setControllerReference } from "@konverge/kube";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import { describe, expect, test } from "vitest";
import { queueNames } from "../../../libs/queue/src/keys/queue-names.ts";
import { testServers } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";
import { namespace, useEngines } from "./engine-harness.ts";

const OBJECTS = 50;
const names = Array.from({ length: OBJECTS }, (_, n) => `w-${n}`);
const election = { leaseDurationMs: 3_000, renewDeadlineMs: 2_000, retryPeriodMs: 400 };

describe.each(testServers())("changes of many objects, on $name", (target) => {
  const engines = useEngines(target, "changes.test.konverge.dev");

  test("an object whose requests fail delays neither the first round nor the changes of the others", async () => {
    const { client, Widgets, queues } = engines;
    await Promise.all(names.map((name) => engines.make(name)));
    const controller = "widgets-refused";
    const key = (name: string) => ({
      controller,
      cluster: "default",
      resource: Widgets.resource,
      group: Widgets.group,
      namespace,
      name,
    });
    const poisoned = queueNames(queues.prefix, "default", controller).keyHash(
      formatKey(key("w-0")),
    );
    await queues.redis.set(poisoned, "not a hash");
    const { queue, lines } = await engines.start(
      { name: controller, reconcile: async () => undefined },
      { role: "watch", election },
    );
    const requested = async (times: number) => {
      const states = await Promise.all(names.slice(1).map((name) => queue.getKey(key(name))));
      return states.filter((state) => (state?.requested ?? 0) >= times).length;
    };
    await until("the others are requested", async () => (await requested(1)) === OBJECTS - 1);
    for (const name of names) {
      await client.mutate(Widgets, { namespace, name }, (draft) => void (draft.spec = { size: 2 }));
    }
    await until("their changes are requested", async () => (await requested(2)) === OBJECTS - 1);
    expect(await queues.redis.get(poisoned)).toBe("not a hash");
    await queues.redis.del(poisoned);
    await until("it is requested once it is healed", () => queue.getKey(key("w-0")));
    expect(lines.filter(({ message }) => message === "watch interrupted")).toEqual([]);
  });

  test("a controller reconciles only the objects in the scope of its kind, whoever requests them", async () => {
    const { client, Widgets } = engines;
    const labels = { team: "a" };
    await engines.make("ours", undefined, { labels });
    await engines.make("theirs", undefined, { labels: { team: "b" } });
    const reconciled: string[] = [];
    const controller = defineController({
      name: "widgets-of-a-team",
      for: { type: Widgets, labels: "team=a", namespaces: [namespace] },
      owns: [{ type: onlyMetadata(Secret), labels: "owned=yes" }],
      reconcile: async ({ object }) => void reconciled.push(object.metadata.name),
    });
    const { queue, key, records } = await engines.startController(controller);
    await until("ours is reconciled", () => reconciled.includes("ours"));
    const theirs = await client.get(Widgets, { namespace, name: "theirs" });
    const secret = (name: string, owner: typeof theirs) => {
      const metadata = { namespace, name, labels: { owned: "yes" }, ownerReferences: [] };
      const object = { metadata };
      setControllerReference(object, owner);
      return client.create(Secret, object);
    };
    await secret("child-of-theirs", theirs);
    const before = reconciled.length;
    await secret("child-of-ours", await client.get(Widgets, { namespace, name: "ours" }));
    await until("the child requests ours", () => reconciled.length > before);
    // A request by name reaches an attempt, which asks the API server with the selector.
    await queue.submit(key("theirs"), { kind: "http", by: "test" }, { class: "interactive" });
    await until("the request has ended", async () => (await records("theirs")).length > 0);
    expect((await records("theirs")).map(({ parsed }) => parsed.outcome)).toEqual(["gone"]);
    expect(new Set(reconciled)).toEqual(new Set(["ours"]));
    await client.mutate(Widgets, { namespace, name: "theirs" }, (draft) => {
      draft.metadata.labels = labels;
    });
    await until("it is reconciled once it enters the scope", () => reconciled.includes("theirs"));
  });

  test("lists by an index, with own writes; whole objects of a kind whose metadata is kept come from the API server", async () => {
    const { client, Widgets } = engines;
    const listed: (readonly string[])[] = [];
    const tiers: (string | undefined)[][] = [];
    const controller = defineController({
      name: "widgets-by-tier",
      for: Widgets,
      watches: [
        {
          type: onlyMetadata(ConfigMap),
          namespaces: [namespace],
          indexes: { byTier: ({ metadata }) => metadata.labels?.["tier"] },
          map: () => [],
        },
      ],
      async reconcile({ kube }) {
        const front = { index: { byTier: "front" } };
        const namesOf = (objects: readonly ApiObject[]) =>
          objects.map(({ metadata }) => metadata.name).toSorted();
        listed.push(namesOf(await kube.list(onlyMetadata(ConfigMap), front)));
        await kube.create(ConfigMap, { name: "own", labels: { tier: "front" }, data: { a: "1" } });
        listed.push(namesOf(await kube.list(onlyMetadata(ConfigMap), front)));
        const whole = await kube.list(ConfigMap, { labelSelector: "tier=front" });
        tiers.push(whole.map(({ data }) => data?.["a"]));
        await kube.list(ConfigMap, { index: { byNode: "x" } });
      },
    });
    const metadata = { namespace, name: "first", labels: { tier: "front" } };
    await client.create(ConfigMap, { metadata, data: { a: "0" } });
    await engines.make("lister");
    const { records } = await engines.startController(controller, { conflictRetry: "job" });
    await until("the attempt has ended", async () => (await records("lister")).length > 0);
    expect(listed.slice(0, 2)).toEqual([["first"], ["first", "own"]]);
    expect(tiers[0]?.toSorted()).toEqual(["0", "1"]);
    const [attempt] = await records("lister");
    expect(attempt?.parsed.error?.message).toContain('index "byNode" of ConfigMap is not defined');
  });
});
