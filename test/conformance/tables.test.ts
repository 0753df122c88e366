import { isJsonObject, parseApiVersion, type JsonObject, type JsonValue } from "@konverge/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../support/until.ts";
import { BUILT_IN_KINDS } from "./built-in-objects.ts";
import { DEFINITIONS, definitions, GROUP } from "./objects.ts";
import { startEmbedded, startReal, type TestedServer } from "./servers.ts";

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const NAME = "tables";

interface Sample {
  readonly kind: string;
  readonly path: string;
  readonly object: JsonObject;
  readonly status?: JsonObject;
}

const SAMPLES: readonly Sample[] = [
  ...BUILT_IN_KINDS,
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    resource: "configmaps",
    scope: "Namespaced" as const,
    content: { data: { a: "1" }, binaryData: { b: "AP8=" } },
  },
  {
    apiVersion: "v1",
    kind: "Secret",
    resource: "secrets",
    scope: "Namespaced" as const,
    content: { data: { a: "AP8=" } },
  },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    resource: "deployments",
    scope: "Namespaced" as const,
    content: {
      spec: {
        replicas: 2,
        selector: {
          matchLabels: { app: NAME },
          matchExpressions: [{ key: "b", operator: "Exists" }],
        },
        template: {
          metadata: { labels: { app: NAME, b: "c" } },
          spec: {
            containers: [
              { name: "a", image: "one" },
              { name: "b", image: "two" },
            ],
          },
        },
      },
    },
    status: { replicas: 2, readyReplicas: 1, updatedReplicas: 2 },
  },
  {
    apiVersion: "coordination.k8s.io/v1",
    kind: "Lease",
    resource: "leases",
    scope: "Namespaced" as const,
    content: { spec: { holderIdentity: "somebody" } },
  },
  {
    apiVersion: `${GROUP}/v1`,
    kind: "Column",
    resource: "columns",
    scope: "Namespaced" as const,
    content: { spec: { size: 3, names: ["a", "b"], at: "2020-01-01T00:00:00Z", is: true } },
    status: {
      conditions: [
        { type: "Ready", status: "True" },
        { type: "Other", status: "False" },
      ],
    },
  },
].map(({ apiVersion, kind, resource, scope, content, ...rest }) => {
  const { group } = parseApiVersion(apiVersion);
  const root = group === "" ? `/api/${apiVersion}` : `/apis/${apiVersion}`;
  const inside = scope === "Namespaced" ? "/namespaces/default" : "";
  const text = JSON.stringify({ apiVersion, kind, metadata: { name: NAME }, ...content });
  const object = JSON.parse(
    text.replaceAll("{o}", NAME).replaceAll("{ns}", "default"),
  ) as JsonObject;
  const status = "status" in rest ? (rest.status as JsonObject) : undefined;
  return { kind, path: `${root}${inside}/${resource}`, object, ...(status && { status }) };
});

/** A definition with printer columns of each type. */
const COLUMNS: JsonObject = {
  ...DEFINITIONS[1],
  metadata: { name: `columns.${GROUP}` },
  spec: {
    group: GROUP,
    scope: "Namespaced",
    names: { plural: "columns", kind: "Column" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        },
        additionalPrinterColumns: [
          { name: "Size", type: "integer", jsonPath: ".spec.size", description: "The size." },
          {
            name: "Ready",
            type: "string",
            jsonPath: '.status.conditions[?(@.type=="Ready")].status',
          },
          { name: "All", type: "string", jsonPath: ".status.conditions[*].type", priority: 1 },
          { name: "First", type: "string", jsonPath: ".spec.names[0]" },
          { name: "List", type: "string", jsonPath: ".spec.names" },
          { name: "Is", type: "boolean", jsonPath: ".spec.is" },
          { name: "At", type: "date", jsonPath: ".spec.at" },
          { name: "None", type: "string", jsonPath: ".spec.none" },
          { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
        ],
      },
    ],
  },
};

let embedded: TestedServer;
let real: TestedServer | undefined;

