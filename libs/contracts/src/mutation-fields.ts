import { isJsonObject } from "@konverge/core";
import { z } from "zod";
import { oneOf } from "./query-fields.ts";

const MAX_DEPTH = 64;
const MAX_SEGMENTS = 32;
/** Largest number of operations of a JSON Patch. */
const MAX_OPERATIONS = 256;

const BAD_PATH = "must be a JSON Pointer of a field, such as /spec/replicas";
const LONG_PATH = `must have at most 1024 characters and ${MAX_SEGMENTS} segments`;
/** A JSON Pointer (RFC 6901) that is not empty. */
export const fieldPath: z.ZodString = z
  .string(BAD_PATH)
  .max(1_024, LONG_PATH)
  .regex(/^(\/([^~/]|~[01])*)+$/, BAD_PATH)
  .refine((path) => path.split("/").length <= MAX_SEGMENTS + 1, LONG_PATH);

/** A value of a field. Null removes fields in the Kubernetes API, so it is not a value. */
const BAD_VALUE = "is required and must not be null; use remove to remove a field";
const TOO_DEEP = `must have at most ${MAX_DEPTH} levels`;
const fieldValue = z
  .unknown()
  .refine((value) => value !== undefined && value !== null, BAD_VALUE)
  .refine(isShallow, TOO_DEEP);
/** A value that a field is compared with; null stands for a missing field. */
export const comparedValue = z.unknown().refine(isShallow, TOO_DEEP);

const BAD_OBJECT = "must be a JSON object";
export const jsonObject = z
  .record(z.string(), z.unknown(), BAD_OBJECT)
  .refine(isJsonObject, BAD_OBJECT)
  .refine(isShallow, TOO_DEEP);

const BAD_OPS = `must have 1 to ${MAX_OPERATIONS} operations`;
const PATCH_OPS = ["add", "replace", "test", "remove", "move", "copy"] as const;
const jsonPatchOperation = z.discriminatedUnion(
  "op",
  [
    z.strictObject({ op: z.enum(["add", "replace"]), path: fieldPath, value: fieldValue }),
    z.strictObject({ op: z.literal("test"), path: fieldPath, value: comparedValue }),
    z.strictObject({ op: z.literal("remove"), path: fieldPath }),
    z.strictObject({ op: z.enum(["move", "copy"]), path: fieldPath, from: fieldPath }),
  ],
  `op ${oneOf(PATCH_OPS)}`,
);

const BAD_BY = "must be a whole number other than 0, at most 2^53";
const BAD_MANAGER = "is required: 1 to 128 printable characters, such as ci-pipeline";

/** One change of an object. */
export const changeSchema = z.discriminatedUnion(
  "kind",
  [
    /** Sets a field. Missing objects above it are created; `-` at the end of a list's path appends. */
    z.strictObject({ kind: z.literal("set"), path: fieldPath, value: fieldValue }),
    /** A JSON Merge Patch (RFC 7396). */
    z.strictObject({ kind: z.literal("merge"), patch: jsonObject }),
    /** Adds an integer to a number or a text of digits. A missing field counts as 0. */
    z.strictObject({
      kind: z.literal("increment"),
      path: fieldPath,
      by: z
        .number(BAD_BY)
        .int(BAD_BY)
        .refine((by) => by !== 0, BAD_BY),
    }),
    /** Appends an item to a list that has no equal item. A missing list is created. */
    z.strictObject({ kind: z.literal("append"), path: fieldPath, value: fieldValue }),
    /** Removes a field; with `value`, the equal items of a list. */
    z.strictObject({
      kind: z.literal("remove"),
      path: fieldPath,
      value: fieldValue.optional(),
    }),
    /** A JSON Patch (RFC 6902). */
    z.strictObject({
      kind: z.literal("jsonPatch"),
      patch: z.array(jsonPatchOperation, BAD_OPS).min(1, BAD_OPS).max(MAX_OPERATIONS, BAD_OPS),
    }),
    /** A server-side apply; the only change of its mutation. */
    z.strictObject({
      kind: z.literal("apply"),
      object: jsonObject,
      fieldManager: z.string(BAD_MANAGER).regex(/^[\x20-\x7e]{1,128}$/, BAD_MANAGER),
      force: z.boolean("must be true or false").optional(),
    }),
  ],
  `kind ${oneOf(["set", "merge", "increment", "append", "remove", "jsonPatch", "apply"])}`,
);

/** Without recursion: a body can be nested deeper than the stack. */
function isShallow(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > MAX_DEPTH) return false;
    level = level.flatMap((each) =>
      typeof each === "object" && each !== null ? Object.values(each) : [],
    );
  }
  return true;
}
