import type { Case } from "../case.ts";
import {
  APPLY,
  configMap,
  configMaps,
  deployment,
  deployments,
  MERGE,
  STRATEGIC,
  widget,
  widgets,
} from "../objects.ts";
import type { JsonObject } from "@konverge/core";

const apply = (
  manager: string,
  data: JsonObject,
  code: number,
  options: { readonly force?: boolean; readonly absent?: string[] } = {},
) => ({
  send: `PATCH ${configMaps}/{o}?fieldManager=${manager}${options.force ? "&force=true" : ""}`,
  type: APPLY,
  body: configMap({ data }),
  expect: { code, ...(options.absent === undefined ? {} : { absent: options.absent }) },
});
const applyWidget = (manager: string, spec: JsonObject, code: number) => ({
  send: `PATCH ${widgets}/{o}?fieldManager=${manager}`,
  type: APPLY,
  body: { ...widget(), spec },
  expect: { code },
});
const container = (content: JsonObject) => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "{o}" },
  spec: {
    selector: { matchLabels: { app: "{o}" } },
    template: {
      metadata: { labels: { app: "{o}" } },
      spec: { containers: [{ name: "web", image: "example.com/web:1", ...content }] },
    },
  },
});

/** Server-side apply and field ownership. */
export const applying: readonly Case[] = [
  {
    name: "force takes a field from its owner",
    steps: [
      apply("fm1", { a: "1", b: "1" }, 201),
      apply("fm2", { a: "2" }, 409),
      apply("fm2", { a: "2" }, 200, { force: true }),
    ],
  },
  {
    name: "an equal value is shared",
    steps: [
      apply("fm1", { a: "1" }, 201),
      apply("fm2", { a: "1" }, 200),
      apply("fm1", { a: "2" }, 409),
    ],
  },
  {
    name: "a field that its manager omits is removed, unless another one owns it",
    steps: [
      apply("fm1", { a: "1", b: "1" }, 201),
      apply("fm2", { b: "1", c: "1" }, 200),
      apply("fm1", { z: "1" }, 200, { absent: ["data.a"] }),
    ],
  },
  {
    name: "a plain writer owns the fields that it changes",
    steps: [
      apply("fm1", { a: "1" }, 201),
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=editor`,
        type: MERGE,
        body: { data: { a: "2", b: "2" } },
        expect: { code: 200 },
      },
      apply("fm1", { a: "1" }, 409),
      apply("fm1", {}, 200),
    ],
  },
  {
    name: "untracked fields belong to before-first-apply",
    steps: [
      { send: `POST ${configMaps}`, body: configMap({ data: { a: "1" } }), expect: { code: 201 } },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { metadata: { managedFields: [] } },
        expect: { code: 200, absent: ["metadata.managedFields"] },
      },
      apply("fm1", { b: "1" }, 200),
    ],
  },
  {
    name: "lists by their type: atomic, set, map; maps whole or by member",
    steps: [
      applyWidget(
        "fm1",
        {
          size: "s",
          steps: ["a"],
          tags: ["x", "y"],
          ports: [
            { name: "a", number: 1 },
            { name: "b", number: 2 },
          ],
          limits: { cpu: 1 },
          whole: { a: "1" },
          free: { deep: { er: 1 } },
        },
        201,
      ),
      applyWidget(
        "fm2",
        { tags: ["y", "z"], ports: [{ name: "c", number: 3 }], limits: { memory: 2 } },
        200,
      ),
      applyWidget("fm2", { ports: [{ name: "a", number: 9 }] }, 409),
      applyWidget("fm2", { steps: ["b"] }, 409),
      applyWidget("fm2", { whole: { b: "1" } }, 409),
      applyWidget("fm2", { free: { deep: { other: 1 } } }, 200),
      applyWidget("fm1", { size: "s", ports: [{ name: "b", number: 2 }], tags: ["x"] }, 200),
      applyWidget("fm1", { size: "s" }, 200),
    ],
  },
  {
    name: "apply of a status has separate owners",
    steps: [
      applyWidget("fm1", { size: "s" }, 201),
      {
        send: `PATCH ${widgets}/{o}/status?fieldManager=fm1`,
        type: APPLY,
        body: {
          ...widget(),
          spec: { size: "l" },
          status: { phase: "Ready", conditions: [{ type: "Ready", status: "True" }] },
        },
        expect: { code: 200, body: { spec: { size: "s" }, status: { phase: "Ready" } } },
      },
      {
        send: `PATCH ${widgets}/{o}/status?fieldManager=fm2`,
        type: APPLY,
        body: { ...widget(), status: { conditions: [{ type: "Synced", status: "True" }] } },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${widgets}/{o}/status?fieldManager=fm2`,
        type: APPLY,
        body: { ...widget(), status: { phase: "Pending" } },
        expect: {
          code: 409,
          message:
            'Apply failed with 1 conflict: conflict with "fm1" with subresource "status": .status.phase',
        },
      },
    ],
  },
  {
    name: "a configuration with unknown fields: 500 without a reason",
    steps: [
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: { ...widget(), spec: { size: "s", odd: 1 } },
        expect: { code: 500, absent: ["reason"], message: /field not declared in schema$/ },
      },
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: { ...widget(), spec: { size: 1 } },
        expect: { code: 500, absent: ["reason"] },
      },
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: { ...widget(), spec: { size: "s", ports: [{ name: "a" }, { name: "a" }] } },
        expect: { code: 500, absent: ["reason"], message: /duplicate entries for key/ },
      },
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: { ...widget(), kind: "Gadget" },
        expect: { code: 400, reason: "BadRequest" },
      },
      {
        send: `PATCH ${widgets}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: { ...widget(), apiVersion: "conformance.konverge.dev/v1beta1" },
        expect: { code: 400, reason: "BadRequest" },
      },
      {
        send: `PATCH ${widgets}/{o}`,
        type: APPLY,
        body: widget(),
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueRequired", field: "fieldManager" }],
        },
      },
    ],
  },
  {
    name: "apply from YAML",
    steps: [
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=fm1`,
        type: APPLY,
        text: 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {o}\n  labels: { a: "b" }\ndata:\n  text: |\n    two\n    lines\n',
        expect: { code: 201, body: { data: { text: "two\nlines\n" } } },
      },
    ],
  },
  {
    name: "apply of a Deployment: containers and ports by their keys, defaults have no owner",
    steps: [
      {
        send: `PATCH ${deployments}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: container({ ports: [{ containerPort: 80 }], env: [{ name: "A", value: "1" }] }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${deployments}/{o}?fieldManager=fm2`,
        type: APPLY,
        body: {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { name: "{o}" },
          spec: {
            replicas: 3,
            template: { spec: { containers: [{ name: "side", image: "example.com/side:1" }] } },
          },
        },
        expect: { code: 200, generation: 2 },
      },
      {
        send: `PATCH ${deployments}/{o}?fieldManager=fm2`,
        type: APPLY,
        body: {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { name: "{o}" },
          spec: {
            template: { spec: { containers: [{ name: "web", image: "example.com/web:2" }] } },
          },
        },
        expect: { code: 409 },
      },
      {
        send: `PATCH ${deployments}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: container({}),
        expect: { code: 200 },
      },
    ],
  },
  {
    name: "managers of plain writes: the query, or the product of the user agent",
    steps: [
      {
        send: `POST ${configMaps}?fieldManager=named`,
        body: configMap({ data: { a: "1" } }, { labels: { a: "b" }, annotations: { c: "d" } }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { data: { a: "2" } },
        headers: { "User-Agent": "some-client/1.2.3 (linux) library/4" },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { data: { b: "2" } },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=${"x".repeat(129)}`,
        type: MERGE,
        body: { data: { b: "3" } },
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueTooLong", field: "fieldManager" }],
        },
      },
    ],
  },
  {
    name: "more than ten plain writers: the oldest become ancient-changes",
    steps: [
      {
        send: `POST ${configMaps}?fieldManager=m00`,
        body: configMap({ data: { k00: "1" } }),
        expect: { code: 201 },
      },
      ...Array.from({ length: 11 }, (_, index) => {
        const id = String(index + 1).padStart(2, "0");
        return {
          send: `PATCH ${configMaps}/{o}?fieldManager=m${id}`,
          type: MERGE,
          body: { data: { [`k${id}`]: "1" } },
          expect: { code: 200 },
          // The order of two writers within one second is undefined.
          ignore: ["metadata.managedFields"],
        };
      }),
    ],
  },
  {
    name: "strategic merge: containers by name; rejected for a custom resource",
    steps: [
      { send: `POST ${deployments}`, body: deployment(), expect: { code: 201 } },
      {
        send: `PATCH ${deployments}/{o}`,
        type: STRATEGIC,
        body: {
          spec: {
            template: {
              spec: {
                containers: [
                  { name: "web", image: "example.com/web:2" },
                  { name: "side", image: "example.com/side:1" },
                ],
              },
            },
          },
        },
        expect: { code: 200, generation: 2 },
      },
      {
        send: `PATCH ${deployments}/{o}`,
        type: STRATEGIC,
        body: {
          spec: { template: { spec: { containers: [{ name: "side", $patch: "delete" }] } } },
        },
        expect: { code: 200, generation: 3 },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: STRATEGIC,
        body: {},
        expect: { code: 404 },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: "1" } }, { finalizers: ["example.com/a"] }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: STRATEGIC,
        body: { data: { a: null, b: "2" }, metadata: { finalizers: ["example.com/b"] } },
        expect: { code: 200, absent: ["data.a"], body: { data: { b: "2" } } },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: STRATEGIC,
        body: { metadata: { finalizers: null } },
        expect: { code: 200 },
      },
      { send: `POST ${widgets}`, body: widget(), expect: { code: 201 } },
      {
        send: `PATCH ${widgets}/{o}`,
        type: STRATEGIC,
        body: {},
        expect: { code: 415, reason: "UnsupportedMediaType" },
      },
    ],
  },
];
