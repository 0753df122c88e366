import {
  dns1035LabelErrors,
  dnsLabelErrors,
  labelValueErrors,
  qualifiedNameErrors,
  subdomainErrors,
} from "@konverge/core";
import { parseRequestUri } from "../values/go-url.ts";
import { hasFormat } from "../values/string-formats.ts";
import { CelError, CelList, Opaque, Optional } from "../values/value.ts";
import { global, member, type Overload } from "./declaration.ts";

const TYPE = "kubernetes.NamedFormat";

/** Returns the problems of a text. */
type Check = (text: string) => readonly string[];

const schemaFormat =
  (format: string, problem: string): Check =>
  (text) =>
    hasFormat(format, text) ? [] : [problem];

function uriProblems(text: string): string[] {
  try {
    parseRequestUri(text);
    return [];
  } catch (error) {
    if (error instanceof CelError) return [error.message];
    throw error;
  }
}

const FORMATS: Readonly<Record<string, Check>> = {
  dns1123Label: (text) => dnsLabelErrors(text),
  dns1123Subdomain: (text) => subdomainErrors(text),
  dns1035Label: (text) => dns1035LabelErrors(text),
  qualifiedName: qualifiedNameErrors,
  dns1123LabelPrefix: (text) => dnsLabelErrors(text, true),
  dns1123SubdomainPrefix: (text) => subdomainErrors(text, true),
  dns1035LabelPrefix: (text) => dns1035LabelErrors(text, true),
  labelValue: labelValueErrors,
  uri: uriProblems,
  uuid: schemaFormat("uuid", "does not match the UUID format"),
  byte: schemaFormat("byte", "invalid base64"),
  date: schemaFormat("date", "invalid date"),
  datetime: schemaFormat("date-time", "invalid datetime"),
};

function named(name: string): Optional {
  return Object.hasOwn(FORMATS, name) ? new Optional(new Opaque(TYPE, name)) : new Optional();
}

function validate({ content }: Opaque<string>, text: string): Optional {
  const problems = FORMATS[content]?.(text) ?? [];
  return problems.length === 0 ? new Optional() : new Optional(new CelList([...problems]));
}

export const NAMED_FORMATS: readonly Overload[] = [
  ...Object.keys(FORMATS).map((name) =>
    global(`format.${name}`, `-> ${TYPE}`, () => new Opaque(TYPE, name)),
  ),
  global("format.named", `string -> optional(${TYPE})`, named),
  member("validate", `${TYPE}, string -> optional(list(string))`, validate),
];
