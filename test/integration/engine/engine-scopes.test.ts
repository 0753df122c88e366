import { defined, type ApiObject } from "@konverge/core";
import { defineController, type AttemptKube } from "@konverge/engine";
import { onlyMetadata, onlyPart } from "@konverge/kube";
import { ConfigMap, Namespace } from "@konverge/kube/kinds";
import { describe, expect, onTestFinished, test } from "vitest";
import { seededRandom } from "../../../apps/demo/src/load/seeded-random.ts";
import { until } from "../../support/until.ts";
import { testServers } from "../kube/kube-servers.ts";
import { namespace, useEngines } from "./engine-harness.ts";
import { isLongRun, seed } from "../../support/test-run.ts";

const CONTROLLERS = isLongRun ? 12 : 3;
const RESTS = isLongRun ? 8 : 3;
const STEPS_PER_REST = 10;
const QUERIES_PER_REST = 12;

const NAMES = ["a", "b", "c", "d"];
const LABELS = ["in", "out", "other"];
const SELECTORS = ["scope=in", "scope in (in,other)", "scope!=out", "scope", "!scope"];

const Meta = onlyMetadata(ConfigMap);
const Part = onlyPart(ConfigMap, ({ data }) => ({ data: { a: data?.["a"] ?? "" } }));
const KINDS = { whole: ConfigMap, metadata: Meta, part: Part } as const;

type Random = () => number;
const pick = <T>(random: Random, items: readonly T[]): T =>
  items[Math.floor(random() * items.length)] as T;
const maybe = <K extends string, T>(random: Random, key: K, value: () => T): { [key in K]?: T } =>
  (random() < 0.5 ? { [key]: value() } : {}) as { [key in K]?: T };

interface Query {
  readonly kind: keyof typeof KINDS;
  readonly options: {
    readonly namespace?: string;
    readonly labelSelector?: string;
    readonly ownedBy?: ApiObject;
    readonly index?: { readonly byA: string };
  };
}

describe.each(testServers())("scopes of sources on $name", (target) => {
  const harness = useEngines(target, "widgets.scopes.test.konverge.dev");

  test(`lists beside any scope return what lists of the API server return (KONVERGE_TEST_SEED=${seed})`, async () => {
    const random = seededRandom(seed);
    const other = `scopes-${process.pid}`;
    const spaces = [namespace, other];
    await harness.client.create(Namespace, { metadata: { name: other } });
    onTestFinished(async () => {
      for (const space of spaces) {
        const { items } = await harness.client.list(ConfigMap, { namespace: space });
        for (const { metadata } of items) {
          await harness.client.delete(ConfigMap, { namespace: space, name: metadata.name });
        }
      }
      await harness.client.delete(Namespace, { name: other });
    });
    for (let round = 0; round < CONTROLLERS; round++) {
      const sources = sourcesOf(random, spaces);
      const owners = [
        await harness.make(`owner-${round}-0`),
        await harness.make(`owner-${round}-1`),
      ];
      let ask: ((kube: AttemptKube) => Promise<void>) | undefined;
      const { queue, key } = await harness.startController(
        defineController({
          name: `scopes-${round}`,
          for: harness.Widgets,
          ...sources,
          async reconcile({ object, kube }) {
            if (object.metadata.name === owners[0]?.metadata.name) await ask?.(kube);
          },
        } as Parameters<typeof defineController>[0]),
      );
      for (let rest = 0; rest < RESTS; rest++) {
        for (let step = 0; step < STEPS_PER_REST; step++) await change(random, spaces, owners);
        const queries = Array.from({ length: QUERIES_PER_REST }, () =>
          queryOf(random, { spaces, owners, sources }),
        );
        const wanted = await Promise.all(queries.map((query) => fromServer(query)));
        let found: unknown;
        ask = async (kube) => {
          found = await Promise.all(queries.map((query) => fromKube(kube, query)));
        };
        // The caches follow the API server.
        await until(
          "the lists agree",
          async () => {
            found = undefined;
            await queue.request(
              key(`owner-${round}-0`),
              { kind: "http" },
              { class: "interactive" },
            );
            await until("the handler has listed", () => found !== undefined);
            return JSON.stringify(found) === JSON.stringify(wanted);
          },
          20_000,
        ).catch(() => expect({ queries, found }).toEqual({ queries, found: wanted }));
      }
    }
  });

  async function change(random: Random, spaces: readonly string[], owners: readonly ApiObject[]) {
    const { client } = harness;
    const at = { namespace: pick(random, spaces), name: pick(random, NAMES) };
    const { items } = await client.list(ConfigMap, { namespace: at.namespace });
    const live = items.find(({ metadata }) => metadata.name === at.name);
    const owner = pick(random, [undefined, ...owners]);
    // An owner is in the namespace of its children.
    const owned = owner !== undefined && at.namespace === namespace ? [owner] : [];
    const metadata = {
      ...at,
      ...(random() < 0.8 ? { labels: { scope: pick(random, LABELS) } } : {}),
      ownerReferences: owned.map((one) => ({
        apiVersion: `${harness.Widgets.group}/${harness.Widgets.version}`,
        kind: harness.Widgets.kind,
        name: one.metadata.name,
        uid: one.metadata.uid ?? "",
        controller: true,
      })),
    };
    const data = { a: String(Math.floor(random() * 3)), b: String(random()) };
    if (live === undefined) await client.create(ConfigMap, { metadata, data });
    else if (random() < 0.25) await client.delete(ConfigMap, at);
    else
      await client.replace(ConfigMap, {
        ...live,
        metadata: { ...live.metadata, labels: {}, ...metadata },
        data,
      });
  }

  /** The result of a list without any cache. */
  async function fromServer({ kind, options }: Query): Promise<unknown> {
    const { namespace: inside = namespace, labelSelector, ownedBy, index } = options;
    const { items } = await harness.client.list(ConfigMap, {
      namespace: inside,
      ...defined({ labelSelector }),
    });
    const chosen = items.filter(
      ({ metadata, data }) =>
        (ownedBy === undefined ||
          metadata.ownerReferences?.some(({ uid }) => uid === ownedBy.metadata.uid) === true) &&
        (index === undefined || (kind !== "metadata" && data?.["a"] === index.byA)),
    );
    return summaryOf(kind, chosen);
  }
});

