import type { Case } from "../case.ts";
import {
  APPLY,
  configMap,
  configMaps,
  deployment,
  deployments,
  MERGE,
  widget,
  widgets,
} from "../objects.ts";
import { applyPatch, mergePatch, post, strategicPatch } from "../steps.ts";
import { defined, type JsonObject } from "@konverge/core";

const apply = (
  manager: string,
  data: JsonObject,
  code: number,
  options: { readonly force?: boolean; readonly absent?: string[] } = {},
) =>
  applyPatch(
    `${configMaps}/{o}?fieldManager=${manager}${options.force ? "&force=true" : ""}`,
    { code, ...defined({ absent: options.absent }) },
    configMap({ data }),
  );
const applyWidget = (manager: string, spec: JsonObject, code: number) =>
  applyPatch(`${widgets}/{o}?fieldManager=${manager}`, code, { ...widget(), spec });
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
      mergePatch(`${configMaps}/{o}?fieldManager=editor`, 200, { data: { a: "2", b: "2" } }),
      apply("fm1", { a: "1" }, 409),
      apply("fm1", {}, 200),
    ],
  },
  {
    name: "untracked fields belong to before-first-apply",
    steps: [
      post(configMaps, 201, configMap({ data: { a: "1" } })),
      mergePatch(
        `${configMaps}/{o}`,
        { code: 200, absent: ["metadata.managedFields"] },
        { metadata: { managedFields: [] } },
      ),
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
      applyPatch(
        `${widgets}/{o}/status?fieldManager=fm1`,
        { code: 200, body: { spec: { size: "s" }, status: { phase: "Ready" } } },
        {
          ...widget(),
          spec: { size: "l" },
          status: { phase: "Ready", conditions: [{ type: "Ready", status: "True" }] },
        },
      ),
      applyPatch(`${widgets}/{o}/status?fieldManager=fm2`, 200, {
        ...widget(),
        status: { conditions: [{ type: "Synced", status: "True" }] },
      }),
      applyPatch(
        `${widgets}/{o}/status?fieldManager=fm2`,
        {
          code: 409,
          message:
            'Apply failed with 1 conflict: conflict with "fm1" with subresource "status": .status.phase',
        },
        { ...widget(), status: { phase: "Pending" } },
      ),
    ],
  },
  {
    name: "a configuration with unknown fields: 500 without a reason",
    steps: [
      applyPatch(
        `${widgets}/{o}?fieldManager=fm1`,
        { code: 500, absent: ["reason"], message: /field not declared in schema$/ },
        { ...widget(), spec: { size: "s", odd: 1 } },
      ),
      applyPatch(
        `${widgets}/{o}?fieldManager=fm1`,
        { code: 500, absent: ["reason"] },
        { ...widget(), spec: { size: 1 } },
      ),
      applyPatch(
        `${widgets}/{o}?fieldManager=fm1`,
        { code: 500, absent: ["reason"], message: /duplicate entries for key/ },
        { ...widget(), spec: { size: "s", ports: [{ name: "a" }, { name: "a" }] } },
      ),
      applyPatch(
        `${widgets}/{o}?fieldManager=fm1`,
        { code: 400, reason: "BadRequest" },
        { ...widget(), kind: "Gadget" },
      ),
      applyPatch(
        `${widgets}/{o}?fieldManager=fm1`,
        { code: 400, reason: "BadRequest" },
        { ...widget(), apiVersion: "conformance.konverge.dev/v1beta1" },
      ),
      applyPatch(
        `${widgets}/{o}`,
        {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueRequired", field: "fieldManager" }],
        },
        widget(),
      ),
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
      applyPatch(
        `${deployments}/{o}?fieldManager=fm1`,
        201,
        container({ ports: [{ containerPort: 80 }], env: [{ name: "A", value: "1" }] }),
      ),
      applyPatch(
        `${deployments}/{o}?fieldManager=fm2`,
        { code: 200, generation: 2 },
        {
          apiVersion: "apps/v1",
          kind: "Deployment",
          metadata: { name: "{o}" },
          spec: {
            replicas: 3,
            template: { spec: { containers: [{ name: "side", image: "example.com/side:1" }] } },
          },
        },
      ),
      applyPatch(`${deployments}/{o}?fieldManager=fm2`, 409, {
        apiVersion: "apps/v1",
        kind: "Deployment",
        metadata: { name: "{o}" },
        spec: { template: { spec: { containers: [{ name: "web", image: "example.com/web:2" }] } } },
      }),
      applyPatch(`${deployments}/{o}?fieldManager=fm1`, 200, container({})),
    ],
  },
  {
    name: "managers of plain writes: the query, or the product of the user agent",
    steps: [
      post(
        `${configMaps}?fieldManager=named`,
        201,
        configMap({ data: { a: "1" } }, { labels: { a: "b" }, annotations: { c: "d" } }),
      ),
      mergePatch(
        `${configMaps}/{o}`,
        200,
        { data: { a: "2" } },
        { headers: { "User-Agent": "some-client/1.2.3 (linux) library/4" } },
      ),
      mergePatch(`${configMaps}/{o}`, 200, { data: { b: "2" } }),
      mergePatch(
        `${configMaps}/{o}?fieldManager=${"x".repeat(129)}`,
        {
          code: 422,
          reason: "Invalid",
          causes: [{ reason: "FieldValueTooLong", field: "fieldManager" }],
        },
        { data: { b: "3" } },
      ),
    ],
  },
  {
    name: "more than ten plain writers: the oldest become ancient-changes",
    steps: [
      post(`${configMaps}?fieldManager=m00`, 201, configMap({ data: { k00: "1" } })),
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
      post(deployments, 201, deployment()),
      strategicPatch(
        `${deployments}/{o}`,
        { code: 200, generation: 2 },
        {
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
      ),
      strategicPatch(
        `${deployments}/{o}`,
        { code: 200, generation: 3 },
        { spec: { template: { spec: { containers: [{ name: "side", $patch: "delete" }] } } } },
      ),
      strategicPatch(`${configMaps}/{o}`, 404, {}),
      post(configMaps, 201, configMap({ data: { a: "1" } }, { finalizers: ["example.com/a"] })),
      strategicPatch(
        `${configMaps}/{o}`,
        { code: 200, absent: ["data.a"], body: { data: { b: "2" } } },
        { data: { a: null, b: "2" }, metadata: { finalizers: ["example.com/b"] } },
      ),
      strategicPatch(`${configMaps}/{o}`, 200, { metadata: { finalizers: null } }),
      post(widgets, 201, widget()),
      strategicPatch(`${widgets}/{o}`, { code: 415, reason: "UnsupportedMediaType" }, {}),
    ],
  },
];
