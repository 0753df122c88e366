/**
 * The texts that an attempt has read from sensitive objects, so that none of them leaks through an error or a log line
 * (P12).
 */
export interface AttemptSecrets {
  readonly isEmpty: boolean;
  /** Records every text of an object except its names. */
  note(object: object): void;
  /** Replaces the recorded texts in every form: plain, base64-encoded or decoded, or escaped as in JSON. */
  scrub(text: string): string;
  /** True if a value contains a recorded text of 8 or more characters. Shorter ones occur everywhere. */
  revealedBy(value: unknown): boolean;
}

const REDACTED = "(redacted)";
/** Shorter texts carry no secret and occur everywhere. */
const MIN_CHARS = 3;
/** Shorter texts count only as whole words. */
const WORD_CHARS = 6;
/** Shorter texts do not make a value secret, such as a user name or a port. */
const TELLING_CHARS = 8;
/** Each line of a multi-line value may leak on its own. */
const MIN_LINE_CHARS = 8;
/** Longer texts are withheld as a whole: searching them for every value would take too long. */
const MAX_VALUES = 20_000;
/** A draft may contain a cycle until it is checked. */
const MAX_DEPTH = 64;
/** Fields that name an object or belong to the server. */
const PUBLIC = new Set(["apiVersion", "kind", "type", "immutable"]);
const METADATA = ["labels", "annotations"];

export function createAttemptSecrets(): AttemptSecrets {
  const values = new Set<string>();

  const noteText = (text: string) => {
    if (values.size > MAX_VALUES) return;
    for (const form of [text, decoded(text), Buffer.from(text).toString("base64")]) {
      if (form === undefined || form.length < MIN_CHARS) continue;
      values.add(form);
      const escaped = JSON.stringify(form).slice(1, -1);
      if (escaped !== form) values.add(escaped);
      const lines = form.split(/\r?\n/);
      if (lines.length > 1) {
        for (const line of lines) if (line.length >= MIN_LINE_CHARS) values.add(line);
      }
    }
  };
  const noteLeaves = (value: unknown, depth = 0) => {
    if (typeof value === "string") noteText(value);
    else if (typeof value === "number") noteText(String(value));
    else if (typeof value === "object" && value !== null && depth < MAX_DEPTH) {
      for (const member of Object.values(value)) noteLeaves(member, depth + 1);
    }
  };

  return {
    get isEmpty() {
      return values.size === 0;
    },
    note(object) {
      for (const [field, value] of Object.entries(object)) {
        if (PUBLIC.has(field)) continue;
        if (field !== "metadata") noteLeaves(value);
        else for (const name of METADATA) noteLeaves((value as Record<string, unknown>)[name]);
      }
    },
    revealedBy(value) {
      if (values.size === 0) return false;
      if (values.size > MAX_VALUES) return true;
      const text = JSON.stringify(value) ?? "";
      return [...values].some((each) => each.length >= TELLING_CHARS && text.includes(each));
    },
    scrub(text) {
      if (values.size === 0) return text;
      if (values.size > MAX_VALUES) return REDACTED;
      // Longest first: one value may be a part of another.
      const found = [...values].filter((value) => text.includes(value));
      return found
        .toSorted((one, other) => other.length - one.length)
        .reduce((scrubbed, value) => replaceValue(scrubbed, value), text);
    },
  };
}

function replaceValue(text: string, value: string): string {
  if (value.length >= WORD_CHARS) return text.replaceAll(value, REDACTED);
  const literal = value.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`);
  const word = new RegExp(`(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}])`, "gu");
  return text.replaceAll(word, REDACTED);
}

/** Returns the decoded text of a base64 text; undefined if it is not one. */
function decoded(text: string): string | undefined {
  if (text.length % 4 !== 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return undefined;
  const plain = Buffer.from(text, "base64").toString("utf8");
  return plain.includes("\uFFFD") ? undefined : plain;
}
