import { startApi } from "@konverge/api";
import { readSettings } from "@konverge/contracts";
import { expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { SETTING } from "./changing-fleet-child.ts";
import { keepChanging, openFleet, type Fleet } from "./changing-fleet.ts";
import { until } from "../support/until.ts";
import { seed } from "../support/test-run.ts";

const V2 = { controllerVersion: "v2", childPrefix: "new-", concurrency: 3 } as const;

/**
 * Requests reconciles over HTTP until it is stopped, and collects the calls that were not accepted. The objects do not exist, so no
 * request corrects what the old version wrote last.
 */
async function keepRequesting({ redisUrl, prefix }: Fleet) {
  const env = { KONVERGE_REDIS_URL: redisUrl, KONVERGE_PREFIX: prefix, KONVERGE_API_PORT: "0" };
  const settings = { ...readSettings({ env }), logLevel: "silent" } as const;
  const api = await startApi({ settings, version: "1" });
  onTestFinished(() => api.stop());
  const accepted: string[] = [];
  const refused: unknown[] = [];
  const stop = await keepChanging(async (serial) => {
    try {
      const send = () =>
        fetch(`${api.url}/v1/reconciles`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            controller: "fleet",
            namespace: SETTING.namespace,
            name: `missing-${serial}`,
          }),
        });
      let response = await send();
      // Redis answers late on a loaded machine, and clients repeat such calls.
      while (response.status === 503) response = await send();
      const { id } = (await response.json()) as { readonly id: string };
      if (response.status === 202) accepted.push(id);
      else refused.push(response.status);
    } catch (error) {
      refused.push(error);
    }
  });
  const untilAllEnded = async () => {
    for (const id of accepted) {
      await until(`request ${id} has ended`, async () => {
        const response = await fetch(`${api.url}/v1/reconciles/${encodeURIComponent(id)}`);
        return ((await response.json()) as { readonly phase: string }).phase === "finished";
      });
    }
  };
  return { accepted, refused, stop, untilAllEnded };
}

test(`P1: a fleet restarted one by one with a new version, under load, refuses no call and leaves every object as the new version writes it (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  await using fleet = await openFleet("rolling");
  // The last old worker is never elected, so its exit triggers no initial resync.
  const old = await Promise.all([fleet.start(), fleet.start(), fleet.start({ role: "work" })]);
  const requests = await keepRequesting(fleet);
  const stopChanging = await keepChanging((serial) => fleet.change(random, serial));
  for (const [index, worker] of old.entries()) {
    await fleet.start(V2);
    // No late change reconciles the old version's last writes either.
    if (index === old.length - 1) await stopChanging();
    worker.child.signal("SIGTERM");
    expect(await worker.exited).toBe(0);
  }
  await requests.stop();
  expect(requests.refused).toEqual([]);
  expect(requests.accepted.length).toBeGreaterThan(old.length);
  await requests.untilAllEnded();
  let differences: string[] = [];
  await until(
    "all objects match the new version",
    async () => (differences = await fleet.differences(V2)).length === 0,
  ).catch((error: unknown) => {
    throw new Error(differences.join("\n"), { cause: error });
  });
});
