import type { AttemptRecord, HintCode } from "@konverge/records";
import type { ApiObject } from "@konverge/core";
import type { ControllerOptions } from "@konverge/engine";
import { describe, expect, test } from "vitest";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import { namespace } from "./engine-harness.ts";
import { eventsAbout, useHistory } from "../queue/history-harness.ts";
import { testServers, type Widget } from "../kube/kube-servers.ts";
import { until } from "../../support/until.ts";

type Reconcile = ControllerOptions<Widget>["reconcile"];

interface Mistake {
  readonly what: string;
  readonly hint: HintCode;
  readonly message: RegExp;
  readonly reconcile: (harness: ReturnType<typeof useHistory>) => Reconcile;
}

interface SecretObject extends ApiObject {
  data?: Record<string, string>;
}

/** Common mistakes of handlers. */
const MISTAKES: readonly Mistake[] = [
  {
    what: "create without handling AlreadyExists",
    hint: "already_exists",
    message: /ConfigMap taken/,
    reconcile:
      () =>
      async ({ kube }) => {
        await kube.create(ConfigMap, { name: "taken" });
        await kube.create(ConfigMap, { name: "taken" });
      },
  },
  {
    what: "NotFound after a delete as an error",
    hint: "not_found_as_failure",
    message: /ConfigMap taken, just deleted/,
    reconcile:
      () =>
      async ({ kube }) => {
        const found = await kube.find(ConfigMap, "taken");
        const map = found ?? (await kube.create(ConfigMap, { name: "taken" }));
        await kube.delete(map);
        await kube.get(ConfigMap, "taken");
      },
  },
  {
    what: "a change of an object that was read",
    hint: "cached_object_mutated",
    message: /inside kube\.mutate/,
    reconcile:
      () =>
      async ({ object }) => {
        (object as { spec: unknown }).spec = { size: 2 };
      },
  },
  {
    what: "a new field in an object that was read",
    hint: "cached_object_mutated",
    message: /inside kube\.mutate/,
    reconcile:
      () =>
      async ({ object }) => {
        (object.metadata as { labels?: object }).labels = {};
      },
  },
  {
    what: "the spec of the own kind written",
    hint: "own_spec_written",
    message: /write the status instead/,
    reconcile:
      () =>
      async ({ object, kube }) => {
        await kube.mutate(object, (draft) => {
          draft.spec = { ...draft.spec, size: 7 };
        });
      },
  },
  {
    what: "a swallowed conflict",
    hint: "swallowed_conflict",
    message: /Widget wrong/,
    reconcile:
      ({ client, widgets }) =>
      async ({ object, kube }) => {
        try {
          await kube.mutate(object, async (draft) => {
            draft.metadata.labels = { mine: "true" };
            await client.mutate(widgets, { namespace, name: "wrong" }, (other) => {
              other.metadata.annotations = { at: String(performance.now()) };
            });
          });
        } catch {
          // The mistake.
        }
      },
  },
];

