/**
 * Scans JSON text for details that `JSON.parse` does not report: duplicate keys, and Go's error text for invalid JSON,
 * which the real server passes on.
 */
export interface ScanResult {
  /** Paths of repeated keys, for example `spec.replicas`. */
  readonly duplicates: readonly string[];
  /** Go's message, if the text is not valid JSON. */
  readonly error: string | undefined;
}

class BadJson extends Error {}

export function scanJson(text: string): ScanResult {
  const scanner = new Scanner(text);
  try {
    scanner.document();
    return { duplicates: scanner.duplicates, error: undefined };
  } catch (error) {
    if (error instanceof BadJson) return { duplicates: [], error: error.message };
    throw error;
  }
}

const SPACE = /[ \t\r\n]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const PLAIN_TEXT = /[^"\\\u0000-\u001f]*/y;

class Scanner {
  readonly duplicates: string[] = [];
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): void {
    this.#value("");
    this.#skipSpace();
    if (this.#at < this.#text.length) this.#fail("after top-level value");
  }

  #value(path: string): void {
    this.#skipSpace();
    const character = this.#text[this.#at];
    if (character === "{") this.#object(path);
    else if (character === "[") this.#array(path);
    else if (character === '"') this.#string();
    else if (character === "t") this.#literal("true");
    else if (character === "f") this.#literal("false");
    else if (character === "n") this.#literal("null");
    else this.#number();
  }

  #object(path: string): void {
    this.#at++;
    const seen = new Set<string>();
    this.#skipSpace();
    if (this.#take("}")) return;
    for (;;) {
      this.#skipSpace();
      if (this.#text[this.#at] !== '"') this.#fail("looking for beginning of object key string");
      const key = this.#string();
      const child = path === "" ? key : `${path}.${key}`;
      if (seen.has(key)) this.duplicates.push(child);
      seen.add(key);
      this.#skipSpace();
      if (!this.#take(":")) this.#fail("after object key");
      this.#value(child);
      this.#skipSpace();
      if (this.#take("}")) return;
      if (!this.#take(",")) this.#fail("after object key:value pair");
    }
  }

  #array(path: string): void {
    this.#at++;
    this.#skipSpace();
    if (this.#take("]")) return;
    for (let index = 0; ; index++) {
      this.#value(`${path}[${index}]`);
      this.#skipSpace();
      if (this.#take("]")) return;
      if (!this.#take(",")) this.#fail("after array element");
    }
  }

  #string(): string {
    const from = this.#at++;
    for (;;) {
      PLAIN_TEXT.lastIndex = this.#at;
      PLAIN_TEXT.test(this.#text);
      this.#at = PLAIN_TEXT.lastIndex;
      if (this.#take('"')) break;
      if (this.#text[this.#at] === "\\") this.#at += 2;
      else this.#fail("in string literal");
      if (this.#at > this.#text.length) this.#fail("in string literal");
    }
    const raw = this.#text.slice(from, this.#at);
    return raw.includes("\\") ? parseString(raw) : raw.slice(1, -1);
  }

  #literal(word: string): void {
    for (const [index, character] of Array.from(word).entries()) {
      if (!this.#take(character)) {
        this.#fail(`in literal ${word} (expecting '${word[index] ?? ""}')`);
      }
    }
  }

  #number(): void {
    NUMBER.lastIndex = this.#at;
    if (!NUMBER.test(this.#text)) this.#fail("looking for beginning of value");
    this.#at = NUMBER.lastIndex;
  }

  #skipSpace(): void {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #fail(context: string): never {
    const character = this.#text[this.#at];
    if (character === undefined) throw new BadJson("unexpected end of JSON input");
    throw new BadJson(`invalid character ${quoteCharacter(character)} ${context}`);
  }
}

function parseString(raw: string): string {
  try {
    return String(JSON.parse(raw));
  } catch {
    throw new BadJson("invalid character in string escape code");
  }
}

function quoteCharacter(character: string): string {
  if (character === "'") return String.raw`'\''`;
  if (character === '"') return `'"'`;
  return `'${JSON.stringify(character).slice(1, -1)}'`;
}
