import { randomInt } from "node:crypto";
import { expect, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { keepChanging, openFleet } from "./changing-fleet.ts";
import { until } from "../support/until.ts";

const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const V2 = { controllerVersion: "v2", childPrefix: "new-", concurrency: 3 } as const;

test(
  `P1: a fleet restarted one by one with a new version, under load, leaves every object as the new version writes it (seed ${seed})`,
  { timeout: 240_000 },
  async () => {
    const random = seededRandom(seed);
    await using fleet = await openFleet("rolling");
    // The last old worker is never elected, so its exit triggers no initial resync.
    const old = await Promise.all([fleet.start(), fleet.start(), fleet.start({ role: "work" })]);
    const stopChanging = await keepChanging((serial) => fleet.change(random, serial));
    for (const [index, worker] of old.entries()) {
      await fleet.start(V2);
      // No late change reconciles the old version's last writes either.
      if (index === old.length - 1) await stopChanging();
      worker.child.signal("SIGTERM");
      expect(await worker.exited).toBe(0);
    }
    let differences: string[] = [];
    await until(
      "all objects match the new version",
      async () => (differences = await fleet.differences(V2)).length === 0,
    ).catch((error: unknown) => {
      throw new Error(differences.join("\n"), { cause: error });
    });
  },
);
