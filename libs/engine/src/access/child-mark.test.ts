import type { ApiObject } from "@konverge/core";
import { expect, test } from "vitest";
import { isApplied, withChildMarks } from "./child-mark.ts";

const owner: ApiObject = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "o", uid: "u" } };
const secret = (content: object, isSensitive = true) => {
  const intent = { apiVersion: "v1", kind: "Secret", metadata: { name: "s" }, ...content };
  return withChildMarks(intent, { controller: "c", owner, isSensitive });
};
const markOf = ({ metadata }: ApiObject) => metadata.annotations?.["konverge.dev/applied"];

test("P12: the hash of a Secret does not depend on its values", () => {
  const one = secret({ stringData: { pin: "1234" } });
  expect(markOf(one)).toMatch(/^[0-9a-f]{32}$/);
  expect(markOf(secret({ stringData: { pin: "4321" } }))).toBe(markOf(one));
  expect(markOf(secret({ stringData: { code: "1234" } }))).not.toBe(markOf(one));
  const open = secret({ stringData: { pin: "1234" } }, false);
  expect(markOf(secret({ stringData: { pin: "4321" } }, false))).not.toBe(markOf(open));
});

test("a Secret is applied again if a value differs", () => {
  const stored = {
    ...secret({ data: { pin: "MTIzNA==", token: "YQ==" }, type: "Opaque" }),
    immutable: false,
  };
  const fieldsV1 = { "f:data": {}, "f:type": {}, "f:stringData": {}, "f:metadata": {} };
  const managedFields = [{ manager: "konverge/c", operation: "Apply", fieldsV1 }];
  const object = { ...stored, metadata: { ...stored.metadata, managedFields } } as ApiObject;
  const check = (content: object) => {
    const wanted = secret({ ...content, type: "Opaque" });
    // The names of the fields are compared by the hash.
    const { annotations = {} } = object.metadata;
    const marked = { ...wanted, metadata: { ...wanted.metadata, annotations } };
    return isApplied(object, marked, { manager: "konverge/c", isSensitive: true });
  };
  expect(check({ data: { pin: "MTIzNA==", token: "YQ==" } })).toBe(true);
  expect(check({ data: { token: "YQ==" }, stringData: { pin: "1234" } })).toBe(true);
  expect(check({ data: { pin: "MTIzNQ==", token: "YQ==" } })).toBe(false);
  expect(check({ data: { token: "YQ==" }, stringData: { pin: "1235" } })).toBe(false);
  expect(check({ data: { pin: "MTIzNA==", other: "YQ==" } })).toBe(false);
});
