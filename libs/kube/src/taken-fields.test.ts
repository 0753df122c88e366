import type { ApiObject } from "@konverge/core";
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
const us = { manager: "konverge/pool", sensitive: false };

test("a field that another manager owned and that has another value now was taken", () => {
  const before = widget({ replicas: 5, image: "a" }, [
    entry("hpa", { "f:replicas": {} }),
    entry("kubectl", { "f:image": {} }),
  ]);
  const after = widget({ replicas: 3, image: "a" }, []);
  expect(findTakenFields(before, after, us)).toEqual([{ manager: "hpa", path: "spec.replicas" }]);
});

test("our own fields, new fields and fields of others that stayed were not taken", () => {
  const before = widget({ replicas: 5, other: 1 }, [
    entry("konverge/pool", { "f:replicas": {} }),
    entry("kubectl", { ".": {}, "f:other": {} }),
  ]);
  const after = widget({ replicas: 3, other: 1, fresh: true }, []);
  expect(findTakenFields(before, after, us)).toEqual([]);
});

test("P12: of sensitive kinds no list key is told", () => {
  const before = widget({ ports: 1 }, [entry("x", { "f:ports": { 'k:{"name":"hush"}': {} } })]);
  const [taken] = findTakenFields(before, widget({ ports: 2 }, []), { ...us, sensitive: true });
  expect(JSON.stringify(taken)).not.toContain("hush");
});
