import type { Case } from "../case.ts";
import { definitions } from "../objects.ts";
import { definition, invalid, ruled } from "../ruled-definition.ts";

const STRING =
  "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given";
const wrong = (text: string) => `error during formatting: ${text}`;
const unparsable = (text: string) => `could not parse formatting clause: ${text}`;

/** Formats of literals that are wrong, with the marked part and the error. */
const REJECTED: readonly (readonly [rule: string, at: string, error: string])[] = [
  [
    "'%d'.format([self]) == ''",
    "self",
    wrong("decimal clause can only be used on integers, was given string"),
  ],
  [
    "'%f'.format([1]) == ''",
    "1",
    wrong("fixed-point clause can only be used on doubles, was given int"),
  ],
  [
    "'%s'.format(['%.1f %e'.format([1.5, timestamp('2024-02-29T23:59:59Z')])]) == ''",
    "('2024",
    wrong("scientific clause can only be used on doubles, was given google.protobuf.Timestamp"),
  ],
  [
    "'%b'.format([1.5]) == ''",
    "1.5",
    wrong("only integers and bools can be formatted as binary, was given double"),
  ],
  [
    "'%x'.format([[1]]) == ''",
    "[1]",
    wrong("only integers, byte buffers, and strings can be formatted as hex, was given list"),
  ],
  [
    "'%X'.format([null]) == ''",
    "null",
    wrong("only integers, byte buffers, and strings can be formatted as hex, was given null_type"),
  ],
  [
    "'%o'.format([true]) == ''",
    "true",
    wrong("octal clause can only be used on integers, was given bool"),
  ],
  ["'%s'.format([[1, {'a': optional.of(1)}]]) == ''", "(1)", wrong(`${STRING} optional_type`)],
  ["'%s'.format([url('/a')]) == ''", "('/a')", wrong(`${STRING} kubernetes.URL`)],
  [
    "['a'].exists(x, '%d'.format([x]) == '')",
    "x])",
    wrong("decimal clause can only be used on integers, was given string"),
  ],
  ["'%d %s'.format([1]) == ''", "([1])", "index 1 out of range"],
  [
    "'a'.format([1]) == ''",
    "([1])",
    "too many arguments supplied to string.format (expected 0, got 1)",
  ],
  ["'%'.format([1]) == ''", "([1])", "unexpected end of string"],
  ["'%é'.format([1]) == ''", "([1])", unparsable('unrecognized formatting clause "Ã"')],
  [
    "'%.'.format([1]) == ''",
    "([1])",
    unparsable("error while parsing precision: could not find end of precision specifier"),
  ],
  [
    "'%.f'.format([1.0]) == ''",
    "([1.0])",
    unparsable(
      'error while parsing precision: error while converting precision to integer: strconv.Atoi: parsing "": invalid syntax',
    ),
  ],
];
/** Calls that are not checked before they run. */
const ACCEPTED: readonly string[] = [
  "('%d' + '').format([self]) == ''",
  "'%d'.format([self] + []) == ''",
  "'%f'.format([self]) == ''",
  "'%d'.format([dyn(self)]) == ''",
  "[].all(x, '%d'.format([x]) == '')",
];

/** Literal formats in CEL, which kube-apiserver checks when it reads a definition. */
export const ruleFormats: readonly Case[] = [
  {
    name: "CEL: a literal format that does not fit its arguments is rejected, also inside of another call",
    steps: [
      {
        send: `POST ${definitions}?dryRun=All`,
        body: definition(REJECTED.map(([rule]) => ruled(rule))),
        expect: {
          code: 422,
          causes: REJECTED.map(([rule, at, error], index) => {
            const column = rule.indexOf(at);
            // A character of several bytes is shown with a wide mark.
            const before = rule.slice(0, column).replaceAll(/[^é]/g, ".").replaceAll("é", "．");
            const detail = `ERROR: <input>:1:${column + 1}: ${error}\n | ${rule}\n | ${before}^`;
            return invalid(index, "rule", `compilation failed: ${detail}`, rule);
          }),
        },
      },
    ],
  },
  {
    name: "CEL: a format that is checked only when it runs is accepted",
    steps: [
      {
        send: `POST ${definitions}?dryRun=All`,
        body: definition(ACCEPTED.map((rule) => ruled(rule))),
        ignore: ["metadata", "status"],
        expect: { code: 201 },
      },
    ],
  },
];
