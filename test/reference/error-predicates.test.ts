import * as konverge from "konverge";
import * as kube from "@konverge/kube";
import { expect, test } from "vitest";
import * as predicates from "../../libs/kube/src/errors/error-predicates.ts";
import { PAGES } from "./pages.ts";
import { readDeclarations } from "./read-declarations.ts";

/** All functions of error-predicates.ts, and each other predicate of the folder. */
const NAMES = [
  ...new Set([
    ...Object.keys(predicates),
    ...[...readDeclarations("libs/kube/src/errors").keys()].filter((name) => /^is[A-Z]/.test(name)),
  ]),
].toSorted();

test("konverge exports every error predicate of @konverge/kube", () => {
  expect(NAMES.length).toBeGreaterThan(25);
  expect(NAMES.filter((name) => !Object.hasOwn(kube, name))).toEqual([]);
  expect(NAMES.filter((name) => !Object.hasOwn(konverge, name))).toEqual([]);
});

test("docs/reference/errors.md lists every error predicate", () => {
  expect(PAGES["errors.md"]?.of.map(({ name }) => name).toSorted()).toEqual(NAMES);
});
