import * as fc from "fast-check";
import {
  createLocalGate,
  defined,
  isKonvergeError,
  parseJson,
  type JsonObject,
  type ResourceType,
} from "@konverge/core";
import {
  createKubeClient,
  extractOwned,
  isConflict,
  isInvalid,
  isReplaced,
  loadKubeCredentials,
  startFrom,
  type CallRecord,
  type ConflictRecord,
  type KubeClient,
} from "@konverge/kube";
import { Deployment } from "@konverge/kube/kinds";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { changes, foreignChanges, runSteps, specs } from "../../sim/random-changes.ts";
import { installWidgets, removeWidgets, testServers, type Widget } from "./kube-servers.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const GROUP = "fields.test.konverge.dev";
const namespace = "default";
const FIELDS = { strategy: "fields" } as const;
/** More retries than twenty contending writers need on either server. */
const PATIENT = {
  baseMs: 5,
  factor: 2,
  capMs: 200,
  steps: 100,
  jitter: { kind: "full" },
} as const;

/** For an object assigned into itself. */
const ignoreInvalid = (error: unknown): undefined => {
  if (!isKonvergeError(error) || error.code !== "invalid_draft") throw error;
};

/** An untyped spec, as in handlers of foreign kinds. */
const specOf = (widget: Widget): any => widget.spec;

