import { isIP } from "node:net";

/** Visible characters, without the specials of RFC 5322. */
const ATOM = /[^\0- ()<>[\]:;@\\,"\u007F]+/y;
const QUOTED = /"((?:[^\0-\u0008\n-\u001F"\\\u007F]|\\[^\0-\u0008\n-\u001F\u007F])*)"/y;
const DOMAIN_LITERAL = /\[([^\0- [\]\\\u007F]*)\]/y;

/** Reads an address of RFC 5322 as Go's `net/mail` does, from left to right. */
class AddressReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Returns true if the whole text is one address, also with a name or in a group. */
  isSingleAddress(): boolean {
    return this.#addresses(true) === 1 && this.#skipComments() && this.#at === this.#text.length;
  }

  /** Returns the number of addresses, or undefined if the text is invalid. */
  #addresses(isGroupAllowed: boolean): number | undefined {
    if (this.#plainAddress()) {
      this.#skipSpace();
      if (this.#text[this.#at] !== "(") return 1;
      return this.#comment() ? 1 : undefined;
    }
    if (this.#text[this.#at] !== "<" && !this.#phrase()) return undefined;
    this.#skipSpace();
    if (isGroupAllowed && this.#takes(":")) return this.#group();
    return this.#takes("<") && this.#plainAddress() && this.#takes(">") ? 1 : undefined;
  }

  #group(): number | undefined {
    this.#skipSpace();
    if (this.#takes(";")) return this.#skipComments() ? 0 : undefined;
    for (let count = 0; ;) {
      this.#skipSpace();
      const found = this.#addresses(false);
      if (found === undefined || !this.#skipComments()) return undefined;
      count += found;
      if (this.#takes(";")) return this.#skipComments() ? count : undefined;
      if (!this.#takes(",")) return undefined;
    }
  }

  /** Reads `local@domain`, or nothing. */
  #plainAddress(): boolean {
    this.#skipSpace();
    const start = this.#at;
    const isRead = this.#localPart() && this.#takes("@") && this.#domain();
    if (!isRead) this.#at = start;
    return isRead;
  }

  #localPart(): boolean {
    if (this.#text[this.#at] !== '"') return this.#dottedAtom();
    const [, inside = ""] = this.#read(QUOTED) ?? [];
    return inside !== "";
  }

  #domain(): boolean {
    this.#skipSpace();
    if (this.#text[this.#at] !== "[") return this.#dottedAtom();
    const [, address = ""] = this.#read(DOMAIN_LITERAL) ?? [];
    return isIP(address) !== 0 && !address.includes("%");
  }

  #dottedAtom(): boolean {
    const [atom = ""] = this.#read(ATOM) ?? [];
    return atom !== "" && !/^\.|\.\.|\.$/.test(atom);
  }

  /** Reads a name of one or more words. */
  #phrase(): boolean {
    for (let count = 0; ; count += 1) {
      if (count > 0 && !this.#skipComments()) return false;
      this.#skipSpace();
      const pattern = this.#text[this.#at] === '"' ? QUOTED : ATOM;
      if (this.#read(pattern) === undefined) return count > 0 || this.#at === this.#text.length;
    }
  }

  #skipComments(): boolean {
    for (this.#skipSpace(); this.#text[this.#at] === "("; this.#skipSpace()) {
      if (!this.#comment()) return false;
    }
    return true;
  }

  #comment(): boolean {
    let depth = 0;
    do {
      const character = this.#text[this.#at];
      if (character === undefined) return false;
      const isEscape = character === "\\" && this.#at + 1 < this.#text.length;
      if (character === "(") depth += 1;
      if (character === ")") depth -= 1;
      this.#at += isEscape ? 2 : 1;
    } while (depth > 0);
    return true;
  }

  #skipSpace(): void {
    while (this.#text[this.#at] === " " || this.#text[this.#at] === "\t") this.#at += 1;
  }

  #takes(character: string): boolean {
    const isThere = this.#text[this.#at] === character;
    if (isThere) this.#at += 1;
    return isThere;
  }

  #read(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text) ?? undefined;
    if (match !== undefined) this.#at = pattern.lastIndex;
    return match;
  }
}

/** Returns true if Go's `mail.ParseAddress` accepts the text. Words in encodings other than UTF-8 are not decoded. */
export const isMailAddress = (text: string): boolean => new AddressReader(text).isSingleAddress();
