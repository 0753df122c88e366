import type { JsonObject, JsonValue } from "@konverge/core";
import type { Case } from "../case.ts";
import { definitions } from "../objects.ts";
import { definitionOf } from "../ruled-definition.ts";

const group = "embedded.konverge.dev";
const right: JsonObject = { apiVersion: "v1", kind: "A" };

const send = (value: JsonValue, code: number, place: "one" | "list" | "map" = "one") => {
  const held: JsonObject = {
    one: { one: value },
    list: { list: [value] },
    map: { map: { a: value } },
  }[place];
  return {
    send: `POST /apis/${group}/v1/holders?dryRun=All`,
    body: { apiVersion: `${group}/v1`, kind: "Holder", metadata: { name: "a" }, ...held },
    retry: true,
    // The real server reports the errors of an object in a random order.
    expect: { code },
  };
};

const embedded: JsonObject = {
  type: "object",
  "x-kubernetes-embedded-resource": true,
  "x-kubernetes-preserve-unknown-fields": true,
};

/** Objects in fields with `x-kubernetes-embedded-resource`. */
export const embeddedObjects: readonly Case[] = [
  {
    name: "embedded objects have type and metadata of an object",
    waits: true,
    steps: [
      {
        send: `POST ${definitions}`,
        body: definitionOf(
          { group, plural: "holders", kind: "Holder" },
          {
            one: embedded,
            list: { type: "array", items: embedded },
            map: { type: "object", additionalProperties: embedded },
          },
        ),
        // Times of the conditions.
        ignore: ["metadata", "status"],
        expect: { code: 201 },
      },
      ...[
        right,
        { ...right, metadata: {} },
        { ...right, metadata: null },
        { ...right, metadata: { name: "a", unknown: 1, labels: { a: "b" } } },
        { ...right, metadata: { name: "A_b", namespace: "c", creationTimestamp: null } },
        { apiVersion: "x/", kind: "Ab-c", more: { a: null } },
      ].map((value) => send(value, 201)),
      ...[
        { kind: "A" },
        { apiVersion: "v1" },
        { apiVersion: "", kind: "A" },
        { apiVersion: "v1", kind: "" },
        { apiVersion: "a/b/c", kind: "A" },
        { apiVersion: "v1", kind: "1" },
        { apiVersion: "v1", kind: "A".repeat(64) },
        { ...right, metadata: { name: "a/b" } },
        { ...right, metadata: { name: ".." } },
        { ...right, metadata: { name: "a", labels: { "a/b/c": "x" } } },
        { ...right, metadata: { name: "a", namespace: "A" } },
      ].map((value) => send(value, 422)),
      send({ kind: "A" }, 422, "list"),
      send({ kind: "A" }, 422, "map"),
      ...[
        { apiVersion: 7, kind: "A" },
        { apiVersion: "v1", kind: {} },
        { ...right, metadata: "a" },
        { ...right, metadata: { name: 7 } },
        { ...right, metadata: { labels: { a: 1 } } },
      ].map((value) => send(value, 400)),
      send({ apiVersion: "v1", kind: null }, 400, "list"),
      {
        send: `DELETE ${definitions}/holders.${group}`,
        ignore: ["metadata", "status"],
        expect: { code: 200 },
      },
    ],
  },
];