describe.each(testServers().map((server) => [server.name, server] as const))(
  "%s",
  (_name, server) => {
    let opened: Awaited<ReturnType<typeof server.open>>;
    let client: KubeClient;
    let rival: KubeClient;
    let widgets: ResourceType<Widget>;
    let counter = 0;
    let target: { namespace: string; name: string };
    const calls: CallRecord[] = [];
    const conflicts: ConflictRecord[] = [];

    beforeAll(async () => {
      opened = await server.open();
      widgets = await installWidgets(opened.client, GROUP);
      rival = opened.client.scoped({ fieldManager: "rival" });
      client = opened.client.scoped({
        observe: (call) => calls.push(call),
        onConflict: (conflict) => conflicts.push(conflict),
        fieldManager: "konverge-fields",
      });
    });
    afterAll(async () => {
      await removeWidgets(opened.client, GROUP);
      await opened.close();
    });
    beforeEach(async () => {
      target = { namespace, name: `f${++counter}` };
      await opened.client.create(widgets, {
        metadata: target,
        spec: { n: 0, mode: "a", list: [1], deep: { er: true } },
      });
      calls.length = 0;
      conflicts.length = 0;
    });
    const verbs = () => calls.map(({ verb, status }) => `${verb} ${status}`);
    const spec = async () => (await opened.client.get(widgets, target)).spec;
    /** Changes the object once, between the first read of a mutation and its write. */
    const once = (interfere: (draft: any) => void) => {
      let done = false;
      return async () => {
        if (done) return;
        done = true;
        await rival.mutate(widgets, target, (draft) => interfere(specOf(draft)));
      };
    };

    test("writers of different fields do not conflict", async () => {
      await Promise.all(
        Array.from({ length: 20 }, (_, n) =>
          client.mutate(widgets, target, (draft) => void (specOf(draft)[`by${n}`] = n), FIELDS),
        ),
      );
      expect(conflicts).toEqual([]);
      expect(verbs().filter((verb) => verb !== "get 200")).toEqual(Array(20).fill("patch 200"));
      expect(Object.keys((await spec()) ?? {})).toHaveLength(24);
    });

    test("counts all increments of one field (P3)", async () => {
      const results = await Promise.all(
        Array.from({ length: 20 }, () =>
          client.mutate(widgets, target, (draft) => void specOf(draft).n++, {
            ...FIELDS,
            retry: PATIENT,
          }),
        ),
      );
      expect((await spec())?.["n"]).toBe(20);
      expect(conflicts).toHaveLength(results.reduce((sum, { lost }) => sum + lost, 0));
      expect(conflicts.length).toBeGreaterThan(0);
    });

    test("a change of a field that was read is a conflict, resolved by a fresh read", async () => {
      const interfere = once((other) => (other.mode = "b"));
      const result = await client.mutate(
        widgets,
        target,
        async (draft) => {
          specOf(draft).chosen = specOf(draft).mode;
          await interfere();
        },
        FIELDS,
      );
      expect(result).toMatchObject({ tries: 2, lost: 1, object: { spec: { chosen: "b" } } });
      expect(verbs()).toEqual(["get 200", "patch 422", "get 200", "patch 200"]);
      expect(conflicts).toMatchObject([
        { try: 1, waitedMs: 0, competingWriters: [{ manager: "rival", paths: ["spec.mode"] }] },
      ]);
    });

    test.each<[string, (own: any) => void, (other: any) => void]>([
      ["a missing member that appears", (own) => (own.x ??= 1), (other) => (other.x = 7)],
      ["a member below a missing one", (own) => (own.y ??= { z: 1 }), (other) => (other.y = {})],
      ["a list", (own) => (own.n = own.list.length), (other) => other.list.push(2)],
      ["a new key", (own) => (own.n = Object.keys(own.deep).length), (other) => (other.deep.x = 1)],
      ["a removed object", (own) => own.deep && (own.n = 1), (other) => delete other.deep],
      ["an overwritten value", (own) => (own.n = 5), (other) => (other.n = 9)],
      ["a removed value", (own) => delete own.n, (other) => (other.n = 9)],
      [
        "an unchanged value",
        (own) => ((own.mode = "a"), (own.n = 1)),
        (other) => (other.mode = "z"),
      ],
    ])("a conflict: %s", async (_case, own, other) => {
      const interfere = once(other);
      const { lost } = await client.mutate(
        widgets,
        target,
        async (draft) => {
          own(specOf(draft));
          await interfere();
        },
        FIELDS,
      );
      expect(lost).toBe(1);
    });

    test("keeps a change of a field that was not read, without a conflict", async () => {
      const interfere = once((other) => {
        other.mode = "theirs";
        other.list = [];
        other.deep.new = 1;
      });
      const result = await client.mutate(
        widgets,
        target,
        async (draft) => {
          specOf(draft).deep.er = specOf(draft).n === 0;
          specOf(draft).mine = true;
          await interfere();
        },
        FIELDS,
      );
      expect(result).toMatchObject({ kind: "updated", tries: 1, patch: { spec: { mine: true } } });
      expect(verbs()).toEqual(["get 200", "patch 200"]);
      expect(await spec()).toEqual({
        n: 0,
        mode: "theirs",
        list: [],
        deep: { er: true, new: 1 },
        mine: true,
      });
    });

    test("a change that reads the version conflicts with every other change", async () => {
      const interfere = once((other) => (other.mode = "theirs"));
      const { lost } = await client.mutate(
        widgets,
        target,
        async (draft) => {
          specOf(draft).seen = JSON.stringify(draft).length;
          await interfere();
        },
        FIELDS,
      );
      expect(lost).toBe(1);
      expect(verbs()).toEqual(["get 200", "patch 409", "get 200", "patch 200"]);
    });

    test("reports a conflict if the patch failed although the value has been restored", async () => {
      const there = once((other) => (other.mode = "b"));
      const gate = createLocalGate({ ratePerSecond: 2_000, burst: 2_000 });
      let gets = 0;
      const watched = createKubeClient({
        credentials: loadKubeCredentials(opened.kubeconfig),
        userAgent: "konverge-test/1",
        gate: {
          async admit(call, options) {
            // Before the read that checks whether the object has changed.
            if (call.verb === "get" && ++gets === 2) {
              await rival.mutate(widgets, target, (draft) => void (specOf(draft).mode = "a"));
            }
            return await gate.admit(call, options);
          },
        },
      });
      const result = await watched.mutate(
        widgets,
        target,
        async (draft) => {
          specOf(draft).chosen = specOf(draft).mode;
          await there();
        },
        FIELDS,
      );
      await watched.close();
      expect(result).toMatchObject({ tries: 2, lost: 1, object: { spec: { chosen: "a" } } });
    });

    test("retry none throws a conflict that names the object, after one read for the competing writers", async () => {
      const lost = client.mutate(
        widgets,
        target,
        async (draft) => {
          specOf(draft).n++;
          await rival.mutate(widgets, target, (other) => void specOf(other).n++);
        },
        { ...FIELDS, retry: "none" },
      );
      await expect(lost).rejects.toSatisfy((error) => isConflict(error) && !isInvalid(error));
      expect(verbs()).toEqual(["get 200", "patch 422", "get 200"]);
      expect(conflicts).toMatchObject([{ try: 1, competingWriters: [{ manager: "rival" }] }]);
      expect((await spec())?.["n"]).toBe(1);
    });

    test.each(["status", undefined] as const)(
      "does not write to a replaced object (%s)",
      async (subresource) => {
        const during = client.mutate(
          widgets,
          target,
          async (draft) => {
            (subresource === undefined ? specOf(draft) : draft.status).n = 1;
            await opened.client.delete(widgets, target);
            await opened.client.create(widgets, { metadata: target, spec: { n: 0 } });
          },
          { ...FIELDS, ...defined({ subresource }) },
        );
        await expect(during).rejects.toSatisfy(isReplaced);
        const found = await opened.client.get(widgets, target);
        expect([found.spec, found.status]).toEqual([{ n: 0 }, undefined]);
      },
    );

    test("throws the rejection of the server at once, not as a conflict", async () => {
      const refused = client.mutate(
        widgets,
        target,
        (draft) => void (draft.metadata.labels = { "not a key": "x" }),
        FIELDS,
      );
      await expect(refused).rejects.toSatisfy((error) => isInvalid(error) && !isConflict(error));
      expect(verbs()).toEqual(["get 200", "patch 422"]);
      expect(conflicts).toEqual([]);
    });

    test("throws if a patch does not apply to an unchanged object, instead of retrying", async () => {
      const read = await opened.client.get(widgets, target);
      // The given object has the newest version but different content.
      const outdated = { ...read, spec: { ...read.spec, mode: "wrong" } } as unknown as JsonObject;
      const refused = client.mutate(
        widgets,
        target,
        (draft) => void (specOf(draft).chosen = specOf(draft).mode),
        { ...FIELDS, basis: startFrom(outdated) },
      );
      await expect(refused).rejects.toSatisfy((error) => isInvalid(error) && !isConflict(error));
      expect(verbs()).toEqual(["patch 422", "get 200"]);
      expect(conflicts).toEqual([]);
    });

    test("texts and numbers are tested in the server's encoding (P4)", async () => {
      const values = parseJson(
        String.raw`{"text":"<a href='x'>&\u2028\u2029\"\\\/\u00e4\ud83d\ude00\u0001\b\f\u007f","big":9007199254740993,
          "numbers":[1.5,1e21,1e-7,0.1,-3,100000000000000000000,1e300],"null":null,"a/b~c":{"<k>":"<v>"}}`,
      ) as JsonObject;
      await opened.client.mutate(widgets, target, (draft) => void (draft.spec = values));
      const { lost } = await client.mutate(
        widgets,
        target,
        (draft) => {
          const read =
            Object.values(specOf(draft)).length + Object.keys(specOf(draft)["a/b~c"]).length;
          specOf(draft).read = read;
          specOf(draft).big = specOf(draft).text;
        },
        FIELDS,
      );
      expect(lost).toBe(0);
      expect((await spec())?.["big"]).toBe(values["text"]);
    });

    test(`random changes end as if each had been based on the newest object (KONVERGE_TEST_SEED=${seed})`, async () => {
      const cases = fc.sample(fc.tuple(specs, changes, foreignChanges), { numRuns: 60, seed });
      let lost = 0;
      for (const [index, [content, own, foreign]] of cases.entries()) {
        const [one, other] = ["one", "other"].map((name) => ({
          namespace,
          name: `${target.name}-${index}-${name}`,
        })) as [typeof target, typeof target];
        const make = (metadata: typeof target, made: JsonObject) =>
          opened.client.create(widgets, { metadata, spec: made });
        await make(one, content);
        let interfere = true;
        const result = client.mutate(
          widgets,
          one,
          async (draft) => {
            runSteps(draft as unknown as JsonObject, own);
            if (!interfere) return;
            interfere = false;
            await rival
              .mutate(widgets, one, (its) => runSteps(its as unknown as JsonObject, foreign))
              .catch(ignoreInvalid);
            const { spec: newest = {} } = await opened.client.get(widgets, one);
            await make(other, newest);
          },
          FIELDS,
        );
        const written = await result.catch(ignoreInvalid);
        if (written === undefined || (written.kind === "unchanged" && written.lost === 0)) continue;
        lost += written.lost;
        const change = (draft: Widget) => runSteps(draft as unknown as JsonObject, own);
        const { object } = await rival.mutate(widgets, other, change, FIELDS);
        expect(written.object.spec, JSON.stringify({ content, own, foreign })).toEqual(object.spec);
      }
      expect(lost).toBeGreaterThan(0);
    });

    test("status is written through its subresource, other fields are only tested", async () => {
      const options = { ...FIELDS, subresource: "status" } as const;
      const interfere = once((other) => (other.n = 5));
      const change = async (draft: Widget) => {
        (draft.status as JsonObject)["seen"] = specOf(draft).n;
        await interfere();
      };
      const result = await client.mutate(widgets, target, change, options);
      expect(result).toMatchObject({ lost: 1, object: { status: { seen: 5 } } });
      expect((await client.mutate(widgets, target, change, options)).kind).toBe("unchanged");
      await expect(
        client.mutate(widgets, target, (draft) => void specOf(draft).n++, options),
      ).rejects.toMatchObject({ code: "invalid_draft" });
    });

    test("a scale", async () => {
      const labels = { app: target.name };
      await opened.client.create(Deployment, {
        metadata: target,
        spec: {
          replicas: 1,
          selector: { matchLabels: labels },
          template: { metadata: { labels }, spec: { containers: [{ name: "a", image: "b" }] } },
        },
      });
      const { object } = await client.mutate(
        Deployment,
        target,
        (draft) => void (draft.spec!.replicas! += 2),
        { ...FIELDS, subresource: "scale" },
      );
      expect(object).toMatchObject({ kind: "Scale", spec: { replicas: 3 } });
      // A typed object, with defaults and lists of containers.
      const deployment = await client.mutate(
        Deployment,
        target,
        (draft) => {
          expect(Object.keys(draft.spec!.template).length).toBeGreaterThan(1);
          draft.spec!.template.spec!.containers[0]!.image = "c";
        },
        FIELDS,
      );
      expect(deployment).toMatchObject({ lost: 0, object: { spec: { replicas: 3 } } });
      await opened.client.delete(Deployment, target);
    });

    test("rejects an unknown strategy before any call", async () => {
      const options = { strategy: "field" } as unknown as typeof FIELDS;
      await expect(client.mutate(widgets, target, () => undefined, options)).rejects.toMatchObject({
        code: "invalid_request",
        message: 'mutate: strategy is "field"; use "guarded" or "fields"',
      });
      expect(verbs()).toEqual([]);
    });
  },
);

