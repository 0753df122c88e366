import { expect, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { keepChanging, openFleet, V1, type FleetWorker } from "./changing-fleet.ts";
import { until } from "../support/until.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const ROUNDS = isLongRun ? 5 : 1;
const HEALED_MS = 120_000;

test(`P1: changes made while the leader is killed, stopped and replaced are reconciled (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  await using fleet = await openFleet("hand-over");
  await Promise.all([fleet.start(), fleet.start(), fleet.start()]);

  /** Loses its leader in one of three ways during changes, and then stops the changes, so that nothing else can repair the state. */
  const lose = async (how: (leader: FleetWorker) => Promise<void>) => {
    const leader = await fleet.leader();
    const stopChanging = await keepChanging((serial) => fleet.change(random, serial));
    await how(leader);
    await stopChanging();
    let differences: string[] = [];
    await until(
      "all objects match the last change",
      async () => (differences = await fleet.differences(V1)).length === 0,
      HEALED_MS,
    ).catch((error: unknown) => {
      throw new Error(differences.join("\n"), { cause: error });
    });
  };
  for (let round = 0; round < ROUNDS; round++) {
    await lose(async (leader) => {
      leader.child.signal("SIGKILL");
      await leader.exited;
      await fleet.leader();
    });
    await fleet.start();
    await lose(async (leader) => {
      leader.child.signal("SIGSTOP");
      await fleet.leader(leader);
      // It may briefly act as leader; its extra requests are harmless.
      leader.child.signal("SIGCONT");
    });
    await lose(async (leader) => {
      leader.child.signal("SIGTERM");
      expect(await leader.exited).toBe(0);
      await fleet.leader();
    });
    await fleet.start();
  }
});
