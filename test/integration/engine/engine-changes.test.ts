import { formatKey } from "@konverge/core";
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
});