describe.each(testServers())("hints on $name", (target) => {
  const harness = useHistory(target, "hints.test.konverge.dev");
  const QUICK = {
    baseMs: 5,
    factor: 1,
    capMs: 5,
    steps: Infinity,
    jitter: { kind: "none" },
  } as const;

  test.each(MISTAKES)("$what: $hint, in each record, logged once", async (mistake) => {
    const { hint, message } = mistake;
    const { queue, key, metrics, controller } = await harness.start({
      conflictRetry: "job",
      backoff: { failure: QUICK, conflict: QUICK },
      reconcile: mistake.reconcile(harness),
    });
    await harness.make("wrong");
    const said = () => harness.lines.filter((line) => line["hint"] === hint);
    const [line] = await until("the hint is said", () => said().length > 0 && said());
    expect(line).toMatchObject({ level: "warn", docs: `docs/hints.md#${hint}` });
    expect(line?.["detail"]).toMatch(message);
    const stored = await queue.listAttempts(key("wrong"));
    const records = stored.map(({ record }) => JSON.parse(record) as AttemptRecord);
    const found = records.flatMap(({ hints = [] }) => hints).find(({ code }) => code === hint);
    expect(found?.message).toMatch(message);
    await until("it is found by its hint", async () => {
      const { items } = await harness.reader.search({ hint, limit: 5 });
      return items.some((row) => row.key.endsWith("/wrong") && row.hints.includes(hint));
    });
    // Another attempt with the same mistake.
    await queue.request(key("wrong"), { kind: "http" }, { class: "interactive" });
    await until("more attempts are in the index", async () => {
      const { items } = await harness.reader.search({ limit: 50 });
      return items.length > records.length;
    });
    expect(said()).toHaveLength(1);
    const counted = new RegExp(
      `konverge_hints_total\\{[^}]*controller="${controller.name}",hint="${hint}"[^}]*\\} [1-9]`,
    );
    expect(await metrics.text()).toMatch(counted);
    await harness.client.delete(ConfigMap, { namespace, name: "taken" }).catch(() => undefined);
  });

  test("gives no hint to a correct handler", async () => {
    const { queue, key } = await harness.start({
      reconcile: async ({ object, kube, requeueAfter }) => {
        await kube.find(ConfigMap, "absent");
        await kube.mutateStatus(object, (draft) => {
          draft.status["size"] = object.spec?.["size"] ?? null;
        });
        return requeueAfter("20ms");
      },
    });
    await harness.make("fine");
    const stored = await until("it ran a few times", async () => {
      const found = await queue.listAttempts(key("fine"));
      return found.length >= 4 && found;
    });
    for (const { record } of stored) expect(JSON.parse(record)).not.toHaveProperty("hints");
  });

  test("detects a loop of writes of a child, with its field", async () => {
    let runs = 0;
    await harness.start({
      owns: [ConfigMap],
      reconcile: async ({ object, kube }) => {
        runs += 1;
        const [child] = await kube.list(ConfigMap, { ownedBy: object });
        if (child === undefined)
          await kube.create(ConfigMap, { name: "hints-child", ownedBy: object });
        else {
          await kube.mutate(child, (draft) => {
            (draft as { data?: object }).data = { runs: String(runs) };
          });
        }
      },
    });
    await harness.make("parent");
    const line = await until("the loop is logged", () =>
      harness.lines.find(({ message }) => message === "reconcile loop detected"),
    );
    expect(line).toMatchObject({
      hint: "own_write_trigger",
      name: "parent",
      paths: ["configmaps data.runs"],
    });
    await harness.client.delete(ConfigMap, { namespace, name: "hints-child" });
  });

  test("P12: stores names and paths of contention about a Secret, but no values", async () => {
    const canary = `canary-${crypto.randomUUID()}`;
    const secret = { namespace, name: "hush" };
    const valueOf = (text: string) => Buffer.from(`${canary}-${text}`).toString("base64");
    const setByOther = async (serial: number) =>
      await harness.client.mutate(Secret, secret, (draft) => {
        draft.data = { password: valueOf(`theirs-${serial}`) };
        draft.metadata.labels = { hint: `${canary}-${serial}` };
      });
    await harness.client.create(Secret, { metadata: secret, data: { password: valueOf("first") } });
    const { queue, key } = await harness.start({
      reconcile: async ({ kube }) => {
        await kube.mutate<SecretObject>({ type: Secret, ...secret }, (draft) => {
          draft.data = { password: valueOf("ours") };
          draft.metadata.labels = { hint: `${canary}-ours` };
        });
      },
    });
    await harness.make("keeper");
    const object = `secrets/${namespace}/hush`;
    let serial = 0;
    await until("the contention is recorded", async () => {
      await setByOther((serial += 1));
      const asked = await queue.request(key("keeper"), { kind: "http" }, { class: "interactive" });
      await until("it is written back", async () => {
        return (await queue.getRequest(asked.id)).phase === "finished";
      });
      const contenders = await harness.reader.contention(object);
      return contenders.some(({ inEpisode }) => inEpisode >= 3);
    });
    const [event] = await until("the contention is reported", async () => {
      const events = await eventsAbout(harness.client, "keeper");
      return events.length > 0 && events;
    });
    const contenders = await harness.reader.contention(object);
    expect(contenders.map(({ path }) => path)).toContain("data.password");
    const shown = JSON.stringify([
      contenders,
      await harness.reader.contentionReport(1).then(({ loops, ...rest }) => [rest, [...loops]]),
      await harness.reader.search({ limit: 200 }),
      await queue.listAttempts(key("keeper"), { limit: 50 }),
      harness.lines,
      event,
    ]);
    expect(shown).toContain("data.password");
    expect(shown).not.toContain(canary);
    expect(shown).not.toContain(Buffer.from(canary).toString("base64").slice(0, 40));
    await harness.client.delete(Secret, secret);
  });

  test("reports endless requeues and throttles them without losing any", async () => {
    let runs = 0;
    const { queue, key } = await harness.start({
      reconcile: async ({ requeueAfter }) => {
        runs += 1;
        return requeueAfter("10ms");
      },
    });
    await harness.make("polls");
    const line = await until("it is said", () =>
      harness.lines.find((said) => said["hint"] === "endless_requeue"),
    );
    expect(line).toMatchObject({ level: "warn", name: "polls" });
    const state = await until("it is throttled", async () => {
      const { loops } = await harness.reader.contentionReport(1);
      return [...loops.values()].map((text) => JSON.parse(text))[0];
    });
    expect(state).toMatchObject({ kind: "requeue", managers: [] });
    const before = runs;
    await until("it runs on, later", () => runs > before);
    // An external change does not wait.
    await until("the next start is deferred", async () => {
      const [last] = await queue.listAttempts(key("polls"), { limit: 1 });
      return last?.record.includes('"cause":"loop"') === true;
    });
    const seen = runs;
    await harness.client.mutate(harness.widgets, { namespace, name: "polls" }, (draft) => {
      draft.spec = { size: 9 };
    });
    await until("the change is reconciled", () => runs > seen);
    await until("and the loop is over", () =>
      harness.lines.some(({ message }) => message === "reconcile loop ended"),
    );
  });

  test("reports an ownership flip with field and manager, and stores it in the contention record", async () => {
    const { metrics } = await harness.start({
      reconcile: async ({ object, kube }) => {
        if (object.spec?.["size"] === 3) return;
        await kube.mutate(object, (draft) => {
          draft.spec = { ...draft.spec, size: 3 };
        });
      },
    });
    await harness.make("fought", { size: 5 });
    const spec = async () => {
      const { spec: now } = await harness.client.get(harness.widgets, {
        namespace,
        name: "fought",
      });
      return now?.["size"];
    };
    const shown = () =>
      harness.lines.find((line) => line["hint"] === "ownership_flip" && "managers" in line);
    await until("the flip is reported", async () => {
      if ((await spec()) === 3) {
        await harness.client.mutate(harness.widgets, { namespace, name: "fought" }, (draft) => {
          draft.spec = { ...draft.spec, size: 5 };
        });
      }
      return shown() !== undefined;
    });
    expect(shown()).toMatchObject({ managers: ["konverge-test"], paths: ["spec.size"] });
    const object = `widgets.hints.test.konverge.dev/${namespace}/fought`;
    const [contender] = await harness.reader.contention(object);
    expect(contender).toMatchObject({
      kind: "takeover",
      manager: "konverge-test",
      path: "spec.size",
    });
    expect(contender?.inEpisode).toBeGreaterThanOrEqual(3);
    const { ownershipFlips, loops } = await harness.reader.contentionReport(1);
    expect(ownershipFlips).toMatchObject([{ object, manager: "konverge-test", path: "spec.size" }]);
    expect(JSON.parse([...loops.values()][0] ?? "{}")).toMatchObject({
      kind: "ownershipFlip",
      paths: ["spec.size"],
      managers: ["konverge-test"],
    });
    const [event] = await until("the event is recorded", async () => {
      const events = await eventsAbout(harness.client, "fought");
      return events.length > 0 && events;
    });
    expect(event).toMatchObject({ reason: "OwnershipFlip", type: "Warning" });
    expect(await metrics.text()).toMatch(
      /konverge_ownership_flips_total\{[^}]*manager="konverge-test"[^}]*\} [1-9]/,
    );
  });
});
