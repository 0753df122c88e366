import type { JsonValue, ResourceType } from "@konverge/core";
import type { KubeClient } from "@konverge/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { installWidgets, removeWidgets, testServers, type Widget } from "../kube/kube-servers.ts";
import { checkProgram, type Program } from "./plan-check.ts";
import { randomProgram, randomWorld, type Step } from "./plan-programs.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const GROUP = "plans.test.konverge.dev";
const rounds = isLongRun ? 100 : 15;

const step = (op: Step["op"], key: string, value: string): Step => {
  return { op, name: "a", key, value, flag: true };
};
/** Programs whose applies omit fields that earlier writes have changed. */
const APPLIES: Readonly<Record<string, Pick<Program, "history" | "steps"> & Partial<Program>>> = {
  changed: {
    history: [step("apply", "y", "1")],
    steps: [step("patchJson", "y", "2"), step("apply", "x", "3")],
  },
  shared: {
    history: [step("apply", "y", "1")],
    steps: [step("applyAsOther", "y", "1"), step("apply", "x", "3")],
  },
  // The selector of a Deployment is owned as a whole.
  atomic: {
    history: [step("deployment", "x", "1")],
    steps: [step("strategic", "x", "3"), step("deployment", "x", "2")],
  },
  // The map of the data has another owner than its members.
  inner: {
    objects: [{ name: "a", held: false, x: "1" }],
    history: [step("apply", "x", "3")],
    steps: [step("patchJson", "x", "2"), step("apply", "z", "3")],
  },
};

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
      const steps = randomProgram(random);
      const program = { history: randomProgram(random), steps, objects: randomWorld(random) };
      const { planned, live } = await run(`${round}`, program);
      expect(planned, JSON.stringify({ round, ...program })).toEqual(live satisfies JsonValue);
    }
  });

  test.each(Object.entries(APPLIES))(
    "an apply removes what it still owns: %s",
    async (id, given) => {
      const { planned, live } = await run(id, { objects: [], ...given });
      expect(planned).toEqual(live satisfies JsonValue);
    },
  );

  const run = (id: string, program: Omit<Program, "namespace">) =>
    checkProgram(client, Widgets, {
      namespace: `plan-${process.pid}-${target.name.length}-${id}`,
      ...program,
    });
});
