import type { JsonObject } from "@konverge/core";
import type { Case, SendStep } from "../case.ts";
import { APPLY, configMap, configMaps } from "../objects.ts";

const quote = encodeURIComponent;
const pods = "/api/v1/namespaces/{ns}/pods";

const rejected = (selector: string, text: string, message: string): SendStep => ({
  send: `GET ${configMaps}?${selector}=${quote(text)}`,
  expect: { code: 400, reason: "BadRequest", message },
});
const listed = (text: string, items: readonly string[]): SendStep => ({
  send: `GET ${configMaps}?labelSelector=o%3D{o}&fieldSelector=${quote(text).replaceAll("%7Bo%7D", "{o}")}`,
  expect: { code: 200, items },
});
const notInteger = (value: string): string =>
  `unable to parse requirement: values[0]: Invalid value: "${value}": for 'Gt', 'Lt' operators, the value must be an integer`;

const eviction = (metadata: JsonObject): SendStep => ({
  send: `POST ${pods}/{o}/eviction`,
  body: { apiVersion: "policy/v1", kind: "Eviction", metadata },
  expect: {
    code: 400,
    message:
      metadata["namespace"] === undefined
        ? "name in URL does not match name in Eviction object"
        : "the namespace of the provided object does not match the namespace sent on the request",
  },
});

const yaml = (data: string) =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: "{o}" }\ndata: { a: ${data} }\n`;

const OPEN_API = "definitions info parameters paths security securityDefinitions".split(" ");

/** Selectors, methods and bodies that only few clients send. */
export const requests: readonly Case[] = [
  {
    name: "field selectors with escapes and without a meaning",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { labels: { o: "{o}" } }),
        expect: { code: 201 },
      },
      listed("metadata.name={o}", ["{o}"]),
      listed(",metadata.name=={o},,", ["{o}"]),
      listed("metadata.name!={o}", []),
      listed("metadata.name={o}\\,b", []),
      listed("metadata.name!=a\\=b\\\\,metadata.name!=c", ["{o}"]),
      listed(",", ["{o}"]),
      ...[
        ["metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"],
        ["metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"],
        ["metadata.name=a=b", "invalid field selector: unescaped character in value: 61"],
        ["metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"],
        ["metadata.name=(a,b)", "invalid selector: 'metadata.name=(a,b)'; can't understand 'b)'"],
      ].map(([text = "", message = ""]) => rejected("fieldSelector", text, message)),
    ],
  },
  {
    name: "integers in label selectors have 64 bits",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({}, { labels: { o: "{o}", size: "9223372036854775808" } }),
        expect: { code: 201 },
      },
      rejected("labelSelector", "size>9223372036854775808", notInteger("9223372036854775808")),
      rejected("labelSelector", "size<9999999999999999999", notInteger("9999999999999999999")),
      {
        send: `GET ${configMaps}?labelSelector=o%3D{o}%2Csize%3E9223372036854775807`,
        expect: { code: 200, items: [] },
      },
    ],
  },
  {
    name: "an eviction names the Pod of its path",
    steps: [
      eviction({ name: "{o}-2" }),
      eviction({}),
      eviction({ name: "{o}", namespace: "default" }),
    ],
  },
  {
    name: "discovery of groups responds to any method, that of versions only to GET",
    steps: [
      ...["/apis", "/apis/apps", "/openapi/v2"].map((path) => ({
        send: `POST ${path}`,
        body: {},
        expect: { code: 200 },
        // The embedded server has fewer kinds.
        ignore: ["groups", ...OPEN_API],
      })),
      ...["/api", "/api/v1", "/apis/apps/v1", "/version"].map((path) => ({
        send: `POST ${path}`,
        body: {},
        expect: { code: 405, reason: "MethodNotAllowed" },
      })),
    ],
  },
  {
    name: "unknown tags of YAML are ignored",
    steps: [
      {
        send: `POST ${configMaps}`,
        text: yaml("!odd x"),
        type: "application/yaml",
        expect: { code: 201, body: { data: { a: "x" } } },
      },
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=a&force=true`,
        text: yaml("!odd y"),
        type: APPLY,
        expect: { code: 200, body: { data: { a: "y" } } },
      },
    ],
  },
];
