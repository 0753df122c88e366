import type { Case } from "../case.ts";
import { definitions } from "../objects.ts";
import { definitionOf } from "../ruled-definition.ts";

/** Joins tests to one expression of type string: a literal list would exceed the estimated cost. */
const all = (texts: readonly string[], test: (text: string) => string): string =>
  `string(${texts.map(test).join(" && ")})`;
const BASE = "semver('1.0.0-a.0')";

/** Expressions of type string with their values. */
const EXPRESSIONS: readonly (readonly [string, string])[] = [
  ["url('https://u:p@Example.com:8080/a b/é?x=1&x=2&y').getScheme()", "https"],
  ["url('HTTPS://u:p@Example.com:8080/a').getHost()", "Example.com:8080"],
  ["url('http://[::1]:80/').getHostname()", "::1"],
  ["url('http://[::1]:80/').getPort()", "80"],
  ["url('https://h/a b/é/%41?q#f').getEscapedPath()", "/a%20b/%C3%A9/A"],
  ["url('/p(x)/[y]').getEscapedPath()", "/p(x)/[y]"],
  ["url('/p?b=2&a=1+%31&b=3&%zz=1&c;d=1').getQuery()['b'].join(',')", "2,3"],
  ["url('/p?b=2&a=1+%31').getQuery()['a'].join(',')", "1 1"],
  [
    all(
      ["", "a", "http://a b/", "http://[::1", "http://a:b", "/%zz"],
      (text) => `!isURL('${text}')`,
    ),
    "true",
  ],
  [all(["a:b", "http://", "//a", "x:/", "*", "/?"], (text) => `isURL('${text}')`), "true"],
  ["string(url('HTTP://a/%41') == url('http://a/%41') && url('/a') != url('/b'))", "true"],
  ["string(semver('1.2.3').major() + semver('1.2.3').minor() * semver('1.2.3').patch())", "7"],
  [
    all(["1.0.0-a", "1.0.0-2", "1.0.0-10"], (text) => `semver('${text}').isLessThan(${BASE})`),
    "true",
  ],
  [
    all(["1.0.0-a.1", "1.0.0", "1.0.0+b"], (text) => `semver('${text}').compareTo(${BASE}) == 1`),
    "true",
  ],
  [all(["1", "v1.2", "01.2.3"], (text) => `isSemver('${text}', true)`), "true"],
  [all(["1", "v1.2.3", "1.2.3-", "1.2.3+", ""], (text) => `!isSemver('${text}')`), "true"],
  ["string(semver('v01.02', true) == semver('1.2.0+x'))", "true"],
  ["format.dns1123Label().validate('A.b').value()[0].substring(0, 20)", "a lowercase RFC 1123"],
  ["format.dns1123Label().validate('a.b').value()[0]", "must not contain dots"],
  [
    all(
      ["dns1123LabelPrefix", "dns1123SubdomainPrefix", "dns1035LabelPrefix", "uri"],
      (name) => `format.named('${name}').hasValue() && !format.named('x${name}').hasValue()`,
    ),
    "true",
  ],
  ["format.uuid().validate('x!').value()[0]", "does not match the UUID format"],
  ["format.byte().validate('x!').value()[0]", "invalid base64"],
  ["format.datetime().validate('x!').value()[0]", "invalid datetime"],
  ["format.date().validate('2023-02-29').value()[0]", "invalid date"],
  ["format.uri().validate('a').value()[0]", 'parse "a": invalid URI for request'],
  ["format.dns1035Label().validate('1a').value()[0].substring(0, 16)", "a DNS-1035 label"],
  ["format.qualifiedName().validate('a/').value()[0]", "name part must be non-empty"],
  ["string(format.labelValue().validate('').hasValue())", "false"],
  ["'%.0f %.0f %.1f'.format([0.5, 1.5, 0.25])", "0 2 0.2"],
  ["'%f'.format([1e21])", "1,000,000,000,000,000,000,000.000000"],
  ["string('%.101f'.format([0.5]).size())", "103"],
  ["'%.2e|%.16e'.format([0.000125, -2.0])", "1.250000×10⁻⁰⁴|  -2.000000×10⁰⁰"],
  ["'%s'.format([[1234.5]])", "[1234.500000]"],
  [
    "'%s'.format([[timestamp(0), duration('1h'), b'\\x07', 'a\\n\"é', type(1), null, 1u]])",
    '[timestamp("1970-01-01T00:00:00Z"), duration("3600s"), b"\\a", "a\\n\\"é", int, null, 1]',
  ],
  ["'%s'.format([{2: 1.5, 10: 'x'}])", '{10:"x", 2:1.500000}'],
  [
    "'%s'.format([{'b': [true], 'a': {'c': double('Infinity')}}])",
    '{"a":{"c":"+Inf"}, "b":[true]}',
  ],
  ["'%f %.2e %f'.format(['Infinity', 'NaN', '-Infinity'])", "∞ NaN -∞"],
  ["'%x %X %b %o'.format(['é', b'\\xff', true, 8])", "c3a9 FF 1 10"],
  ["string('baaac'.findAll('a*').size())", "3"],
  ["'a1b22'.findAll('(?i)[[:alpha:]]\\\\d+', 1)[0]", "a1"],
];

const group = "functions.konverge.dev";
const fields = Object.fromEntries(
  EXPRESSIONS.map(([messageExpression], index) => [
    `f${index}`,
    { type: "boolean", "x-kubernetes-validations": [{ rule: "!self", messageExpression }] },
  ]),
);

/** Functions of CEL whose values are shown in messages. */
export const ruleFunctions: readonly Case[] = [
  {
    name: "CEL: functions for URLs, versions, named formats, patterns and numbers",
    waits: true,
    steps: [
      {
        send: `POST ${definitions}`,
        body: definitionOf({ group, plural: "shows", kind: "Show" }, fields),
        // Times of the conditions.
        ignore: ["metadata", "status"],
        expect: { code: 201 },
      },
      {
        send: `POST /apis/${group}/v1/shows?dryRun=All`,
        body: {
          apiVersion: `${group}/v1`,
          kind: "Show",
          metadata: { name: "a" },
          ...Object.fromEntries(EXPRESSIONS.map((_one, index) => [`f${index}`, true])),
        },
        retry: true,
        expect: {
          code: 422,
          causes: EXPRESSIONS.map(([, value], index) => ({
            field: `f${index}`,
            message: `Invalid value: true: ${value}`,
          })),
        },
      },
      {
        send: `DELETE ${definitions}/shows.${group}`,
        ignore: ["metadata", "status"],
        expect: { code: 200 },
      },
    ],
  },
];
