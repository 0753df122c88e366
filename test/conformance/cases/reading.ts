import { versionIn, type Case, type Seen } from "../case.ts";
import type { JsonObject } from "@konverge/core";
import { configMap, configMaps, widget, widgets } from "../objects.ts";
import { get, mergePatch, post } from "../steps.ts";

const labelled = (name: string, labels: JsonObject = {}) =>
  post(
    configMaps,
    201,
    configMap({}, { name: `{o}-${name}`, labels: { case: "{o}", ...labels } }),
    { as: name },
  );
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
      get(`${configMaps}?${selector}`, { code: 200, body: { kind: "ConfigMapList" } }),
      get(`${configMaps}?${selector}&resourceVersion=0`, 200, { ignore: ["metadata"] }),
    ],
  },
  {
    name: "pages keep the version of the first one, whatever is written between them",
    steps: [
      labelled("a"),
      labelled("b"),
      labelled("c"),
      get(`${configMaps}?${selector}&limit=2`, 200, { as: "one" }),
      labelled("d"),
      mergePatch(`${configMaps}/{o}-c`, 200, { data: { changed: "later" } }),
      {
        send: (seen) => `GET ${configMaps}?${selector}&limit=2&continue=${tokenOf(seen, "one")}`,
        expect: { code: 200, version: { sameAs: "one" } },
      },
    ],
  },
  {
    name: "remainingItemCount is returned only without selectors",
    steps: [
      post(widgets, 201, widget({}, { name: "{o}-a" })),
      post(widgets, 201, widget({}, { name: "{o}-b" })),
      get(
        `${widgets}?limit=1&fieldSelector=metadata.namespace%3D{ns}`,
        { code: 200, absent: ["metadata.remainingItemCount"] },
        { ignore: ["items", "metadata"] },
      ),
    ],
  },
  {
    name: "a list at exactly a version",
    steps: [
      labelled("a"),
      get(`${configMaps}?${selector}`, 200, { as: "before" }),
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
      ].map((terms) =>
        get(`${configMaps}?${selector},${encodeURIComponent(decodeURIComponent(terms))}`, 200),
      ),
      get(
        `${configMaps}?labelSelector=a%20b%20c`,
        { code: 400, reason: "BadRequest" },
        { ignore: ["message"] },
      ),
    ],
  },
  {
    name: "field selectors",
    steps: [
      labelled("a"),
      labelled("b"),
      get(`${configMaps}?fieldSelector=metadata.name%3D{o}-a`, 200),
      get(`${configMaps}?${selector}&fieldSelector=metadata.name!%3D{o}-a`, 200),
      get(
        `${configMaps}?fieldSelector=data.a%3Db`,
        { code: 400, reason: "BadRequest" },
        { ignore: ["message"] },
      ),
      post(widgets, 201, widget({ spec: { size: "l" } }, { labels: { case: "{o}" } })),
      get(`${widgets}?${selector}&fieldSelector=spec.size%3Dl`, 200),
      get(`${widgets}?${selector}&fieldSelector=spec.size%3Ds`, { code: 200, body: { items: [] } }),
      get(`${widgets}?fieldSelector=spec.code%3Ds`, 400, { ignore: ["message"] }),
    ],
  },
  {
    name: "options of a list that are rejected",
    steps: [
      get(`${configMaps}?resourceVersionMatch=Exact`, { code: 422, reason: "Invalid" }),
      get(`${configMaps}?resourceVersionMatch=Exact&resourceVersion=0`, 422),
      get(`${configMaps}?resourceVersionMatch=Odd&resourceVersion=5`, 422),
      get(`${configMaps}?sendInitialEvents=true`, { code: 422, reason: "Invalid" }),
      get(`${configMaps}?resourceVersion=abc`, { code: 400, reason: "BadRequest" }),
      get(
        `${configMaps}?continue=abc`,
        { code: 400, reason: "BadRequest" },
        { ignore: ["message"] },
      ),
      get(`${configMaps}?watch=true&resourceVersionMatch=NotOlderThan`, {
        code: 422,
        reason: "Invalid",
      }),
      get(`${configMaps}?watch=true&sendInitialEvents=true`, { code: 422, reason: "Invalid" }),
    ],
  },
  {
    name: "a page token of compacted history: 410 with a token that continues without consistency",
    only: "embedded",
    steps: [
      labelled("a"),
      labelled("b"),
      get(`${configMaps}?${selector}&limit=1`, 200, { as: "one" }),
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