async function fromKube(kube: AttemptKube, { kind, options }: Query): Promise<unknown> {
  try {
    return summaryOf(kind, await kube.list(KINDS[kind], options));
  } catch (error) {
    return String(error);
  }
}

/** What a kind has of each object, in order of the names. */
function summaryOf(kind: Query["kind"], items: readonly ApiObject[]): unknown {
  const shown = items
    .filter(({ metadata }) => metadata.name !== "kube-root-ca.crt")
    .map(({ metadata, ...rest }) => {
      const data = (rest as { readonly data?: Record<string, string> }).data;
      const kept = { whole: data, metadata: undefined, part: { a: data?.["a"] } }[kind];
      const { name, labels = {}, ownerReferences = [] } = metadata;
      return [metadata.namespace, name, labels, ownerReferences.map(({ uid }) => uid), kept];
    });
  return shown.toSorted((one, two) => (JSON.stringify(one) < JSON.stringify(two) ? -1 : 1));
}

interface Source {
  readonly type: (typeof KINDS)[Query["kind"]];
  readonly labels?: string;
  readonly namespaces?: readonly string[];
  readonly indexes?: object;
}

interface Sources {
  readonly owns: readonly Source[];
  readonly watches?: readonly Source[];
}

const kindNames = Object.keys(KINDS) as Query["kind"][];

/** One or two sources of ConfigMaps: a kind, and any of the limits. */
function sourcesOf(random: Random, spaces: readonly string[]): Sources {
  const source = (): Source => ({
    type: KINDS[pick(random, kindNames)],
    ...maybe(random, "labels", () => pick(random, SELECTORS)),
    ...maybe(random, "namespaces", () => (random() < 0.5 ? [...spaces] : [pick(random, spaces)])),
    ...maybe(random, "indexes", () => ({
      byA: ({ data }: { readonly data?: Record<string, string> }) => data?.["a"],
    })),
  });
  return {
    owns: [source()],
    ...maybe(random, "watches", () => [{ ...source(), map: () => [] }]),
  };
}

interface Choices {
  readonly spaces: readonly string[];
  readonly owners: readonly ApiObject[];
  readonly sources: Sources;
}

/** A list that a handler may ask for. Half of them have the labels of a source, so that its cache can answer. */
function queryOf(random: Random, { spaces, owners, sources }: Choices): Query {
  const all = [...sources.owns, ...(sources.watches ?? [])];
  const { labels } = pick(random, all);
  const kind = pick(random, kindNames);
  const isIndexed = all.some(({ type, indexes }) => type === KINDS[kind] && indexes !== undefined);
  const labelSelector = random() < 0.5 ? labels : pick(random, [undefined, ...SELECTORS]);
  return {
    kind,
    options: {
      ...(random() < 0.7 ? { namespace: pick(random, spaces) } : {}),
      ...defined({ labelSelector }),
      ...(random() < 0.4 ? { ownedBy: pick(random, owners) } : {}),
      ...(isIndexed && random() < 0.5 ? { index: { byA: String(Math.floor(random() * 3)) } } : {}),
    },
  };
}
