import type { ApiObject, JsonObject, JsonValue } from "@konverge/core";
import { isJsonObject, isKonvergeError } from "@konverge/core";
import type { ReconcileContext } from "@konverge/engine";
import { isKubeApiError, type NewObject, type ObjectManifest } from "@konverge/kube";
import { ConfigMap, Deployment } from "@konverge/kube/kinds";
import type { Widget } from "../kube/kube-servers.ts";

type Random = () => number;

const integer = (random: Random, below: number): number => Math.floor(random() * below);
function pick<T>(random: Random, values: readonly T[]): T {
  return values[integer(random, values.length)] as T;
}

/** One call of a random handler, as data, so that the plan and the live attempt make the same calls. */
export interface Step {
  readonly op: (typeof OPS)[number];
  readonly name: string;
  readonly key: string;
  readonly value: string;
  readonly flag: boolean;
}

const OPS = [
  "create",
  "createGenerated",
  "apply",
  "applyAsOther",
  "mutate",
  "mutateFields",
  "patchMerge",
  "patchJson",
  "replace",
  "delete",
  "createOrUpdate",
  "get",
  "list",
  "listOwned",
  "label",
  "hold",
  "release",
  "status",
  "spec",
  "deployment",
  "scale",
  "strategic",
  "dryRun",
  "deleteAll",
] as const;

const NAMES = ["a", "b", "c", "d"];

export function randomProgram(random: Random): Step[] {
  const length = 1 + integer(random, 12);
  return Array.from({ length }, () => ({
    op: pick(random, OPS),
    name: pick(random, NAMES),
    key: pick(random, ["x", "y", "z"]),
    value: pick(random, ["1", "2", "3"]),
    flag: integer(random, 2) === 0,
  }));
}

/** Which of the objects exist before the program runs. */
export function randomWorld(random: Random): readonly { name: string; held: boolean; x: string }[] {
  return NAMES.filter(() => integer(random, 2) === 0).map((name) => ({
    name,
    held: integer(random, 4) === 0,
    x: pick(random, ["1", "2"]),
  }));
}

type Context = Pick<ReconcileContext<Widget>, "kube" | "object">;

/** Runs a program, and returns what its calls returned. */
export async function runProgram(context: Context, steps: readonly Step[]): Promise<JsonValue[]> {
  const seen: JsonValue[] = [];
  for (const step of steps) {
    try {
      seen.push([step.op, shapeOf(await perform(context, step))]);
    } catch (error) {
      seen.push([step.op, failureOf(error)]);
    }
  }
  return seen;
}

const HELD = "test.konverge.dev/held";

