import type { ApiObject } from "@konverge/core";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { IndexedObjects, type IndexFunction, type ObjectSelection } from "./indexed-objects.ts";

interface Pod extends ApiObject {
  readonly spec: { readonly nodeNames: readonly string[] };
}
const byNode: IndexFunction = (object) => (object as Pod).spec.nodeNames;
const notIndexed: IndexFunction = (object) => object.metadata.name;
const seed = Number(process.env["KONVERGE_TEST_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

const pod = (
  namespace: string,
  name: string,
  { owners = [], nodes = [] }: { owners?: readonly string[]; nodes?: readonly string[] } = {},
): Pod => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: {
    namespace,
    name,
    ownerReferences: owners.map((uid) => ({ apiVersion: "v1", kind: "Set", name: uid, uid })),
  },
  spec: { nodeNames: nodes },
});

const letter = fc.constantFrom("a", "b", "c");
const letters = fc.uniqueArray(letter, { maxLength: 2 });
const changes = fc.array(
  fc.record({
    namespace: letter,
    name: letter,
    owners: letters,
    nodes: letters,
    gone: fc.boolean(),
  }),
);
const maybe = fc.option(letter, { nil: undefined });
const selections = fc.record({ namespace: maybe, ownerUid: maybe, node: maybe, name: maybe });

test("a list equals a filter of all objects, after any changes", () => {
  fc.assert(
    fc.property(changes, selections, (made, { namespace, ownerUid, node, name }) => {
      const objects = new IndexedObjects<Pod>({ indexes: [byNode] });
      const model = new Map<string, Pod>();
      for (const { gone, owners, nodes, ...target } of made) {
        const next = pod(target.namespace, target.name, { owners, nodes });
        const key = `${target.namespace}/${target.name}`;
        if (gone) objects.delete(target);
        else objects.set(next);
        if (gone) model.delete(key);
        else model.set(key, next);
      }
      const selection: ObjectSelection = {
        namespace,
        ownerUid,
        indexed: [
          ...(node === undefined ? [] : [{ index: byNode, value: node }]),
          ...(name === undefined ? [] : [{ index: notIndexed, value: name }]),
        ],
      };
      const expected = [...model.values()].filter(
        ({ metadata, spec }) =>
          (namespace === undefined || metadata.namespace === namespace) &&
          (ownerUid === undefined ||
            metadata.ownerReferences?.some(({ uid }) => uid === ownerUid)) &&
          (node === undefined || spec.nodeNames.includes(node)) &&
          (name === undefined || metadata.name === name),
      );
      expect(new Set(objects.list(selection))).toEqual(new Set(expected));
    }),
    { seed },
  );
});

/** Counts the reads of an object's metadata, and so the objects that a list looks at. */
function fill(size: number) {
  const counts = { touched: 0 };
  const objects = new IndexedObjects<Pod>({ indexes: [byNode] });
  for (let n = 0; n < size; n++) {
    const made = pod(n < 10 ? "few" : "many", `pod-${n}`, {
      owners: [n < 10 ? "few" : `owner-${n % 100}`],
      nodes: [n < 10 ? "few" : `node-${n % 100}`],
    });
    const { metadata } = made;
    const counted = Object.defineProperty({ ...made }, "metadata", {
      get() {
        counts.touched += 1;
        return metadata;
      },
    });
    objects.set(counted);
  }
  counts.touched = 0;
  return { counts, objects };
}

test.each<[string, ObjectSelection]>([
  ["namespace", { namespace: "few" }],
  ["owner", { ownerUid: "few" }],
  ["owner in a namespace", { namespace: "many", ownerUid: "few" }],
  ["index", { indexed: [{ index: byNode, value: "few" }] }],
])("a list by %s touches as many objects among 100 as among 10,000", (_name, selection) => {
  const touched = [100, 10_000].map((size) => {
    const { counts, objects } = fill(size);
    objects.list(selection);
    return counts.touched;
  });
  expect(touched[0]).toBe(touched[1]);
  expect(touched[0]).toBeLessThanOrEqual(20);
});

test("an error of an index function is reported once for each version, and its object is in all other lists", () => {
  const errors: unknown[] = [];
  const returnsNumber = (() => 7) as unknown as IndexFunction;
  const objects = new IndexedObjects<Pod>({
    indexes: [byNode, returnsNumber],
    onIndexError: (error, { metadata }, index) => errors.push([metadata.name, index, error]),
  });
  const expected = [
    ["broken", byNode, expect.any(TypeError)],
    ["broken", returnsNumber, expect.any(TypeError)],
  ];
  objects.set({ ...pod("n", "broken"), spec: undefined as never });
  expect(errors).toEqual(expected);
  expect(objects.list({ namespace: "n" })).toHaveLength(1);
  expect(objects.list({ indexed: [{ index: byNode, value: "a" }] })).toEqual([]);
  expect(objects.list({ indexed: [{ index: returnsNumber, value: "7" }] })).toEqual([]);
  expect(errors).toEqual(expected);
  objects.set({ ...pod("n", "broken"), spec: undefined as never });
  objects.delete({ namespace: "n", name: "broken" });
  expect(errors).toHaveLength(4);
});
