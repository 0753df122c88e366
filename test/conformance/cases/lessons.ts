import { versionIn, type Case } from "../case.ts";
import { APPLY, configMap, configMaps, MERGE, widget, widgets } from "../objects.ts";

/** Common claims about the server, and the facts. */
export const lessons: readonly Case[] = [
  {
    name: "an empty resourceVersion disables the check for a ConfigMap, but not for a custom resource",
    steps: [
      { send: `POST ${configMaps}`, body: configMap(), as: "map", expect: { code: 201 } },
      {
        send: `PUT ${configMaps}/{o}`,
        body: configMap({ data: { a: "1" } }, { resourceVersion: "" }),
        expect: { code: 200, version: { newSince: "map" } },
      },
      { send: `POST ${widgets}`, body: widget(), expect: { code: 201 } },
      {
        send: `PUT ${widgets}/{o}`,
        body: widget({ spec: { size: "l" } }),
        expect: {
          code: 422,
          reason: "Invalid",
          causes: [
            {
              field: "metadata.resourceVersion",
              message: "Invalid value: 0: must be specified for an update",
            },
          ],
        },
      },
    ],
  },
  {
    name: "applying an object as it was read is rejected for its managedFields",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { a: "1" } }),
        as: "made",
        expect: { code: 201 },
      },
      {
        send: `PATCH ${configMaps}/{o}?fieldManager=fm1`,
        type: APPLY,
        body: (seen) => seen["made"]?.body ?? null,
        expect: { code: 400, reason: "BadRequest", message: "metadata.managedFields must be nil" },
      },
    ],
  },
  {
    name: "a write moves the list version of another kind, because one counter serves all objects",
    steps: [
      { send: `POST ${configMaps}`, body: configMap(), as: "map", expect: { code: 201 } },
      {
        send: `POST ${widgets}`,
        body: widget(),
        as: "widget",
        expect: { code: 201, version: { newSince: "map" } },
      },
      {
        send: (seen) => `GET ${configMaps}/{o}?resourceVersion=${versionIn(seen, "map")}`,
        expect: { code: 200, version: { sameAs: "map" } },
      },
    ],
  },
  {
    name: "two patches based on one read both succeed",
    steps: [
      {
        send: `POST ${configMaps}`,
        body: configMap({ data: { count: "3" } }),
        expect: { code: 201 },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { data: { count: "5" } },
        expect: { code: 200 },
      },
      {
        send: `PATCH ${configMaps}/{o}`,
        type: MERGE,
        body: { data: { count: "2" } },
        expect: { code: 200, body: { data: { count: "2" } } },
      },
    ],
  },
];