async function perform({ kube, object }: Context, step: Step): Promise<unknown> {
  const { op, name, key, value, flag } = step;
  const data = { [key]: value };
  const labels = { [key]: value };
  switch (op) {
    case "create":
      return await kube.create(ConfigMap, { metadata: { name, labels }, data });
    case "createGenerated": {
      const metadata = { generateName: `${name}-`, labels };
      return await kube.create(ConfigMap, { metadata, data } as unknown as NewObject<ApiObject>);
    }
    case "apply":
      return await kube.apply(ConfigMap, { metadata: { name }, data }, { force: true });
    case "applyAsOther":
      return await kube.apply(
        ConfigMap,
        { metadata: { name }, data },
        { fieldManager: "other", force: flag },
      );
    case "mutate":
      return await kube.mutate({ type: ConfigMap, name }, (draft) => {
        draft["data"] = { ...(draft["data"] as object | undefined), ...data };
      });
    case "mutateFields":
      return await kube.mutate(
        { type: ConfigMap, name },
        (draft) => {
          const before = draft["data"];
          draft["data"] = { ...before, [key]: `${before?.[key] ?? ""}${value}` };
        },
        { strategy: "fields" },
      );
    case "patchMerge": {
      const read = await kube.get(ConfigMap, name);
      return await kube.patch(read, { data: flag ? data : { [key]: null } }, { type: "merge" });
    }
    case "patchJson": {
      const read = await kube.get(ConfigMap, name);
      return await kube.patch(read, [{ op: "add", path: `/data/${key}`, value }], { type: "json" });
    }
    case "replace": {
      const read = await kube.get<ApiObject>(ConfigMap, name);
      if (flag) await kube.mutate(read, (draft) => void (draft.metadata.labels = labels));
      return await kube.replace({ ...read, data } as ApiObject);
    }
    case "delete":
      return await kube.delete(
        { type: ConfigMap, name },
        flag ? { propagationPolicy: "Foreground" } : {},
      );
    case "createOrUpdate":
      return await kube.createOrUpdate(
        ConfigMap,
        name,
        (draft) => {
          draft["data"] = { ...(draft["data"] as object | undefined), ...data };
        },
        flag ? { ownedBy: object } : {},
      );
    case "get":
      return await kube.find(ConfigMap, name);
    case "list":
      return await kube.list(ConfigMap, flag ? { labelSelector: `${key}=${value}` } : {});
    case "listOwned":
      return await kube.list(ConfigMap, { ownedBy: object });
    case "label":
      return await kube.mutate({ type: ConfigMap, name }, (draft) => {
        draft.metadata.labels = { ...draft.metadata.labels, ...labels };
      });
    case "hold":
    case "release":
      return await kube.mutate({ type: ConfigMap, name }, (draft) => {
        draft.metadata.finalizers = op === "hold" ? [HELD] : [];
      });
    case "status":
      return await kube.mutateStatus(object, (draft) => {
        (draft as Widget).status = { ...(draft as Widget).status, [key]: value };
      });
    case "spec":
      return await kube.mutate(object, (draft) => {
        draft.spec = { ...draft.spec, [key]: value };
      });
    case "deployment":
      return await kube.apply(deployment(name, value), { force: true });
    case "scale": {
      // The controller of Deployments sets its status, and does not run in this test.
      const { metadata, spec } = await kube.scale({ type: Deployment, name }, Number(value));
      return { metadata, spec };
    }
    case "strategic": {
      const read = await kube.get<ApiObject>(Deployment, name);
      const container = { name: "main", image: `image:${value}` };
      const body = { spec: { template: { spec: { containers: [container] } } } };
      return await kube.patch(read, body, { type: "strategic" });
    }
    case "dryRun":
      return await kube.mutate(object, (draft) => void (draft.spec = data), { dryRun: true });
    case "deleteAll":
      return await kube.deleteCollection(ConfigMap, { labelSelector: `${key}=${value}` });
  }
}

function deployment(name: string, value: string): ObjectManifest {
  const labels = { app: name };
  const containers = [{ name: "main", image: "image:0", env: [{ name: "VALUE", value }] }];
  const template = { metadata: { labels }, spec: { containers } };
  const metadata = { name, labels };
  const spec = { selector: { matchLabels: labels }, template };
  return { apiVersion: "apps/v1", kind: "Deployment", metadata, spec };
}

/** Different for each run: versions, uids, times, drawn names and the order of owners. */
const DRAWN = new Set([
  "uid",
  "resourceVersion",
  "creationTimestamp",
  "managedFields",
  "selfLink",
  "deletionTimestamp",
]);

/** What a handler can see of a result, without what differs between any two runs. */
export function shapeOf(value: unknown): JsonValue {
  if (value === undefined) return null;
  if (Array.isArray(value)) {
    const items = value.map(shapeOf);
    return items.every((item) => isJsonObject(item) && isJsonObject(item["metadata"]))
      ? items.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))
      : items;
  }
  if (typeof value !== "object" || value === null) return value as JsonValue;
  const members = Object.entries(value)
    .filter(([name, member]) => !DRAWN.has(name) && member !== undefined)
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, member]) => [name, name === "name" ? drawnName(member, value) : shapeOf(member)]);
  const shaped = Object.fromEntries(members) as JsonObject;
  return "deletionTimestamp" in value ? { ...shaped, terminating: true } : shaped;
}

function drawnName(name: unknown, of: object): JsonValue {
  const { generateName } = of as { readonly generateName?: string };
  return generateName === undefined ? shapeOf(name) : `${generateName}(drawn)`;
}

function failureOf(error: unknown): JsonValue {
  if (isKubeApiError(error)) return `${error.status} ${error.reason}`;
  return isKonvergeError(error) ? error.code : String(error);
}
