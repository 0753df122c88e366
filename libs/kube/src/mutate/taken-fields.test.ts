import type { ApiObject, JsonObject } from "@konverge/core";
import { expect, test } from "vitest";
import { findTakenFields } from "./taken-fields.ts";

const widget = (spec: object, managedFields: object[]): ApiObject =>
  ({
    apiVersion: "example.com/v1",
    kind: "Widget",
    metadata: { name: "a", resourceVersion: "1", managedFields },
    spec,
  }) as unknown as ApiObject;
const entry = (manager: string, fields: object) => ({
  manager,
  operation: "Update",
  apiVersion: "example.com/v1",
  fieldsType: "FieldsV1",
  fieldsV1: { "f:spec": fields },
});
const us = {
  manager: "konverge/pool",
  sensitive: false,
  patch: { spec: { replicas: 3, fresh: true } },
};

test("reports a field of another manager whose value changed", () => {
  const before = widget({ replicas: 5, image: "a" }, [
    entry("hpa", { "f:replicas": {} }),
    entry("kubectl", { "f:image": {} }),
  ]);
  const after = widget({ replicas: 3, image: "a" }, []);
  expect(findTakenFields(before, after, us)).toEqual([{ manager: "hpa", path: "spec.replicas" }]);
});

test("ignores own fields, new fields and unchanged fields of others", () => {
  const before = widget({ replicas: 5, other: 1 }, [
    entry("konverge/pool", { "f:replicas": {} }),
    entry("kubectl", { ".": {}, "f:other": {} }),
  ]);
  const after = widget({ replicas: 3, other: 1, fresh: true }, []);
  expect(findTakenFields(before, after, us)).toEqual([]);
});

test("ignores changes by others between read and write, or in the same write", () => {
  const before = widget({ replicas: 5, image: "a", deep: { er: 1 } }, [
    entry("hpa", { "f:replicas": {} }),
    entry("kubectl", { "f:image": {}, "f:deep": { "f:er": {} } }),
  ]);
  const after = widget({ replicas: 3, image: "b", deep: { er: 2 } }, []);
  const taken = (patch: JsonObject) =>
    findTakenFields(before, after, { ...us, patch }).map(({ path }) => path);
  expect(taken({ spec: { fresh: true } })).toEqual([]);
  expect(taken({ spec: { replicas: 3 } })).toEqual(["spec.replicas"]);
  expect(taken({ spec: { deep: null } })).toEqual(["spec.deep.er"]);
  expect(taken({ spec: { deep: { er: 2, more: {} } } })).toEqual(["spec.deep.er"]);
});

test("P12: omits list keys of sensitive kinds", () => {
  const before = widget({ ports: 1 }, [entry("x", { "f:ports": { 'k:{"name":"hush"}': {} } })]);
  const [taken] = findTakenFields(before, widget({ ports: 2 }, []), {
    ...us,
    sensitive: true,
    patch: { spec: { ports: "<redacted>" } },
  });
  expect(taken?.path).toContain("spec.ports");
  expect(JSON.stringify(taken)).not.toContain("hush");
});
