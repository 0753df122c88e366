import { jsonEquals, parseJson, type JsonObject, type ResourceType } from "@konverge/core";
import {
  atLeast,
  isConflict,
  isFieldManagerConflict,
  isInvalid,
  isReplaced,
  startFrom,
  type CallRecord,
  type ConflictRecord,
  type KubeClient,
} from "@konverge/kube";
import { Secret } from "@konverge/kube/kinds";
import { inspect } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { installWidgets, removeWidgets, testServers, type Widget } from "./kube-servers.ts";

const GROUP = "mutate.test.konverge.dev";
const namespace = "default";

/** An untyped spec, as in handlers of foreign kinds. */
const specOf = (widget: Widget): any => (widget.spec ??= {});

describe.each(testServers().map((server) => [server.name, server] as const))(
  "%s",
  (_name, server) => {
    let opened: Awaited<ReturnType<typeof server.open>>;
    let client: KubeClient;
    let widgets: ResourceType<Widget>;
    let counter = 0;
    let target: { namespace: string; name: string };
    const calls: CallRecord[] = [];
    const conflicts: ConflictRecord[] = [];

    beforeAll(async () => {
      opened = await server.open();
      widgets = await installWidgets(opened.client, GROUP);
      client = opened.client.scoped({
        observe: (call) => calls.push(call),
        onConflict: (conflict) => conflicts.push(conflict),
        fieldManager: "konverge-mutate",
      });
    });
    afterAll(async () => {
      await removeWidgets(opened.client, GROUP);
      await opened.close();
    });
    beforeEach(async () => {
      target = { namespace, name: `w${++counter}` };
      await opened.client.create(widgets, { metadata: target, spec: { n: 0 } });
      calls.length = 0;
      conflicts.length = 0;
    });
    const verbs = () => calls.map(({ verb, status }) => `${verb} ${status}`);

    test("writes from a given object without a read, but bases no other decision on it (P3)", async () => {
      const change = (n: number) => (draft: Widget) => {
        specOf(draft).n = n;
      };
      const first = await client.mutate(widgets, target, change(1));
      const known = first.object as unknown as JsonObject;
      calls.length = 0;
      const written = await client.mutate(widgets, target, change(2), { basis: startFrom(known) });
      expect(verbs()).toEqual(["patch 200"]);
      expect(written).toMatchObject({ kind: "updated", tries: 1, lost: 0 });

      // The object is outdated now: the write is rejected, and a read follows.
      calls.length = 0;
      const contested = await client.mutate(widgets, target, change(3), {
        basis: startFrom(known),
      });
      expect(verbs()).toEqual(["patch 409", "get 200", "patch 200"]);
      expect(contested).toMatchObject({ kind: "updated", tries: 2, lost: 1 });

      // The outdated object needs no change, but the current one does.
      calls.length = 0;
      const same = await client.mutate(widgets, target, change(1), { basis: startFrom(known) });
      expect(verbs()).toEqual(["get 200", "patch 200"]);
      expect(same).toMatchObject({ kind: "updated", lost: 0 });

      // A change that throws on the given object is repeated on a read one.
      calls.length = 0;
      const choosy = client.mutate(
        widgets,
        target,
        (draft) => {
          if (specOf(draft).n !== 1) throw new Error("not yet");
          specOf(draft).n = 4;
        },
        { basis: startFrom(contested.object as unknown as JsonObject) },
      );
      expect(await choosy).toMatchObject({ kind: "updated" });
      expect(verbs()).toEqual(["get 200", "patch 200"]);
    });

    test("ignores a given object that is too old or another one", async () => {
      const change = (draft: Widget) => {
        specOf(draft).n = (specOf(draft).n as number) + 1;
      };
      const before = (await client.mutate(widgets, target, change)).object;
      const { object } = await client.mutate(widgets, target, change);
      const version = object.metadata.resourceVersion ?? "";
      calls.length = 0;
      const given = before as unknown as JsonObject;
      await client.mutate(widgets, target, change, { basis: startFrom(given, atLeast(version)) });
      expect(verbs()).toEqual(["get 200", "patch 200"]);

      await client.delete(widgets, target);
      await client.create(widgets, { metadata: target, spec: { n: 0 } });
      calls.length = 0;
      // Without a uid, the existing object is meant.
      const found = await client.mutate(widgets, target, change, { basis: startFrom(given) });
      expect(specOf(found.object).n).toBe(1);
      const uid = found.object.metadata.uid ?? "";
      calls.length = 0;
      await client.mutate(widgets, target, change, { basis: startFrom(given), uid });
      expect(verbs()).toEqual(["get 200", "patch 200"]);
    });

    test("unknown fields and integers beyond 2^53 survive a mutate (P4)", async () => {
      const path = `/apis/${GROUP}/v1/namespaces/${namespace}/widgets`;
      const body = JSON.parse(
        '{"apiVersion":"x","kind":"Widget","metadata":{"name":"big"},"spec":{"odd":{"serial":0,"deep":[{"serial":0}]},"n":1}}',
      );
      body.apiVersion = `${GROUP}/v1`;
      // JavaScript has no number beyond 2^53, so JSON.rawJSON creates the text.
      const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };
      body.spec.odd.serial = rawJSON("9007199254740993");
      body.spec.odd.deep[0].serial = rawJSON("-9223372036854775808");
      await client.raw({ method: "POST", path, body });
      const { object } = await client.mutate(widgets, { namespace, name: "big" }, (draft) => {
        specOf(draft).n = 2;
        specOf(draft).odd.deep.push({ serial: 7 });
      });
      // A real server sorts the members; only their values count.
      const expected = parseJson(
        '{"n":2,"odd":{"deep":[{"serial":-9223372036854775808},{"serial":7}],"serial":9007199254740993}}',
      );
      expect(jsonEquals(object.spec, expected)).toBe(true);
      const stored = await client.get(widgets, { namespace, name: "big" });
      expect(JSON.stringify(stored.spec)).toBe(JSON.stringify(object.spec));
    });

    test("no update is lost between writers, and each conflict names the competing writer (P3)", async () => {
      const writers = Array.from({ length: 6 }, (_, n) =>
        opened.client.scoped({
          fieldManager: `writer-${n}`,
          onConflict: (conflict) => conflicts.push(conflict),
        }),
      );
      await Promise.all(
        writers.flatMap((writer) =>
          [1, 2].map(() =>
            writer.mutate(widgets, target, (draft) => void specOf(draft).n++, {
              retry: { baseMs: 5, factor: 2, capMs: 200, steps: 60, jitter: { kind: "full" } },
            }),
          ),
        ),
      );
      expect((await client.get(widgets, target)).spec?.["n"]).toBe(12);
      expect(conflicts.length).toBeGreaterThan(0);
      for (const { competingWriters, readVersion, foundVersion, ref } of conflicts) {
        expect(ref).toMatchObject({ ...target, resource: "widgets" });
        expect(foundVersion).not.toBe(readVersion);
        expect(competingWriters.flatMap(({ manager }) => manager)).toEqual([
          expect.stringMatching(/^writer-\d$/),
        ]);
        expect(competingWriters[0]?.paths).toEqual(["spec.n"]);
      }
    });

    test("resolves a lost race: reads again at once and writes on the new version", async () => {
      let interfere = true;
      const result = await client.mutate(widgets, target, async (draft) => {
        specOf(draft).mine = true;
        if (!interfere) return;
        interfere = false;
        await opened.client
          .scoped({ fieldManager: "rival" })
          .mutate(widgets, target, (other) => void (specOf(other).theirs = true));
      });
      expect(result).toMatchObject({ kind: "updated", tries: 2, patch: { spec: { mine: true } } });
      expect(result.object.spec).toEqual({ n: 0, mine: true, theirs: true });
      expect(verbs()).toEqual(["get 200", "patch 409", "get 200", "patch 200"]);
      expect(conflicts).toMatchObject([
        {
          try: 1,
          waitedMs: 0,
          competingWriters: [
            {
              manager: "rival",
              operation: "Update",
              paths: expect.arrayContaining(["spec.theirs"]),
            },
          ],
        },
      ]);
    });

    test("retry none throws the first conflict and reports it once", async () => {
      const lost = client.mutate(
        widgets,
        target,
        async (draft) => {
          specOf(draft).mine = true;
          await opened.client.mutate(widgets, target, (other) => void specOf(other).n++);
        },
        { retry: "none" },
      );
      await expect(lost).rejects.toSatisfy(isConflict);
      expect(verbs()).toEqual(["get 200", "patch 409"]);
      expect(conflicts).toMatchObject([{ try: 1, competingWriters: [] }]);
    });

    test("writes nothing without a change", async () => {
      const result = await client.mutate(widgets, target, (draft) => {
        specOf(draft).n = 0;
      });
      expect(result).toMatchObject({ kind: "unchanged", tries: 1 });
      expect(verbs()).toEqual(["get 200"]);
    });

    test("reads a minimum version from the cache; falls back to the newest if it is never reached", async () => {
      const { object } = await opened.client.mutate(
        widgets,
        target,
        (draft) => void specOf(draft).n++,
      );
      const version = object.metadata.resourceVersion ?? "";
      await client.mutate(widgets, target, (draft) => expect(specOf(draft).n).toBe(1), {
        basis: atLeast(version),
      });
      expect(verbs()).toEqual(["get 200"]);
      calls.length = 0;
      const far = atLeast(`${version}00000`);
      expect(
        (await client.mutate(widgets, target, (draft) => void specOf(draft).n++, { basis: far }))
          .object.spec,
      ).toEqual({ n: 2 });
      expect(verbs()).toEqual(["get 504", "get 200", "patch 200"]);
    });

    test("the status subresource writes status alone, even if it did not exist", async () => {
      const before = await client.get(widgets, target);
      const result = await client.mutate(
        widgets,
        target,
        (draft) => void ((draft.status as JsonObject)["ready"] = true),
        { subresource: "status" },
      );
      expect(result.object).toMatchObject({ spec: { n: 0 }, status: { ready: true } });
      expect(result.object.metadata.generation).toBe(before.metadata.generation);
      const again = await client.mutate(
        widgets,
        target,
        (draft) => void ((draft.status as JsonObject)["ready"] = true),
        { subresource: "status" },
      );
      expect(again.kind).toBe("unchanged");
      await expect(
        client.mutate(widgets, target, (draft) => void specOf(draft).n++, {
          subresource: "status",
        }),
      ).rejects.toMatchObject({ code: "invalid_draft" });
    });

    test.each(["status", undefined] as const)(
      "does not write to a replaced object (%s)",
      async (subresource) => {
        const replace = async () => {
          await opened.client.delete(widgets, target);
          await opened.client.create(widgets, { metadata: target, spec: { n: 100 } });
        };
        const options = subresource === undefined ? {} : { subresource };
        const during = client.mutate(
          widgets,
          target,
          async (draft) => {
            (subresource === undefined ? specOf(draft) : (draft.status ??= {}))["n"] = 1;
            await replace();
          },
          options,
        );
        await expect(during).rejects.toSatisfy(isReplaced);
        await expect(during).rejects.toMatchObject({ code: "object_replaced" });
        expect((await client.get(widgets, target)).spec).toEqual({ n: 100 });
        await expect(
          client.mutate(widgets, target, () => undefined, {
            ...options,
            uid: "00000000-0000-0000-0000-000000000000",
          }),
        ).rejects.toSatisfy(isReplaced);
      },
    );

    test("the four patches, PUT and apply, each with its own rejection", async () => {
      const read = await client.get(widgets, target);
      const stale = { ...read, spec: { n: 5 } };
      await client.patch(
        widgets,
        target,
        { type: "merge", body: { spec: { m: 1 } } },
        { unguarded: true },
      );
      await expect(client.replace(widgets, stale)).rejects.toSatisfy(isConflict);
      expect(conflicts).toMatchObject([{ readVersion: read.metadata.resourceVersion, try: 1 }]);

      const failing = client.patch(widgets, target, {
        type: "json",
        body: [{ op: "test", path: "/spec/n", value: 9 }],
      });
      await expect(failing).rejects.toSatisfy((error) => isInvalid(error) && !isConflict(error));
      await expect(
        client.patch(widgets, target, { type: "strategic", body: {} }, { unguarded: true }),
      ).rejects.toMatchObject({ status: 415 });

      const applied = await client
        .scoped({ fieldManager: "first" })
        .apply(widgets, { metadata: target, spec: { owned: 1 } });
      expect(applied.spec).toMatchObject({ owned: 1, m: 1 });
      const second = client.scoped({ fieldManager: "second" });
      await expect(
        second.apply(widgets, { metadata: target, spec: { owned: 2 } }),
      ).rejects.toSatisfy(isFieldManagerConflict);
      expect(
        (await second.apply(widgets, { metadata: target, spec: { owned: 2 } }, { force: true }))
          .spec,
      ).toMatchObject({ owned: 2 });

      await expect(client.delete(widgets, target, { uid: "other" })).rejects.toSatisfy(isReplaced);
      await client.delete(widgets, target, { uid: read.metadata.uid ?? "" });
    });

    test("lists are paged or whole, with apiVersion and kind", async () => {
      const labels = { page: `p${counter}` };
      for (const n of [1, 2, 3, 4, 5])
        await client.create(widgets, {
          metadata: { ...target, name: `${target.name}-${n}`, labels },
        });
      calls.length = 0;
      const { items, resourceVersion } = await client.list(widgets, {
        namespace,
        labelSelector: `page=${labels.page}`,
        limit: 2,
      });
      expect(
        items.map(({ kind, apiVersion, metadata }) => [kind, apiVersion, metadata.name]),
      ).toEqual([1, 2, 3, 4, 5].map((n) => ["Widget", `${GROUP}/v1`, `${target.name}-${n}`]));
      expect(resourceVersion).toMatch(/^\d+$/);
      expect(verbs()).toEqual(["list 200", "list 200", "list 200"]);
    });

    test("discovery finds types, and a missing kind is named", async () => {
      expect(await client.resolveType(`${GROUP}/v1`, "Widget")).toMatchObject({
        resource: "widgets",
        scope: "Namespaced",
        subresources: ["status"],
      });
      expect(await client.resolveType("apps/v1", "Deployment")).toMatchObject({
        resource: "deployments",
        group: "apps",
      });
      await expect(client.resolveType(`${GROUP}/v1`, "Gadget")).rejects.toMatchObject({
        code: "not_found",
      });
      await expect(client.resolveType("no.such.group/v1", "Widget")).rejects.toMatchObject({
        code: "not_found",
      });
      expect((await client.serverVersion()).gitVersion).toMatch(/^v1\./);
    });

    test("no error or record contains the data of a Secret (P12)", async () => {
      const secret = { namespace, name: `s${counter}` };
      const data = { password: Buffer.from("hunter2-canary").toString("base64"), label: "" };
      await client.create(Secret, { metadata: secret, data });
      const error: unknown = await client
        .mutate(Secret, secret, (draft) => void (draft.data!["other"] = "%%%"))
        .catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "kube_api" });
      const { patch } = await client.mutate(
        Secret,
        secret,
        (draft) => void (draft.data!["other"] = data.password),
      );
      expect(patch).toEqual({ data: { other: "<redacted>" } });
      const rival = opened.client.scoped({ fieldManager: "rival" });
      await client.mutate(Secret, secret, async (draft) => {
        const lost = draft.data!["third"] === undefined && conflicts.length === 0;
        draft.data!["third"] = data.password;
        if (lost)
          await rival.mutate(
            Secret,
            secret,
            (other) => void (other.data!["fourth"] = data.password),
          );
      });
      expect(conflicts.at(-1)?.competingWriters).toMatchObject([
        { manager: "rival", paths: ["data.fourth"] },
      ]);
      const seen = inspect([error, calls, conflicts, patch], {
        depth: 20,
        showHidden: true,
        maxArrayLength: null,
      });
      for (const canary of ["hunter2-canary", data.password, "%%%"])
        expect(seen).not.toContain(canary);
      await client.delete(Secret, secret);
    });
  },
);
