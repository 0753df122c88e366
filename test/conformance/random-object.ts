import { isJsonObject, type JsonObject, type JsonValue } from "@konverge/core";
import * as fc from "fast-check";
import type { Schema } from "@konverge/apiserver/schema";
import { Choices } from "./random-rules.ts";

/** Chance in percent that a value breaks a rule of its schema. A low one, because objects have many values. */
const WRONG = 3;
const OPTIONAL = 20;
const WORDS = ["a", "b-c", "web.example.com", "10.0.0.0/8", "1h", "Zz9", "", "x y", "é/ü"];
/** Values of the formats, right and wrong. */
const FORMATS: Readonly<Record<string, { readonly right: string[]; readonly wrong: string[] }>> = {
  "date-time": {
    right: ["2024-02-29T10:00:00Z", "2024-02-29t10:00:00.123456z", "2024-02-29T23:59:59+01:00"],
    wrong: ["2023-02-29T10:00:00Z", "2024-02-29T24:00:00Z", "2024-02-29T10:00Z", "2024-02-29"],
  },
  date: { right: ["2024-02-29"], wrong: ["2024-02-30", "2024-2-3", "2024-02-29T10:00:00Z"] },
  byte: { right: ["aGVsbG8=", "AAAA", "AA=="], wrong: ["", "A===", "A", "AA-_"] },
  cidr: {
    right: ["10.0.0.0/8", "fd00::/8", "10.0.0.1/032", "010.0.0.0/8", "::ffff:10.0.0.0/120"],
    wrong: ["10.0.0.0", "10.0.0.0/33", "10.0.0.256/8", "fe80::1%eth0/64", "::/129"],
  },
  ipv4: {
    right: ["10.0.0.1", "010.0.0.1", "::ffff:10.0.0.1"],
    wrong: ["10.0.0", "1.2.3.256", "::1"],
  },
  ipv6: { right: ["::1", "::ffff:10.0.0.1"], wrong: ["10.0.0.1", "fe80::1%eth0", "1::2::3"] },
  uuid: {
    right: ["123e4567-e89b-12d3-a456-426614174000", "123E4567e89b12d3a456426614174000"],
    wrong: ["123e4567", "123e4567-e89b-12d3-a456-42661417400g"],
  },
};

/**
 * Returns an object of a schema, with a small chance of mistakes: wrong types, missing and unknown fields, values out of
 * limits. Null is drawn only where the schema allows it.
 */
export function randomObject(schema: Schema, choices: Choices): JsonObject {
  return new ObjectSource(choices).objectOf(schema);
}

class ObjectSource {
  readonly #choices: Choices;

  constructor(choices: Choices) {
    this.#choices = choices;
  }

