import { versionIn, type Case, type Seen } from "../case.ts";
import type { JsonObject } from "@konverge/core";
import { configMap, configMaps, MERGE, widget, widgets } from "../objects.ts";

const labelled = (name: string, labels: JsonObject = {}) => ({
  send: `POST ${configMaps}`,
  body: configMap({}, { name: `{o}-${name}`, labels: { case: "{o}", ...labels } }),
  as: name,
  expect: { code: 201 },
});
const selector = "labelSelector=case%3D{o}";
const tokenOf = (seen: Seen, name: string) => {
  const body = seen[name]?.body as JsonObject;
  return encodeURIComponent(String((body["metadata"] as JsonObject)["continue"]));
};
const listVersion = (seen: Seen, name: string) => versionIn(seen, name);

/** Lists, pages, selectors. */
export const reading: readonly Case[] = [
  {
    name: "a list has the version of the store, items in order of their names",
    steps: [
      labelled("b"),
      labelled("a"),
      {
        send: `GET ${configMaps}?${selector}`,
        expect: { code: 200, body: { kind: "ConfigMapList" } },
      },
      {
        send: `GET ${configMaps}?${selector}&resourceVersion=0`,
        expect: { code: 200 },
        ignore: ["metadata"],
      },
    ],
  },
  {
    name: "pages keep the version of the first one, whatever is written between them",
    steps: [
      labelled("a"),
      labelled("b"),
      labelled("c"),
      { send: `GET ${configMaps}?${selector}&limit=2`, as: "one", expect: { code: 200 } },
      labelled("d"),
      {
        send: `PATCH ${configMaps}/{o}-c`,
        type: MERGE,
        body: { data: { changed: "later" } },
        expect: { code: 200 },
      },
      {
        send: (seen) => `GET ${configMaps}?${selector}&limit=2&continue=${tokenOf(seen, "one")}`,
        expect: { code: 200, version: { sameAs: "one" } },
      },
    ],
  },
  {
    name: "remainingItemCount is returned only without selectors",
    steps: [
      { send: `POST ${widgets}`, body: widget({}, { name: "{o}-a" }), expect: { code: 201 } },
      { send: `POST ${widgets}`, body: widget({}, { name: "{o}-b" }), expect: { code: 201 } },
      {
        send: `GET ${widgets}?limit=1&fieldSelector=metadata.namespace%3D{ns}`,
        ignore: ["items", "metadata"],
        expect: { code: 200, absent: ["metadata.remainingItemCount"] },
      },
    ],
  },
  {
    name: "a list at exactly a version",
    steps: [
      labelled("a"),
      { send: `GET ${configMaps}?${selector}`, as: "before", expect: { code: 200 } },
      labelled("b"),
      {
        send: (seen) =>
          `GET ${configMaps}?${selector}&resourceVersionMatch=Exact&resourceVersion=${listVersion(seen, "before")}`,
        expect: { code: 200, version: { sameAs: "before" } },
      },
      {
        send: (seen) =>
          `GET ${configMaps}?${selector}&resourceVersionMatch=NotOlderThan&resourceVersion=${listVersion(seen, "before")}`,
        ignore: ["metadata"],
        expect: { code: 200 },
      },
    ],
  },
  {
    name: "label selectors",
    steps: [
      labelled("a", { tier: "web", canary: "yes" }),
      labelled("b", { tier: "db" }),
      labelled("c"),
      ...[
        "tier%3Dweb",
        "tier!%3Dweb",
        "tier",
        "!tier",
        "tier in (web,db)",
        "tier notin (web)",
        "tier=web,canary=yes",
        "tier==db",
      ].map((terms) => ({
        send: `GET ${configMaps}?${selector},${encodeURIComponent(decodeURIComponent(terms))}`,
        expect: { code: 200 },
      })),
      {
        send: `GET ${configMaps}?labelSelector=a%20b%20c`,
        expect: { code: 400, reason: "BadRequest" },
        ignore: ["message"],
      },
    ],
  },
  {
    name: "field selectors",
    steps: [
      labelled("a"),
      labelled("b"),
      { send: `GET ${configMaps}?fieldSelector=metadata.name%3D{o}-a`, expect: { code: 200 } },
      {
        send: `GET ${configMaps}?${selector}&fieldSelector=metadata.name!%3D{o}-a`,
        expect: { code: 200 },
      },
      {
        send: `GET ${configMaps}?fieldSelector=data.a%3Db`,
        expect: { code: 400, reason: "BadRequest" },
        ignore: ["message"],
      },
      {
        send: `POST ${widgets}`,
        body: widget({ spec: { size: "l" } }, { labels: { case: "{o}" } }),
        expect: { code: 201 },
      },
      { send: `GET ${widgets}?${selector}&fieldSelector=spec.size%3Dl`, expect: { code: 200 } },
      {
        send: `GET ${widgets}?${selector}&fieldSelector=spec.size%3Ds`,
        expect: { code: 200, body: { items: [] } },
      },
      {
        send: `GET ${widgets}?fieldSelector=spec.code%3Ds`,
        expect: { code: 400 },
        ignore: ["message"],
      },
    ],
  },
  {
    name: "options of a list that are rejected",
    steps: [
      {
        send: `GET ${configMaps}?resourceVersionMatch=Exact`,
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `GET ${configMaps}?resourceVersionMatch=Exact&resourceVersion=0`,
        expect: { code: 422 },
      },
      {
        send: `GET ${configMaps}?resourceVersionMatch=Odd&resourceVersion=5`,
        expect: { code: 422 },
      },
      {
        send: `GET ${configMaps}?sendInitialEvents=true`,
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `GET ${configMaps}?resourceVersion=abc`,
        expect: { code: 400, reason: "BadRequest" },
      },
      {
        send: `GET ${configMaps}?continue=abc`,
        expect: { code: 400, reason: "BadRequest" },
        ignore: ["message"],
      },
      {
        send: `GET ${configMaps}?watch=true&resourceVersionMatch=NotOlderThan`,
        expect: { code: 422, reason: "Invalid" },
      },
      {
        send: `GET ${configMaps}?watch=true&sendInitialEvents=true`,
        expect: { code: 422, reason: "Invalid" },
      },
    ],
  },
  {
    name: "a page token of compacted history: 410 with a token that continues without consistency",
    only: "embedded",
    steps: [
      labelled("a"),
      labelled("b"),
      { send: `GET ${configMaps}?${selector}&limit=1`, as: "one", expect: { code: 200 } },
      labelled("c"),
      { act: "compact" },
      {
        send: (seen) => `GET ${configMaps}?${selector}&limit=5&continue=${tokenOf(seen, "one")}`,
        as: "expired",
        expect: { code: 410, reason: "Expired" },
      },
      {
        send: (seen) =>
          `GET ${configMaps}?${selector}&limit=5&continue=${tokenOf(seen, "expired")}`,
        expect: { code: 200, body: { kind: "ConfigMapList" } },
      },
    ],
  },
];
