import { isJsonObject, type JsonValue } from "@konverge/core";

const FILTER = /^\?\(\s*@\.([\w.-]+)\s*(==|!=)\s*(?:"([^"]*)"|'([^']*)')\s*\)$/;
const PART = /\.?(?:\[((?:[^\]"']|"[^"]*"|'[^']*')+)\]|((?:[^.[\\]|\\.)+))/g;

/**
 * Returns the values at the JSONPath of a printer column: members, indexes, `[*]`, and filters by the text of one member.
 * Other paths have no value.
 */
export function valuesAt(object: JsonValue, path: string): JsonValue[] {
  let values: JsonValue[] = [object];
  for (const [, inside, member] of path.matchAll(PART)) {
    const step = inside ?? member?.replaceAll(/\\(.)/g, "$1") ?? "";
    values = values.flatMap((value) => stepInto(value, step, inside !== undefined));
  }
  return values;
}

function stepInto(value: JsonValue, step: string, isBracket: boolean): JsonValue[] {
  if (isBracket && step === "*") {
    if (Array.isArray(value)) return value;
    return isJsonObject(value) ? Object.values(value) : [];
  }
  const [, member = "", operator, double, single] = (isBracket && FILTER.exec(step)) || [];
  if (operator !== undefined) {
    const wanted = double ?? single;
    const items = Array.isArray(value) ? value : [];
    return items.filter(
      (item) => (String(valuesAt(item, `.${member}`)[0]) === wanted) === (operator === "=="),
    );
  }
  if (isBracket && /^-?\d+$/.test(step) && Array.isArray(value)) {
    const found = value.at(Number(step));
    return found === undefined ? [] : [found];
  }
  const key = isBracket ? step.replaceAll(/^['"]|['"]$/g, "") : step;
  const found = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return found === undefined ? [] : [found];
}
