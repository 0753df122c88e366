import { formatApiVersion, parseApiVersion, type JsonObject } from "@konverge/core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeProtobuf } from "../../libs/apiserver/src/schema/decode-protobuf.ts";
import { KindRegistry } from "../../libs/apiserver/src/kinds/kind-registry.ts";
import { ObjectStore } from "../../libs/apiserver/src/storage/object-store.ts";
import { BUILT_IN_KINDS } from "./built-in-objects.ts";
import { DEFINITIONS } from "./objects.ts";
import { startEmbedded, startReal, type TestedServer } from "./servers.ts";

const PROTOBUF = "application/vnd.kubernetes.protobuf";
const NAME = "protobuf";
const kinds = new KindRegistry(new ObjectStore({}).table("none")).all();

interface Sample {
  readonly kind: string;
  readonly path: string;
  readonly object: JsonObject;
}

const SAMPLES: readonly Sample[] = [
  ...BUILT_IN_KINDS.map(({ kind, apiVersion, content }) => ({ kind, apiVersion, content })),
  { kind: "ConfigMap", apiVersion: "v1", content: { data: { a: "1" }, binaryData: { b: "AP8=" } } },
  { kind: "Secret", apiVersion: "v1", content: { data: { a: "AP8=" }, immutable: false } },
  {
    kind: "Lease",
    apiVersion: "coordination.k8s.io/v1",
    content: { spec: { renewTime: "2026-01-01T00:00:00.123456Z", leaseTransitions: 0 } },
  },
  {
    kind: "Deployment",
    apiVersion: "apps/v1",
    content: {
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: "a" } },
        strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: "10%" } },
        template: {
          metadata: { labels: { app: "a" } },
          spec: {
            containers: [
              {
                name: "a",
                image: "a",
                env: [{ name: "A", value: "" }],
                securityContext: { runAsUser: 0, runAsNonRoot: false },
                volumeMounts: [{ name: "v", mountPath: "/v" }],
              },
            ],
            volumes: [{ name: "v", projected: { sources: [{ secret: { name: "s" } }] } }],
            tolerations: [{ operator: "Exists", effect: "NoExecute", tolerationSeconds: -5 }],
          },
        },
      },
    },
  },
].map(({ kind, apiVersion, content }) => {
  const type = kinds.find(
    (one) => one.kind === kind && formatApiVersion(one.group, one.version) === apiVersion,
  );
  const { group } = parseApiVersion(apiVersion);
  const root = group === "" ? `/api/${apiVersion}` : `/apis/${apiVersion}`;
  const scope = type?.namespaced === true ? "/namespaces/default" : "";
  const object = { apiVersion, kind, metadata: { name: NAME, labels: { a: "b" } }, ...content };
  const text = JSON.stringify(object).replaceAll("{o}", NAME).replaceAll("{ns}", "default");
  return {
    kind,
    path: `${root}${scope}/${type?.resource}`,
    object: JSON.parse(text) as JsonObject,
  };
});

let embedded: TestedServer;
let real: TestedServer | undefined;

beforeAll(async () => {
  embedded = await startEmbedded();
  real = await startReal((line) => console.error(line));
});
afterAll(async () => {
  await embedded.stop();
  await real?.stop();
});

test.for(SAMPLES)("decodes a $kind that kube-apiserver encoded", async ({ path, object }) => {
  if (real === undefined) return;
  const json = await send(real, `${path}?dryRun=All`, JSON.stringify(object), "application/json");
  expect(json.code).toBe(201);
  const { bytes } = await send(real, `${path}?dryRun=All`, JSON.stringify(object), PROTOBUF);
  const decoded = withoutIdentity(decodeProtobuf(bytes));
  expect(decoded).toEqual(withoutIdentity(JSON.parse(json.text) as JsonObject));
  // The embedded server accepts the same bytes, as kubectl sends them.
  const created = await embedded.api.send({
    method: "POST",
    path: `${path}?dryRun=All`,
    body: bytes,
    headers: { "Content-Type": PROTOBUF, Accept: `${PROTOBUF},application/json` },
  });
  expect(created).toMatchObject({ code: 201, headers: { "content-type": "application/json" } });
  expect(JSON.parse(created.text)).toMatchObject({
    kind: object["kind"],
    metadata: { name: NAME },
  });
});

test("decodes a CustomResourceDefinition with a schema that kube-apiserver encoded", async () => {
  if (real === undefined) return;
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
  for (const object of DEFINITIONS) {
    // Tests that run at the same time create the kinds themselves.
    const body = JSON.stringify(inOwnGroup(object));
    const { text } = await send(real, path, body, "application/json");
    const { bytes } = await send(real, path, body, PROTOBUF);
    expect(withoutIdentity(decodeProtobuf(bytes))).toEqual(
      withoutIdentity(JSON.parse(text) as JsonObject),
    );
  }
});

function inOwnGroup(definition: JsonObject): JsonObject {
  const { metadata, spec } = definition as { metadata: JsonObject; spec: JsonObject };
  const { group, names } = spec as { group: string; names: { plural: string } };
  const own = `protobuf.${group}`;
  return {
    ...definition,
    metadata: { ...metadata, name: `${names.plural}.${own}` },
    spec: { ...spec, group: own },
  };
}

test("rejects bytes that are no object", async () => {
  const { code, text } = await embedded.api.send({
    method: "POST",
    path: "/api/v1/namespaces/default/configmaps",
    body: Buffer.from("nothing"),
    headers: { "Content-Type": PROTOBUF },
  });
  expect([code, text]).toEqual([400, expect.stringContaining("does not appear to be a protobuf")]);
});

function send({ api }: TestedServer, path: string, body: string, accept: string) {
  const headers = { "Content-Type": "application/json", Accept: accept };
  return api.send({ method: "POST", path, body, headers });
}

/** Decoded as both servers do, without what differs between two creations. */
function withoutIdentity(object: JsonObject): JsonObject {
  const { kind, apiVersion } = object;
  const type = kinds.find(
    (one) => one.kind === kind && formatApiVersion(one.group, one.version) === apiVersion,
  );
  type?.decode(object);
  const text = JSON.stringify(object)
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "<uid>")
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, "<time>")
    .replaceAll(/"10\.\d+\.\d+\.\d+"/g, '"<ip>"');
  return JSON.parse(text) as JsonObject;
}
