import { KubernetesObjectApi, PatchStrategy, setHeaderOptions } from "@kubernetes/client-node";
import { makeRandom } from "../random-numbers.ts";
import { format, outcomeOf, parts, type World } from "./world.ts";

const CALLS = 60;

/** Random calls for a few objects of a built-in and a custom kind, with the outcome of each, and the objects at the end. */
export async function randomCalls(world: World, seed: number): Promise<void> {
  const { config, core, custom, namespace, say } = world;
  const random = makeRandom(seed);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const api = KubernetesObjectApi.makeApiClient(config);
  const kinds = [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      content: () => ({ data: { [pick(["a", "b"])]: pick(["1", "2", ""]) } }),
    },
    {
      apiVersion: "foreign.konverge.dev/v1",
      kind: "Part",
      content: () => ({
        spec: {
          size: pick(["s", "m", "l"]),
          ...(random() < 0.3 ? { replicas: pick([0, 1, 3]) } : {}),
          ...(random() < 0.3 ? { note: pick(["x", "y"]) } : {}),
          ...(random() < 0.3
            ? { ports: [{ name: pick(["http", "web"]), port: pick([80, 81]) }] }
            : {}),
        },
      }),
    },
  ];
  // The version read last, of each object: it may be stale.
  const read = new Map<string, object>();
  const calls = [
    "create",
    "read",
    "replace",
    "replace",
    "merge",
    "json",
    "apply",
    "apply",
    "force",
    "label",
    "delete",
    "status",
    "list",
  ] as const;
  for (let index = 0; index < CALLS; index++) {
    const { apiVersion, kind, content } = pick(kinds);
    const name = pick(["one", "two"]);
    const id = `${kind} ${name}`;
    const head = { apiVersion, kind, metadata: { name, namespace } };
    const call = pick(calls);
    const patch = (body: object, strategy: PatchStrategy, manager?: string, force?: boolean) =>
      api.patch({ ...head, ...body }, undefined, undefined, manager, force, strategy);
    const label = { labels: { app: pick(["x", "y", null]) as string } };
    const manager = pick(["one", "two"]);
    const jsonPath = kind === "Part" ? "/spec/note" : "/data/a";
    const operation = {
      op: pick(["add", "replace", "remove", "test"]),
      path: jsonPath,
      value: pick(["1", "x"]),
    };
    const selector = pick(["app=x", "app!=x", "app in (x,y)", "!app"]);
    const run: Record<(typeof calls)[number], () => Promise<unknown>> = {
      create: () => api.create({ ...head, ...content() }),
      read: () => api.read(head),
      replace: () => api.replace({ ...head, ...read.get(id), ...content() }),
      merge: () => patch(content(), PatchStrategy.MergePatch),
      json: () =>
        kind === "Part"
          ? custom.patchNamespacedCustomObject({ ...parts, namespace, name, body: [operation] })
          : core.patchNamespacedConfigMap({ namespace, name, body: [operation] }),
      apply: () => patch(content(), PatchStrategy.ServerSideApply, manager, false),
      force: () => patch(content(), PatchStrategy.ServerSideApply, manager, true),
      label: () => patch({ metadata: { ...head.metadata, ...label } }, PatchStrategy.MergePatch),
      delete: () => api.delete(head),
      status: () =>
        custom.patchNamespacedCustomObjectStatus(
          { ...parts, namespace, name, body: { status: { replicas: pick([1, 2]) } } },
          setHeaderOptions("Content-Type", PatchStrategy.MergePatch),
        ),
      list: () =>
        api.list(apiVersion, kind, namespace, undefined, undefined, undefined, undefined, selector),
    };
    const outcome = await outcomeOf(async () => {
      const result = (await run[call]()) as { readonly kind?: string };
      if (call === "read" || (call === "create" && random() < 0.5)) read.set(id, result);
      return result;
    });
    say(`${index} ${call} ${id}: ${sortOwners(outcome)}`);
  }
}

/** Managers of one second have no order. */
function sortOwners(outcome: string): string {
  try {
    return JSON.stringify(JSON.parse(outcome), (key, value: unknown) =>
      key === "managedFields" && Array.isArray(value)
        ? value.map((one: unknown) => format(one)).toSorted()
        : value,
    );
  } catch {
    return outcome;
  }
}
