import { versionIn, type Case } from "../case.ts";
import { configMap, configMaps, widget, widgets } from "../objects.ts";
import { applyPatch, mergePatch, post, put } from "../steps.ts";

/** Common claims about the server, and the facts. */
export const lessons: readonly Case[] = [
  {
    name: "an empty resourceVersion disables the check for a ConfigMap, but not for a custom resource",
    steps: [
      post(configMaps, 201, configMap(), { as: "map" }),
      put(
        `${configMaps}/{o}`,
        { code: 200, version: { newSince: "map" } },
        configMap({ data: { a: "1" } }, { resourceVersion: "" }),
      ),
      post(widgets, 201, widget()),
      put(
        `${widgets}/{o}`,
        {
          code: 422,
          reason: "Invalid",
          causes: [
            {
              field: "metadata.resourceVersion",
              message: "Invalid value: 0: must be specified for an update",
            },
          ],
        },
        widget({ spec: { size: "l" } }),
      ),
    ],
  },
  {
    name: "applying an object as it was read is rejected for its managedFields",
    steps: [
      post(configMaps, 201, configMap({ data: { a: "1" } }), { as: "made" }),
      applyPatch(
        `${configMaps}/{o}?fieldManager=fm1`,
        { code: 400, reason: "BadRequest", message: "metadata.managedFields must be nil" },
        (seen) => seen["made"]?.body ?? null,
      ),
    ],
  },
  {
    name: "a write moves the list version of another kind, because one counter serves all objects",
    steps: [
      post(configMaps, 201, configMap(), { as: "map" }),
      post(widgets, { code: 201, version: { newSince: "map" } }, widget(), { as: "widget" }),
      {
        send: (seen) => `GET ${configMaps}/{o}?resourceVersion=${versionIn(seen, "map")}`,
        expect: { code: 200, version: { sameAs: "map" } },
      },
    ],
  },
  {
    name: "two patches based on one read both succeed",
    steps: [
      post(configMaps, 201, configMap({ data: { count: "3" } })),
      mergePatch(`${configMaps}/{o}`, 200, { data: { count: "5" } }),
      mergePatch(
        `${configMaps}/{o}`,
        { code: 200, body: { data: { count: "2" } } },
        { data: { count: "2" } },
      ),
    ],
  },
];
