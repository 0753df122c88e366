import { defined, isJsonObject, KonvergeError, parseJson, type JsonValue } from "@konverge/core";
import type { NewMutation } from "@konverge/contracts";
import { InvalidArgumentError, Option, type Command } from "commander";
import { readJson } from "./read-json.ts";

type Change = NewMutation["changes"][number];
type Conditions = NonNullable<NewMutation["if"]>;
type FieldCondition = NonNullable<Conditions["fields"]>[number];

export interface ChangeFlags {
  readonly patchFile?: string;
  readonly applyFile?: string;
  readonly fieldManager?: string;
  readonly force?: boolean;
  readonly ifGeneration?: number;
  readonly ifMissing?: boolean;
  // Each has the changes of all options, in their order.
  readonly set?: readonly Change[];
  readonly setString?: readonly Change[];
  readonly increment?: readonly Change[];
  readonly append?: readonly Change[];
  readonly remove?: readonly Change[];
  readonly if?: readonly FieldCondition[];
}

/** Adds the options of changes and preconditions. Those of changes share a list, because their order matters. */
export function withChanges(command: Command): Command {
  const changes: Change[] = [];
  const add = (flags: string, description: string, changeOf: (text: string) => Change) =>
    command.addOption(
      new Option(flags, description).argParser((text: string) => {
        changes.push(changeOf(text));
        return changes;
      }),
    );
  add("--set <path=value>", "Field to set, and its value; repeatable, like all changes", (text) => {
    const [path, value] = assignment(text);
    return { kind: "set", path, value: valueOf(value) };
  });
  add("--set-string <path=text>", "Field to set, and its text", (text) => {
    const [path, value] = assignment(text);
    return { kind: "set", path, value };
  });
  add("--increment <path=n>", "Field and the integer to add to it", (text) => {
    const [path, by] = assignment(text);
    if (!/^-?\d+$/.test(by)) {
      throw new InvalidArgumentError("Use an integer, such as /data/count=1 or /data/count=-1.");
    }
    return { kind: "increment", path, by: Number(by) };
  });
  add(
    "--append <path=value>",
    "List, and the value to append unless it has an equal item",
    (text) => {
      const [path, value] = assignment(text);
      return { kind: "append", path, value: valueOf(value) };
    },
  );
  add(
    "--remove <path[=value]>",
    "Field to remove, or list and the value to remove from it",
    (text) => {
      if (!text.includes("=")) return { kind: "remove", path: pathOf(text) };
      const [path, value] = assignment(text);
      return { kind: "remove", path, value: valueOf(value) };
    },
  );
  return command
    .option("--patch-file <file>", "File with a merge patch or JSON Patch; - for standard input")
    .option(
      "--apply-file <file>",
      "JSON file with the object to apply server-side; - for standard input",
    )
    .option("--field-manager <name>", "Field manager of --apply-file (default: konverge-cli)")
    .option("--force", "Take fields of --apply-file from other field managers")
    .addOption(
      new Option(
        "--if <path[=value]>",
        "Required value, field (/path) or absence (!/path); repeatable",
      ).argParser((text: string, before: readonly FieldCondition[] | undefined) => [
        ...(before ?? []),
        conditionOf(text),
      ]),
    )
    .addOption(
      new Option("--if-generation <n>", "Required generation of the object").argParser(
        (text: string) => {
          if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
          throw new InvalidArgumentError("Use a generation, which is an integer >= 1.");
        },
      ),
    )
    .option("--if-missing", "Require that the object does not exist (needs --create)");
}

/** Returns the changes and preconditions of the options. @throws KonvergeError `invalid_request` */
export async function changesOf(flags: ChangeFlags): Promise<{
  readonly changes: NewMutation["changes"];
  readonly conditions: Conditions | undefined;
}> {
  const { set, setString, increment, append, remove } = flags;
  const changes = [...(set ?? setString ?? increment ?? append ?? remove ?? [])];
  if (flags.patchFile !== undefined) changes.push(await patchIn(flags.patchFile));
  if (flags.applyFile !== undefined) changes.push(await applyIn(flags.applyFile, flags));
  if (changes.length === 0) {
    const detail =
      "no change given; use --set, --set-string, --increment, --append, --remove, --patch-file or --apply-file";
    throw new KonvergeError("invalid_request", detail);
  }
  const { if: fields, ifGeneration: generation, ifMissing } = flags;
  const conditions: Conditions = {
    ...(fields === undefined ? {} : { fields: [...fields] }),
    ...defined({ generation }),
    ...(ifMissing === true ? { exists: false } : {}),
  };
  return {
    changes,
    conditions: Object.keys(conditions).length === 0 ? undefined : conditions,
  };
}

async function patchIn(file: string): Promise<Change> {
  const patch = await readJson("--patch-file", `@${file}`);
  if (isJsonObject(patch)) return { kind: "merge", patch };
  // The server validates the operations.
  if (Array.isArray(patch)) return { kind: "jsonPatch", patch };
  throw new KonvergeError(
    "invalid_request",
    "--patch-file must contain a JSON object (merge patch) or a list (JSON Patch)",
  );
}

async function applyIn(
  file: string,
  { fieldManager = "konverge-cli", force }: ChangeFlags,
): Promise<Change> {
  const object = await readJson("--apply-file", `@${file}`);
  if (!isJsonObject(object)) {
    throw new KonvergeError("invalid_request", "--apply-file must contain a JSON object");
  }
  return { kind: "apply", object, fieldManager, ...(force === true ? { force } : {}) };
}

function conditionOf(text: string): FieldCondition {
  if (text.startsWith("!")) return { path: pathOf(text.slice(1)), exists: false };
  if (!text.includes("=")) return { path: pathOf(text), exists: true };
  const [path, value] = assignment(text);
  return { path, value: valueOf(value) };
}

/** Splits at the first `=`. */
function assignment(text: string): readonly [path: string, value: string] {
  const at = text.indexOf("=");
  if (at > 0) return [pathOf(text.slice(0, at)), text.slice(at + 1)];
  throw new InvalidArgumentError("Use a JSON Pointer and a value, such as /spec/replicas=5.");
}

function pathOf(text: string): string {
  if (text.startsWith("/")) return text;
  throw new InvalidArgumentError("Use a JSON Pointer, such as /spec/replicas.");
}

/** JSON, or the text itself. */
function valueOf(text: string): JsonValue {
  try {
    return parseJson(text);
  } catch {
    return text;
  }
}
