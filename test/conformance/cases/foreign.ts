import type { JsonObject } from "@konverge/core";
import type { Case, SendStep } from "../case.ts";
import { configMap, configMaps, STRATEGIC, widget, widgets } from "../objects.ts";
import { applyPatch, get, mergePatch, post, strategicPatch } from "../steps.ts";

const ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration";
const label = encodeURIComponent;

/** Label selectors with the end of the error text. */
const SELECTORS: readonly (readonly [string, string])[] = [
  ["a b", "found 'b', expected: in, notin, =, ==, !=, gt, lt"],
  ["a in", "found '' expected: '('"],
  ["a in (b", "found '', expected: ',' or ')'"],
  ["a in (b c)", "found 'c', expected: ',' or ')'"],
  ["a,", "found '', expected: identifier after ','"],
  ["=a", "found '=', expected: !, identifier, or 'end of string'"],
  ["!a=b", "found '=', expected: ',' or 'end of string'"],
  ["a=b=c", "found '=', expected: ',' or 'end of string'"],
  ["a=(", "found '(', expected: identifier"],
  ["a>b", "for 'Gt', 'Lt' operators, the value must be an integer"],
  ["-a", "'MyName',  or 'my.name',  or '123-abc'"],
  ["a=-", "'MyValue',  or 'my_value',  or '12345'"],
];

const refusedSelector = ([text, end]: readonly [string, string]): SendStep =>
  get(`${configMaps}?labelSelector=${label(text)}`, {
    code: 400,
    reason: "BadRequest",
    message: new RegExp(end.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)),
  });

const listed = (selector: string, items: readonly string[]): SendStep =>
  get(`${configMaps}?labelSelector=o%3D{o}%2C${label(selector)}`, { code: 200, items });

const pods = "/api/v1/namespaces/{ns}/pods";
const pod: JsonObject = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "{o}" },
  spec: { containers: [{ name: "main", image: "example.com/web:1" }] },
};

const applied = (data: JsonObject): JsonObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "{o}" },
  data,
});

/** The annotation after an apply on the server: as Go writes it, with sorted members and escaped HTML. */
const UPDATED =
  String.raw`{"apiVersion":"v1","data":{"a":"\u003c2\u003e"},"kind":"ConfigMap","metadata":{"name":"{o}"}}`.concat(
    "\n",
  );

/** Behavior that kubectl, client-go and other clients depend on. */
export const foreign: readonly Case[] = [
  { name: "label selectors that cannot be parsed", steps: SELECTORS.map(refusedSelector) },
  {
    name: "label selectors: sets, absence and order",
    steps: [
      post(
        configMaps,
        201,
        configMap({}, { name: "{o}-1", labels: { o: "{o}", n: "1", in: "x" } }),
      ),
      post(configMaps, 201, configMap({}, { name: "{o}-2", labels: { o: "{o}", n: "20", e: "" } })),
      listed("n in (1,2,)", ["{o}-1"]),
      listed("n notin (1)", ["{o}-2"]),
      listed("e in ()", ["{o}-2"]),
      listed("e=", ["{o}-2"]),
      listed("in in (in,x)", ["{o}-1"]),
      listed("!e , n", ["{o}-1"]),
      listed("n>1,n<21", ["{o}-2"]),
      listed("in>0", []),
      listed("n!=1", ["{o}-2"]),
    ],
  },
  {
    name: "continue tokens that cannot be decoded",
    steps: ["nonsense", "a*b", "a", "e30", "eyJ2IjoieCJ9"].map((token) =>
      get(`${configMaps}?limit=1&continue=${token}`, {
        code: 400,
        reason: "BadRequest",
        message: /^invalid continue token: /,
      }),
    ),
  },
  {
    name: "a watch from a resourceVersion that is not a number",
    steps: [
      get(`${configMaps}?watch=1&resourceVersion=no`, {
        code: 500,
        message: /^resourceVersion: Invalid value: "no"/,
      }),
    ],
  },
  {
    name: "an eviction with a dry run in its deletion options changes nothing",
    steps: [
      post(pods, 201, pod, { as: "made" }),
      post(`${pods}/{o}/eviction`, 201, {
        apiVersion: "policy/v1",
        kind: "Eviction",
        metadata: { name: "{o}" },
        deleteOptions: { dryRun: ["All"] },
      }),
      get(`${pods}/{o}`, { code: 200, version: { sameAs: "made" } }),
    ],
  },
  {
    name: "strategic merge patches with values of a wrong type",
    steps: [
      post(configMaps, 201, configMap({ data: { a: "1" } })),
      ...[{ data: { a: 5 } }, { data: { a: true } }, { data: { a: 1.5 } }, { data: "a" }].map(
        (body) => strategicPatch(`${configMaps}/{o}`, { code: 422, reason: "Invalid" }, body),
      ),
      {
        send: `PATCH ${configMaps}/{o}`,
        type: STRATEGIC,
        text: "true",
        expect: { code: 400, message: /json: cannot unmarshal bool/ },
      },
    ],
  },
  {
    name: "an apply by kubectl on the server takes the fields of its last apply on the client",
    steps: [
      post(
        `${configMaps}?fieldManager=kubectl-client-side-apply`,
        201,
        configMap(
          { data: { a: "1", b: "1" } },
          { annotations: { [ANNOTATION]: `${JSON.stringify(applied({ a: "1", b: "1" }))}\n` } },
        ),
      ),
      applyPatch(`${configMaps}/{o}?fieldManager=other`, 409, applied({ a: "2" })),
      applyPatch(
        `${configMaps}/{o}?fieldManager=kubectl`,
        { code: 200, body: { metadata: { annotations: { [ANNOTATION]: UPDATED } } } },
        applied({ a: "<2>" }),
      ),
      mergePatch(`${configMaps}/{o}?fieldManager=editor`, 200, { data: { b: "3" } }),
      applyPatch(
        `${configMaps}/{o}?fieldManager=kubectl`,
        { code: 409, reason: "Conflict" },
        applied({ b: "4" }),
      ),
    ],
  },
  {
    name: "the scale of an object whose replicas have no manager",
    steps: [
      applyPatch(`${widgets}/{o}?fieldManager=one`, 201, widget()),
      mergePatch(
        `${widgets}/{o}/scale?fieldManager=two`,
        { code: 200, body: { spec: { replicas: 3 } } },
        { spec: { replicas: 3 } },
      ),
      get(`${widgets}/{o}`, { code: 200, body: { spec: { replicas: 3 } } }),
    ],
  },
  {
    name: "an apply of a scale against another manager of the scale",
    steps: [
      post(widgets, 201, widget({ spec: { size: "s", replicas: 1 } })),
      mergePatch(`${widgets}/{o}/scale?fieldManager=one`, 200, { spec: { replicas: 3 } }),
      applyPatch(
        `${widgets}/{o}/scale?fieldManager=two`,
        { code: 409, message: /using autoscaling\/v1/ },
        {
          apiVersion: "autoscaling/v1",
          kind: "Scale",
          metadata: { name: "{o}", namespace: "{ns}" },
          spec: { replicas: 4 },
        },
      ),
    ],
  },
  {
    name: "a configuration with a field of a wrong type",
    steps: [
      applyPatch(
        `${configMaps}/{o}?fieldManager=one`,
        { code: 500, message: /; \/v1, Kind=ConfigMap\): / },
        applied({ a: 1 }),
      ),
    ],
  },
];
