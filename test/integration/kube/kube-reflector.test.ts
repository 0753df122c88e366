import type { ApiObject, ResourceType } from "@konverge/core";
import {
  createReflector,
  onlyMetadata,
  onlyPart,
  type KubeClient,
  type ReflectorEvent,
} from "@konverge/kube";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installWidgets, removeWidgets, testServers, type Widget } from "./kube-servers.ts";
import { until } from "../../support/until.ts";

const GROUP = "reflector.test.konverge.dev";
const namespace = "default";

const numberOf = (widget: Widget | undefined): string =>
  JSON.stringify(widget?.spec?.["n"]) ?? "nothing";

/** Without the metadata, whose content is the server's. */
function contentOf(object: ApiObject | undefined): object {
  const { metadata, ...content } = object ?? { metadata: undefined };
  expect(metadata?.name).toBe("partial");
  return JSON.parse(JSON.stringify(content)) as object;
}

describe.each(testServers().map((server) => [server.name, server] as const))(
  "%s",
  (_name, server) => {
    let opened: Awaited<ReturnType<typeof server.open>>;
    let client: KubeClient;
    let widgets: ResourceType<Widget>;
    beforeAll(async () => {
      opened = await server.open();
      client = opened.client;
      widgets = await installWidgets(client, GROUP);
    });
    afterAll(async () => {
      await removeWidgets(client, GROUP);
      await opened.close();
    });

    test("reports the initial objects, additions, changes and deletions", async () => {
      const target = { namespace, name: "reported" };
      await client.create(widgets, { metadata: target, spec: { n: 1 } });
      const reported: string[] = [];
      const reflector = createReflector<Widget>({
        client,
        type: widgets,
        namespace,
        onEvent: ({ kind, object, previous, initial }) =>
          void reported.push(
            `${kind} ${numberOf(object)} after ${numberOf(previous)}${initial ? " initial" : ""}`,
          ),
      });
      reflector.start();
      await reflector.synced;
      expect(reported).toEqual(["added 1 after nothing initial"]);
      await client.mutate(widgets, target, (draft) => void (draft.spec = { n: 2 }));
      await client.delete(widgets, target);
      await client.create(widgets, { metadata: target, spec: { n: 3 } });
      await until("four changes are reported", () => reported.length === 4);
      expect(reported.slice(1)).toEqual([
        "changed 2 after 1",
        "deleted 2 after 2",
        "added 3 after nothing",
      ]);
      expect(reflector.get(namespace, "reported")).toMatchObject({
        kind: "Widget",
        spec: { n: 3 },
      });
      await reflector.stop();
      await client.delete(widgets, target);
    });

    test("keeps the metadata or a part of objects, in lists, watches and reads", async () => {
      const target = { namespace, name: "partial" };
      const labels = { kept: "yes" };
      await client.create(widgets, { metadata: { ...target, labels }, spec: { n: 1, other: 2 } });
      const part = onlyPart(widgets, ({ spec }) => ({ spec: { n: spec?.["n"] } }));
      const kinds = [onlyMetadata(widgets), part];
      const deleted: object[] = [];
      const reflectors = kinds.map((type) =>
        createReflector({
          client,
          type,
          labelSelector: "kept=yes",
          onEvent: ({ kind, object }) => {
            if (kind === "deleted") deleted.push(contentOf(object));
          },
        }),
      );
      for (const reflector of reflectors) reflector.start();
      await Promise.all(reflectors.map(({ synced }) => synced));
      const expected = (n: number) => [
        { apiVersion: `${GROUP}/v1`, kind: "Widget" },
        { apiVersion: `${GROUP}/v1`, kind: "Widget", spec: { n } },
      ];
      const cached = () => reflectors.map((one) => contentOf(one.get(namespace, target.name)));
      expect(cached()).toEqual(expected(1));
      expect(
        await Promise.all(kinds.map(async (type) => contentOf(await client.get(type, target)))),
      ).toEqual(expected(1));
      await client.mutate(widgets, target, (draft) => void (draft.spec = { n: 2, other: 3 }));
      const version = (await client.get(widgets, target)).metadata.resourceVersion;
      await until("both watches have the change", () =>
        reflectors.every(
          (one) => one.get(namespace, target.name)?.metadata.resourceVersion === version,
        ),
      );
      expect(cached()).toEqual(expected(2));
      const [whole] = reflectors.map((one) => one.get(namespace, target.name));
      expect(whole?.metadata.labels).toEqual(labels);
      expect(() => client.replace(widgets, { ...whole } as Widget)).toThrow(
        "Widget: object is only a part",
      );
      await client.delete(widgets, target);
      await until("both deletions are reported", () => deleted.length === 2);
      expect(deleted).toEqual(expect.arrayContaining(expected(2)));
      await Promise.all(reflectors.map((one) => one.stop()));
    });

    test("reads a long list in pages of one version, and then sees what changed meanwhile", async () => {
      const names = Array.from({ length: 601 }, (_, n) => `paged-${1_000 + n}`);
      const at = (name: string) => ({ namespace, name });
      const create = (name: string) =>
        client.create(widgets, { metadata: { ...at(name), labels: { paged: "yes" } } });
      for (let start = 0; start < names.length; start += 50) {
        await Promise.all(names.slice(start, start + 50).map(create));
      }
      const pages: number[] = [];
      const events: ReflectorEvent<Widget>[] = [];
      const reflector = createReflector<Widget>({
        client: {
          ...client,
          async listPage(...options) {
            const page = await client.listPage(...options);
            if (pages.push(page.items.length) === 1) {
              await client.delete(widgets, at("paged-1600"));
              await create("paged-0000");
            }
            return page;
          },
        },
        type: widgets,
        labelSelector: "paged=yes",
        onEvent: (event) => void events.push(event),
      });
      reflector.start();
      await reflector.synced;
      await until("the watch reports both changes", () => events.length === 603);
      expect(Math.max(...pages)).toBeLessThanOrEqual(500);
      expect(pages.length).toBeGreaterThan(1);
      expect(pages.reduce((sum, items) => sum + items, 0)).toBe(601);
      expect(
        events.slice(601).map(({ kind, object }) => `${kind} ${object.metadata.name}`),
      ).toEqual(["deleted paged-1600", "added paged-0000"]);
      expect(reflector.list()).toHaveLength(601);
      await reflector.stop();
      const left = ["paged-0000", ...names.slice(0, -1)];
      for (let start = 0; start < left.length; start += 50) {
        await Promise.all(
          left.slice(start, start + 50).map((name) => client.delete(widgets, at(name))),
        );
      }
    });

    test("misses nothing if its watch ends every second", async () => {
      const events: ReflectorEvent<Widget>[] = [];
      const errors: Error[] = [];
      let lists = 0;
      const reflector = createReflector<Widget>({
        client: {
          ...client,
          async listPage(...options) {
            lists += 1;
            return await client.listPage(...options);
          },
        },
        type: widgets,
        timeoutSeconds: 1,
        onEvent: (event) => void events.push(event),
        onError: (error) => void errors.push(error),
      });
      reflector.start();
      await reflector.synced;
      const target = { namespace, name: "steady" };
      await client.create(widgets, { metadata: target, spec: { n: 0 } });
      const endMs = performance.now() + 3_500;
      let writes = 0;
      while (performance.now() < endMs) {
        // The number does not depend on how often the draft runs: a write whose response is lost is repeated.
        const n = ++writes;
        await client.mutate(widgets, target, (draft) => void (draft.spec = { n }));
      }
      await until(
        "the last write is delivered",
        () => reflector.get(namespace, "steady")?.spec?.["n"] === writes,
      );
      const reported = events.map(({ object }) => Number(object.spec?.["n"]));
      expect(reported, "none twice, and in order").toEqual(
        [...new Set(reported)].toSorted((a, b) => a - b),
      );
      // A server that has lost its history responds with 410, as kube-apiserver may soon after a CRD was created; a
      // list has only the newest state.
      if (lists === 1) expect(reported).toEqual(Array.from({ length: writes + 1 }, (_, n) => n));
      else expect(server.name).toBe("kube-apiserver");
      expect(errors).toEqual([]);
      await reflector.stop();
      await client.delete(widgets, target);
    });

    test("a removed label is a deletion for a selector", async () => {
      const target = { namespace, name: "labelled" };
      await client.create(widgets, { metadata: { ...target, labels: { team: "red" } } });
      const reported: string[] = [];
      const reflector = createReflector<Widget>({
        client,
        type: widgets,
        labelSelector: "team=red",
        onEvent: ({ kind, object }) => void reported.push(`${kind} ${object.metadata.name}`),
      });
      reflector.start();
      await reflector.synced;
      await client.mutate(
        widgets,
        target,
        (draft) => void (draft.metadata.labels = { team: "blue" }),
      );
      await until("it is deleted", () => reported.length === 2);
      expect(reported).toEqual(["added labelled", "deleted labelled"]);
      expect(reflector.list()).toEqual([]);
      await reflector.stop();
      await client.delete(widgets, target);
    });
  },
);
