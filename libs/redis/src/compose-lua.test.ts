import { describe, expect, test } from "vitest";
import { composeLua } from "./compose-lua.ts";

describe("composeLua", () => {
  test("declares keys, arguments and items by name", () => {
    const signature = {
      name: "s",
      keys: ["run"],
      args: { epoch: "text", sleepMs: "number", again: "flag" },
      each: { keys: ["hash", "list"], args: { owner: "text", delayMs: "number" } },
    } as const;
    expect(composeLua(signature, { lua: "return epoch" }).split("\n")).toEqual([
      "local run = KEYS[1]",
      "local epoch, sleepMs, again = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'",
      "local each = {}",
      "for i = 1, (#KEYS - 1 - (string.sub(KEYS[#KEYS] or '', -8) == '/unmoved' and 1 or 0)) / 2 do each[i] = { hash = KEYS[2 * i + 0], list = KEYS[2 * i + 1], " +
        "owner = ARGV[2 * i + 2], delayMs = tonumber(ARGV[2 * i + 3]) } end",
      "return epoch",
    ]);
  });

  test("counts items by their arguments if they have no keys", () => {
    const signature = { name: "s", args: { most: "number" }, each: { args: { field: "text" } } };
    expect(composeLua(signature as never, { lua: "" })).toContain(
      "for i = 1, (#ARGV - 1) / 1 do each[i] = { field = ARGV[1 * i + 1] } end",
    );
  });

  test("puts a part that two others include in front of both, once, with its constants", () => {
    const clock = { lua: "-- clock", constants: { GRACE_MS: 10, NAME: "it's\n\\", T: { a: 0.5 } } };
    const one = { lua: "-- one", include: [clock], constants: { GRACE_MS: 10 } };
    const other = { lua: "-- other", include: [clock] };
    expect(
      composeLua({ name: "s" }, { lua: "-- body", include: [one, other] }).split("\n"),
    ).toEqual([
      "local GRACE_MS = 10",
      String.raw`local NAME = 'it\'s\n\\'`,
      "local T = { a = 0.5 }",
      "-- clock",
      "-- one",
      "-- other",
      "-- body",
    ]);
  });

  test("rejects two values for one constant", () => {
    const include = [
      { lua: "", constants: { MOST: 1 } },
      { lua: "", constants: { MOST: 2 } },
    ];
    expect(() => composeLua({ name: "s" }, { lua: "", include })).toThrow(
      "script s: two values for the constant MOST",
    );
  });
});