const some = { minLength: 1 };

/**
 * A random part of a Deployment: lists by key, sets, maps and values, at several levels. No list is empty: the server does not
 * store it, but remembers its owner.
 */
const parts = fc.record(
  {
    labels: fc.dictionary(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2"), {
      minKeys: 1,
    }),
    finalizers: fc.uniqueArray(fc.constantFrom("konverge.dev/a", "konverge.dev/b"), some),
    replicas: fc.integer({ min: 0, max: 3 }),
    containers: fc.uniqueArray(
      fc.record(
        {
          name: fc.constantFrom("app", "one", "two"),
          image: fc.constantFrom("a:1", "b:2"),
          env: fc.uniqueArray(
            fc.record({ name: fc.constantFrom("A", "B"), value: fc.constantFrom("1", "2") }),
            { ...some, selector: ({ name }) => name },
          ),
          ports: fc.uniqueArray(fc.record({ containerPort: fc.integer({ min: 80, max: 82 }) }), {
            ...some,
            selector: ({ containerPort }) => containerPort,
          }),
          args: fc.array(fc.constantFrom("x", "y"), { ...some, maxLength: 2 }),
          resources: fc.constant({ limits: { memory: "1Gi" } }),
        },
        { requiredKeys: ["name", "image"] },
      ),
      { ...some, selector: ({ name }) => name },
    ),
    tolerations: fc.constant([{ key: "gpu", operator: "Exists" }]),
  },
  { requiredKeys: [] },
);

