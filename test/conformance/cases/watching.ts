import { versionIn, type Case, type WatchStep } from "../case.ts";
import { configMap, configMaps, gadgets, widget, widgets } from "../objects.ts";
import { mergePatch, post, remove } from "../steps.ts";

const selector = "labelSelector=case%3D{o}";
const make = (name: string) =>
  post(configMaps, 201, configMap({}, { name: `{o}-${name}`, labels: { case: "{o}" } }), {
    as: name,
  });
const change = (name: string) =>
  mergePatch(
    `${configMaps}/{o}-${name}`,
    200,
    { data: { changed: "yes" } },
    { as: `${name}-changed` },
  );
/** Opens a watch of the case's objects from the version of an earlier response. */
const watchSince = (name: string): WatchStep => ({
  watch: "w",
  path: (seen) => `${configMaps}?watch=true&${selector}&resourceVersion=${versionIn(seen, name)}`,
});
const event = (type: string, name: string) => ({
  type,
  object: { metadata: { name: `{o}-${name}` } },
});

/** Watch streams. */
export const watching: readonly Case[] = [
  {
    name: "a watch from a version sends later changes in order",
    steps: [
      make("a"),
      make("b"),
      change("a"),
      watchSince("a"),
      { events: "w", count: 2, expect: [event("ADDED", "b"), event("MODIFIED", "a")] },
      remove(`${configMaps}/{o}-b`, 200),
      { events: "w", count: 1, expect: [event("DELETED", "b")] },
    ],
  },
  {
    name: "a watch without a version begins with all objects",
    steps: [
      make("a"),
      make("b"),
      { watch: "w", path: `${configMaps}?watch=true&${selector}` },
      {
        events: "w",
        count: 2,
        unordered: true,
        expect: [event("ADDED", "a"), event("ADDED", "b")],
      },
      change("b"),
      { events: "w", count: 1, expect: [event("MODIFIED", "b")] },
    ],
  },
  {
    name: "a DELETED event has the version of the deletion",
    steps: [
      make("a"),
      watchSince("a"),
      remove(`${configMaps}/{o}-a`, 200),
      { events: "w", count: 1, expect: [event("DELETED", "a")] },
    ],
  },
  {
    name: "an object that stops or starts matching a selector is DELETED or ADDED",
    steps: [
      make("a"),
      watchSince("a"),
      mergePatch(`${configMaps}/{o}-a`, 200, {
        metadata: { labels: { case: "other" } },
        data: { a: "1" },
      }),
      mergePatch(`${configMaps}/{o}-a`, 200, { metadata: { labels: { case: "{o}" } } }),
      {
        events: "w",
        count: 2,
        expect: [
          { type: "DELETED", object: { metadata: { name: "{o}-a", labels: { case: "{o}" } } } },
          event("ADDED", "a"),
        ],
      },
    ],
  },
  {
    name: "a write without a change sends no event",
    steps: [
      make("a"),
      watchSince("a"),
      mergePatch(`${configMaps}/{o}-a`, 200, { metadata: { labels: { case: "{o}" } } }),
      change("a"),
      {
        events: "w",
        count: 1,
        expect: [{ type: "MODIFIED", object: { data: { changed: "yes" } } }],
      },
    ],
  },
  {
    name: "a streamed list ends with a bookmark that marks its end",
    steps: [
      make("a"),
      make("b"),
      {
        watch: "w",
        path: `${configMaps}?watch=true&${selector}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`,
      },
      {
        events: "w",
        count: 2,
        unordered: true,
        expect: [event("ADDED", "a"), event("ADDED", "b")],
      },
      {
        events: "w",
        count: 1,
        expect: [
          {
            type: "BOOKMARK",
            object: {
              kind: "ConfigMap",
              apiVersion: "v1",
              metadata: { annotations: { "k8s.io/initial-events-end": "true" } },
            },
          },
        ],
      },
      change("a"),
      { events: "w", count: 1, expect: [event("MODIFIED", "a")] },
    ],
  },
  {
    name: "the timeout of a watch ends the stream",
    waits: true,
    steps: [
      make("a"),
      {
        watch: "w",
        path: (seen) =>
          `${configMaps}?watch=true&${selector}&timeoutSeconds=1&resourceVersion=${versionIn(seen, "a")}`,
      },
      { events: "w", count: 1, expect: [] },
      { events: "w", count: 0, expect: [], ends: true },
    ],
  },
  {
    name: "a watch from a dropped version: 410 as an event of a 200 stream",
    steps: [
      { act: "compact" },
      // The real server has history only since it first served the kind, so the case uses a kind of this run.
      { watch: "w", path: `${gadgets}?watch=true&resourceVersion=1` },
      {
        events: "w",
        count: 1,
        ends: true,
        expect: [{ type: "ERROR", object: { kind: "Status", reason: "Expired", code: 410 } }],
      },
    ],
  },
  {
    name: "a watch of one object by its name",
    steps: [
      post(widgets, 201, widget(), { as: "made" }),
      post(widgets, 201, widget({}, { name: "{o}-2" })),
      {
        watch: "w",
        path: (seen) =>
          `${widgets}?watch=true&fieldSelector=metadata.name%3D{o}&resourceVersion=${versionIn(seen, "made")}`,
      },
      mergePatch(`${widgets}/{o}/status`, 200, { status: { phase: "Ready" } }),
      {
        events: "w",
        count: 1,
        expect: [
          { type: "MODIFIED", object: { metadata: { name: "{o}" }, status: { phase: "Ready" } } },
        ],
      },
    ],
  },
  {
    name: "bookmarks on demand contain only the version",
    only: "embedded",
    steps: [
      make("a"),
      {
        watch: "w",
        path: (seen) =>
          `${configMaps}?watch=true&${selector}&allowWatchBookmarks=true&resourceVersion=${versionIn(seen, "a")}`,
      },
      post(widgets, 201, widget(), { as: "newest" }),
      { act: "bookmark" },
      {
        events: "w",
        count: 1,
        expect: [{ type: "BOOKMARK", object: { kind: "ConfigMap", apiVersion: "v1" } }],
      },
    ],
  },
  {
    name: "disconnected watches just end",
    only: "embedded",
    steps: [
      make("a"),
      {
        watch: "w",
        path: (seen) => `${configMaps}?watch=true&resourceVersion=${versionIn(seen, "a")}`,
      },
      { act: "cut" },
      { events: "w", count: 1, expect: [], ends: true },
    ],
  },
];
