import { randomInt } from "node:crypto";
import type { JsonValue, ResourceType } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { installWidgets, removeWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { checkProgram } from "./plan-check.ts";
import { randomProgram, randomWorld } from "./plan-programs.ts";

const GROUP = "plans.test.konverge.dev";
const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? randomInt(2 ** 31));
const rounds = process.env["KONVERGE_TEST_LONG"] === "1" ? 100 : 15;

describe.each(testServers())("plans on the $name", (target) => {
  let client: KubeClient;
  let close: () => Promise<void>;
  let Widgets: ResourceType<Widget>;
  beforeAll(async () => {
    const server = await target.open();
    client = server.client;
    close = () => server.close();
    Widgets = await installWidgets(client, GROUP);
  });
  afterAll(async () => {
    await removeWidgets(client, GROUP);
    await close();
  });

  test(`a plan equals what the attempt then writes and reads (KONVERGE_TEST_SEED=${seed})`, async () => {
    const random = seededRandom(seed);
    for (let round = 0; round < rounds; round += 1) {
      const program = { steps: randomProgram(random), objects: randomWorld(random) };
      const namespace = `plan-${process.pid}-${target.name.length}-${round}`;
      const { planned, live } = await checkProgram(client, Widgets, { namespace, ...program });
      expect(planned, JSON.stringify({ round, ...program })).toEqual(live satisfies JsonValue);
    }
  });
});