describe.each(testServers())("the fields of a manager on $name", (server) => {
  const RUNS = isLongRun ? 100 : 12;

  test(`applying what a manager owns changes nothing (KONVERGE_TEST_SEED=${seed})`, async () => {
    const open = await server.open();
    const under = (fieldManager: string) => open.client.scoped({ fieldManager });
    let runs = 0;
    const check = async (
      at: { readonly namespace: string; readonly name: string },
      applied: readonly (readonly [manager: string, part: Record<string, unknown> | null])[],
    ) => {
      const containers = [{ name: "base", image: "base" }];
      const matchLabels = { app: at.name };
      const template = { metadata: { labels: matchLabels }, spec: { containers } };
      const base = { metadata: at, spec: { selector: { matchLabels }, template } };
      await under("base").apply(Deployment, base);
      for (const [manager, part] of applied) {
        if (part === null) continue;
        const { labels, finalizers, replicas, ...pod } = part;
        const whole = {
          metadata: { ...at, labels, finalizers },
          spec: { replicas, template: { spec: pod } },
        };
        const json = JSON.parse(JSON.stringify(whole)) as typeof base;
        await under(manager).apply(Deployment, json, { force: true });
      }
      for (const manager of ["base", "one", "two"]) {
        const before = await open.client.get(Deployment, at);
        const owned = extractOwned(before, { manager });
        if (owned === undefined) continue;
        const after = await under(manager).apply(Deployment, owned as unknown as typeof before);
        expect(after, JSON.stringify(owned)).toEqual(before);
      }
    };
    try {
      const random = fc.record({ one: parts, two: parts, changed: fc.option(parts) });
      await fc.assert(
        fc.asyncProperty(random, async ({ one, two, changed }) => {
          const at = { namespace, name: `extract-${process.pid}-${(runs += 1)}` };
          try {
            await check(at, [
              ["one", one],
              ["two", two],
              ["one", changed],
            ]);
          } finally {
            await open.client.mutate(Deployment, at, (draft) => {
              delete draft.metadata.finalizers;
            });
            await open.client.delete(Deployment, at);
          }
        }),
        { numRuns: RUNS, seed },
      );
    } finally {
      await open.close();
    }
  });
});
