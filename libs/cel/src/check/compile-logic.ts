import { CelError, type Value } from "../values/value.ts";
import type { Compiled } from "./compiled.ts";

type Run = Compiled["run"];

/** `&&`: false on either side decides, even if the other side fails. */
export const compileAnd = (sides: Iterable<Run>): Run => decide(sides, false);

/** `||`: true on either side decides, even if the other side fails. */
export const compileOr = (sides: Iterable<Run>): Run => decide(sides, true);

function decide(sides: Iterable<Run>, deciding: boolean): Run {
  return (frame) => {
    let error: unknown;
    for (const side of sides) {
      let value: Value = null;
      try {
        value = side(frame);
      } catch (thrown) {
        if (!(thrown instanceof CelError)) throw thrown;
        error ??= thrown;
        continue;
      }
      if (value === deciding) return deciding;
      if (typeof value !== "boolean") error ??= new CelError("no such overload");
    }
    if (error !== undefined) throw error;
    return !deciding;
  };
}
