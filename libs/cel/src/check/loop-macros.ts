import { sortByKeys } from "../functions/lists.ts";
import { BOOL, DYN, INT, listOf, mapOf } from "../types/cel-type.ts";
import { CelError, CelList, CelMap, type MapKey, type Value } from "../values/value.ts";
import { compileAnd, compileOr } from "./compile-logic.ts";
import type { Compiled } from "./compiled.ts";
import { compileCondition, openLoop } from "./loop.ts";
import { argument, type Macro } from "./macro.ts";

/** `all` and `exists`: one deciding item is enough, even if others fail. */
export const quantifier =
  (isAll: boolean, count: 1 | 2): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, count);
    const condition = compiler.compile(argument(call, count), loop.scope);
    compiler.requireType(condition, BOOL);
    const combine = isAll ? compileAnd : compileOr;
    return {
      type: BOOL,
      offset: call.offset,
      run: (frame) =>
        combine(lazily(loop.frames(frame), ({ frame: inner }) => condition.run(inner)))(frame),
    };
  };

/** Turns a loop into functions that are run one after the other, as far as needed. */
function* lazily<T>(source: Iterable<T>, run: (item: T) => Value): Generator<Compiled["run"]> {
  for (const item of source) yield () => run(item);
}

export const existsOne =
  (count: 1 | 2): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, count);
    const holds = compileCondition(compiler, argument(call, count), loop, INT);
    return {
      type: BOOL,
      offset: call.offset,
      run: (frame) => {
        let found = 0;
        for (const { frame: inner } of loop.frames(frame)) if (holds(inner)) found++;
        return found === 1;
      },
    };
  };

export const filterList: Macro = (compiler, call) => {
  const loop = openLoop(compiler, call, 1);
  const type = listOf(loop.types[0]);
  const holds = compileCondition(compiler, argument(call, 1), loop, type);
  return {
    type,
    offset: call.offset,
    run: (frame) => {
      const kept: Value[] = [];
      for (const { frame: inner, items } of loop.frames(frame)) {
        if (holds(inner)) kept.push(items[0]);
      }
      return new CelList(kept);
    },
  };
};

/** `map`, and `transformList` with two variables; with one argument more, a filter. */
export const transformList =
  (count: 1 | 2, hasFilter: boolean): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, count);
    const result = compiler.compile(argument(call, count + (hasFilter ? 1 : 0)), loop.scope);
    const type = listOf(result.type);
    const filter = hasFilter ? argument(call, count) : undefined;
    const holds = compileCondition(compiler, filter, loop, type);
    return {
      type,
      offset: call.offset,
      run: (frame) => {
        const made: Value[] = [];
        for (const { frame: inner } of loop.frames(frame)) {
          if (holds(inner)) made.push(result.run(inner));
        }
        return new CelList(made);
      },
    };
  };

export const transformMap =
  (hasFilter: boolean): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, 2);
    const result = compiler.compile(argument(call, hasFilter ? 3 : 2), loop.scope);
    const type = mapOf(loop.types[0], result.type);
    const filter = hasFilter ? argument(call, 2) : undefined;
    const holds = compileCondition(compiler, filter, loop, type);
    return {
      type,
      offset: call.offset,
      run: (frame) => {
        const made: [MapKey, Value][] = [];
        for (const { frame: inner, items } of loop.frames(frame)) {
          if (holds(inner)) made.push([items[0] as MapKey, result.run(inner)]);
        }
        return new CelMap(made);
      },
    };
  };

export const transformMapEntry =
  (hasFilter: boolean): Macro =>
  (compiler, call) => {
    const loop = openLoop(compiler, call, 2);
    const result = compiler.compile(argument(call, hasFilter ? 3 : 2), loop.scope);
    const type = compiler.bindings.resolve(result.type);
    const filter = hasFilter ? argument(call, 2) : undefined;
    const holds = compileCondition(compiler, filter, loop, type);
    return {
      type: type.kind === "map" ? type : mapOf(DYN, DYN),
      offset: call.offset,
      run: (frame) => {
        const made = new Map<MapKey, Value>();
        for (const { frame: inner } of loop.frames(frame)) {
          if (!holds(inner)) continue;
          const one = result.run(inner);
          for (const [key, value] of one instanceof CelMap ? one.entries() : []) {
            if (made.has(key)) {
              throw new CelError(`insert failed: key ${String(key)} already exists`);
            }
            made.set(key, value);
          }
        }
        return new CelMap(made);
      },
    };
  };

export const sortBy: Macro = (compiler, call) => {
  const loop = openLoop(compiler, call, 1);
  const key = compiler.compile(argument(call, 1), loop.scope);
  return {
    type: listOf(loop.types[0]),
    offset: call.offset,
    run: (frame) => {
      const items: Value[] = [];
      const keys: Value[] = [];
      for (const one of loop.frames(frame)) {
        items.push(one.items[0]);
        keys.push(key.run(one.frame));
      }
      return sortByKeys(new CelList(items), keys);
    },
  };
};
