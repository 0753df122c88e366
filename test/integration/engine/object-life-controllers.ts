import { TerminalError, type ApiObject } from "@konverge/core";
import {
  defineController,
  defineResource,
  type AttemptKube,
  type Controller,
} from "@konverge/engine";
import type { NamespacedName } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { z } from "zod";

/** Larger sizes are a terminal error. */
export const MAX_SIZE = 3;
const FLAKY_SIZE = 2;
/** The annotation with which the controller of ConfigMaps answers `data.size`. */
export const SEEN = "life.test/seen";
export const CHILD_LABEL = "life.test/child";
export const CONFIG_LABEL = "life.test/config";

const common = { group: "life.test.konverge.dev", version: "v1" } as const;
const spec = z.object({ size: z.int() });
const status = z.object({ size: z.int(), notes: z.string() });
export const Thing = defineResource({ ...common, kind: "Thing", spec, status });
export const Realm = defineResource({ ...common, kind: "Realm", scope: "Cluster", spec, status });

const text = z.object({ text: z.string() });
/** A cluster-scoped child of Realms. */
export const Plot = defineResource({ ...common, kind: "Plot", scope: "Cluster", spec: text });
/** A cluster-scoped object that owners watch, beside ConfigMaps. Its name is that of the owner. */
export const Notice = defineResource({ ...common, kind: "Notice", scope: "Cluster", spec: text });
export const NOTE_LABEL = "life.test/note";

type Owner = ApiObject & {
  readonly spec: { readonly size: number };
  status?: { size?: number; notes?: string };
};

export const childName = (owner: string, index: number): string => `${owner}-child-${index}`;

/** Makes the cluster-scoped children of an owner, which must be cluster-scoped itself. */
async function makePlots(owner: Owner, kube: AttemptKube): Promise<void> {
  const { name } = owner.metadata;
  const plots = await kube.list(Plot, { ownedBy: owner });
  const wanted = Array.from({ length: owner.spec.size }, (_, index) => childName(name, index));
  for (const plot of plots) if (!wanted.includes(plot.metadata.name)) await kube.delete(plot);
  for (const plot of wanted) {
    await kube.apply(Plot, { name: plot, ownedBy: owner, spec: { text: name } });
  }
}

/** The texts of the watched objects with the name of an owner. */
async function readNotes(owner: Owner, kube: AttemptKube, namespace: string): Promise<string> {
  const { name } = owner.metadata;
  const configMaps = await kube.list(ConfigMap, { namespace });
  const own = configMaps.find(({ metadata: { labels } }) => labels?.[NOTE_LABEL] === name);
  const notices = await kube.list(Notice);
  const notice = notices.find(({ metadata }) => metadata.name === name);
  return notesText(own?.data?.["text"], notice?.spec.text);
}

export const notesText = (...notes: readonly (string | undefined)[]): string =>
  notes.map((note) => note ?? "none").join(" ");

/** Makes the children of an owner: as many ConfigMaps as its size, with its name as data. */
async function makeChildren(owner: Owner, kube: AttemptKube, namespace: string): Promise<void> {
  const { name } = owner.metadata;
  const children = await kube.list(ConfigMap, { ownedBy: owner, namespace });
  const wanted = Array.from({ length: owner.spec.size }, (_, index) => childName(name, index));
  for (const child of children) {
    if (!wanted.includes(child.metadata.name)) await kube.delete(child);
    else if (child.data?.["owner"] !== name) {
      await kube.mutate(child, (draft) => {
        draft.data = { owner: name };
      });
    }
  }
  for (const child of wanted) {
    if (children.some(({ metadata }) => metadata.name === child)) continue;
    const labels = { [CHILD_LABEL]: "true" };
    await kube.create(ConfigMap, {
      name: child,
      namespace,
      labels,
      ownedBy: owner,
      data: { owner: name },
    });
  }
}

async function reconcileOwner(
  owner: Owner,
  {
    kube,
    attempt,
    namespace,
  }: { readonly kube: AttemptKube; readonly attempt: number; readonly namespace: string },
): Promise<void> {
  const { size } = owner.spec;
  checkSize(size, attempt);
  await makeChildren(owner, kube, namespace);
  const notes = await readNotes(owner, kube, namespace);
  await kube.mutateStatus(owner, (draft) => {
    draft.status.size = size;
    draft.status.notes = notes;
  });
}

/** The names of owners that the watched objects concern. Owners are in a namespace or cluster-scoped, and so are the notes. */
function watchNotes(namesOf: (owner: string) => NamespacedName) {
  return [
    {
      type: ConfigMap,
      map: ({ metadata: { labels } }: ApiObject) =>
        [labels?.[NOTE_LABEL]].flatMap((owner) => (owner === undefined ? [] : namesOf(owner))),
    },
    { type: Notice, map: ({ metadata: { name } }: ApiObject) => [namesOf(name)] },
  ] as const;
}

function checkSize(size: number, attempt: number): void {
  if (size > MAX_SIZE) throw new TerminalError(`size must be at most ${MAX_SIZE} (got ${size})`);
  if (size === FLAKY_SIZE && attempt === 1) throw new Error("fails once");
}

const backoff = { failure: { baseMs: 20, capMs: 200 }, conflict: { baseMs: 5, capMs: 100 } };

/** Controllers of a kind in namespaces, a cluster-scoped kind, and a kind without generation. */
export function lifeControllers(namespace: string): Controller[] {
  const things = defineController({
    name: "things",
    for: Thing,
    owns: [ConfigMap],
    watches: watchNotes((name) => ({ namespace, name })),
    backoff,
    reconcile: ({ object, kube, attempt }) => reconcileOwner(object, { kube, attempt, namespace }),
    cleanup: ({ object, kube }) => makeChildren({ ...object, spec: { size: 0 } }, kube, namespace),
  });
  const realms = defineController({
    name: "realms",
    for: Realm,
    owns: [ConfigMap, Plot],
    watches: watchNotes((name) => ({ name })),
    backoff,
    async reconcile({ object, kube, attempt }) {
      await reconcileOwner(object, { kube, attempt, namespace });
      await makePlots(object, kube);
    },
    async cleanup({ object, kube }) {
      const none = { ...object, spec: { size: 0 } };
      await makeChildren(none, kube, namespace);
      await makePlots(none, kube);
    },
  });
  const configs = defineController({
    name: "configs",
    for: {
      type: ConfigMap,
      predicate: ({ object }) => object.metadata.labels?.[CONFIG_LABEL] !== undefined,
    },
    backoff,
    async reconcile({ object, kube, attempt }) {
      if (object.metadata.labels?.[CONFIG_LABEL] === undefined) return;
      const size = object.data?.["size"] ?? "";
      // A write before the error must not revive the key by itself.
      if (Number(size) > MAX_SIZE) {
        await kube.mutate(object, (draft) => {
          draft.metadata.annotations = { [SEEN]: `refused ${size}` };
        });
      }
      checkSize(Number(size), attempt);
      await kube.mutate(object, (draft) => {
        draft.metadata.annotations = { [SEEN]: size };
      });
    },
  });
  return [things, realms, configs];
}
