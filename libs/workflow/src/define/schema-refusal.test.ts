import { expect, test } from "vitest";
import { z } from "zod";
import { schemaRefusal } from "./schema-refusal.ts";

test("reports schema issues by field on one line", () => {
  const schema = z.object({ version: z.string(), pools: z.array(z.object({ size: z.int() })) });
  expect(schemaRefusal(schema.safeParse({ pools: [{ size: "3" }] }).error)).toBe(
    "version: Invalid input: expected string, received undefined; pools.0.size: Invalid input: expected number, received string",
  );
  expect(schemaRefusal(schema.safeParse(undefined).error)).toBe(
    "Invalid input: expected object, received undefined",
  );
});

test("returns the message of an error without issues", () => {
  expect(schemaRefusal(new Error("write a text"))).toBe("write a text");
  expect(schemaRefusal("no")).toBe("no");
});
