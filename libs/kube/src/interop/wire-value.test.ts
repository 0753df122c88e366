import {
  AppsV1Api,
  NetworkingV1Api,
  V1Deployment,
  V1JSONSchemaProps,
  V1MicroTime,
  V1NetworkPolicy,
} from "@kubernetes/client-node";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { createClientNodeApi } from "./client-node-api.ts";
import { toWireValue } from "./wire-value.ts";

const time = fc
  .integer({ min: 0, max: 4_000_000_000 })
  .map((seconds) => new Date(seconds * 1_000).toISOString().replace(".000Z", "Z"));
const text = fc.stringMatching(/^[a-z_][a-z0-9]{0,5}$/);
const labels = fc.dictionary(text, text, { maxKeys: 3 });
const metadata = fc.record(
  { name: text, labels, creationTimestamp: time, deletionTimestamp: time },
  { requiredKeys: ["name"] },
);
const deployment = fc.record({
  apiVersion: fc.constant("apps/v1"),
  kind: fc.constant("Deployment"),
  metadata,
  spec: fc.record({
    replicas: fc.nat(9),
    selector: fc.record({ matchLabels: labels }),
    template: fc.record({
      metadata,
      spec: fc.record({ containers: fc.array(fc.record({ name: text })) }),
    }),
  }),
  status: fc.record({
    conditions: fc.array(
      fc.record({ type: text, status: fc.constant("True"), lastTransitionTime: time }),
    ),
  }),
});
const policy = fc.record({
  apiVersion: fc.constant("networking.k8s.io/v1"),
  kind: fc.constant("NetworkPolicy"),
  metadata,
  spec: fc.record({
    podSelector: fc.record({ matchLabels: labels }),
    ingress: fc.array(
      fc.record({ from: fc.array(fc.record({ podSelector: fc.record({ matchLabels: labels }) })) }),
    ),
  }),
});

/** A response with this object, from which client-node's generated code makes objects of its classes. */
const responding = (value: object) => async () => ({
  status: 200,
  headers: { "content-type": "application/json" },
  text: JSON.stringify(value),
  sent: undefined,
  value: undefined,
  error: undefined,
  target: undefined,
});

test("an object of client-node's classes becomes the JSON that it was read from", async () => {
  await fc.assert(
    fc.asyncProperty(deployment, policy, async (one, other) => {
      const place = { name: "a", namespace: "b" };
      const apps = createClientNodeApi(AppsV1Api, responding(one));
      const deployed = await apps.readNamespacedDeployment(place);
      expect(deployed).toBeInstanceOf(V1Deployment);
      expect(toWireValue(deployed)).toEqual(one);
      const networking = createClientNodeApi(NetworkingV1Api, responding(other));
      const allowed = await networking.readNamespacedNetworkPolicy(place);
      expect(allowed).toBeInstanceOf(V1NetworkPolicy);
      expect(toWireValue(allowed)).toEqual(other);
    }),
  );
});

test("plain JSON is returned as it is, whatever the names of its fields", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(toWireValue(value)).toBe(value);
    }),
  );
  const data = { data: { _from: "1", x_kubernetes_a: "2" } };
  expect(toWireValue(data)).toBe(data);
});

test("converts reserved names of schemas, and microseconds of leases", () => {
  const schema = new V1JSONSchemaProps();
  Object.assign(schema, { _default: 1, _enum: [1], x_kubernetes_list_type: "map", ref: "a" });
  expect(toWireValue({ schema })).toEqual({
    schema: { default: 1, enum: [1], "x-kubernetes-list-type": "map", $ref: "a" },
  });
  const renewTime = new V1MicroTime("2026-01-01T00:00:00.123Z");
  expect(toWireValue({ renewTime })).toEqual({ renewTime: "2026-01-01T00:00:00.123000Z" });
});
