import type { Case } from "../case.ts";
import { definitions } from "../objects.ts";
import { definition, invalid, ruled } from "../ruled-definition.ts";

const conversion = (from: string, to: string) => `type conversion error from '${from}' to '${to}'`;
const missingParenthesis = (pattern: string) =>
  `error parsing regexp: missing closing ): \`${pattern}\``;

/** Rules with a constant that cannot be evaluated, also where no evaluation would reach it. */
const REJECTED: readonly (readonly [string, string])[] = [
  ["true || int('x') == 1", conversion("string", "int")],
  ["self == 'a' ? true : bool('x')", conversion("string", "bool")],
  ["double('x') == 1.0", conversion("string", "double")],
  ["uint('-1') == 1u", conversion("string", "uint")],
  ["duration(string('x')) == duration('1s')", conversion("string", "google.protobuf.Duration")],
  ["timestamp(string('x')) == timestamp(1)", conversion("string", "google.protobuf.Timestamp")],
  ["int(1e30) == 1", "integer overflow"],
  ["uint(-1) == 1u", "unsigned integer overflow"],
  ["uint(-1.5) == 1u", "unsigned integer overflow"],
  ["int(dyn('x')) == 1", conversion("string", "int")],
  ["int(dyn([1])) == 1", "no such overload: int(list)"],
  ["int(string(self in [])) == 1", conversion("string", "int")],
  ["[1].all(i, int('x') == i)", conversion("string", "int")],
  ["[int('x')].exists(i, uint('x') == uint(i))", conversion("string", "int")],
  ["string(int('x')).contains(string(bool('y')))", conversion("string", "int")],
  ["string(b'\\xff') == self", "invalid UTF-8 in bytes, cannot convert to string"],
  ["self.matches(string('(a'))", missingParenthesis("(a")],
  ["matches(self, '(a')", missingParenthesis("(a")],
  ["self.find('(a') == self", missingParenthesis("(a")],
  ["self.findAll('(a', 1) == [self]", missingParenthesis("(a")],
];
/** Rules whose errors name the place of the constant: name of the function and column. */
const AT_PLACE: readonly (readonly [string, string, number])[] = [
  ["timestamp(999999999999999) == timestamp(1)", "timestamp", 11],
  ["timestamp(1) == timestamp(-999999999999999)", "timestamp", 27],
  ["timestamp('2024-01-01') == timestamp(1)", "timestamp", 11],
  ["duration(1) == duration('1s')", "duration", 10],
  ["self.matches('(a')", "matches", 14],
  ["matches('(a', self)", "matches", 9],
];
/** Rules that fail only when they are evaluated. */
const ACCEPTED: readonly string[] = [
  "timestamp(-(999999999999999)) == timestamp(1)",
  "self.find('(' + self) == self",
  "int(self) == 1",
  "int('x' + '') == 1",
  "int(true ? 'x' : 'y') == 1",
  "int(-(1.0e30)) == 1",
  "[1].all(i, int(dyn(i) + 1e30) == i)",
  "type(int('1')) == int",
  "self.matches('(' + self)",
  "dyn([string(1), 'a'])[0] == self",
];

/** Constants in CEL, which kube-apiserver evaluates when it reads a definition. */
export const ruleConstants: readonly Case[] = [
  {
    name: "CEL: a rule with a constant that cannot be evaluated is rejected",
    steps: [
      {
        send: `POST ${definitions}?dryRun=All`,
        body: definition(REJECTED.map(([rule]) => ruled(rule))),
        expect: {
          code: 422,
          causes: REJECTED.map(([rule, error], index) =>
            invalid(index, "rule", `program instantiation failed: ${error}`, rule),
          ),
        },
      },
      {
        send: `POST ${definitions}?dryRun=All`,
        body: definition(AT_PLACE.map(([rule]) => ruled(rule))),
        expect: {
          code: 422,
          causes: AT_PLACE.map(([rule, name, column], index) => {
            const error = `ERROR: <input>:1:${column}: invalid ${name} argument`;
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
      {
        send: `POST ${definitions}?dryRun=All`,
        body: definition([ruled("true", { messageExpression: "string(int('x'))" })]),
        expect: {
          code: 422,
          causes: [
            invalid(
              0,
              "messageExpression",
              `messageExpression instantiation failed: ${conversion("string", "int")}`,
              "true",
              "string(int('x'))",
            ),
          ],
        },
      },
    ],
  },
  {
    name: "CEL: a rule with a call that only seems constant is accepted",
    steps: [
      {
        send: `POST ${definitions}?dryRun=All`,
        body: definition(ACCEPTED.map((rule) => ruled(rule))),
        ignore: ["metadata", "status"],
        expect: { code: 201 },
      },
    ],
  },
  {
    name: "CEL: optionalOldSelf without oldSelf is an error also if the rule is invalid",
    steps: ["int('x') == 1", "self +", "'a'"].map((rule) => ({
      send: `POST ${definitions}?dryRun=All`,
      body: definition([ruled(rule, { optionalOldSelf: true })]),
      // The texts of syntax errors differ.
      ignore: ["details", "message"],
      expect: {
        code: 422,
        causes: ["optionalOldSelf", "rule"].map((member) => ({
          field: `spec.validation.openAPIV3Schema.properties[f0].x-kubernetes-validations[0].${member}`,
        })),
      },
    })),
  },
];
