import { expect, test } from "vitest";
import { textTable } from "./text-table.ts";

test("aligns columns, numbers to the right", () => {
  const rows = [
    ["", "lazy"],
    ["API calls", "7"],
  ];
  expect(textTable(rows, { alignRight: [1] })).toBe("           lazy\nAPI calls     7");
});

test("cuts lines at the width of the terminal", () => {
  expect(textTable([["name", "a long explanation"]], { width: 12 })).toBe("name  a lon…");
});