beforeAll(async () => {
  embedded = await startEmbedded();
  real = await startReal((line) => console.error(line));
  for (const server of [embedded, ...(real === undefined ? [] : [real])]) {
    await send(server, "POST", definitions, COLUMNS);
    const path = `/apis/${GROUP}/v1/namespaces/default/columns?dryRun=All`;
    const probe = { apiVersion: `${GROUP}/v1`, kind: "Column", metadata: { name: "probe" } };
    await until("the columns are served", async () => {
      return (await send(server, "POST", path, probe)).code === 201;
    });
  }
});
afterAll(async () => {
  await embedded.stop();
  if (real !== undefined) await send(real, "DELETE", `${definitions}/columns.${GROUP}`);
  await real?.stop();
});

test.for(SAMPLES)("prints a $kind as kube-apiserver does", async (sample) => {
  const { name, cells, columns } = await tableOf(embedded, sample);
  expect(name).toBe(NAME);
  if (real === undefined) return;
  const there = await tableOf(real, sample);
  expect(columns).toEqual(there.columns);
  expect(cells).toEqual(there.cells);
});

test("prints the events of a watch as kube-apiserver does", async () => {
  const embeddedEvents = await watchedOf(embedded);
  expect(embeddedEvents.map(({ type }) => type)).toEqual(["ADDED", "MODIFIED", "DELETED"]);
  if (real !== undefined) expect(embeddedEvents).toEqual(await watchedOf(real));
});

test.for(SAMPLES)("returns the metadata of a $kind as kube-apiserver does", async (sample) => {
  const here = await partialsOf(embedded, sample);
  expect(here.map(({ code }) => code).slice(0, 3)).toEqual([200, 200, 406]);
  if (real !== undefined) expect(here).toEqual(await partialsOf(real, sample));
});

test("watches metadata as kube-apiserver does", async () => {
  const here = await watchedPartials(embedded);
  expect(here.map(({ type }) => type)).toEqual(["ADDED", "MODIFIED", "DELETED"]);
  if (real !== undefined) expect(here).toEqual(await watchedPartials(real));
});

const PARTIAL = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const PARTIALS = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/** An object and a list as metadata, and each in the form of the other. */
async function partialsOf(server: TestedServer, { path, object }: Sample) {
  expect((await send(server, "POST", path, object)).code).toBe(201);
  const list = `${path}?fieldSelector=metadata.name%3D${NAME}`;
  const answers: { readonly code: number; readonly shape: JsonValue }[] = [];
  for (const [from, accept] of [
    [`${path}/${NAME}`, PARTIAL],
    [list, PARTIALS],
    [list, PARTIAL],
    [`${path}/${NAME}`, PARTIALS],
  ] as const) {
    const headers = { Accept: accept };
    const { code, text } = await server.api.send({ method: "GET", path: from, headers });
    answers.push({ code, shape: shapeOf(JSON.parse(text) as JsonObject) });
  }
  await send(server, "DELETE", `${path}/${NAME}?propagationPolicy=Background`);
  await send(server, "PATCH", `${path}/${NAME}`, { metadata: { finalizers: null } });
  return answers;
}

/** The kinds, versions and members of an answer; of an error its reason. */
function shapeOf(answer: JsonObject): JsonObject {
  const { kind = null, apiVersion = null, metadata, items, reason = null } = answer;
  const members = kind === "Status" ? [] : Object.keys(answer).toSorted();
  const ofMetadata = isJsonObject(metadata)
    ? Object.keys(metadata).filter((key) => !["generateName", "selfLink"].includes(key))
    : [];
  return {
    kind,
    apiVersion,
    reason,
    members,
    metadata: ofMetadata.toSorted(),
    items: Array.isArray(items) ? items.filter(isJsonObject).map(shapeOf) : [],
  };
}

