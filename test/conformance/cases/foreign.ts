import type { JsonObject } from "@konverge/core";
import type { Case, SendStep } from "../case.ts";
import { APPLY, configMap, configMaps, MERGE, STRATEGIC, widget, widgets } from "../objects.ts";

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

const refusedSelector = ([text, end]: readonly [string, string]): SendStep => ({
  send: `GET ${configMaps}?labelSelector=${label(text)}`,
  expect: {
    code: 400,
    reason: "BadRequest",
    message: new RegExp(end.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)),
  },
});

const listed = (selector: string, items: readonly string[]): SendStep => ({
  send: `GET ${configMaps}?labelSelector=o%3D{o}%2C${label(selector)}`,
  expect: { code: 200, items },
});

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
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { name: "{o}-1", labels: { o: "{o}", n: "1", in: "x" } }),
        expect: { code: 201 },
      },
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { name: "{o}-2", labels: { o: "{o}", n: "20", e: "" } }),
        expect: { code: 201 },
      },
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
    steps: ["nonsense", "a*b", "a", "e30", "eyJ2IjoieCJ9"].map((token) => ({
      send: `GET ${configMaps}?limit=1&continue=${token}`,
      expect: { code: 400, reason: "BadRequest", message: /^invalid continue token: / },
    })),
  },
  {
    name: "a watch from a resourceVersion that is not a number",
    steps: [
      {
        send: `GET ${configMaps}?watch=1&resourceVersion=no`,
        expect: { code: 500, message: /^resourceVersion: Invalid value: "no"/ },
      },
    ],
  },
  {
    name: "an eviction with a dry run in its deletion options changes nothing",
    steps: [
      { send: `POST ${pods}`, body: pod, as: "made", expect: { code: 201 } },
      {
        send: `POST ${pods}/{o}/eviction`,
        body: {
          apiVersion: "policy/v1",
          kind: "Eviction",
          metadata: { name: "{o}" },
          deleteOptions: { dryRun: ["All"] },
        },
        expect: { code: 201 },
      },
      { send: `GET ${pods}/{o}`, expect: { code: 200, version: { sameAs: "made" } } },
    ],
  },
  {
    name: "strategic merge patches with values of a wrong type",
    steps: [
      { send: `POST ${configMaps}`, body: configMap({ data: { a: "1" } }), expect: { code: 201 } },
      ...[{ data: { a: 5 } }, { data: { a: true } }, { data: { a: 1.5 } }, { data: "a" }].map(
        (body) => ({
          send: `PATCH ${configMaps}/{o}`,
          type: STRATEGIC,
          body,
          expect: { code: 422, reason: "Invalid" },
        }),
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
      {
        send: `POST ${configMaps}?fieldManager=kubectl-client-side-apply`,
        body: configMap(
          { data: { a: "1", b: "1" } },
          {
            annotations: { [ANNOTATION]: `${JSON.stringify(applied({ a: "1", b: "1" }))}\n` },
          },
        ),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=other`,
        type: APPLY,
        body: applied({ a: "2" }),
        expect: { code: 409 },
      },
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=kubectl`,
        type: APPLY,
        body: applied({ a: "<2>" }),
        expect: {
          code: 200,
          body: { metadata: { annotations: { [ANNOTATION]: UPDATED } } },
        },
      },
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=editor`,
        type: MERGE,
        body: { data: { b: "3" } },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=kubectl`,
        type: APPLY,
        body: applied({ b: "4" }),
        expect: { code: 409, reason: "Conflict" },
      },
    ],
  },
  {
    name: "the scale of an object whose replicas have no manager",
    steps: [
      {
        send: `PATCH ${widgets}/{o}?fieldManager=one`,
        type: APPLY,
        body: widget(),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${widgets}/{o}/scale?fieldManager=two`,
        type: MERGE,
        body: { spec: { replicas: 3 } },
        expect: { code: 200, body: { spec: { replicas: 3 } } },
      },
      { send: `GET ${widgets}/{o}`, expect: { code: 200, body: { spec: { replicas: 3 } } } },
    ],
  },
  {
    name: "an apply of a scale against another manager of the scale",
    steps: [
      {
        send: `POST ${widgets}`,
        body: widget({ spec: { size: "s", replicas: 1 } }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${widgets}/{o}/scale?fieldManager=one`,
        type: MERGE,
        body: { spec: { replicas: 3 } },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${widgets}/{o}/scale?fieldManager=two`,
        type: APPLY,
        body: {
          apiVersion: "autoscaling/v1",
          kind: "Scale",
          metadata: { name: "{o}", namespace: "{ns}" },
          spec: { replicas: 4 },
        },
        expect: { code: 409, message: /using autoscaling\/v1/ },
      },
    ],
  },
  {
    name: "a configuration with a field of a wrong type",
    steps: [
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=one`,
        type: APPLY,
        body: applied({ a: 1 }),
        expect: { code: 500, message: /; \/v1, Kind=ConfigMap\): / },
      },
    ],
  },
];
