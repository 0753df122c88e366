import { expect, test } from "vitest";
import { createListCosts } from "./list-costs.ts";

test("a page costs a token per 100 kB of the page before, at most ten", () => {
  const costs = createListCosts();
  expect(costs.of("pods")).toBe(1);
  costs.note("pods", 250_000);
  expect(costs.of("pods")).toBe(3);
  costs.note("pods", 9_000_000);
  expect(costs.of("pods")).toBe(10);
  expect(costs.of("secrets")).toBe(1);
});

test("the small last page of a large list does not make the first page of the next list cheap", () => {
  const costs = createListCosts();
  costs.note("pods", 4_000_000);
  costs.note("pods", 1_000);
  expect(costs.of("pods")).toBe(9);
  for (let list = 0; list < 20; list += 1) costs.note("pods", 1_000);
  expect(costs.of("pods")).toBe(1);
});
