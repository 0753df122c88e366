import type { LuaPart } from "@konverge/redis";
import { describe, expect, test } from "vitest";
import { checkLua } from "./check-lua.ts";
import { LUA_FILES, loadScripts } from "./scripts.ts";

const { scripts, parts } = await loadScripts();

test("every Lua file belongs to an exported script or part of a module in its folder", () => {
  const known = new Set([...scripts.map(({ body }) => body.lua), ...parts.map(({ lua }) => lua)]);
  const stray = LUA_FILES.filter(({ text }) => !known.has(text)).map(({ path }) => path);
  expect(stray).toEqual([]);
  expect(scripts.map(({ name }) => name)).toEqual([...new Set(scripts.map(({ name }) => name))]);
});

test.each(LUA_FILES)("$path names its keys and arguments", ({ text }) => {
  expect(checkLua(text).readsInputs).toBe(false);
});

describe.each(scripts)("script $name", ({ lua, body, signature }) => {
  const facts = checkLua(lua);
  test("assigns no globals and reads only those of Redis", () => {
    expect(facts.strayGlobals).toEqual([]);
  });

  test("uses every key, argument, constant and local that it declares", () => {
    const { keys = [], args = {}, each = {} } = signature;
    const declared = new Set([...keys, ...Object.keys(args), ...constantsOf(body)]);
    const ownLine = lua.slice(0, lua.length - body.lua.length).split("\n").length;
    const unused = facts.locals
      .filter(({ used, name, line }) => !used && (declared.has(name) || line >= ownLine))
      .map(({ name }) => name);
    const fields = [...(each.keys ?? []), ...Object.keys(each.args ?? {})];
    expect([...unused, ...fields.filter((name) => !facts.members.has(name))]).toEqual(
      // A key that only routes the call to its server.
      unused.filter((name) => name.startsWith("_")),
    );
  });
});

describe("checkLua", () => {
  test.each([
    { lua: "x = 1", stray: ["x"] },
    { lua: "function f() end", stray: ["f"] },
    { lua: "local x = x", stray: ["x"] },
    { lua: "do local x = 1 end return x", stray: ["x"] },
    { lua: "for i = 1, 2 do y[i] = i end", stray: ["y"] },
    { lua: "repeat local done = true until done", stray: [] },
    { lua: "local function f(a) return a and f(a) end return f", stray: [] },
    { lua: "local t = { a = 1, [redis] = b } return t.a", stray: ["b"] },
  ])("finds $stray in: $lua", ({ lua, stray }) => {
    expect(checkLua(lua).strayGlobals.map(({ name }) => name)).toEqual(stray);
  });

  test("finds locals that are never read", () => {
    const { locals } = checkLua("local a, b = 1, 2\nlocal function f() b = 3 end\nreturn a");
    expect(locals.filter(({ used }) => !used).map(({ name }) => name)).toEqual(["b", "f"]);
  });

  test("detects KEYS and ARGV, unless they are parameters", () => {
    expect(checkLua("return KEYS[1]").readsInputs).toBe(true);
    expect(checkLua("local function f(KEYS) return KEYS[1] end return f").readsInputs).toBe(false);
  });

  test("rejects syntax that Lua 5.1 cannot parse", () => {
    expect(() => checkLua("local x = 1 // 2")).toThrow(SyntaxError);
  });
});

function constantsOf({ constants = {}, include = [] }: LuaPart): string[] {
  return [...Object.keys(constants), ...include.flatMap(constantsOf)];
}
