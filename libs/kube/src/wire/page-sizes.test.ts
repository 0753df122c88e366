import { expect, test } from "vitest";
import { createPageSizes } from "./page-sizes.ts";

const MIB = 1024 * 1024;

test("the pages of each resource aim at 8 MiB, between 1 and 500 objects", () => {
  const sizes = createPageSizes();
  const after = (items: number, bytes: number) => {
    sizes.note("secrets", { items, bytes });
    return sizes.of("secrets");
  };
  expect(sizes.of("secrets")).toBe(250);
  expect(after(250, 250 * 1_000)).toBe(500);
  expect(after(500, 50 * MIB)).toBe(80);
  expect(after(80, 160 * MIB)).toBe(4);
  expect(after(1, 20 * MIB)).toBe(1);
  expect(after(0, 100)).toBe(1);
  expect(sizes.of("configmaps")).toBe(250);
});