  #valueOf(schema: Schema): JsonValue {
    const choices = this.#choices;
    if (schema.nullable === true && choices.happens(10)) return null;
    if (choices.happens(WRONG)) return this.#ofWrongType(schema);
    if (schema["x-kubernetes-int-or-string"] === true) {
      return choices.happens(50) ? choices.below(100) : this.#text(schema);
    }
    switch (schema.type) {
      case "string":
        return this.#text(schema);
      case "boolean":
        return choices.happens(50);
      case "integer":
        return this.#number(schema, 1);
      case "number":
        return this.#number(schema, 4);
      case "array":
        return this.#listOf(schema);
      case "object":
        return this.objectOf(schema);
      default:
        return choices.one<JsonValue>([1, "a", [1, "b"], { a: { b: null } }, {}, false]);
    }
  }

  #ofWrongType({ format }: Schema): JsonValue {
    const drawn = this.#choices.one<JsonValue>([7, "wrong", true, [], {}, 1.5]);
    // kube-apiserver accepts a list in the place of a string that has a format.
    return format !== undefined && Array.isArray(drawn) ? true : drawn;
  }

  #text({ enum: values, pattern, format, minLength = 0, maxLength = 80 }: Schema): string {
    const choices = this.#choices;
    const isWrong = choices.happens(WRONG);
    if (values !== undefined) return isWrong ? "other" : String(choices.one(values));
    if (isWrong) return choices.happens(50) ? "x".repeat(maxLength + 1) : choices.one(WORDS);
    const { right, wrong } = FORMATS[format ?? ""] ?? {};
    if (right !== undefined) return choices.one(choices.happens(10) ? (wrong ?? right) : right);
    if (pattern !== undefined) return this.#matching(pattern, minLength, maxLength);
    return choices.one(WORDS).padEnd(minLength, "y").slice(0, maxLength);
  }

  /** The generator knows most of the syntax. With the rest, a word is drawn, which may not match. */
  #matching(pattern: string, minLength: number, maxLength: number): string {
    const seed = this.#choices.below(2 ** 31);
    try {
      const drawn = fc.sample(fc.stringMatching(new RegExp(pattern)), { seed, numRuns: 20 });
      const fits = (text: string) => text.length >= minLength && text.length <= maxLength;
      return drawn.find((text) => fits(text) && !/[^\u0020-\ud7ff]/.test(text)) ?? "a";
    } catch {
      return this.#choices.one(WORDS);
    }
  }

  #number({ minimum = -50, maximum = 50_000 }: Schema, parts: number): number {
    const choices = this.#choices;
    if (choices.happens(WRONG)) return choices.one([minimum - 1, maximum + 1, 0.5, 2 ** 40]);
    const low = Math.ceil(minimum);
    const high = Math.max(low, Math.min(Math.floor(maximum), low + 1000));
    return low + choices.below((high - low) * parts + 1) / parts;
  }

  #listOf(schema: Schema): JsonValue[] {
    const { items = {}, minItems = 0, maxItems = 100 } = schema;
    const choices = this.#choices;
    const count = choices.happens(WRONG)
      ? choices.below(3)
      : Math.min(maxItems, Math.max(minItems, choices.below(3)));
    const drawn = Array.from({ length: count }, () => this.#valueOf(items));
    const type = schema["x-kubernetes-list-type"];
    if (type !== "set" && type !== "map") return drawn;
    if (choices.happens(5)) return drawn;
    const keys = schema["x-kubernetes-list-map-keys"] ?? [];
    const identity = (item: JsonValue) =>
      type === "map" && isJsonObject(item) ? keys.map((key) => item[key] ?? null) : item;
    return [...new Map(drawn.map((item) => [JSON.stringify(identity(item)), item])).values()];
  }

  objectOf(schema: Schema): JsonObject {
    const { properties, additionalProperties, required = [] } = schema;
    const choices = this.#choices;
    const result: JsonObject = {};
    const isEmbedded = schema["x-kubernetes-embedded-resource"] === true;
    if (isEmbedded) Object.assign(result, this.#typeMeta());
    if (typeof additionalProperties === "object") {
      for (let left = choices.below(3); left > 0; left -= 1) {
        result[choices.one(["a", "b", "c.d/e"])] = this.#valueOf(additionalProperties);
      }
    }
    const wanted = this.#wantedOf(schema);
    for (const [name, property] of Object.entries(properties ?? {})) {
      if (isEmbedded && name in { apiVersion: 0, kind: 0, metadata: 0 }) continue;
      const isRequired = required.includes(name) && property.default === undefined;
      const isThere = wanted.get(name) ?? choices.happens(isRequired ? 100 - WRONG : OPTIONAL);
      if (isThere) result[name] = this.#valueOf(property);
    }
    // kube-apiserver empties objects in maps with `additionalProperties: true`; zod keeps their fields.
    const unknown = additionalProperties === true ? 1 : { a: 1 };
    if (choices.happens(5)) result["unknownField"] = unknown;
    return result;
  }

  #typeMeta(): JsonObject {
    const choices = this.#choices;
    const result: JsonObject = {};
    const draw = (name: string, right: JsonValue) => {
      if (choices.happens(WRONG)) return;
      result[name] = choices.happens(WRONG) ? choices.one<JsonValue>([7, "", {}]) : right;
    };
    draw("apiVersion", "v1");
    draw("kind", "A");
    if (choices.happens(50)) result["metadata"] = { name: "a" };
    return result;
  }

  /** Returns names whose presence follows from `oneOf`, `anyOf` or a number of properties, usually without a mistake. */
  #wantedOf(schema: Schema): ReadonlyMap<string, boolean> {
    const choices = this.#choices;
    const wanted = new Map<string, boolean>();
    if (choices.happens(5)) return wanted;
    for (const branches of [
      schema.anyOf,
      schema.oneOf,
      ...(schema.allOf ?? []).map((one) => one.oneOf),
    ]) {
      if (branches === undefined) continue;
      for (const name of branches.flatMap(namesOf)) wanted.set(name, false);
      for (const name of choices.one(branches).required ?? []) wanted.set(name, true);
    }
    if (schema.minProperties !== undefined && schema.properties !== undefined) {
      const names = Object.keys(schema.properties);
      for (const name of names) wanted.set(name, false);
      for (let left = schema.minProperties; left > 0; left -= 1) {
        wanted.set(choices.one(names), true);
      }
    }
    return wanted;
  }
}

function namesOf(branch: Schema): string[] {
  const inner = [...(branch.anyOf ?? []), ...(branch.not === undefined ? [] : [branch.not])];
  return [...(branch.required ?? []), ...inner.flatMap(namesOf)];
}
