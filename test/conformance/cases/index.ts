import type { Case } from "../case.ts";
import { applying } from "./applying.ts";
import { builtInKinds } from "./built-in-kinds.ts";
import { createDelete } from "./create-delete.ts";
import { edges } from "./edges.ts";
import { embeddedObjects } from "./embedded-objects.ts";
import { fields } from "./fields.ts";
import { foreign } from "./foreign.ts";
import { kinds } from "./kinds.ts";
import { lessons } from "./lessons.ts";
import { reading } from "./reading.ts";
import { requests } from "./requests.ts";
import { ruleConstants } from "./rule-constants.ts";
import { ruleFormats } from "./rule-formats.ts";
import { ruleFunctions } from "./rule-functions.ts";
import { ruleSigns } from "./rule-signs.ts";
import { rules } from "./rules.ts";
import { stringFormats } from "./string-formats.ts";
import { versions } from "./versions.ts";
import { watching } from "./watching.ts";
import { writePath } from "./write-path.ts";

/** Every case, in order of execution. Cases are independent. */
export const CASES: readonly Case[] = [
  ...writePath,
  ...versions,
  ...lessons,
  ...fields,
  ...embeddedObjects,
  ...createDelete,
  ...reading,
  ...watching,
  ...applying,
  ...kinds,
  ...builtInKinds,
  ...edges,
  ...ruleSigns,
  ...rules,
  ...ruleFunctions,
  ...ruleConstants,
  ...ruleFormats,
  ...stringFormats,
  ...foreign,
  ...requests,
];
