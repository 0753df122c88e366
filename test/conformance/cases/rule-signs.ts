import type { Case } from "../case.ts";
import { definitions } from "../objects.ts";
import { definition, invalid, ruled } from "../ruled-definition.ts";

const ACCEPTED: readonly string[] = [
  "--self == self",
  "!!self == self",
  "--self.size() == 0",
  "-(3) == - 3",
  "[-9223372036854775808, -0x10, --1].exists(i, -i < 0)",
  `${"!".repeat(5000)}true`,
];
const noOverload = (name: string, types: string) =>
  `found no matching overload for '${name}' applied to '(${types})'`;
const noRange =
  "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)";
/** Rules with their error and its column. */
const REJECTED: readonly (readonly [string, string, number])[] = [
  ["-3.exists(k, k == 1)", noRange, 1],
  ["!-3.exists(k, k == 1)", noRange, 2],
  ["[1].exists(i, - 3.exists(k, k == 1))", noRange, 15],
  ["-1.5[0] == 1", noOverload("_[_]", "double, int"), 5],
  ["-1.size() == 1", "found no matching overload for 'size' applied to 'int.()'", 8],
  ["-self.size() == '1'", noOverload("_==_", "int, string"), 14],
  ["---self == self", noOverload("-_", "string"), 1],
  ["-(self).size() == '1'", noOverload("_==_", "int, string"), 16],
];
const MIXED = ["-!true == 1", "!-self == 1", "!--1 == 1", "--!true"];

/** Signs in CEL, which the parser of kube-apiserver partly removes. */
export const ruleSigns: readonly Case[] = [
  {
    name: "CEL: an even number of signs has no effect, and a minus is part of a number",
    steps: [
      {
        send: `POST ${definitions}?dryRun=All`,
        body: definition(ACCEPTED.map((rule) => ruled(rule))),
        ignore: ["metadata", "status"],
        expect: { code: 201 },
      },
      {
        send: `POST ${definitions}?dryRun=All`,
        body: definition(REJECTED.map(([rule]) => ruled(rule))),
        expect: {
          code: 422,
          causes: REJECTED.map(([rule, message, column], index) => {
            const error = `ERROR: <input>:1:${column}: ${message}`;
            const mark = `${".".repeat(column - 1)}^`;
            return invalid(
              index,
              "rule",
              `compilation failed: ${error}\n | ${rule}\n | ${mark}`,
              rule,
            );
          }),
        },
      },
    ],
  },
  {
    name: "CEL: different signs need parentheses between them",
    steps: [
      {
        send: `POST ${definitions}?dryRun=All`,
        body: definition(MIXED.map((rule) => ruled(rule))),
        // The texts of syntax errors differ.
        ignore: ["details", "message"],
        expect: {
          code: 422,
          causes: MIXED.map((_rule, index) => ({
            field: `spec.validation.openAPIV3Schema.properties[f${index}].x-kubernetes-validations[0].rule`,
          })),
        },
      },
    ],
  },
];
