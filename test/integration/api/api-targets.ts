import { readFileSync } from "node:fs";

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
}
interface Documented {
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Record<string, { readonly schema: { readonly properties?: object } }>;
  };
  readonly responses: Readonly<Record<string, unknown>>;
}
const { paths } = JSON.parse(readFileSync("docs/openapi.json", "utf8")) as {
  readonly paths: Record<string, Record<string, Documented>>;
};
export const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, rest]) => ({
    path,
    method: method.toUpperCase(),
    ...rest,
  })),
);
export type Operation = (typeof operations)[number];

export interface Target {
  readonly cluster: string;
  readonly controller: string;
  readonly namespace: string;
  readonly name: string;
  readonly workflow: string;
}
const targetOf = (
  cluster: string,
  controller: string,
  namespace: string,
  workflow: string,
): Target => ({
  cluster,
  controller,
  namespace,
  name: `obj-${controller}-${namespace}`,
  workflow,
});
/** Plural names by controller. An object in contention belongs to the controllers of its kind. */
export const KINDS: Readonly<Record<string, string>> = {
  ctlblue: "widgets",
  ctlred: "gadgets",
  ctlwide: "planets",
};
/** Names that occur nowhere else, so that a response with one of them reveals its target. */
export const TARGETS = {
  inside: targetOf("default", "ctlblue", "nsblue", "wfblue"),
  "another namespace": targetOf("default", "ctlblue", "nsred", "wfblue"),
  "another controller": targetOf("default", "ctlred", "nsblue", "wfred"),
  "another cluster": targetOf("clusterred", "ctlblue", "nsblue", "wfblue"),
  "a cluster-scoped object": targetOf("default", "ctlwide", "_", "wfwide"),
} as const;

/** The request of an operation for a target, made from its documented parameters. */
export function requestOf(
  operation: Operation,
  target: Target,
  isNarrow: boolean,
): { path: string; body: unknown } {
  const { cluster, controller, namespace, name, workflow } = target;
  const isOfMutation = operation.path.startsWith("/v1/mutations");
  const isOfRun = operation.path.startsWith("/v1/runs");
  const key = `${controller}/${cluster}/${KINDS[controller]}.demo.konverge.dev/${namespace}/${name}`;
  const values: Readonly<Record<string, string>> = {
    cluster,
    controller,
    namespace,
    name,
    workflow,
    epoch: "1",
    id: isOfMutation
      ? `${cluster}/${name}`
      : isOfRun
        ? `${workflow}/${cluster}/run-${workflow}`
        : `${key}@1`,
  };
  const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, field: string) =>
    encodeURIComponent(values[field] ?? ""),
  );
  const query = new URLSearchParams();
  for (const parameter of operation.parameters) {
    const isWanted = parameter.required || parameter.name === "cluster" || isNarrow;
    const isPlace = ["cluster", "controller", "namespace", "workflow"].includes(parameter.name);
    if (parameter.in === "query" && isWanted && isPlace) {
      query.set(parameter.name, values[parameter.name] ?? "");
    }
  }
  if (!isNarrow && operation.parameters.some((parameter) => parameter.name === "limit"))
    query.set("limit", "1");
  const fields = operation.requestBody?.content["application/json"]?.schema.properties;
  const item = { cluster, controller, name, ...(namespace === "_" ? {} : { namespace }) };
  const contents: Readonly<Record<string, unknown>> = {
    ...item,
    workflow,
    reason: "because",
    ratePerSecond: 100,
    items: [isOfMutation ? mutationOf(target) : item],
    ...(isOfMutation ? mutationOf(target) : {}),
    dryRun: true,
    action: "pause",
    filter: isNarrow ? { workflow } : {},
    from: "2026-01-01T00:00:00Z",
    to: "2026-01-02T00:00:00Z",
    token: "unknown",
    ...(operation.operationId === "startRun" ? { id: "started" } : {}),
    ...(["signalRun", "updateRun"].includes(operation.operationId) ? { name: "approve" } : {}),
    ...(["approvePlan", "rejectPlan"].includes(operation.operationId)
      ? { hash: "0".repeat(64) }
      : {}),
    ...(operation.operationId === "raiseRun" ? { steps: 5_000 } : {}),
  };
  const body =
    fields === undefined
      ? undefined
      : Object.fromEntries(
          Object.keys(fields).flatMap((field) =>
            field in contents ? [[field, contents[field]]] : [],
          ),
        );
  return { path: query.size === 0 ? path : `${path}?${query.toString()}`, body };
}

export function mutationOf({ cluster, namespace, name }: Target) {
  const isPlanet = namespace === "_";
  return {
    cluster,
    kind: isPlanet ? "Planet" : "Widget",
    name,
    ...(isPlanet ? {} : { namespace }),
    changes: [{ kind: "set", path: "/spec/size", value: 1 }],
  };
}