async function watchedPartials(server: TestedServer) {
  const path = "/api/v1/namespaces/default/configmaps";
  const headers = { Accept: PARTIAL };
  const first = await server.api.send({ method: "GET", path: `${path}?limit=1` });
  const { resourceVersion } = (JSON.parse(first.text) as { metadata: { resourceVersion: string } })
    .metadata;
  const query = `watch=true&resourceVersion=${resourceVersion}&fieldSelector=metadata.name%3Dpartial`;
  const stream = await server.api.stream({ method: "GET", path: `${path}?${query}`, headers });
  await send(server, "POST", path, { metadata: { name: "partial" }, data: { a: "1" } });
  await send(server, "PATCH", `${path}/partial`, { data: { a: "2" } });
  await send(server, "DELETE", `${path}/partial`);
  const lines = await stream.take(3, 30_000);
  stream.close();
  return lines.map((line) => {
    const { type, object } = JSON.parse(line) as { type: string; object: JsonObject };
    return { type, shape: shapeOf(object) };
  });
}

/** The events of one ConfigMap: their cells, and whether they describe the columns. */
async function watchedOf(server: TestedServer) {
  const path = "/api/v1/namespaces/default/configmaps";
  const { text } = await send(server, "GET", `${path}?limit=1`);
  const { resourceVersion } = (JSON.parse(text) as { metadata: { resourceVersion: string } })
    .metadata;
  const query = `watch=true&resourceVersion=${resourceVersion}&fieldSelector=metadata.name%3Dwatched`;
  const headers = { Accept: TABLE };
  const stream = await server.api.stream({ method: "GET", path: `${path}?${query}`, headers });
  await send(server, "POST", path, { metadata: { name: "watched" } });
  await send(server, "PATCH", `${path}/watched`, { data: { a: "1" } });
  await send(server, "DELETE", `${path}/watched`);
  const lines = await stream.take(3, 30_000);
  stream.close();
  return lines.map((line) => {
    const { type, object } = JSON.parse(line) as {
      readonly type: string;
      readonly object: {
        readonly kind: string;
        readonly columnDefinitions: readonly JsonObject[] | null;
        readonly rows: readonly { readonly cells: readonly JsonValue[] }[];
      };
    };
    const columns = object.columnDefinitions?.map(({ name }) => name);
    const cells = object.rows.map((row) => row.cells.map(withoutChoices));
    return { type, kind: object.kind, columns, cells };
  });
}

async function tableOf(server: TestedServer, { path, object, status }: Sample) {
  expect((await send(server, "POST", path, object)).code).toBe(201);
  if (status !== undefined) {
    const patch = { status };
    expect((await send(server, "PATCH", `${path}/${NAME}/status`, patch)).code).toBe(200);
  }
  const query = `fieldSelector=metadata.name%3D${NAME}`;
  const { text } = await send(server, "GET", `${path}?${query}`);
  await send(server, "DELETE", `${path}/${NAME}?propagationPolicy=Background`);
  await send(server, "PATCH", `${path}/${NAME}`, { metadata: { finalizers: null } });
  const table = JSON.parse(text) as {
    readonly kind: string;
    readonly columnDefinitions: readonly JsonObject[];
    readonly rows: readonly { readonly cells: readonly JsonValue[]; readonly object: JsonObject }[];
  };
  expect(table.kind).toBe("Table");
  const [row] = table.rows;
  const { metadata } = row?.object ?? {};
  return {
    name: isJsonObject(metadata) ? metadata["name"] : undefined,
    cells: row?.cells.map(withoutChoices),
    columns: table.columnDefinitions.map(({ name, type, format, priority }) => ({
      name,
      type,
      format,
      priority,
    })),
  };
}

/** Ages, allocated addresses and times of creation. */
const withoutChoices = (cell: JsonValue): JsonValue =>
  typeof cell === "string"
    ? cell
        .replace(/^\d+s$/, "<age>")
        .replace(/^(\d+d|\d+y)\w*$/, "<long>")
        .replace(/^10\.\d+\.\d+\.\d+$/, "<ip>")
        .replace(/^\d{4}-\d\d-\d\dT.*Z$/, "<time>")
        .replace(/controller-uid=[0-9a-f-]+$/, "controller-uid=<uid>")
    : cell;

function send({ api }: TestedServer, method: string, path: string, body?: JsonObject) {
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const headers = { "Content-Type": type, Accept: method === "GET" ? TABLE : "application/json" };
  return api.send({
    method,
    path,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}
